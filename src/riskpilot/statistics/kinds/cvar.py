"""The mean of the worst losses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from riskpilot.common import FloatArray, Places, one_minus, percent
from riskpilot.statistics.families import Start
from riskpilot.statistics.means import bet, start_of, stream_of
from riskpilot.statistics.samples import Limit, Sample, TestSettings
from riskpilot.statistics.sequential.following import Labels, Stream
from riskpilot.statistics.sequential.streams import tail_excess
from riskpilot.statistics.summaries import AnySummary, Summary
from riskpilot.statistics.tails import SortedLosses, Tail, TailSums


@final
@dataclass(frozen=True)
class CVaR(Tail):
    """The mean of the worst ``1 - level`` share of the losses (conditional value at risk).

    Parameters
    ----------
    level : float, default 0.95
        The share of the losses that are better, in (0, 1).

    Raises
    ------
    ProblemError
        Where the level is no share.
    """

    kind: ClassVar[str] = "cvar"
    p_values: ClassVar[tuple[str, ...]] = ("auto", "betting")
    assumed: ClassVar[str] = (
        "t + (loss - t)+ / (1 - level), t where the tail begins, deviates by half the losses' range"
    )
    power_hangs_on: ClassVar[str | None] = "how widely the losses of the tail are spread"

    def words(self, *, by: str | None = None, larger: bool = False) -> str:
        return f"mean of the worst {percent(one_minus(self.level))}"

    def auto(self, binary: bool) -> str:
        return "betting"

    @property
    def widest_deviation(self) -> float:
        return 0.5 / (1 - self.level)

    def limit_of_zeros(self, limit: float) -> float:
        return limit * (1 - self.level)  # where the tail begins at the bottom of the range

    def tail_sums(self, unit: FloatArray, weights: FloatArray | None) -> TailSums:
        losses = SortedLosses(unit, weights)
        n, threshold = losses.n, losses.at(np.full(len(unit), self.level))
        excess = np.nan_to_num(np.maximum(unit - threshold[:, None], 0.0)) / (1 - self.level)
        tail = np.where(np.isnan(unit), 0.0, threshold[:, None] + excess)
        if weights is None:
            return tail.sum(axis=1), np.einsum("ij,ij->i", tail, tail), threshold
        counted = np.where(np.isnan(unit), 0.0, weights)
        mean = (counted * tail).sum(axis=1) / losses.total
        shares = counted / losses.total[:, None]
        squared_error = (shares**2 * (tail - mean[:, None]) ** 2).sum(axis=1)
        return n * mean, n * (mean**2 + n * squared_error), threshold

    def starts(self, summary: AnySummary) -> tuple[Start, ...]:
        assert isinstance(summary, Summary)
        t = summary.threshold
        if t is None:
            return ()
        share = (1 - self.level) / np.maximum(1 - t, 1e-12)  # from the tail's mean to its excess
        spread = share * summary.standard_deviation
        return (start_of(share * (summary.mean - t), spread, summary.n),)

    def _log_p(
        self, sample: Sample, rows: Sequence[int], settings: TestSettings, limit: Limit
    ) -> FloatArray:
        """For any t fixed beforehand CVaR <= t + E[(L - t)+] / (1 - level), so that a limit on that
        mean is a limit on the CVaR; at the quantile the two are equal (Rockafellar and Uryasev)."""
        assert settings.thresholds is not None
        t, at = settings.thresholds, np.asarray(rows, dtype=np.intp)
        room = np.maximum(1 - t, 1e-12)
        limits = (limit.unit - t) * (1 - self.level) / room

        def excess(block: slice, columns: Places) -> FloatArray:
            values = sample.unit_part(at[block], columns)
            beyond = (values - t[block, None]) / room[block, None]
            return np.clip(beyond, 0.0, 1.0)  # keeps NaN

        between = np.clip(limits, 1e-12, 1 - 1e-12)
        tested = bet(sample, excess, len(at), settings, between)
        return np.where((limits > 0) & (t < 1), tested, 0.0)

    def streams(
        self, settings: TestSettings, limit: Limit, n_groups: int, conditional: bool
    ) -> tuple[Stream, ...]:
        assert settings.thresholds is not None
        begins = settings.thresholds
        _, limits = tail_excess(np.zeros((len(begins), 0)), begins, self.level, limit.unit)

        def values(labels: Labels, at: Places) -> FloatArray:
            return tail_excess(labels.unit, begins[at], self.level, limit.unit)[0]

        # A tail that begins at the top of the range has no excess to speak of.
        testable = np.where(begins < 1, limits, 0.0)
        return (stream_of(settings.family, testable, values, conditional),)
