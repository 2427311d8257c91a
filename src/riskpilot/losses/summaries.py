"""What number a sample of losses becomes: a mean, a worst group, a gap, a tail, a difference; and
its error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from riskpilot.errors import LossError
from riskpilot.problem import Risk
from riskpilot.statistics import (
    Contrast,
    CVaR,
    Difference,
    Grouped,
    GroupGap,
    Quantile,
    Ratio,
    WorstGroup,
    p_values,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
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
        return np.where(deviation > 1e-9, deviation / np.sqrt(n), 1.0 / n)

    @property
    def standard_deviation(self) -> FloatArray:
        n = np.maximum(self.n, 1)
        variance = np.maximum(self.squares / n - (self.total / n) ** 2, 0.0)
        return np.asarray(np.sqrt(variance), dtype=np.float64)

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


@dataclass(frozen=True)
class GroupSummary:
    """The sums of each group's losses; ``sums`` has one `Summary` for each of the ``names``.

    ``n``, ``mean`` and the errors are those of the statistic: of the worst group, or of the pair of
    groups that is furthest apart, on the unit scale of the statistic; each of shape (n_configs,).
    """

    statistic: Grouped
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
        """Value, standard error and size of the group, or pair of groups, with the largest value.

        Of two that are alike the one with fewer examples tells: it is harder to certify.
        """
        mean, error, n = self._groups
        if isinstance(self.statistic, WorstGroup):
            worst = np.lexsort((-n, mean), axis=0)[-1]
            return _at(worst, mean), _at(worst, error), _at(worst, n)
        if not self.pairs:  # nothing to compare says nothing good
            ones = np.ones(mean.shape[1])
            return ones, ones, np.zeros(mean.shape[1], dtype=np.int64)
        first = second = np.zeros(mean.shape[1], dtype=np.intp)
        largest = np.full(mean.shape[1], -np.inf)
        smallest = np.zeros(mean.shape[1], dtype=np.int64)
        for i, j in self.pairs:
            size = np.minimum(n[i], n[j])
            value = self._value(mean[i], mean[j], size)
            larger = (value > largest) | ((value == largest) & (size <= smallest))
            first, second = np.where(larger, i, first), np.where(larger, j, second)
            largest, smallest = np.where(larger, value, largest), np.where(larger, size, smallest)
        one = _at(first, mean), _at(first, error)
        other = _at(second, mean), _at(second, error)
        return largest, self._error(*one, *other), smallest

    @cached_property
    def _groups(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """Mean, standard error and size of each group, shape (n_groups, n_configs)."""
        return (
            np.stack([part.mean for part in self.sums]),
            np.stack([part.standard_error for part in self.sums]),
            np.stack([part.n for part in self.sums]),
        )

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Positions of the groups that are compared, the first with the second."""
        assert not isinstance(self.statistic, WorstGroup)
        return pairs(self.statistic, self.names)

    def scores(self, limit: float) -> FloatArray:
        """The largest distance from the limit among the comparisons, in standard errors.

        Infinite where there is nothing to compare: that shows no limit to be kept.
        """
        mean, error, n = self._groups
        worst = np.full(mean.shape[1], -np.inf if self.pairs else np.inf)
        for i, j in self.pairs:
            value = self._value(mean[i], mean[j], np.minimum(n[i], n[j]))
            spread = self._error(mean[i], error[i], mean[j], error[j])
            np.maximum(worst, (value - limit) / np.maximum(spread, 1e-12), out=worst)
        return worst

    def _value(self, one: FloatArray, other: FloatArray, n: IntArray) -> FloatArray:
        """Of one comparison, from the means of its groups and the size of the smaller one."""
        if isinstance(self.statistic, GroupGap):
            value = one - other
            if self.statistic.directed:
                value = (value + 1) / 2
        else:
            value = 1 - _ratio(one, other)
        return value if n.all() else np.where(n > 0, value, 1.0)

    def _error(
        self, one: FloatArray, error_one: FloatArray, other: FloatArray, error_other: FloatArray
    ) -> FloatArray:
        if isinstance(self.statistic, GroupGap):
            error = np.sqrt(error_one**2 + error_other**2)
            return error / 2 if self.statistic.directed else error
        ratio, base = _ratio(one, other), np.maximum(other, 1e-12)
        return np.minimum(np.sqrt(error_one**2 + (ratio * error_other) ** 2) / base, 1.0)

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


def _at(positions: npt.NDArray[np.intp], table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """One number of each column, shape (n,), from a table of shape (n_groups, n)."""
    return np.asarray(np.take_along_axis(table, positions[None], axis=0)[0])


def _ratio(one: FloatArray, other: FloatArray) -> FloatArray:
    """1 where the second mean is 0: nothing is worse than nothing."""
    return np.where(other > 0, one / np.maximum(other, 1e-12), 1.0)


def name_in_words(name: GroupName) -> str:
    """The name of a group as messages show it.

    >>> name_in_words("a"), name_in_words(("a", "0"))
    ("'a'", "'a' of label '0'")
    """
    return repr(name) if isinstance(name, str) else f"{name[0]!r} of label {name[1]!r}"


def _name_record(name: GroupName) -> dict[str, str]:
    return {"group": name} if isinstance(name, str) else {"group": name[0], "label": name[1]}


def _recorded_name(part: Mapping[str, Any]) -> GroupName:
    return (part["group"], part["label"]) if "label" in part else part["group"]


def pairs(statistic: Contrast, names: Sequence[GroupName]) -> list[tuple[int, int]]:
    """Positions of the groups that are compared: the first with the second, or each with each;
    those of the same label, where labels part them.

    >>> pairs(GroupGap(), ("a", "b"))
    [(0, 1), (1, 0)]
    >>> pairs(GroupGap(within="label"), (("a", "0"), ("a", "1"), ("b", "0"), ("b", "1")))
    [(0, 2), (1, 3), (2, 0), (3, 1)]
    """
    parted = [(name, "") if isinstance(name, str) else name for name in names]
    places = range(len(names))
    together = [(i, j) for i in places for j in places if i != j and parted[i][1] == parted[j][1]]
    if not statistic.directed:
        return together
    assert statistic.groups is not None
    return [(i, j) for i, j in together if parted[i][0] == statistic.groups[0]]


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


def summary_of(risk: Risk, rows: Sequence[Recorded]) -> AnySummary:
    """The summary of many configurations from what each of them recorded.

    A group that only some of them know has no examples in the others.
    """
    statistic = risk.statistic
    if not isinstance(statistic, Grouped):
        fields = ("n", "total", "squares", "above_zero", "binary", "threshold")
        return _stacked([{name: getattr(row, name) for name in fields} for row in rows])
    groups = [{_recorded_name(part): part for part in row.groups or ()} for row in rows]
    known = tuple(sorted({name for row in groups for name in row}))
    parted = isinstance(statistic, GroupGap) and statistic.within is not None
    names: tuple[GroupName, ...] = known if parted or statistic.groups is None else statistic.groups
    if not names:
        raise LossError(
            f"Risk {risk.name!r} is about groups, but the records of the trials name none. The "
            f"storage was changed from outside; restore it from a copy."
        )
    nothing = {"n": 0, "total": 0.0, "squares": 0.0, "above_zero": 0, "binary": True}
    sums = tuple(_stacked([row.get(name, nothing) for row in groups]) for name in names)
    return GroupSummary(statistic, names, sums)


def _stacked(rows: Iterable[Mapping[str, Any]]) -> Summary:
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


def family(risk: Risk, binary: bool) -> str:
    """The p-value family that tests ``risk``; ``binary`` as seen on validation data.

    The choice is made from validation data, before calibration is opened: a test picked after a
    look at the calibration losses would not be valid. The binomial test stays valid should a
    calibration loss lie between 0 and 1 after all, because it counts every loss above zero.
    """
    if risk.weights is not None:
        return "betting"
    match risk.statistic:
        case Quantile():
            return "binomial"  # it counts the losses above the limit, whatever the losses are
        case GroupGap() | Ratio() | CVaR():
            return "betting"
        case Difference():
            return "trinomial" if binary and risk.p_value == "auto" else "betting"
    if risk.p_value != "auto":
        return risk.p_value
    return "binomial" if binary else "betting"


def steering_family(risk: Risk, name: str) -> str:
    """The family whose largest passing mean steers searches: of means their own, otherwise the
    normal approximation. No test uses it."""
    other = isinstance(risk.statistic, Contrast | Quantile | CVaR | Difference)
    return "normal" if other or risk.weights is not None else name


def fewest_examples(risk: Risk, name: str, delta: float) -> int:
    """How many examples, all of them as good as can be, it takes to pass: with fewer, nothing can.

    In every group, for a statistic of groups.

    >>> fewest_examples(Risk("slow", 0.5, statistic=Quantile(0.95)), "binomial", 0.1)
    45
    """
    limit = risk.unit_limit
    match risk.statistic:
        case Quantile(level=level):
            limit = round(1 - level, 12)
        case CVaR(level=level):
            limit = limit * (1 - level)  # where the tail begins at the bottom of the range
        case GroupGap(directed=directed):
            limit = limit if directed else (1 + limit) / 2
        case Ratio():
            limit = 1 / (2 - limit)  # of r y - x in [-1, r], at 0
    # Differences that are all -1 are as rare as so many zeros: the exact tests agree there.
    return p_values.smallest_n("binomial" if name == "trinomial" else name, limit, delta)


def log_p_from_sums(limit: float, name: str, summary: Summary) -> FloatArray:
    """log p-values that need sums alone, shape (n_configs,). Not for the betting family.

    ``limit``: of the mean, on the unit scale.
    """
    if name == "binomial":
        return p_values.log_binomial(summary.above_zero, summary.n, limit)
    if name == "hoeffding_bentkus":
        return p_values.log_hoeffding_bentkus(summary.total, summary.n, limit)
    return p_values.log_hoeffding(summary.total, summary.n, limit)


def log_p_for_order(risk: Risk, name: str, summary: AnySummary) -> FloatArray:
    """Approximate log p-values on validation data, shape (n_configs,): they order, nothing more."""
    limit = risk.unit_limit
    if isinstance(summary, GroupSummary):
        if not isinstance(summary.statistic, WorstGroup):
            return p_values.log_normal(summary.scores(limit), 1.0, 0.0)
        parts = [_log_p_of_mean(limit, name, part) for part in summary.sums]
        return np.asarray(np.max(parts, axis=0))
    return _log_p_of_mean(limit, steering_family(risk, name), summary)


def _log_p_of_mean(limit: float, name: str, summary: Summary) -> FloatArray:
    if name in ("betting", "normal"):
        return p_values.log_normal(summary.mean, summary.standard_error, limit)
    return log_p_from_sums(limit, name, summary)
