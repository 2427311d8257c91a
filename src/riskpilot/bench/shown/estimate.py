"""Means over search seeds and splits, with the confidence that a crossed design allows."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

FloatArray = npt.NDArray[np.float64]
Verdict = Literal["win", "tie", "loss"]


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """Of a difference, method less baseline: smaller is better."""
        if self.low <= 0 <= self.high:
            return "tie"
        return "win" if self.mean < 0 else "loss"


def two_way(values: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """The mean of ``values``, shape (S, K), over random seeds and random splits.

    Runs that share a seed or a split are not independent. With mean squares of rows, columns and
    residuals, the variance of the mean is (MS_rows + MS_columns - MS_residual) / (S K); the degrees
    of freedom are Satterthwaite's.

    >>> two_way([[1.0, 1.0], [1.0, 1.0]])
    Estimate(mean=1.0, low=1.0, high=1.0)
    """
    y = np.asarray(values, dtype=np.float64)
    s, k = y.shape
    mean = float(y.mean())
    rows, columns = y.mean(axis=1), y.mean(axis=0)
    residual = y - rows[:, None] - columns[None, :] + mean
    parts = (
        (k * float(((rows - mean) ** 2).sum()), s - 1, 1),
        (s * float(((columns - mean) ** 2).sum()), k - 1, 1),
        (float((residual**2).sum()), (s - 1) * (k - 1), -1),
    )
    squares = [(sign * total / df, df) for total, df, sign in parts if df > 0]
    # Never below what either source of randomness contributes alone.
    floor = max((square for square, _ in squares), default=0.0)
    variance = max(sum(square for square, _ in squares), floor)
    if variance <= (1e-12 * max(abs(mean), 1e-300)) ** 2:
        return Estimate(mean, mean, mean)
    freedom = variance**2 / sum(square**2 / df for square, df in squares)
    half = float(student.ppf((1 + level) / 2, max(freedom, 1.0))) * np.sqrt(variance / (s * k))
    return Estimate(mean, mean - float(half), mean + float(half))
