"""The mean loss less that of a reference on the same examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from riskpilot.common import FloatArray, Places
from riskpilot.statistics.families import log_trinomial
from riskpilot.statistics.kinds.base import check_beside
from riskpilot.statistics.means import (
    OneMean,
    count_losses,
    is_there,
    log_p_of_mean,
    stream_of,
)
from riskpilot.statistics.samples import Limit, Sample, TestSettings
from riskpilot.statistics.sequential.following import BOUNDARY, CAPITAL, Labels, Stream
from riskpilot.statistics.summaries import Summary


@final
@dataclass(frozen=True)
class Difference(OneMean):
    """The mean loss less that of a reference on the same examples: what a change costs.

    Parameters
    ----------
    reference : str, default "reference"
        The name under which the losses of the reference stand beside the others.

    Raises
    ------
    ProblemError
        Where the reference is no name.
    """

    kind: ClassVar[str] = "difference"
    noun: ClassVar[str] = "drop"
    p_values: ClassVar[tuple[str, ...]] = ("auto", "betting")
    steers: ClassVar[bool] = False
    ends: ClassVar[tuple[float, ...]] = (0.0, 0.5, 1.0)
    argument = ("reference", str)

    reference: str = "reference"

    def __post_init__(self) -> None:
        check_beside(self, "reference", self.reference, "dense_model")

    def words(self, *, by: str | None = None, larger: bool = False) -> str:
        return f"mean loss minus that of {self.reference}"

    def better_when_larger(self, metric: bool) -> bool:
        return False

    @property
    def reference_name(self) -> str:
        return self.reference

    def span(self, low: float, high: float) -> tuple[float, float]:
        return low - high, high - low

    def value_range(self, low: float, high: float) -> tuple[float, float]:
        return low - high, high - low

    def auto(self, binary: bool) -> str:
        return "trinomial" if binary else "betting"

    def _log_p(
        self, sample: Sample, rows: Sequence[int], settings: TestSettings, limit: Limit
    ) -> FloatArray:
        """For the exact test, differences between the three values are rounded up: that raises
        their mean."""
        if settings.family != "trinomial":
            assert isinstance(sample.summary, Summary)
            return log_p_of_mean(sample, sample.summary, rows, settings, limit.unit)
        lowest = sample.span[0]
        worse, better, n = count_losses(
            sample, rows, lambda values: values > 0, lambda values: values <= lowest, is_there
        )
        # 2 * 0.55 - 1 is 0.10000000000000009: a mean of 0.1 sits at the limit, not below it.
        bound = round(2 * limit.unit - 1, 12)
        aims = np.broadcast_to(settings.aim, (len(rows),))
        found = np.empty(len(rows))
        for aim in np.unique(aims):
            some = aims == aim
            found[some] = log_trinomial(worse[some], better[some], n[some], bound, float(aim))
        return found

    def family_by_label(self, family: str, limit: Limit) -> str:
        """With a limit of 0, changes for the worse are as rare as those for the better: 0/1 losses
        among the examples that changed. With another limit the share of changes would matter."""
        if family == "trinomial":
            return BOUNDARY if limit.own == 0 else CAPITAL
        return super().family_by_label(family, limit)

    def streams(
        self, settings: TestSettings, limit: Limit, n_groups: int, conditional: bool
    ) -> tuple[Stream, ...]:
        if settings.family != BOUNDARY:
            return super().streams(settings, limit, n_groups, conditional)
        return (stream_of(BOUNDARY, 0.5, _changes, True),)


def _changes(labels: Labels, at: Places) -> FloatArray:
    """1 where a loss is above the reference's, 0 where it is as far below as can be, else NaN.

    Differences between the three values are rounded up, as in the fixed test.
    """
    better = np.where(labels.own <= labels.lowest, 0.0, np.nan)
    return np.where(labels.own > 0, 1.0, better)
