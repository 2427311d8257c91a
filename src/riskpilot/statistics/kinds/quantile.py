"""A quantile of the losses, such as a latency that 95 % of the requests keep."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from riskpilot.common import FloatArray, Places, percent
from riskpilot.statistics.families import Start, log_binomial
from riskpilot.statistics.means import bet, count_losses, is_there, stream_of
from riskpilot.statistics.samples import Limit, Sample, TestSettings
from riskpilot.statistics.sequential.following import Labels, Stream
from riskpilot.statistics.sequential.streams import exceedances
from riskpilot.statistics.summaries import AnySummary
from riskpilot.statistics.tails import SortedLosses, Tail, TailSums


@final
@dataclass(frozen=True)
class Quantile(Tail):
    """The loss that a share of the examples stays at or below.

    Parameters
    ----------
    level : float, default 0.95
        The share, in (0, 1).

    Raises
    ------
    ProblemError
        Where the level is no share.
    """

    kind: ClassVar[str] = "quantile"
    p_values: ClassVar[tuple[str, ...]] = ("auto", "binomial")
    exact: ClassVar[bool] = True
    power_hangs_on: ClassVar[str | None] = "which share of the losses lies above the limit"

    def words(self, *, by: str | None = None, larger: bool = False) -> str:
        return f"{percent(self.level)} quantile"

    def auto(self, binary: bool) -> str:
        return "binomial"  # it counts the losses above the limit, whatever the losses are

    @property
    def share_above(self) -> float:
        """The share of the losses that may lie above the limit."""
        return round(1 - self.level, 12)

    def limit_of_zeros(self, limit: float) -> float:
        return self.share_above

    def tail_sums(self, unit: FloatArray, weights: FloatArray | None) -> TailSums:
        """The error of a quantile is half the distance between the quantiles one standard error of
        the level below and above it."""
        losses = SortedLosses(unit, weights)
        level = np.full(len(unit), self.level)
        threshold = losses.at(level)
        width = np.sqrt(self.level * (1 - self.level) / losses.effective)
        error = (losses.at(level + width) - losses.at(level - width)) / 2
        n = losses.n
        return n * threshold, n * (threshold**2 + n * error**2), threshold

    def starts(self, summary: AnySummary) -> tuple[Start, ...]:
        return ()

    def _log_p(
        self, sample: Sample, rows: Sequence[int], settings: TestSettings, limit: Limit
    ) -> FloatArray:
        """The quantile is at most the limit where P(loss > limit) is at most a share.

        The losses are compared with the limit in their own units. A loss on it is not above it.
        """
        if sample.weights is None:
            above, n = count_losses(sample, rows, lambda values: values > limit.own, is_there)
            return log_binomial(above, n, self.share_above)
        is_above = np.empty((len(rows), sample.n_examples), np.float16)
        for i, row in enumerate(rows):
            values = sample.rows([row])[0]
            is_above[i] = np.where(is_there(values), values > limit.own, np.nan)

        def read(block: slice, columns: Places) -> FloatArray:
            return is_above[block][:, columns].astype(np.float64)

        return bet(sample, read, len(rows), settings, self.share_above, conditional=True)

    def streams(
        self, settings: TestSettings, limit: Limit, n_groups: int, conditional: bool
    ) -> tuple[Stream, ...]:
        def values(labels: Labels, at: Places) -> FloatArray:
            return exceedances(labels.own, limit.own)

        return (stream_of(settings.family, self.share_above, values, conditional),)
