"""What a family of p-values is, and what several of them share.

Everything in the families is on the unit scale: losses and limits in [0, 1]. All tests are
one-sided, against the null hypothesis H: E[loss] > limit. Arrays are vectorised over
configurations, shape (n,). Sums and counts are passed, never means, so that no count has to be
recovered from a mean.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from riskpilot.common import Array, FloatArray, IntArray
from riskpilot.errors import ProblemError

Part = Callable[[slice, slice], Array]
"""The losses of some rows at some times."""

# Validation losses count for at most so many when bets begin: calibration losses soon count more.
_MOST_KNOWN = 200


class Sums(Protocol):
    """How many losses count, their sum, and how many lie above zero; each of shape (n,)."""

    @property
    def n(self) -> IntArray: ...
    @property
    def total(self) -> FloatArray: ...
    @property
    def above_zero(self) -> IntArray: ...


@dataclass(frozen=True)
class Start:
    """What is known of losses before the first bet, from data that is independent of them.

    Parameters
    ----------
    mean, variance : array of shape (n,)
        Of the validation losses of each row, on the unit scale.
    n : array of shape (n,)
        How many validation losses these come from.
    """

    mean: FloatArray
    variance: FloatArray
    n: FloatArray

    def of(self, rows: slice | Array) -> "Start":
        """What is known of some of the rows."""
        return Start(self.mean[rows], self.variance[rows], self.n[rows])

    def at(self, limit: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The variance that losses would have with their mean at the limit, and how many losses
        it counts for.

        Losses that are mostly 0 reach a larger mean by being 0 less often: then their mean square
        grows in step with the mean, and their variance is ``limit * (size - limit)``, where
        ``size`` is the mean square by the mean. Where validation losses vary more, that counts.
        """
        size = np.minimum(self.mean + self.variance / np.maximum(self.mean, 1e-12), 1.0)
        return np.maximum(self.variance, limit * (size - limit)), np.minimum(self.n, _MOST_KNOWN)


class ByParts(Protocol):
    """Log p-values of losses that are asked for a few steps at a time, see `log_betting_by_parts`.

    ``shape``: (n, m), of all losses. ``conditional``: whether some of them may be NaN.
    """

    def __call__(
        self,
        part: Part,
        shape: tuple[int, ...],
        limit: float | FloatArray,
        delta: float | FloatArray,
        start: Start | None,
        *,
        conditional: bool,
    ) -> FloatArray: ...


@dataclass(frozen=True)
class Family:
    """A family of p-values.

    ``name``: what plans and certificates call it. ``offered``: whether a risk may ask for it by
    name; other families follow from a statistic. A test reads sums (``log_p_from_sums``: the sums
    and the limit), the losses one after another (``log_p_by_parts``), or what its statistic
    counts; a family with none of them and without ``rate`` steers searches and tests nothing.
    ``largest_mean``: by limit, n, delta and standard deviation, the largest empirical mean that
    passes, or None. ``rate``: by the limit, by how much a loss of zero lowers the log p-value, or
    a little more than that; ``log_p_of_zeros``: by n, limit and delta, the log p-value of n zeros.
    ``errors_at_large_n``: by delta, how many standard errors of 0/1 losses the largest passing
    mean lies below the limit once n is very large, where summing all terms would take long.
    """

    name: str
    offered: bool = False
    log_p_from_sums: Callable[[Sums, float], FloatArray] | None = None
    log_p_by_parts: ByParts | None = None
    largest_mean: Callable[[float, int, float, float | None], float | None] | None = None
    rate: Callable[[float], float] | None = None
    log_p_of_zeros: Callable[[int, float, float], float] | None = None
    errors_at_large_n: Callable[[float], float] | None = None

    def largest_passing_mean(
        self, limit: float, n: int, delta: float, std: float | None = None
    ) -> float | None:
        """Return the largest empirical mean of n losses whose p-value is below delta, or None."""
        if self.largest_mean is None:
            raise self.lacks("largest passing mean")
        return None if n < 1 else self.largest_mean(limit, n, delta, std)

    def smallest_n(self, limit: float, delta: float) -> int:
        """Count the losses, all of them zero, that it takes to pass: with fewer, nothing can."""
        if self.rate is None or self.log_p_of_zeros is None:
            raise self.lacks("test")
        n = max(1, math.floor(math.log(1 / delta) / self.rate(limit)))
        while not self.log_p_of_zeros(n, limit, delta) < math.log(delta):
            n += 1
        return n

    def lacks(self, what: str) -> ProblemError:
        """Make the error of asking the family for something that it does not have."""
        return ProblemError(
            f"The p-value family {self.name!r} has no {what} of its own. "
            f'Use p_value="auto", which names a family that has one.'
        )


def with_means(total: npt.ArrayLike, n: npt.ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Broadcast sums and numbers, and divide them."""
    total, n = np.broadcast_arrays(np.asarray(total, float), np.asarray(n, float))
    return total, n, total / np.maximum(n, 1)


def or_one(log_p: FloatArray, n: FloatArray) -> FloatArray:
    """Set p to 1 where nothing was observed, and never above 1."""
    return np.where(n > 0, np.minimum(log_p, 0.0), 0.0)
