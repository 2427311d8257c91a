"""``riskpilot bench``: replay the paper's experiments from their tables of losses."""

from pathlib import Path
from typing import Annotated

import typer

from riskpilot.cli.options import examples

EXAMPLES = examples(
    "riskpilot bench --quick",
    "riskpilot bench --task fairness --method guided --method uniform --method dense",
    "riskpilot bench --task pruning --out build/pruning",
)


def bench(
    task: Annotated[
        list[str] | None,
        typer.Option("--task", help="A task by name, may be repeated; all by default."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", help="A method by name, may be repeated; all by default."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Searches of each method.")] = None,
    splits: Annotated[int | None, typer.Option(help="Splits into calibration and test.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of tables, figures and page.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small part, in two minutes.")] = False,
    jobs: Annotated[int, typer.Option(help="Processes side by side.")] = 2,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--afresh", help="Go on from what earlier runs kept, or run it all again."
        ),
    ] = True,
) -> None:
    """Replay the paper's experiments from their tables of losses.

    The folder --out gets tables (cells, ablations, seeds, comparisons and claims, as CSV),
    figures/, and pages: README.md, settings.md and one for each task in tasks/. A run that names
    tasks or methods writes pages of these alone, so give it a folder of its own.

    Every finished search and test is kept in .cache of that folder until the code behind it
    changes, so that a run that was interrupted goes on where it was. Searches by packages of
    others (EHVI, ParEGO), which take most of the time, are kept in peers.json as well, until their
    task, their package or their own code changes. A folder without one starts from
    experiments/results/peers.json, where a whole replay has left it there.
    """
    # Only this command needs the replay, which is slow to import.
    from riskpilot.bench.run import run

    run(task or None, method or None, seeds, splits, out, quick, jobs, resume)
