"""What every evaluation log becomes: a run of one configuration, with the scores of its samples."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Numbers = Mapping[str, float]
"""What was measured on a sample, by column."""


@dataclass(frozen=True)
class LoggedSample:
    """One answer to one example.

    ``example``: the id of the example. ``content``: what the example is, by part, such as its
    question and its right answer; the same id must not stand for two examples. ``numbers``: what
    was measured.
    """

    example: str
    content: Mapping[str, str]
    numbers: Numbers


@dataclass(frozen=True)
class Run:
    """The answers of one configuration; ``file``: the name of the log, for messages."""

    file: str
    config: Mapping[str, Any]
    samples: Sequence[LoggedSample]


def with_errors(scores: Numbers, good: Sequence[str]) -> dict[str, float]:
    """Name the columns of some scores.

    A score stands under its own name, whatever that is. Of those that are better when larger,
    ``good``, one minus the score stands under its name with "_error"; where there is one of them
    alone, it is the ``accuracy``, and one minus it the ``error``.

    >>> with_errors({"match": 1.0, "seconds": 2.0}, ["match"])
    {'match_error': 0.0, 'accuracy': 1.0, 'error': 0.0, 'match': 1.0, 'seconds': 2.0}
    """
    added = {f"{name}_error": 1.0 - scores[name] for name in good if name in scores}
    if len(good) == 1 and good[0] in scores:
        added |= {"accuracy": scores[good[0]], "error": 1.0 - scores[good[0]]}
    return {**added, **scores}


def said(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what a log says of a configuration, and leave out what it leaves open.

    >>> said({"temperature": 0.5, "seed": None, "stop": []})
    {'temperature': 0.5}
    """
    return {
        name: value for name, value in values.items() if value is not None and value not in ([], {})
    }


def as_number(value: object) -> float | None:
    """Read a number or a truth value; None where it is neither, or not finite."""
    if not isinstance(value, bool | int | float):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def as_text(value: object) -> str:
    """Write a part of an example as a text by which it is compared."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
