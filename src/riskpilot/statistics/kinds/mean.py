"""The mean loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from riskpilot.common import FloatArray
from riskpilot.statistics.families import P_VALUES
from riskpilot.statistics.means import OneMean, log_p_of_mean
from riskpilot.statistics.samples import Limit, Sample, TestSettings
from riskpilot.statistics.summaries import Summary


@final
@dataclass(frozen=True)
class Mean(OneMean):
    """The mean loss: E[L], or E[L given a condition] where some losses are NaN."""

    kind: ClassVar[str] = "mean"
    p_values: ClassVar[tuple[str, ...]] = P_VALUES
    steers: ClassVar[bool] = True

    def words(self, *, by: str | None = None, larger: bool = False) -> str:
        return ""

    def value_range(self, low: float, high: float) -> tuple[float, float]:
        return low, high

    def auto(self, binary: bool) -> str:
        return "binomial" if binary else "betting"

    def _log_p(
        self, sample: Sample, rows: Sequence[int], settings: TestSettings, limit: Limit
    ) -> FloatArray:
        assert isinstance(sample.summary, Summary)
        return log_p_of_mean(sample, sample.summary, rows, settings, limit.unit)
