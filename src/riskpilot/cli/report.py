"""``riskpilot report``: the page that shows a study's selection."""

from pathlib import Path
from typing import Annotated

import typer

from riskpilot.cli import terminal
from riskpilot.cli.options import ArtifactsOption, StorageArgument, StudyNameOption, examples
from riskpilot.cli.outputs import check_outputs
from riskpilot.study import open_study, select

EXAMPLES = examples("riskpilot report sqlite:///adult.db --out adult.html")


def report(
    storage: StorageArgument,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    study_name: StudyNameOption = None,
    artifacts: ArtifactsOption = None,
) -> None:
    """Write the page that shows a study's selection.

    The question is the study's own. Where it has been asked before, the same answer is shown
    again; where it has not, this opens the calibration data and is recorded in the ledger.
    """
    check_outputs({"--out": out}, storage, artifacts=artifacts)
    with terminal.waiting("Selecting and drawing"):
        path = select(open_study(storage, study_name, artifacts)).report(out)
    terminal.say(terminal.output(), f"report: {path}")
