"""Logs of Inspect AI: ``.eval`` archives and JSON."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from riskpilot.errors import TableError, shown
from riskpilot.tables.logs.log_files import LogFile
from riskpilot.tables.logs.runs import LoggedSample, Run, as_number, as_text, said, with_errors
from riskpilot.tables.logs.zipped import ZippedJson

TOOL = "Inspect AI"
VERSIONS = (2,)
_HEAD = re.compile(r'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')
# Grades as Inspect AI turns them into numbers: correct, partial, incorrect, no answer.
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
# Settings that say how requests are sent, and nothing of what is answered.
_SENDING = frozenset(
    [
        "adaptive_connections",
        "attempt_timeout",
        "batch",
        "cache",
        "max_connections",
        "max_retries",
        "stream_idle_timeout",
        "timeout",
    ]
)


def recognises(path: Path, head: str) -> bool:
    """Say whether a file is such a log, by its name and how it begins."""
    return path.suffix.lower() == ".eval" or _HEAD.match(head) is not None


def read(path: Path) -> list[Run]:
    """Read a log: one run."""
    log = LogFile(path, TOOL)
    if path.suffix.lower() == ".eval":
        header, samples = _from_archive(log)
    else:
        header = log.parsed(log.text())
        _check(log, header)
        samples = log.parts(header, "samples")
    if not samples:
        raise log.unlike("it has no samples; was it written with log_samples=False?")
    good = _accuracies(log, header)
    config = _config(log, header)
    return [Run(path.name, config, [_sample(log, item, good) for item in samples])]


def _from_archive(log: LogFile) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Read the header of an archive, and what it says of each sample in short."""
    archive = ZippedJson(log)
    if "header.json" not in archive and "_journal/start.json" in archive:
        raise log.cut("the evaluation did not end")
    header = archive.read("header.json")
    _check(log, header)
    if "summaries.json" in archive:
        samples = archive.read("summaries.json", "array")
    else:
        names = (name for name in archive.names() if name.startswith("samples/"))
        samples = [archive.read(name) for name in names]
    return header, log.parts({"samples": samples}, "samples")


def _check(log: LogFile, header: Any) -> None:
    """Refuse another version, and an evaluation that did not end well."""
    log.check_version(log.field(header, "version"), VERSIONS)
    status = log.field(header, "status")
    if status != "success":
        raise TableError(
            f"{log.name!r}: the evaluation must have ended well, but its status is "
            f"{shown(status)}. Finish it with inspect eval-retry, or leave the log out."
        )
    if header.get("invalidated"):
        raise TableError(
            f"{log.name!r}: samples of this log were marked as invalid. Run them again, or leave "
            f"the log out."
        )


def _accuracies(log: LogFile, header: Mapping[str, Any]) -> list[str]:
    """List the scores of which Inspect AI computed an accuracy: these are better when larger."""
    scores = log.parts(log.part(header, "results"), "scores")
    return [
        as_text(log.field(score, "name"))
        for score in scores
        if "accuracy" in log.part(score, "metrics")
    ]


def _config(log: LogFile, header: Mapping[str, Any]) -> dict[str, Any]:
    """Collect what makes up the configuration: model, task, their arguments, prompts, sampling."""
    spec, plan = log.part(header, "eval"), log.part(header, "plan")
    steps = [
        {"solver": step.get("solver"), **log.part(step, "params")}
        for step in log.parts(plan, "steps")
    ]
    generation = {**log.part(spec, "model_generate_config"), **log.part(plan, "config")}
    return said(
        {
            "model": log.field(spec, "model"),
            "task": log.field(spec, "task"),
            **{f"task.{name}": value for name, value in log.part(spec, "task_args").items()},
            "model_args": spec.get("model_args"),
            "model_roles": spec.get("model_roles"),
            "solvers": steps,
            **{name: value for name, value in generation.items() if name not in _SENDING},
        }
    )


def _sample(log: LogFile, item: Mapping[str, Any], good: list[str]) -> LoggedSample:
    """Read one answer."""
    example = as_text(log.field(item, "id"))
    if item.get("error"):
        raise TableError(
            f"{log.name!r}: every sample needs a score, but sample {shown(example)} ended in an "
            f"error. Finish it with inspect eval-retry, or leave the log out."
        )
    scores: dict[str, float] = {}
    for name, score in log.part(item, "scores").items():
        value = score.get("value") if isinstance(score, Mapping) else score
        parts = value if isinstance(value, Mapping) else {None: value}
        for part, inner in parts.items():
            number = _GRADES.get(inner) if isinstance(inner, str) else as_number(inner)
            if number is not None:
                column = name if part is None else str(part)
                scores[f"{name}.{part}" if column in scores else column] = number
    content = {"input": as_text(item.get("input")), "target": as_text(item.get("target"))}
    return LoggedSample(example, content, {**_spent(log, item), **with_errors(scores, good)})


def _spent(log: LogFile, item: Mapping[str, Any]) -> dict[str, float]:
    """Add up what a sample took: tokens and costs of all models, and seconds without waiting."""
    models = log.part(item, "model_usage")
    usage = [log.part(models, name) for name in models]
    spent = {}
    for column, name in (("tokens", "total_tokens"), ("cost", "total_cost")):
        numbers = [number for use in usage if (number := as_number(use.get(name))) is not None]
        if numbers:
            spent[column] = sum(numbers)
    seconds = as_number(item.get("working_time", item.get("total_time")))
    return spent if seconds is None else {**spent, "seconds": seconds}
