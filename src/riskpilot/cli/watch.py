"""``riskpilot watch``: take new labels, and say whether the promise still holds."""

from contextlib import nullcontext
from dataclasses import asdict
from glob import glob
from pathlib import Path
from typing import Annotated

import typer

from riskpilot import watch as watching
from riskpilot.cli import terminal
from riskpilot.cli.options import JsonOption, ReportOption, examples
from riskpilot.errors import TableError

SCHEMA = "riskpilot-watched/1"

EXAMPLES = examples(
    "riskpilot watch certificate.json --losses 'today/*.parquet' --state watch.json",
    "riskpilot watch certificate.json --losses labels.csv --state watch.json --ids request_id "
    "--metrics /var/lib/node_exporter/riskpilot.prom --report watch.html",
    "Exit code: 0 no alarm, 1 alarm, 2 bad input. A file, or an example with an id, that was "
    "counted before is passed over.",
)


def watch(
    certificate: Annotated[Path, typer.Argument(help="The certificate, a JSON file.")],
    losses: Annotated[
        list[str],
        typer.Option(
            help="New labels of the certified configuration: .csv, .parquet or .json files with "
            "one row per example and a column per risk; globs are read in the order of names. "
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
    delta: Annotated[
        float, typer.Option(help="The chance of a false alarm over the whole life of the watch.")
    ] = 0.05,
    metrics: Annotated[
        Path | None, typer.Option(help="Write numbers for Prometheus here (.prom).")
    ] = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch a certified configuration: take new labels, and raise an alarm when a limit breaks."""
    with terminal.waiting(f"Reading labels for {certificate}"):
        files = [file for pattern in losses for file in _files(pattern)]
        kind = watching.Watch
        opened = (
            nullcontext(kind(certificate, delta=delta, largest_weight=largest_weight))
            if state is None
            else kind.open(state, certificate, delta=delta, largest_weight=largest_weight)
        )
        with opened as watched:
            counted = [watched.update_from_file(file, ids=ids, weights=weights) for file in files]
        if metrics is not None:
            watching.write_metrics(watched, metrics)
        if report is not None:
            watched.report(report)
    if as_json:
        terminal.print_json(
            {
                "alarm": watched.alarm,
                "new_labels": sum(counted),
                "labels": watched.n_labels,
                "alarms": [asdict(alarm) for alarm in watched.alarms],
                "risks": {name: asdict(risk) for name, risk in watched.risks.items()},
                "message": watched.message,
            },
            schema=SCHEMA,
        )
    else:
        console = terminal.output()
        terminal.say(console, f"{sum(counted):,} new labels from {len(files):,} files")
        terminal.show_verdict(console, watched.message, good=not watched.alarm)
        written = {"state": None if state is None else Path(state)}
        terminal.show_files(console, {**written, "metrics": metrics, "report": report})
    if watched.alarm:
        raise typer.Exit(terminal.ExitCode.DOES_NOT_HOLD)


def _files(pattern: str) -> list[str]:
    """Find the files that a path or a pattern means, in the order of their names."""
    found = [pattern] if Path(pattern).is_file() else sorted(glob(pattern, recursive=True))
    if not found:
        raise TableError(
            f"There is no file {pattern!r} with new labels. Give the path of a file, or a pattern "
            f"in quotes, relative to the folder in which the command runs."
        )
    return found
