"""Betting on one loss after another (Waudby-Smith and Ramdas), for losses of any kind."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import ndtri

from riskpilot.common import Array, BoolArray, FloatArray, IntArray
from riskpilot.statistics.families.base import Family, Part, Start

# The largest bet, as a share of the one that a loss of 1 would ruin. Any value below 1 is valid;
# near 1 serves losses of low variance, which never come close to 1.
LARGEST_BET = 0.95
# Beyond this strain the ceiling of the bets decides what passes. This and the other constants of
# `_largest_mean` are fitted to simulations; they steer searches and plans, no test.
_STRAINED = 2.5
_READ = 1 << 20  # losses that are read at once where some of them do not count


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


def _largest_mean(limit: float, n: int, delta: float, std: float | None) -> float | None:
    if std is None:  # two-point losses
        std = math.sqrt(limit * (1 - limit))
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


def _rate(limit: float) -> float:
    """Return the gain of the largest bet from a loss of zero."""
    return math.log1p(LARGEST_BET * limit / (1 - limit))


def _log_p_of_zeros(n: int, limit: float, delta: float) -> float:
    if n > 100_000:  # at so small a limit every bet is at its ceiling
        return -n * _rate(limit)
    return float(log_betting(np.zeros((1, n)), limit, delta)[0])


BETTING = Family(
    "betting",
    offered=True,
    log_p_by_parts=log_betting_by_parts,
    largest_mean=_largest_mean,
    rate=_rate,
    log_p_of_zeros=_log_p_of_zeros,
)
