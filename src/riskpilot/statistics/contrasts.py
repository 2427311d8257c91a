"""What comparisons of groups share: pairs of groups, and the test of a claim about two means."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riskpilot.common import FloatArray, IntArray, is_flag
from riskpilot.errors import ProblemError, shown
from riskpilot.statistics.families import Start, log_betting, log_normal
from riskpilot.statistics.grouped import Grouped, at_position
from riskpilot.statistics.means import shuffled
from riskpilot.statistics.samples import Limit, Sample, TestSettings
from riskpilot.statistics.summaries import AnySummary, GroupName, GroupSummary

_CHUNK = 4_000_000  # losses that are compared at a time
_ALIKE = 1.1  # comparisons whose sizes differ by less are tested together


@dataclass(frozen=True)
class Claim:
    """The claim a E[x] + b E[y] <= ``bound`` about the losses x and y, in [0, 1], of two groups.

    Each example of the smaller group stands against the mean of its own share of the larger one.
    That makes independent differences with the right mean and, by the shares, hardly any more
    variance than the difference of the two means; they are tested as the bounded losses they are.
    """

    a: float
    b: float
    bound: float

    def differences(self, x: FloatArray, y: FloatArray, n: int) -> FloatArray:
        """``n`` of them for each configuration, on the unit scale, shape (r, n).

        ``x``, ``y``: shapes (r, at least n), without NaN.
        """
        low, width = self._range
        values = self.a * _shares(x, n) + self.b * _shares(y, n)
        return np.clip((values - low) / width, 0.0, 1.0)

    def log_p(self, differences: FloatArray, delta: float | FloatArray) -> FloatArray:
        """log p-values of "the claim is wrong", shape (r,); ``delta`` as in `log_betting`."""
        low, width = self._range
        limit = (self.bound - low) / width
        if limit <= 0 or differences.shape[1] == 0:
            return np.zeros(len(differences))
        return log_betting(differences, min(limit, 1 - 1e-12), delta)

    @property
    def _range(self) -> tuple[float, float]:
        return min(self.a, 0.0) + min(self.b, 0.0), abs(self.a) + abs(self.b)


def _shares(values: FloatArray, n: int) -> FloatArray:
    """Means of n shares of the columns, as equal in size as can be; shape (r, n)."""
    k = values.shape[1]
    if k == n:
        return values
    starts = np.arange(n) * k // n
    sums: FloatArray = np.add.reduceat(values, starts, axis=1)
    return np.asarray(sums / np.diff(starts, append=k))


@dataclass(frozen=True)
class Contrast(Grouped):
    """The largest comparison of two groups' means. ``directed``: whether only the first named group
    is compared with the second."""

    p_values: ClassVar[tuple[str, ...]] = ("auto", "betting")
    steers: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = False
    least_groups: ClassVar[int] = 2
    of_losses: ClassVar[bool] = False

    directed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = type(self).__name__
        if not is_flag(self.directed):
            raise ProblemError(
                f"{kind}: directed is True or False, but it is {shown(self.directed)}. "
                f"Leave it out for the largest of all comparisons."
            )
        object.__setattr__(self, "directed", bool(self.directed))
        if self.directed and (self.groups is None or len(self.groups) != 2):
            raise ProblemError(
                f"{kind}: a directed comparison is of the first group with the second, so that it "
                f"needs two names, but groups is {shown(self.groups)}. "
                f'Write {kind}(groups=("female", "male"), directed=True).'
            )

    def auto(self, binary: bool) -> str:
        return "betting"

    @abstractmethod
    def value(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """Compare the means of two groups, on the unit scale of the statistic."""

    @abstractmethod
    def error(
        self, one: FloatArray, error_one: FloatArray, other: FloatArray, error_other: FloatArray
    ) -> FloatArray:
        """The standard error of `value`, from those of the means."""

    @abstractmethod
    def claim(self, limit: float) -> Claim:
        """What is claimed of two groups; ``limit``: on the unit scale of the statistic."""

    def pairs(self, names: Sequence[GroupName]) -> list[tuple[int, int]]:
        """Positions of the groups that are compared: the first with the second, or each with each;
        those of the same label, where labels part them."""
        parted = [(name, "") if isinstance(name, str) else name for name in names]
        places = range(len(names))
        together = [
            (i, j) for i in places for j in places if i != j and parted[i][1] == parted[j][1]
        ]
        if not self.directed:
            return together
        assert self.groups is not None
        return [(i, j) for i, j in together if parted[i][0] == self.groups[0]]

    def worst(
        self, names: tuple[GroupName, ...], mean: FloatArray, error: FloatArray, n: IntArray
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Of two that are alike the one with fewer examples counts: it is harder to certify."""
        compared = self.pairs(names)
        if not compared:  # nothing to compare says nothing good
            ones = np.ones(mean.shape[1])
            return ones, ones, np.zeros(mean.shape[1], dtype=np.int64)
        first = second = np.zeros(mean.shape[1], dtype=np.intp)
        largest = np.full(mean.shape[1], -np.inf)
        smallest = np.zeros(mean.shape[1], dtype=np.int64)
        for i, j in compared:
            size = np.minimum(n[i], n[j])
            value = self._value(mean[i], mean[j], size)
            larger = (value > largest) | ((value == largest) & (size <= smallest))
            first, second = np.where(larger, i, first), np.where(larger, j, second)
            largest, smallest = np.where(larger, value, largest), np.where(larger, size, smallest)
        one = at_position(first, mean), at_position(first, error)
        other = at_position(second, mean), at_position(second, error)
        return largest, self.error(*one, *other), smallest

    def _value(self, one: FloatArray, other: FloatArray, n: IntArray) -> FloatArray:
        """Compare two groups, of which the smaller has n examples; without any it is the worst."""
        value = self.value(one, other)
        return value if n.all() else np.where(n > 0, value, 1.0)

    def starts(self, summary: AnySummary) -> tuple[Start, ...]:
        return ()  # bets are on differences between groups, which a summary does not have

    def log_p_for_order(self, summary: AnySummary, family: str, limit: float) -> FloatArray:
        """The largest distance from the limit among the comparisons counts, in standard errors.

        It is infinite where there is nothing to compare: that shows no limit to be kept.
        """
        assert isinstance(summary, GroupSummary)
        (mean, error, n), compared = summary.by_group, self.pairs(summary.names)
        worst = np.full(mean.shape[1], -np.inf if compared else np.inf)
        for i, j in compared:
            value = self._value(mean[i], mean[j], np.minimum(n[i], n[j]))
            spread = self.error(mean[i], error[i], mean[j], error[j])
            np.maximum(worst, (value - limit) / np.maximum(spread, 1e-12), out=worst)
        return log_normal(worst, 1.0, 0.0)

    def _log_p(
        self, sample: Sample, rows: Sequence[int], settings: TestSettings, limit: Limit
    ) -> FloatArray:
        """Every comparison of two groups must be shown, so that the largest p-value counts."""
        groups, claim = sample.groups, self.claim(limit.unit)
        assert groups is not None
        shuffle = shuffled(sample.n_examples, settings.seed)
        aims = np.broadcast_to(settings.aim, (len(rows),))
        members = [shuffle[groups.codes[shuffle] == g] for g in range(len(groups.names))]
        compared = self.pairs(groups.names)
        step = max(1, _CHUNK // (sample.n_examples * len(groups.names)))
        parts = []
        for start in range(0, len(rows), step):
            values, some = sample.unit_rows(rows[start : start + step]), aims[start : start + step]
            by_group = [values[:, columns] for columns in members]
            if np.isnan(values).any():  # every configuration has examples, and pairs, of its own
                found = [
                    _log_p_of_pairs_that_count(
                        claim, [part[i] for part in by_group], compared, some[i : i + 1]
                    )
                    for i in range(len(values))
                ]
                parts.append(np.array(found))
            else:
                parts.append(log_p_of_pairs(claim, by_group, compared, some))
        return np.concatenate(parts)


def _log_p_of_pairs_that_count(
    claim: Claim, parts: list[FloatArray], compared: list[tuple[int, int]], aim: FloatArray
) -> float:
    counted = [part[~np.isnan(part)][None] for part in parts]
    return float(log_p_of_pairs(claim, counted, compared, aim)[0])


def log_p_of_pairs(
    claim: Claim, parts: list[FloatArray], compared: list[tuple[int, int]], aims: FloatArray
) -> FloatArray:
    """Comparisons of about the same size are tested together, with as many differences as the
    smallest of them has examples: many short arrays would take longer than one."""
    if not compared:
        return np.zeros(len(parts[0]))  # nothing was shown
    sizes = {(i, j): min(parts[i].shape[1], parts[j].shape[1]) for i, j in compared}
    left = sorted(compared, key=lambda pair: sizes[pair])
    worst = np.full(len(parts[0]), -np.inf)
    while left:
        n = sizes[left[0]]
        together = [pair for pair in left if sizes[pair] <= _ALIKE * n]
        left = left[len(together) :]
        stacked = np.concatenate([claim.differences(parts[i], parts[j], n) for i, j in together])
        log_p = claim.log_p(stacked, np.tile(aims, len(together))).reshape(len(together), -1)
        np.maximum(worst, log_p.max(axis=0), out=worst)
    return worst
