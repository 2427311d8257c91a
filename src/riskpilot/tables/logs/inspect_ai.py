"""Logs of Inspect AI: ``.eval`` archives and JSON."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from riskpilot.errors import TableError, shown
from riskpilot.tables.logs.runs import (
    LoggedSample,
    Run,
    as_number,
    as_text,
    cut,
    field,
    parsed,
    records,
    said,
    text_of,
    unlike,
    with_errors,
)
from riskpilot.tables.logs.zipped import ZippedJson

TOOL = "Inspect AI"
VERSIONS = (2,)
_HEAD = re.compile(r'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')
# Grades as Inspect AI turns them into numbers: correct, partial, incorrect, no answer.
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
# Settings that say how requests are sent, and nothing of what is answered.
_SENDING = frozenset(
    ["adaptive_connections", "attempt_timeout", "batch", "cache", "max_connections", "max_retries", "stream_idle_timeout", "timeout"]
)


def recognises(path: Path, head: str) -> bool:
    """Say whether a file is such a log, by its name and how it begins."""
    return path.suffix.lower() == ".eval" or _HEAD.match(head) is not None


def read(path: Path) -> list[Run]:
    """Read a log: one run."""
    if path.suffix.lower() == ".eval":
        header, samples = _from_archive(path)
    else:
        header = parsed(text_of(path, TOOL), path.name, TOOL)
        _check(header, path.name)
        samples = header.get("samples")
    samples = records(samples, path.name, TOOL, "samples")
    if not samples:
        raise unlike(path.name, TOOL, "it has no samples; was it written with log_samples=False?")
    good = _accuracies(header)
    config = _config(header, path.name)
    return [Run(path.name, config, [_sample(path.name, item, good) for item in samples])]


def _from_archive(path: Path) -> tuple[Mapping[str, Any], Any]:
    """Read the header of an archive, and what it says of each sample in short."""
    archive = ZippedJson(path, TOOL)
    if "header.json" not in archive and "_journal/start.json" in archive:
        raise cut(path.name, TOOL, "the evaluation did not end")
    header = archive.read("header.json")
    _check(header, path.name)
    if "summaries.json" in archive:
        return header, archive.read("summaries.json", "array")
    names = (name for name in archive.names() if name.startswith("samples/"))
    return header, [archive.read(name) for name in names]


def _check(header: Any, file: str) -> None:
    """Refuse another version, and an evaluation that did not end well."""
    version = field(header, file, TOOL, "version")
    if version not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise unlike(file, TOOL, f"its version is {shown(version)}, and riskpilot reads {known}")
    status = field(header, file, TOOL, "status")
    if status != "success":
        raise TableError(
            f"{file!r}: the evaluation must have ended well, but its status is {shown(status)}. "
            f"Finish it with inspect eval-retry, or leave the log out."
        )
    if header.get("invalidated"):
        raise TableError(
            f"{file!r}: samples of this log were marked as invalid. Run them again, or leave the "
            f"log out."
        )


def _accuracies(header: Mapping[str, Any]) -> list[str]:
    """List the scores of which Inspect AI computed an accuracy: these are better when larger."""
    results = header.get("results") or {}
    return [
        score["name"]
        for score in results.get("scores") or []
        if "accuracy" in (score.get("metrics") or {})
    ]


def _config(header: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Collect what makes up the configuration: model, task, their arguments, prompts, sampling."""
    spec = field(header, file, TOOL, "eval")
    plan = header.get("plan") or {}
    steps = [
        {"solver": step.get("solver"), **(step.get("params") or {})}
        for step in plan.get("steps") or []
    ]
    generation = {**(spec.get("model_generate_config") or {}), **(plan.get("config") or {})}
    return said(
        {
            "model": field(spec, file, TOOL, "model"),
            "task": field(spec, file, TOOL, "task"),
            **{f"task.{name}": value for name, value in (spec.get("task_args") or {}).items()},
            "model_args": spec.get("model_args"),
            "model_roles": spec.get("model_roles"),
            "solvers": steps,
            **{name: value for name, value in generation.items() if name not in _SENDING},
        }
    )


def _sample(file: str, item: Mapping[str, Any], good: list[str]) -> LoggedSample:
    """Read one answer."""
    example = as_text(field(item, file, TOOL, "id"))
    if item.get("error"):
        raise TableError(
            f"{file!r}: every sample needs a score, but sample {example!r} ended in an error. "
            f"Finish it with inspect eval-retry, or leave the log out."
        )
    scores: dict[str, float] = {}
    for name, score in (item.get("scores") or {}).items():
        value = score.get("value") if isinstance(score, Mapping) else score
        parts = value if isinstance(value, Mapping) else {None: value}
        for part, inner in parts.items():
            number = _GRADES.get(inner) if isinstance(inner, str) else as_number(inner)
            if number is not None:
                column = name if part is None else str(part)
                scores[f"{name}.{part}" if column in scores else column] = number
    content = {"input": as_text(item.get("input")), "target": as_text(item.get("target"))}
    return LoggedSample(example, content, {**_spent(item), **with_errors(scores, good)})


def _spent(item: Mapping[str, Any]) -> dict[str, float]:
    """Add up what a sample took: tokens and costs of all models, and seconds without waiting."""
    usage = [use for use in (item.get("model_usage") or {}).values() if isinstance(use, Mapping)]
    spent = {}
    for column, name in (("tokens", "total_tokens"), ("cost", "total_cost")):
        numbers = [number for use in usage if (number := as_number(use.get(name))) is not None]
        if numbers:
            spent[column] = sum(numbers)
    seconds = as_number(item.get("working_time", item.get("total_time")))
    return spent if seconds is None else {**spent, "seconds": seconds}
