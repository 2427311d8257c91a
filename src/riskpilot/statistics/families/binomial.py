"""The exact test for 0/1 losses."""

import functools
import math

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, betaincc, gammaln, log1p, ndtri, xlog1py, xlogy

from riskpilot.common import FloatArray
from riskpilot.statistics.families.base import Family, Sums, or_one

# Below this, log(cdf) loses digits and then underflows; the tail is summed in log space instead.
_SMALLEST_CDF = 1e-280


def log_binomial(count: npt.ArrayLike, n: npt.ArrayLike, limit: float) -> FloatArray:
    """The exact test for 0/1 losses: log P(Binomial(n, limit) <= count).

    Valid for any losses in [0, 1] when ``count`` is the number of losses above zero, since
    P(loss > 0) >= E[loss].

    >>> round(float(np.exp(log_binomial(0, 45, 0.05))), 4)
    0.0994
    """
    count, n = np.broadcast_arrays(np.asarray(count, float), np.asarray(n, float))
    if n.max(initial=0) < 2**31:
        cdf = bdtr(count, n.astype(np.int64), limit)
    else:  # the same as a beta integral, which is slower and takes any n
        cdf = np.where(count < n, betaincc(count + 1, np.maximum(n - count, 1), limit), 1.0)
    with np.errstate(divide="ignore"):
        log_p: FloatArray = np.log(cdf)
    tiny = cdf < _SMALLEST_CDF
    if tiny.any():
        log_p = np.array(log_p)
        log_p[tiny] = _log_binomial_tail(count[tiny], n[tiny], limit)
    return or_one(log_p, n)


def _log_binomial_tail(count: FloatArray, n: FloatArray, p: float) -> FloatArray:
    """log P(Binomial(n, p) <= count) far below the mean, where the top term dominates."""
    log_pmf = (
        gammaln(n + 1)
        - gammaln(count + 1)
        - gammaln(n - count + 1)
        + xlogy(count, p)
        + xlog1py(n - count, -p)
    )
    term = np.ones_like(log_pmf)
    total = np.zeros_like(log_pmf)  # of the terms below the top one, relative to it
    k = count.copy()
    while True:
        term = term * np.maximum(k, 0) * (1 - p) / ((n - k + 1) * p)
        # Where count is near the mean the ratio is not small; those are never tiny, so stop them.
        term = np.where(count < n * p, term, 0.0)
        if not (term > 1e-17 * (1 + total)).any():
            break
        total += term
        k -= 1
    result: FloatArray = log_pmf + log1p(total)
    return result


@functools.lru_cache(maxsize=1024)  # every proposal of a search asks for the same few
def largest_count(limit: float, n: int, log_level: float) -> int:
    """The largest c with log P(Binomial(n, limit) <= c) < log_level; -1 where there is none."""
    low, high = -1, n
    while high - low > 1:
        middle = (low + high) // 2
        if float(log_binomial(middle, n, limit)) < log_level:
            low = middle
        else:
            high = middle
    return low


def as_share(count: int, n: int) -> float | None:
    """Divide a count by n; None where there is no count."""
    return None if count < 0 else count / n


def rate(limit: float) -> float:
    """Return by how much a loss of zero lowers the log p-value."""
    return -math.log1p(-limit)


def log_p_of_zeros(n: int, limit: float, delta: float) -> float:
    """Return the log p-value of n losses that are all zero."""
    return float(log_binomial(0, n, limit))


def _from_sums(sums: Sums, limit: float) -> FloatArray:
    return log_binomial(sums.above_zero, sums.n, limit)


def _largest_mean(limit: float, n: int, delta: float, std: float | None) -> float | None:
    return as_share(largest_count(limit, n, math.log(delta)), n)


BINOMIAL = Family(
    "binomial",
    offered=True,
    log_p_from_sums=_from_sums,
    largest_mean=_largest_mean,
    rate=rate,
    log_p_of_zeros=log_p_of_zeros,
    errors_at_large_n=lambda delta: float(-ndtri(delta)),
)
