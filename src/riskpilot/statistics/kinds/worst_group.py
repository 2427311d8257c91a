"""The largest of the groups' mean losses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from riskpilot.common import FloatArray, IntArray, Places
from riskpilot.statistics.families import P_VALUES, Start
from riskpilot.statistics.grouped import Grouped, at_position, by_name
from riskpilot.statistics.means import log_p_of_mean, start_of, stream_of
from riskpilot.statistics.samples import Limit, Sample, TestSettings
from riskpilot.statistics.sequential.following import Labels, Stream, Values
from riskpilot.statistics.summaries import AnySummary, GroupName, GroupSummary


@final
@dataclass(frozen=True)
class WorstGroup(Grouped):
    """The largest of the groups' mean losses.

    Parameters
    ----------
    groups : tuple of str, optional
        The names of the groups that count; None for all there are.

    Raises
    ------
    ProblemError
        Where the names are no texts or whole numbers, or one stands twice.
    """

    kind: ClassVar[str] = "worst_group"
    p_values: ClassVar[tuple[str, ...]] = P_VALUES
    steers: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    least_groups: ClassVar[int] = 1

    def words(self, *, by: str | None = None, larger: bool = False) -> str:
        return f"worst group's mean{by_name(by)}{self._among}"

    def value_range(self, low: float, high: float) -> tuple[float, float]:
        return low, high

    def auto(self, binary: bool) -> str:
        return "binomial" if binary else "betting"

    def limit_of_zeros(self, limit: float) -> float:
        return limit

    def worst(
        self, names: tuple[GroupName, ...], mean: FloatArray, error: FloatArray, n: IntArray
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Of two that are alike the one with fewer examples counts: it is harder to certify."""
        worst = np.lexsort((-n, mean), axis=0)[-1]
        return at_position(worst, mean), at_position(worst, error), at_position(worst, n)

    def starts(self, summary: AnySummary) -> tuple[Start, ...]:
        assert isinstance(summary, GroupSummary)
        return tuple(start_of(part.mean, part.standard_deviation, part.n) for part in summary.sums)

    def log_p_for_order(self, summary: AnySummary, family: str, limit: float) -> FloatArray:
        assert isinstance(summary, GroupSummary)
        parts = [part.log_p_for_order(family, limit) for part in summary.sums]
        return np.asarray(np.max(parts, axis=0))

    def _log_p(
        self, sample: Sample, rows: Sequence[int], settings: TestSettings, limit: Limit
    ) -> FloatArray:
        """Every group must be shown to keep the limit, so that the largest p-value counts,
        uncorrected (an intersection-union test): under the null one group at least is above the
        limit."""
        assert isinstance(sample.summary, GroupSummary)
        parts = [
            log_p_of_mean(sample, part, rows, settings, limit.unit, group)
            for group, part in enumerate(sample.summary.sums)
        ]
        return np.asarray(np.max(parts, axis=0))

    def streams(
        self, settings: TestSettings, limit: Limit, n_groups: int, conditional: bool
    ) -> tuple[Stream, ...]:
        """Every group is a stream of its own, in which only its labels count."""
        return tuple(
            stream_of(settings.family, limit.unit, _members(group), True)
            for group in range(n_groups)
        )


def _members(group: int) -> Values:
    """The losses of one group; NaN elsewhere."""

    def values(labels: Labels, at: Places) -> FloatArray:
        assert labels.codes is not None
        return np.where(labels.codes == group, labels.unit, np.nan)

    return values
