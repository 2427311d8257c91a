"""The sums of losses that a statistic is made of, with its value and its standard error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from riskpilot.common import FloatArray, IntArray
from riskpilot.statistics.families import family_named, log_normal

GroupName = str | tuple[str, str]
"""The name of a group; where groups are compared within labels, of a group and a label."""


@dataclass(frozen=True)
class Summary:
    """The sums of one risk's losses for many configurations, on the unit scale.

    ``n``: how many examples count, ``total``: the sum of their losses, ``squares``: the sum of the
    squared losses, ``above_zero``: how many losses are above zero; each of shape (n_configs,).
    ``binary``: every loss sits at an end of the range, so that ``total`` is a count; of
    differences, both losses do.
    Of a tail and of weighted examples, ``total`` and ``squares`` are such that mean and standard
    error are those of the estimate. ``threshold`` is the loss at which a tail begins, shape
    (n_configs,).
    """

    n: IntArray
    total: FloatArray
    squares: FloatArray
    above_zero: IntArray
    binary: bool
    threshold: FloatArray | None = None

    @property
    def mean(self) -> FloatArray:
        """1, the worst, where no example counts: a condition never met says nothing good."""
        return np.where(self.n > 0, self.total / np.maximum(self.n, 1), 1.0)

    @property
    def standard_error(self) -> FloatArray:
        """Of the mean; 1/n where all losses are equal: that does not prove that they always are."""
        n = np.maximum(self.n, 1)
        deviation = self.standard_deviation
        # Sums of equal losses leave a deviation of up to 1e-8 by rounding.
        return np.where(deviation > 1e-7, deviation / np.sqrt(n), 1.0 / n)

    @property
    def standard_deviation(self) -> FloatArray:
        n = np.maximum(self.n, 1)
        variance = np.maximum(self.squares / n - (self.total / n) ** 2, 0.0)
        return np.asarray(np.sqrt(variance), dtype=np.float64)

    def log_p_for_order(self, family: str, limit: float) -> FloatArray:
        """Approximate log p-values of the means, shape (n_configs,): they order, nothing more."""
        from_sums = family_named(family).log_p_from_sums
        if from_sums is None:
            return log_normal(self.mean, self.standard_error, limit)
        return from_sums(self, limit)

    def of(self, rows: Sequence[int]) -> "Summary":
        """The sums of some configurations."""
        at = np.array(rows, dtype=np.intp)
        threshold = None if self.threshold is None else self.threshold[at]
        sums = (self.n[at], self.total[at], self.squares[at], self.above_zero[at])
        return Summary(*sums, self.binary, threshold)

    def record(self, row: int) -> dict[str, Any]:
        """The sums of one configuration, as plain numbers; `summary_of` reads them back."""
        return {
            "n": int(self.n[row]),
            "total": float(self.total[row]),
            "squares": float(self.squares[row]),
            "above_zero": int(self.above_zero[row]),
            "binary": self.binary,
            "threshold": None if self.threshold is None else float(self.threshold[row]),
        }


class GroupStatistic(Protocol):
    """What makes one value of the sums of several groups."""

    def worst(
        self,
        names: tuple[GroupName, ...],
        mean: FloatArray,
        error: FloatArray,
        n: IntArray,
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return value, standard error and size of the group, or pair of groups, with the largest
        value, shape (n_configs,), from those of each group, shape (n_groups, n_configs)."""


@dataclass(frozen=True)
class GroupSummary:
    """The sums of each group's losses; ``sums`` has one `Summary` for each of the ``names``.

    ``n``, ``mean`` and the errors are those of the statistic: of the worst group, or of the pair of
    groups that is furthest apart, on the unit scale of the statistic; each of shape (n_configs,).
    """

    statistic: GroupStatistic
    names: tuple[GroupName, ...]
    sums: tuple[Summary, ...]

    threshold = None

    @property
    def binary(self) -> bool:
        return all(part.binary for part in self.sums)

    @property
    def n(self) -> IntArray:
        """The number of examples behind the statistic: those of the smaller group of a pair."""
        return self._worst[2]

    @property
    def mean(self) -> FloatArray:
        return self._worst[0]

    @property
    def standard_error(self) -> FloatArray:
        return self._worst[1]

    @property
    def standard_deviation(self) -> FloatArray:
        _, error, n = self._worst
        return np.asarray(error * np.sqrt(n))

    @cached_property
    def _worst(self) -> tuple[FloatArray, FloatArray, IntArray]:
        return self.statistic.worst(self.names, *self.by_group)

    @cached_property
    def by_group(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """Mean, standard error and size of each group, shape (n_groups, n_configs)."""
        return (
            np.stack([part.mean for part in self.sums]),
            np.stack([part.standard_error for part in self.sums]),
            np.stack([part.n for part in self.sums]),
        )

    def record(self, row: int) -> dict[str, Any]:
        """The sums of one configuration, as plain numbers; `summary_of` reads them back."""
        parts = [part.record(row) for part in self.sums]
        return {
            "n": sum(part["n"] for part in parts),
            "total": sum(part["total"] for part in parts),
            "squares": sum(part["squares"] for part in parts),
            "above_zero": sum(part["above_zero"] for part in parts),
            "binary": self.binary,
            "groups": [
                {**_name_record(name), **part} for name, part in zip(self.names, parts, strict=True)
            ],
        }


AnySummary = Summary | GroupSummary


def name_in_words(name: GroupName) -> str:
    """The name of a group as messages show it.

    >>> name_in_words("a"), name_in_words(("a", "0"))
    ("'a'", "'a' of label '0'")
    """
    return repr(name) if isinstance(name, str) else f"{name[0]!r} of label {name[1]!r}"


def _name_record(name: GroupName) -> dict[str, str]:
    """Write the name of a group as a record keeps it."""
    return {"group": name} if isinstance(name, str) else {"group": name[0], "label": name[1]}


def recorded_name(part: Mapping[str, Any]) -> GroupName:
    """Read the name of a group from what a record keeps of it."""
    return (part["group"], part["label"]) if "label" in part else part["group"]


class Recorded(Protocol):
    """What a finished evaluation keeps of one risk (see `Summary.record`)."""

    @property
    def n(self) -> int: ...
    @property
    def total(self) -> float: ...
    @property
    def squares(self) -> float: ...
    @property
    def above_zero(self) -> int: ...
    @property
    def binary(self) -> bool: ...
    @property
    def threshold(self) -> float | None: ...
    @property
    def groups(self) -> Sequence[Mapping[str, Any]] | None: ...


def stacked(rows: Iterable[Mapping[str, Any]]) -> Summary:
    """Join the records of many configurations into one summary."""
    rows = list(rows)
    thresholds = [row.get("threshold") for row in rows]
    return Summary(
        n=np.array([row["n"] for row in rows]),
        total=np.array([row["total"] for row in rows]),
        squares=np.array([row["squares"] for row in rows]),
        above_zero=np.array([row["above_zero"] for row in rows]),
        binary=all(row["binary"] for row in rows),
        threshold=None if None in thresholds else np.array(thresholds, dtype=np.float64),
    )
