"""Super-uniform log p-values for "this mean loss is above its limit", and their inverses.

Everything here is on the unit scale: losses and limits in [0, 1]. All tests are one-sided, against
the null hypothesis H: E[loss] > limit. Arrays are vectorised over configurations, shape (n,).
Sums and counts are passed, never means, so that no count has to be recovered from a mean.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import bdtr, betaincc, gammaln, log1p, log_ndtr, ndtri, rel_entr, xlog1py, xlogy

from riskpilot.errors import ProblemError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
ArrayLike = npt.ArrayLike
Array = npt.NDArray[Any]
Part = Callable[[slice, slice], Array]

# The largest bet, as a share of the one that a loss of 1 would ruin. Any value below 1 is valid;
# near 1 serves losses of low variance, which never come close to 1.
LARGEST_BET = 0.95
# Validation losses count for at most so many when bets begin: calibration losses soon count more.
MOST_KNOWN = 200
# Beyond this strain the ceiling of the bets decides what passes. This and the other constants of
# `_largest_betting_mean` are fitted to simulations; they steer searches and plans, no test.
_STRAINED = 2.5
_READ = 1 << 20  # losses that are read at once where some of them do not count
# Below this, log(cdf) loses digits and then underflows; the tail is summed in log space instead.
_SMALLEST_CDF = 1e-280


def log_hoeffding(total: ArrayLike, n: ArrayLike, limit: float) -> FloatArray:
    """Hoeffding, eq:p_value. ``total``: sums of losses, shape (n,); ``n``: how many were summed.

    >>> round(float(np.exp(log_hoeffding(35, 1000, 0.05))), 4)
    0.6376
    """
    total, n, mean = _with_means(total, n)
    return _or_one(-2 * n * np.maximum(limit - mean, 0.0) ** 2, n)


def log_binomial(count: ArrayLike, n: ArrayLike, limit: float) -> FloatArray:
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
    return _or_one(log_p, n)


def log_hoeffding_bentkus(total: ArrayLike, n: ArrayLike, limit: float) -> FloatArray:
    """Hoeffding-Bentkus, eq:HB_pval. ``total``: sums of losses, shape (n,)."""
    total, n, mean = _with_means(total, n)
    clipped = np.minimum(mean, limit)
    h1 = rel_entr(clipped, limit) + rel_entr(1 - clipped, 1 - limit)  # 0 log 0 = 0
    bentkus = 1 + log_binomial(_ceil(total), n, limit)
    return _or_one(np.minimum(-n * h1, bentkus), n)


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
        size = self.mean + self.variance / np.maximum(self.mean, 1e-12)
        return np.maximum(self.variance, limit * (size - limit)), np.minimum(self.n, MOST_KNOWN)


def log_betting(
    losses: Array,
    limit: float | FloatArray,
    delta: float | FloatArray = 0.1,
    start: Start | None = None,
) -> FloatArray:
    """Betting (Waudby-Smith and Ramdas): p = 1 / the largest capital reached.

    The capital prod(1 + bet (limit - loss)) is a supermartingale under H whenever a bet depends on
    the past alone and lies in [0, 1 / (1 - limit)], so Ville's inequality makes p super-uniform.
    The bet is the one that would reach the capital still missing in the time that is left, at the
    variance seen so far (Voracek and Orabona's target-recalculating bets): it loses little against
    the normal approximation where a constant bet loses a lot.

    Parameters
    ----------
    losses : array of shape (n, m)
        In an order that does not depend on their values. NaN entries do not count: each row is
        tested on its other entries, as if there were no more. That is valid given which entries
        count, and so the p-value of a row depends on nothing but the losses of it that count.
    limit : float or array of shape (n,)
        One limit, or one for each row.
    delta : float or array of shape (n,)
        The level that matters most, or one for each row. It steers the bets; p is valid at any.
    start : Start, optional
        What independent data says of the losses of each row. It keeps the first bets from being
        too bold where losses are rare; p is valid whatever it says.

    Returns
    -------
    array of shape (n,)
        Log p-values; 0 where nothing counts.

    Examples
    --------
    >>> losses = np.full((1, 300), 0.05)
    >>> bool(log_betting(losses, 0.1)[0] < math.log(0.1))
    True
    """
    array = np.asarray(losses)
    return log_betting_by_parts(
        lambda rows, times: array[rows, times],
        array.shape,
        limit,
        delta,
        start,
        conditional=array.dtype.kind == "f" and bool(np.isnan(array).any()),
    )


def log_betting_by_parts(
    part: Part,
    shape: tuple[int, ...],
    limit: float | FloatArray,
    delta: float | FloatArray = 0.1,
    start: Start | None = None,
    *,
    conditional: bool = True,
) -> FloatArray:
    """`log_betting` of losses that are asked for when their time has come, a few steps at a time.

    ``part(rows, times)``: the losses of some rows at some times. ``shape``: (n, m), of all of them.
    ``conditional``: whether some may be NaN; then a block of rows is read at once. The numbers are
    the same; what a large table takes in double precision is never there at once.
    """
    n_configs, m = shape
    limits = np.broadcast_to(np.asarray(limit, dtype=np.float64), (n_configs,))
    levels = np.broadcast_to(np.log(1 / np.maximum(delta, 1e-300)), (n_configs,))
    log_p = np.empty(n_configs)
    step = min(256, max(1, _READ // m)) if conditional else 256  # columns that stay in the cache
    for first in range(0, n_configs, step):
        rows = slice(first, min(first + step, n_configs))
        bets = _Bets(limits[rows], levels[rows], None if start is None else start.of(rows))
        if conditional:
            _play_what_counts(bets, np.asarray(part(rows, slice(0, m)), dtype=np.float64))
        else:
            _play(bets, partial(part, rows), m)
        log_p[rows] = -bets.best
    return log_p


class _Bets:
    """The bets on a block of rows, and how they have gone so far; every array has shape (n,)."""

    def __init__(self, limit: FloatArray, level: FloatArray, start: Start | None) -> None:
        self.limit, self.level = limit, level
        self.capital = np.zeros(len(limit))  # log
        self.best = np.zeros(len(limit))
        self.target = np.array(level)
        self.total = np.zeros(len(limit))
        self.squares = limit * (1 - limit)  # one pseudo-observation of prior variance
        self.known = None if start is None else start.at(limit)

    def play(
        self, gains: FloatArray, time: int | IntArray, m: int | IntArray, inside: BoolArray | None
    ) -> None:
        """Bet on the next few losses of each row with one and the same bet.

        ``gains``: the limit less the loss, shape (steps, n); ``time``: how many losses have been
        seen, of ``m``. ``inside``: which of the gains are there, all where None; the others are 0.
        """
        missing, left = self.target - self.capital, np.maximum(m - time, 1)
        bet = np.minimum(
            np.sqrt(2 * missing / (left * self._variance(time))), LARGEST_BET / (1 - self.limit)
        )
        self.capital = self.capital + _log_product(1 + bet * gains)
        np.maximum(self.best, self.capital, out=self.best)
        # Past a target, play for the next one: the largest capital is kept whatever comes.
        # It is set from the capital itself: on a fixed grid of targets a sliver would be missing
        # now and then, and the bets after that would follow the rounding of the machine.
        reached = self.capital >= self.target
        self.target = np.where(reached, self.capital + self.level, self.target)
        # From the mean so far, which is the limit itself at first.
        deviation = gains - self.total / (time + 1)
        if inside is not None:
            deviation = np.where(inside, deviation, 0.0)
        self.squares = self.squares + np.einsum("tn,tn->n", deviation, deviation)
        self.total = self.total + gains.sum(axis=0)

    def _variance(self, time: int | IntArray) -> FloatArray:
        """The variance seen so far, or what it would be with the validation losses among those
        seen where that is larger: losses that are rare may not have come yet."""
        seen = self.squares / (time + 1)
        if self.known is None:
            return seen
        variance, weight = self.known
        return np.maximum(seen, (self.squares + weight * variance) / (time + 1 + weight))


def _step(time: IntArray, m: IntArray) -> IntArray:
    """How long bets stay put: a short while, a share of the past, and of the time left."""
    step: IntArray = np.maximum(1, np.minimum(time // 4, (m - time) // 50))
    return step


def _play(bets: _Bets, losses_at: Callable[[slice], Array], m: int) -> None:
    """Play for all rows at the same pace; every loss counts."""
    time = 0
    while time < m:
        stop = time + max(1, min(time // 4, (m - time) // 50))  # as `_step`, of one row
        # One step of time is contiguous: (stop - time, n).
        losses = np.ascontiguousarray(losses_at(slice(time, stop)).T, dtype=np.float64)
        bets.play(bets.limit - losses, time, m, None)
        time = stop


def _play_what_counts(bets: _Bets, losses: FloatArray) -> None:
    """Play for each row at its own pace, on those of its losses, shape (n, m), that are there."""
    counts = ~np.isnan(losses)
    n = counts.sum(axis=1)
    most = int(n.max())
    counted = np.zeros((len(losses), most))
    # Both sides go row by row: the losses of a row that count move to its front.
    counted[np.arange(most) < n[:, None]] = losses[counts]
    if n.min() == most:
        _play(bets, lambda times: counted[:, times], most)
        return
    gains = bets.limit - np.ascontiguousarray(counted.T)
    time, columns = np.zeros_like(n), np.arange(len(n))
    while (time < n).any():
        step = np.where(time < n, _step(time, n), 0)
        ahead = np.arange(step.max())[:, None]
        inside = ahead < step
        next_gains = gains[np.minimum(time + ahead, most - 1), columns]
        bets.play(np.where(inside, next_gains, 0.0), time, n, inside)
        time = time + step


def _log_product(factors: FloatArray) -> FloatArray:
    """log of the product over axis 0. Factors are at least 1 - LARGEST_BET: 200 cannot vanish."""
    result = np.zeros(factors.shape[1])
    if factors.max(initial=0.0) > 30:  # a limit near 1 allows bets so large that 200 overflow
        huge = factors.max(axis=0) > 30
        result[huge] = np.log(factors[:, huge]).sum(axis=0)
        result[~huge] = _log_product(factors[:, ~huge])
        return result
    for start in range(0, len(factors), 200):
        result += np.log(np.prod(factors[start : start + 200], axis=0))
    return result


def log_normal(mean: ArrayLike, standard_error: ArrayLike, limit: float) -> FloatArray:
    """The normal approximation. Not a valid p-value: it orders candidates on validation data."""
    mean = np.asarray(mean, float)
    error = np.maximum(np.asarray(standard_error, float), 1e-12)
    result: FloatArray = log_ndtr((mean - limit) / error)
    return result


def largest_passing_mean(
    family: str, limit: float, n: int, delta: float, std: float | None = None
) -> float | None:
    """The largest empirical mean of ``n`` losses whose p-value is below ``delta``, or None.

    eq:alpha_max for Hoeffding; its analogue for the other families. The betting test depends on
    more than the mean: there it is the mean that passes about half of the time for losses of
    standard deviation ``std`` (two-point losses where None).

    >>> round(largest_passing_mean("hoeffding", 0.05, 5000, 0.1), 4)
    0.0348
    >>> largest_passing_mean("binomial", 0.05, 40, 0.1) is None
    True
    """
    if n < 1:
        return None
    log_delta = math.log(delta)
    if family == "hoeffding":
        alpha_max = limit - math.sqrt(-log_delta / (2 * n))  # eq:alpha_max
        return alpha_max if alpha_max >= 0 else None
    if family == "binomial":
        return _share(_largest_count(limit, n, log_delta), n)
    if family == "hoeffding_bentkus":
        bentkus = _share(_largest_count(limit, n, log_delta - 1), n)
        hoeffding = _largest_hoeffding_mean(limit, n, log_delta)
        passing = [mean for mean in (bentkus, hoeffding) if mean is not None]
        return max(passing, default=None)
    if family == "normal":  # where the statistic is no mean of losses: an approximation
        mean = limit - (0.1 - float(ndtri(delta))) * (std or 0.5) / math.sqrt(n)
        return mean if mean >= 0 else None
    if family == "betting":
        spread = math.sqrt(limit * (1 - limit)) if std is None else std
        return _largest_betting_mean(limit, n, delta, spread)
    raise _unknown(family)


def _unknown(family: str) -> ProblemError:
    return ProblemError(
        f"There is no p-value family {family!r} here. Use one of hoeffding, binomial, "
        f"hoeffding_bentkus, betting."
    )


def smallest_n(family: str, limit: float, delta: float) -> int:
    """How many losses, all of them zero, it takes to pass: with fewer, nothing can.

    >>> smallest_n("binomial", 0.05, 0.1)
    45
    """
    step = {
        "hoeffding": 2 * limit**2,
        "binomial": -math.log1p(-limit),
        "hoeffding_bentkus": -math.log1p(-limit),
        "betting": math.log1p(LARGEST_BET * limit / (1 - limit)),
    }.get(family)
    if step is None:
        raise _unknown(family)
    n = max(1, math.floor(math.log(1 / delta) / step))
    while not _zeros_pass(family, limit, n, delta):
        n += 1
    return n


def _zeros_pass(family: str, limit: float, n: int, delta: float) -> bool:
    if family == "betting":
        if n > 100_000:  # at so small a limit every bet is at its ceiling
            return -n * math.log1p(LARGEST_BET * limit / (1 - limit)) < math.log(delta)
        return float(log_betting(np.zeros((1, n)), limit, delta)[0]) < math.log(delta)
    tests = {
        "hoeffding": log_hoeffding,
        "binomial": log_binomial,
        "hoeffding_bentkus": log_hoeffding_bentkus,
    }
    return float(tests[family](0, n, limit)) < math.log(delta)


def _largest_count(limit: float, n: int, log_level: float) -> int:
    """The largest c with log P(Binomial(n, limit) <= c) < log_level; -1 where there is none."""
    low, high = -1, n
    while high - low > 1:
        middle = (low + high) // 2
        if float(log_binomial(middle, n, limit)) < log_level:
            low = middle
        else:
            high = middle
    return low


def _share(count: int, n: int) -> float | None:
    return None if count < 0 else count / n


def _largest_hoeffding_mean(limit: float, n: int, log_delta: float) -> float | None:
    def excess(mean: float) -> float:
        h1 = float(rel_entr(mean, limit) + rel_entr(1 - mean, 1 - limit))
        return -n * h1 - log_delta

    return None if excess(0.0) >= 0 else float(brentq(excess, 0.0, limit, xtol=1e-12))


def _largest_betting_mean(limit: float, n: int, delta: float, std: float) -> float | None:
    error = std / math.sqrt(n)
    # With the bet at its ceiling the capital grows by log(1 + bet (limit - mean)) a step.
    ceiling = math.expm1(math.log(1 / delta) / n) * (1 - limit) / LARGEST_BET
    # How much the ceiling binds: the bet that the variance asks for, against the largest allowed.
    strain = math.log(1 / delta) * (1 - limit) / max(n * std**2, 1e-300)
    if strain > _STRAINED:
        gap = ceiling + 0.3 * error
    else:
        z = float(-ndtri(delta)) + 0.1 + 0.55 * strain
        gap = max(z * error, ceiling)
    mean = limit - gap
    return mean if mean >= 0 else None


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


def _ceil(total: FloatArray) -> FloatArray:
    """Round sums up, except for the rounding error of the summation itself."""
    nearest = np.rint(total)
    noise = 1e-9 * np.maximum(1.0, total)
    result: FloatArray = np.where(np.abs(total - nearest) <= noise, nearest, np.ceil(total))
    return result


def _with_means(total: ArrayLike, n: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    total, n = np.broadcast_arrays(np.asarray(total, float), np.asarray(n, float))
    return total, n, total / np.maximum(n, 1)


def _or_one(log_p: FloatArray, n: FloatArray) -> FloatArray:
    """p = 1 where nothing was observed; never above 1."""
    return np.where(n > 0, np.minimum(log_p, 0.0), 0.0)
