"""What number a sample of losses becomes: its mean, its standard error, its p-value."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from riskpilot import p_values
from riskpilot.problem import Risk

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Summary:
    """The sums of one risk's losses for many configurations, on the unit scale.

    ``n``: how many examples count, ``total``: the sum of their losses, ``squares``: the sum of the
    squared losses, ``above_zero``: how many losses are above zero; each of shape (n_configs,).
    ``binary``: every loss sits at an end of the range, so that ``total`` is a count.
    """

    n: IntArray
    total: FloatArray
    squares: FloatArray
    above_zero: IntArray
    binary: bool

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


def family(risk: Risk, binary: bool) -> str:
    """The p-value family that tests ``risk``; ``binary`` as seen on validation data.

    The choice is made from validation data, before calibration is opened: a test picked after a
    look at the calibration losses would not be valid. The binomial test stays valid should a
    calibration loss lie between 0 and 1 after all, because it counts every loss above zero.
    """
    if risk.p_value != "auto":
        return risk.p_value
    return "binomial" if binary else "betting"


def log_p_from_sums(risk: Risk, name: str, summary: Summary) -> FloatArray:
    """log p-values that need sums alone, shape (n_configs,). Not for the betting family."""
    limit = risk.unit_limit
    if name == "binomial":
        return p_values.log_binomial(summary.above_zero, summary.n, limit)
    if name == "hoeffding_bentkus":
        return p_values.log_hoeffding_bentkus(summary.total, summary.n, limit)
    return p_values.log_hoeffding(summary.total, summary.n, limit)


def log_p_for_order(risk: Risk, name: str, summary: Summary) -> FloatArray:
    """Approximate log p-values on validation data, shape (n_configs,): they order, nothing more."""
    if name == "betting":
        return p_values.log_normal(summary.mean, summary.standard_error, risk.unit_limit)
    return log_p_from_sums(risk, name, summary)
