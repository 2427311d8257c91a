"""What statistics of the largest losses share: a level, sorted losses, sums of a tail."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from riskpilot.common import BoolArray, FloatArray, IntArray, finite_number
from riskpilot.errors import ProblemError, shown
from riskpilot.statistics.kinds.base import Statistic
from riskpilot.statistics.means import summary_of_means
from riskpilot.statistics.samples import Groups
from riskpilot.statistics.summaries import AnySummary, Recorded, Summary
from riskpilot.statistics.sums import Gatherer

TailSums = tuple[FloatArray, FloatArray, FloatArray]
"""Total, squares and threshold of each configuration, see `Summary`."""

_NEAREST_LEVEL = 1e-9


@dataclass(frozen=True)
class Tail(Statistic):
    """A statistic of the losses beyond a ``level``, a share of the examples in (0, 1)."""

    steers: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    argument = ("level", float)

    level: float = 0.95

    def __post_init__(self) -> None:
        level = finite_number(self.level)
        if level is None or not _NEAREST_LEVEL <= level <= 1 - _NEAREST_LEVEL:
            raise ProblemError(
                f"{type(self).__name__}: the level is a share in (0, 1), at least 1e-9 from its "
                f"ends, beyond which no number of examples tells anything, but it is "
                f"{shown(self.level)}. Use level=0.95 for the worst 5 % of the losses."
            )
        object.__setattr__(self, "level", level)

    @property
    def of_complements(self) -> bool:
        return False

    def value_range(self, low: float, high: float) -> tuple[float, float]:
        return low, high

    def gatherer(
        self, groups: Groups | None, weights: FloatArray | None, n_configs: int, m: int
    ) -> Gatherer:
        return _TailGatherer(self, n_configs, m, weights)

    def summary_of(self, records: Sequence[Recorded]) -> AnySummary:
        return summary_of_means(records)

    def log_p_for_order(self, summary: AnySummary, family: str, limit: float) -> FloatArray:
        assert isinstance(summary, Summary)
        return summary.log_p_for_order(family, limit)

    @abstractmethod
    def tail_sums(self, unit: FloatArray, weights: FloatArray | None) -> TailSums:
        """Sum up losses of shape (n, m), NaN where they do not count; ``weights``: shape (m,)."""


class _TailGatherer:
    """Gathers what the estimate of a tail is made of, block of configurations by block."""

    def __init__(self, statistic: Tail, n_configs: int, m: int, weights: FloatArray | None) -> None:
        self._statistic, self._m, self._weights = statistic, m, weights
        self._sums = np.empty((3, n_configs))  # total, squares and threshold (see `Summary`)

    def add_bits(self, rows: slice, bits: npt.NDArray[np.uint8]) -> None:
        """0/1 losses of which every one counts, packed."""
        unit = np.unpackbits(bits, axis=1, count=self._m).astype(np.float64)
        self._sums[:, rows] = self._statistic.tail_sums(unit, self._weights)

    def add(self, rows: slice, filled: FloatArray, counts: BoolArray) -> None:
        """Losses on the unit scale, 0 where they do not count, and which of them do."""
        unit = filled if counts.all() else np.where(counts, filled, np.nan)
        self._sums[:, rows] = self._statistic.tail_sums(unit, self._weights)

    def summary(self, plain: Summary) -> AnySummary:
        total, squares, threshold = self._sums
        return Summary(plain.n, total, squares, plain.above_zero, plain.binary, threshold)


class SortedLosses:
    """The losses of each configuration in rising order, and its quantiles.

    ``n``: how many count; ``effective``: how many without weights would tell as much; ``total``:
    the sum of the weights that count; each of shape (n_configs,).
    """

    def __init__(self, unit: FloatArray, weights: FloatArray | None) -> None:
        self.n = np.count_nonzero(~np.isnan(unit), axis=1)
        self._some = np.maximum(self.n, 1)
        self._reached: FloatArray | None = None
        if weights is None:
            self._ordered = np.sort(unit, axis=1)  # NaN last
            self.effective = self.total = self._some.astype(np.float64)
            return
        order = np.argsort(unit, axis=1)
        self._ordered = np.take_along_axis(unit, order, axis=1)
        w = np.where(np.isnan(self._ordered), 0.0, weights[order])
        self.total = np.maximum(w.sum(axis=1), 1e-300)
        self._reached = np.cumsum(w, axis=1) / self.total[:, None]
        shares = w / self.total[:, None]
        self.effective = 1 / np.clip((shares**2).sum(axis=1), 1e-300, 1.0)

    def at(self, level: FloatArray) -> FloatArray:
        """The empirical quantile of each configuration, shape (n_configs,), as is ``level``."""
        chosen = np.clip(self._place(level), 0, self._some - 1)[:, None]
        found = np.take_along_axis(self._ordered, chosen, axis=1)[:, 0]
        return np.nan_to_num(found, nan=1.0)

    def _place(self, level: FloatArray) -> IntArray:
        if self._reached is None:
            return np.asarray(np.ceil(level * self._some - 1e-9).astype(np.int64) - 1)
        return np.asarray((self._reached < level[:, None] - 1e-9).sum(axis=1))
