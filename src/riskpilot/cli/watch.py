"""``riskpilot watch``: take new labels, and say whether the promise still holds."""

from contextlib import nullcontext
from dataclasses import asdict
from glob import glob
from pathlib import Path
from typing import Annotated, Any

import typer

from riskpilot import watch as watching
from riskpilot.cli import terminal
from riskpilot.cli.options import JsonOption, ReportOption, examples
from riskpilot.cli.outputs import check_outputs
from riskpilot.common import how_many
from riskpilot.errors import TableError
from riskpilot.guarantee import Certificate
from riskpilot.problem import Problem
from riskpilot.tables import column_names

SCHEMA = "riskpilot-watched/2"

EXAMPLES = examples(
    "riskpilot watch certificate.json --losses 'today/*.parquet' --state watch.json",
    "riskpilot watch certificate.json --losses labels.csv --state watch.json --ids request_id "
    "--metrics /var/lib/node_exporter/riskpilot.prom --report watch.html",
    "riskpilot watch certificate.json --losses labels.csv --judge scores.csv --state watch.json",
    "A judge's file has the same column of ids, a column of scores for each risk that it helps "
    "with, and fresh: true where an example is never labelled. Of several files, each has the "
    "name of the file of labels that it belongs to.",
    "Exit code: 0 no alarm, 1 alarm, 2 bad input. A file, or an example with an id, that was "
    "counted before is passed over.",
)


def watch(
    certificate: Annotated[Path, typer.Argument(help="The certificate, a JSON file.")],
    losses: Annotated[
        list[str],
        typer.Option(
            help="New labels of the certified configuration: .csv, .parquet or .json files with "
            "one row per example and a column per risk, which holds what its name says (under "
            "correct>=0.85, 1 is good); globs are read in the order of names. "
            "Repeat it for several."
        ),
    ] = [],  # noqa: B006 - typer copies it
    state: Annotated[
        str | None,
        typer.Option(help="Where the watch is kept from one call to the next: a file, or a study."),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(help="The column that tells examples apart; example, where there is one."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="The column of weights, where examples are labelled with different probabilities."
        ),
    ] = None,
    largest_weight: Annotated[
        float | None, typer.Option(help="One over the smallest of these probabilities.")
    ] = None,
    judge: Annotated[
        list[str],
        typer.Option(
            help="A judge's scores of these examples and of fresh ones, in the words of the "
            "columns, as the labels are: files or globs."
        ),
    ] = [],  # noqa: B006 - typer copies it
    fresh: Annotated[
        str, typer.Option(help="The judge's column that says which examples are never labelled.")
    ] = "fresh",
    delta: Annotated[
        float | None,
        typer.Option(
            help="The chance of a false alarm over the whole life of the watch; 0.05, or that of "
            "the watch in --state."
        ),
    ] = None,
    metrics: Annotated[
        Path | None, typer.Option(help="Write numbers for Prometheus here (.prom).")
    ] = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch a certified configuration: take new labels, and raise an alarm when a limit breaks."""
    check_outputs({"--metrics": metrics, "--report": report}, certificate, state, *losses, *judge)
    with terminal.waiting(f"Reading labels for {certificate}"):
        files = [file for pattern in losses for file in _files(pattern)]
        scores = _paired(files, [file for pattern in judge for file in _files(pattern)])
        kind = watching.Watch
        helped = _judged(certificate, scores[0]) if scores and scores[0] is not None else None
        how: Any = {"largest_weight": largest_weight, "judge": helped}
        if delta is not None:
            how["delta"] = delta
        opened = (
            nullcontext(kind(certificate, **how))
            if state is None
            else kind.open(state, certificate, **how)
        )
        columns: Any = {"ids": ids, "weights": weights, "fresh": fresh}
        with opened as watched:
            before = watched.n_repeated
            counted = [
                watched.update_from_file(file, judge=scored, **columns)
                for file, scored in zip(files, scores, strict=True)
            ]
        repeated = watched.n_repeated - before
        if metrics is not None:
            watching.write_metrics(watched, metrics)
        if report is not None:
            watched.report(report)
    if as_json:
        terminal.print_json(
            {
                "alarm": watched.alarm,
                "new_labels": sum(counted),
                "repeated_labels": repeated,
                "labels": watched.n_labels,
                "alarms": [asdict(alarm) for alarm in watched.alarms],
                "risks": {name: asdict(risk) for name, risk in watched.risks.items()},
                "message": watched.message,
            },
            schema=SCHEMA,
        )
    else:
        console = terminal.output()
        new, read = how_many(sum(counted), "new label"), how_many(len(files), "file")
        terminal.say(console, f"{new} from {read}")
        if repeated:
            terminal.say(
                console,
                f"{how_many(repeated, 'label was', 'labels were')} passed over, because "
                f"{'its id' if repeated == 1 else 'their ids'} had been counted. Only the first "
                f"label of an id counts; labels are not kept, so that a later one may differ from "
                f"it.",
                "yellow",
            )
        terminal.show_verdict(console, watched.message, good=not watched.alarm)
        written = {"state": None if state is None else Path(state)}
        terminal.show_files(console, {**written, "metrics": metrics, "report": report})
    if watched.alarm:
        raise typer.Exit(terminal.ExitCode.DOES_NOT_HOLD)


def _judged(certificate: Path, scores: str) -> list[str]:
    """Say with which risks a judge helps: those for which its file has a column."""
    names = Problem.from_dict(Certificate.load(certificate).problem).names
    known = column_names(scores)
    return [name for name in names if name in known]


def _paired(files: list[str], scores: list[str]) -> list[str | None]:
    """Find the judge's file for each file of labels: the one of the same name, or the only one."""
    if not scores:
        return [None] * len(files)
    if len(files) == len(scores) == 1:
        return list(scores)
    named = {Path(score).stem: score for score in scores}
    found = [named.get(Path(file).stem) for file in files]
    odd = next((file for file, score in zip(files, found, strict=True) if score is None), None)
    if odd is not None or len(named) != len(scores) or len(scores) != len(files):
        raise TableError(
            f"Every file of labels has a file of the judge's scores of the same name, but there "
            f"are {len(files)} and {len(scores)}"
            f"{'' if odd is None else f', and none for {odd!r}'}. Give one for each, or leave "
            f"--judge out."
        )
    return found


def _files(pattern: str) -> list[str]:
    """Find the files that a path or a pattern means, in the order of their names."""
    found = [pattern] if Path(pattern).is_file() else sorted(glob(pattern, recursive=True))
    if not found:
        raise TableError(
            f"There is no file {pattern!r} with new labels. Give the path of a file, or a pattern "
            f"in quotes, relative to the folder in which the command runs."
        )
    return found
