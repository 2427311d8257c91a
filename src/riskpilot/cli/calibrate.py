"""``riskpilot calibrate``: take the labels that are there, and say whether more are needed."""

import json
from typing import Annotated

import typer
from rich.console import Console

from riskpilot.cli import terminal
from riskpilot.cli.options import (
    ArtifactsOption,
    JsonOption,
    OutOption,
    ReportOption,
    StorageArgument,
    StudyNameOption,
    examples,
)
from riskpilot.cli.outputs import RENEWED, check_outputs
from riskpilot.guarantee import config_in_words, with_short_numbers
from riskpilot.study import (
    Calibration,
    FileColumns,
    calibration_from_files,
    hide_password,
    open_study,
)

SCHEMA = "riskpilot-calibrate/1"

EXAMPLES = examples(
    "riskpilot calibrate study.db --horizon 1000",
    "riskpilot calibrate study.db --labels labels.csv --horizon 1000 --out certificate.json",
    "riskpilot calibrate study.db --labels labels.csv --judge scores.csv --horizon 1000",
    "The file has one row per labelled example and trial, new ones at the end: example, trial, and "
    "a column for each risk. Without --labels the trials are listed whose losses are needed.",
    "A judge's table has one row per example and trial, labelled ones and fresh ones: example, "
    "trial, fresh (true where the example is never labelled), and a column of scores for each risk "
    "that it helps with. Fresh examples are settled before the first label.",
    "Exit code: 0 certified, 4 go on labelling, 3 nothing can be certified any more, 2 bad input.",
)


def calibrate(
    storage: StorageArgument,
    horizon: Annotated[int, typer.Option(help="The largest number of labels, fixed beforehand.")],
    labels: Annotated[
        str | None,
        typer.Option(
            help="A table of labels (.csv, .parquet, .json), in the order they came. A column "
            "holds what its name says: under correct>=0.85, 1 is good."
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="A table of a judge's scores of labelled and of fresh examples, each in the words "
            "of its column, as the labels are."
        ),
    ] = None,
    trial: Annotated[str, typer.Option(help="The column of the numbers of the trials.")] = "trial",
    example: Annotated[str, typer.Option(help="The column of the examples' ids.")] = "example",
    fresh: Annotated[
        str, typer.Option(help="The column that says which examples are never labelled.")
    ] = "fresh",
    study_name: StudyNameOption = None,
    artifacts: ArtifactsOption = None,
    out: OutOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take labels as they arrive, and say "go on" or "certified: stop"."""
    outputs = {"--out": out, "--report": report}
    check_outputs(outputs, storage, labels, judge, artifacts=artifacts, renewed=RENEWED)
    with terminal.waiting(f"Reading labels for {hide_password(storage)}"):
        study = open_study(storage, study_name, artifacts)
        columns = FileColumns(trial, example, fresh)
        calibration, new = calibration_from_files(study, horizon, labels, judge, columns)
        selection = calibration.select() if calibration.n_labels else None
        if selection is not None and out is not None:
            selection.certificate.save(out)
        if selection is not None and report is not None:
            selection.report(report)
    verdict, code = _verdict(calibration)
    if as_json:
        terminal.print_json(
            {
                "verdict": verdict,
                "certified": calibration.certified,
                "config": None if selection is None else selection.config,
                "done": calibration.done,
                "needed": [calibration.trials[position] for position in calibration.needed],
                "labels": calibration.n_labels,
                "new_labels": new,
                "horizon": calibration.horizon,
                "message": calibration.message,
                "certificate": None
                if selection is None
                else json.loads(selection.certificate.to_json()),
            },
            schema=SCHEMA,
        )
    else:
        console = terminal.output()
        _show(console, calibration)
        terminal.show_verdict(console, f"{verdict}\n{calibration.message}", good=code == 0)
        if selection is not None and selection.config is not None:
            terminal.say(console, with_short_numbers(selection.message, selection.config))
        written = selection is not None
        terminal.show_files(console, {"certificate": out, "report": report} if written else {})
    raise typer.Exit(code)


def _verdict(calibration: Calibration) -> tuple[str, int]:
    """Say in a few words what to do, with the exit code for scripts."""
    if calibration.certified:
        if calibration.done:
            return "certified: stop", 0
        return "certified: stop, or go on for the candidates that are still open", 0
    if calibration.done:
        return "nothing can be certified: stop", int(terminal.ExitCode.NOTHING_CERTIFIED)
    return "go on", int(terminal.ExitCode.GO_ON)


def _show(console: Console, calibration: Calibration) -> None:
    """Show the candidates in testing order, with their labels and what is needed."""
    rows = []
    certified = calibration.certified
    for position, config in enumerate(calibration.candidates):
        state = "open" if position in calibration.needed else "decided"
        state = "certified" if config in certified else state
        cells = [
            state,
            calibration.trials[position],
            f"{calibration.labels[position]:,}",
            config_in_words(config),
        ]
        rows.append((cells, "green" if state == "certified" else None))
    heads = ["verdict", "trial", "labels", "configuration"]
    terminal.show_table(console, "Candidates, in testing order", heads, rows)
