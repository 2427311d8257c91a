"""The exact test of a mean of differences that are -1, 0 or 1: two 0/1 losses of each example.

``a`` examples got worse and ``b`` better among n; the null hypothesis is P(worse) - P(better) >
limit. How often the two differ at all is not known. The outcomes are ordered by the score that
Tango (1998) made for pairs, and a p-value is the largest probability, over all shares that change,
of an outcome as good as the one observed (Sidik, 2003).
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc, betaincinv, gammaln, xlog1py, xlogy

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# The share that got better lies outside of its interval with this probability, which is added to
# the p-value (Berger and Boos, 1994). So are the far tails that are not summed.
_OUTSIDE = 1e-10
_TAILS = 1e-12
# Widths of the cells in which the share is searched, in standard errors: the fine ones are used
# where the coarse ones leave open whether p is below delta.
_COARSE, _FINE = 0.1, 0.02
_CHUNK = 200_000  # terms that are summed at a time


def log_trinomial(
    worse: npt.ArrayLike, better: npt.ArrayLike, n: npt.ArrayLike, limit: float, delta: float = 0.1
) -> FloatArray:
    """log p-values of "the mean difference is above ``limit``"; shape (r,), as the counts have.

    Valid for any differences in [-1, 1] when ``worse`` counts those above 0 and ``better`` those
    that are -1, since rounding up raises their mean. ``delta``: near it the p-value is sharp.

    >>> np.exp(log_trinomial([3], [5], [200], 0.05)).round(4)
    array([0.0011])
    """
    counts = np.stack(np.broadcast_arrays(worse, better, n)).astype(np.int64)
    different, place = np.unique(counts, axis=1, return_inverse=True)
    p = np.array([_p_value(a, b, m, limit, delta) for a, b, m in different.T.tolist()])
    return np.asarray(np.log(p)[place.reshape(-1)])


def _p_value(worse: int, better: int, n: int, limit: float, delta: float) -> float:
    if n == 0 or worse - better >= n * limit:
        return 1.0
    most = min(n, math.ceil(_window(n, _worse(limit, _edges(better, n, limit, 1.0)[-1]))[1]))
    least = _least_better(_score(worse, better, n, limit), n, limit, most)
    for width in (_COARSE, _FINE):
        edges = _edges(better, n, limit, width)
        got_worse = _worse(limit, edges)
        # Fewer got worse and more got better than anywhere in the cell: an upper bound on it.
        p = _largest(least, n, got_worse[:-1], np.minimum(edges[1:], 1 - got_worse[:-1]))
        if p < delta or _largest(least, n, got_worse, edges) >= delta:
            break
    return min(p + _OUTSIDE + _TAILS, 1.0)


def _worse(limit: float, better: FloatArray) -> FloatArray:
    """The share that got worse where the mean is at the limit, given the share that got better. At
    a limit below 0 rounding would take it below 0."""
    return np.maximum(limit + better, 0.0)


def _score(worse: IntArray | int, better: IntArray | int, n: int, limit: float) -> FloatArray:
    """The mean less the limit in standard errors, at the most likely share that keeps the null:
    the root of the likelihood's derivative, a quadratic equation."""
    a, b = np.asarray(worse, dtype=np.float64), np.asarray(better, dtype=np.float64)
    linear = limit * (2 * n - a + b) - a - b
    constant = -b * limit * (1 - limit)
    root = (np.sqrt(np.maximum(linear**2 - 8 * n * constant, 0.0)) - linear) / (4 * n)
    share = np.clip(root, max(0.0, -limit), (1 - limit) / 2)
    variance = np.maximum(n * (2 * share + limit * (1 - limit)), 1e-12)
    return np.asarray((a - b - n * limit) / np.sqrt(variance))


def _least_better(score: FloatArray, n: int, limit: float, most: int) -> IntArray:
    """For each number that got worse, up to ``most``, how many must have got better for a score as
    small as this one; n + 1 where none is enough. Shape (most + 1,).

    Fewer that got worse never count against a configuration: the numbers are made to rise.
    """
    a = np.arange(most + 1)
    low, high = np.full(most + 1, -1), n - a + 1
    bound = float(score) + 1e-9 * max(1.0, abs(float(score)))
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = _score(a, middle, n, limit) <= bound
        going = high - low > 1
        high = np.where(going & enough, middle, high)
        low = np.where(going & ~enough, middle, low)
    high = np.where(high <= n - a, high, n + 1)
    return np.asarray(np.minimum.accumulate(high[::-1])[::-1])


def _edges(better: int, n: int, limit: float, width: float) -> FloatArray:
    """Edges of cells for the share that got better, over the interval that it is in."""
    low, high = max(0.0, -limit), (1 - limit) / 2
    if better > 0:
        low = max(low, float(betaincinv(better, n - better + 1, _OUTSIDE / 2)))
    if better < n:
        high = min(high, float(betaincinv(better + 1, n - better, 1 - _OUTSIDE / 2)))
    if low >= high:
        return np.array([min(low, (1 - limit) / 2)] * 2)
    # The root of a share has about the same standard error everywhere.
    ends = math.sqrt(low), math.sqrt(high)
    cells = max(1, math.ceil((ends[1] - ends[0]) * 2 * math.sqrt(n) / width))
    edges: FloatArray = np.linspace(*ends, cells + 1) ** 2
    return edges


def _largest(least: IntArray, n: int, p_worse: FloatArray, p_better: FloatArray) -> float:
    """The largest probability of {better >= least[worse]} among pairs of shares, shape (s,)."""
    first, last = _window(n, p_worse)
    first = np.clip(np.floor(first), 0, n).astype(np.int64)
    length, most = int((last - first).max()) + 2, len(least) - 1
    found = 0.0
    for start in range(0, len(p_worse), max(1, _CHUNK // length)):
        rows = slice(start, start + max(1, _CHUNK // length))
        p, a = p_worse[rows, None], first[rows, None] + np.arange(length)
        inside = a <= most
        a = np.minimum(a, most)
        inside &= least[a] <= n - a
        log_pmf = gammaln(n + 1) - gammaln(a + 1) - gammaln(n - a + 1) + xlogy(a, p)
        log_pmf += xlog1py(n - a, -p)
        share = np.clip(p_better[rows, None] / np.maximum(1 - p, 1e-300), 0.0, 1.0)
        needed = np.clip(least[a], 0, n - a)
        tail = np.where(needed > 0, bdtrc(np.maximum(needed - 1, 0), n - a, share), 1.0)
        chances = np.where(inside, np.exp(log_pmf) * tail, 0.0)
        found = max(found, float(chances.sum(axis=1).max()))
    return found


def _window(n: int, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Between these the number that got worse lies, but for `_TAILS`."""
    spread = 9 * np.sqrt(n * p * (1 - p)) + 20
    return n * p - spread, n * p + spread
