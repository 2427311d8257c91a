"""``riskpilot bench``: replay the paper's experiments from their tables of losses."""

from pathlib import Path
from typing import Annotated

import typer

from riskpilot.cli.options import examples

EXAMPLES = examples(
    "riskpilot bench --quick",
    "riskpilot bench --task fairness --method guided --method uniform --method dense",
)


def bench(
    task: Annotated[
        list[str] | None, typer.Option("--task", help="A task by name; all by default.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", help="A method by name; all by default.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Searches of each method.")] = None,
    splits: Annotated[int | None, typer.Option(help="Splits into calibration and test.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of tables, figures and page.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small part, in two minutes.")] = False,
    jobs: Annotated[int, typer.Option(help="Processes side by side.")] = 2,
) -> None:
    """Replay the paper's experiments from their tables of losses.

    What was finished before is not run again.
    """
    # Only this command needs the replay, which is slow to import.
    from riskpilot.bench.run import run

    run(task or None, method or None, seeds, splits, out, quick, jobs)
