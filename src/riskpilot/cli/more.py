"""Commands that show more than a verdict: a report, the live page, the replay of the experiments.

The live page and the replay need extras, so their modules are imported when they are called for.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from riskpilot.cli import terminal
from riskpilot.errors import StudyError
from riskpilot.study import open_study, select


def report(
    storage: Annotated[str, typer.Argument(help="A study's storage, such as sqlite:///adult.db.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    study_name: Annotated[
        str | None, typer.Option(help="Which study of the storage, where it holds several.")
    ] = None,
    artifacts: Annotated[
        Path | None, typer.Option(help="The folder of its losses, where it lies elsewhere.")
    ] = None,
) -> None:
    """Write the page that shows a study's selection.

    The question is the study's own. Where it has been asked before, the same answer is shown
    again; where it has not, this opens the calibration data and is recorded in the ledger.

    Example: riskpilot report sqlite:///adult.db --out adult.html
    """
    with terminal.errors().status("Selecting and drawing"):
        path = select(open_study(storage, study_name, artifacts)).report(out)
    terminal.output().print(Text(f"report: {path}"))


def dashboard(
    storage: Annotated[str, typer.Argument(help="A study's storage, such as sqlite:///adult.db.")],
    host: Annotated[str, typer.Option(help="Who may look: this machine only by default.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Where the page is served.")] = 8080,
) -> None:
    """Serve Optuna's dashboard with riskpilot's figure, live, from validation data alone.

    Example: riskpilot dashboard sqlite:///adult.db
    """
    try:
        from riskpilot.dashboard import serve
    except ImportError as error:
        raise StudyError(
            f"The live page needs optuna-dashboard, which is not installed ({error}). "
            f"Install it: pip install 'riskpilot[dashboard]'."
        ) from error
    terminal.output().print(Text(f"Serving on http://{host}:{port} (stop with Ctrl-C)"))
    serve(storage, host, port)


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

    Example: riskpilot bench --task fairness --method guided --method uniform --method dense
    """
    try:
        from riskpilot.bench.run import run
    except ImportError as error:
        raise StudyError(
            f"The replay needs packages that are not installed ({error}). "
            f"Install them: pip install 'riskpilot[bench,baselines]'."
        ) from error
    run(task or None, method or None, seeds, splits, out, quick, jobs)
