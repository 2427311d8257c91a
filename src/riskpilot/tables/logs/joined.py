"""Runs of several logs as one table: a row for each configuration and example."""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from riskpilot.common import canonical
from riskpilot.errors import TableError, shown
from riskpilot.tables.logs.runs import LoggedSample, Run

_NAMES = {"config": "VARCHAR", "example": "VARCHAR", "repeats": "BIGINT"}


def write_rows(runs: Sequence[Run], path: Path) -> dict[str, str]:
    """Write the rows of some runs as JSON lines; return DuckDB's type of each column.

    Columns: ``config``, the text of a JSON object; ``example``; ``repeats``, how many answers to
    the example there are; and what was measured, averaged over these answers.
    """
    check_examples(runs)
    types = dict(_NAMES)
    with path.open("w", encoding="utf-8") as file:
        for row in _rows(runs):
            types |= {name: "DOUBLE" for name in row if name not in _NAMES}
            file.write(json.dumps(row, allow_nan=False) + "\n")
    return types


def check_examples(runs: Sequence[Run]) -> None:
    """Refuse ids that stand for different examples: answers would be compared that have nothing
    to do with each other. Of a question and its right answer one may be written differently, as
    where choices are shuffled."""
    first: dict[str, tuple[str, LoggedSample]] = {}
    for run in runs:
        for sample in run.samples:
            file, other = first.setdefault(sample.example, (run.file, sample))
            one, two = other.content, sample.content
            if one and two and not any(one.get(part) == text for part, text in two.items()):
                raise TableError(
                    f"An id of a sample means the same example in every log, but "
                    f"{shown(sample.example)} is another one in {run.file!r} than in {file!r}. "
                    f"Give samples ids of their own instead of numbers, and read logs of one task "
                    f"only."
                )


def _rows(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Join the answers of one configuration to one example, which may stand in several logs."""
    answers: dict[tuple[str, str], list[LoggedSample]] = {}
    for run in runs:
        config = canonical(dict(run.config))
        for sample in run.samples:
            answers.setdefault((config, sample.example), []).append(sample)
    for (config, example), samples in answers.items():
        # What one of the answers lacks is missing: the others alone might be the better ones.
        measured = set.intersection(*(set(sample.numbers) for sample in samples))
        yield {
            "config": config,
            "example": example,
            "repeats": len(samples),
            **{
                f"{name}_score" if name in _NAMES else name: math.fsum(
                    sample.numbers[name] for sample in samples
                )
                / len(samples)
                for name in sorted(measured)
            },
        }
