"""How much to bet: the bets that copy a test with a horizon and a boundary.

A capital that is multiplied by 1 + bet (limit - loss) stays fair at the limit whatever the bets,
as long as they depend on the past alone. What bets decide is the power. The best that a test with
level delta can do with losses whose sum is nearly normal is known: it is the boundary that spends
delta (t / m)^power. Let V(u, s) be the probability, at the limit, to cross that boundary at some
time after a share u of the labels, when the sum of loss - limit, in units of its standard
deviation at the horizon, is s. V / delta is a fair capital: it begins at 1 and is 1 / delta on the
boundary. Betting the relative slope of V therefore copies the test, as far as the losses behave
like normal ones, and is valid whether they do or not. (In finance this is the hedge of a barrier
option.) Where the losses are skewed or their variance is not yet known the copy is imperfect, and
the slope is looked up for the capital that there is, not for the sum: so mistakes do not add up.

With a power of 2 the capital tends to reach 1 / delta early; with a large power only the end of
the horizon counts, and what is copied is the fixed test.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# The largest bet, as a share of the one that the worst outcome would ruin.
LARGEST_BET = 0.95

_TIMES = 100  # shares of the horizon in the table
_SPACING = 0.02  # of the sums, in standard deviations at the horizon
_REACH = 9.0  # the largest sum in the table
_LEVELS, _DEEPEST = 96, 8.0  # of sqrt(-log V)


def slope(delta: float, power: float, share: npt.ArrayLike, missing: npt.ArrayLike) -> FloatArray:
    """The bet in units of 1 / (standard deviation of a loss * sqrt(horizon)).

    Parameters
    ----------
    delta : float
        The level that is played for.
    power : float
        Of the spending function whose boundary is copied.
    share : array
        The share of the horizon that is over, in [0, 1].
    missing : array
        The log of the factor by which the capital still has to grow; at least 0.

    Returns
    -------
    array
        At least 0, of the common shape of ``share`` and ``missing``.

    Examples
    --------
    >>> slope(0.1, 2.0, 0.0, np.log(10)).round(2)
    np.float64(2.19)
    """
    table = _table(float(delta), float(power))
    row = np.clip((np.asarray(share) * _TIMES).astype(np.int64), 0, _TIMES - 1)
    at = np.sqrt(np.maximum(missing, 0.0)) * ((_LEVELS - 1) / _DEEPEST)
    left = np.minimum(at.astype(np.int64), _LEVELS - 2)  # beyond the table the line goes on
    low, high = table[row, left], table[row, left + 1]
    return np.asarray(low + (at - left) * (high - low))


@lru_cache(maxsize=32)
def _table(delta: float, power: float) -> FloatArray:
    """The relative slope of V after each share of the horizon, shape (_TIMES, _LEVELS)."""
    half = round(_REACH / _SPACING)
    sums: FloatArray = np.arange(-half, half + 1, dtype=np.float64) * _SPACING
    kernel = _kernel()
    boundary = _boundary(delta, power, sums, kernel)
    grid = np.linspace(0.0, _DEEPEST, _LEVELS)
    value = _reached(boundary[_TIMES], sums)
    table = np.empty((_TIMES, _LEVELS))
    for time in range(_TIMES - 1, -1, -1):
        beyond = len(kernel)
        padded = np.concatenate([np.ones(beyond), value, np.zeros(beyond)])
        value = np.convolve(padded, kernel, mode="same")[beyond:-beyond]
        going = (sums > boundary[time]) & (value > 1e-25) & (value < 1 - 1e-9)
        log_value = np.log(value[going])
        slopes = -np.gradient(log_value, sums[going])
        depth = np.sqrt(-log_value)
        # Far from the boundary the slope grows in proportion to the depth.
        far = slopes[-1] * grid / depth[-1]
        table[time] = np.where(grid < depth[-1], np.interp(grid, depth, slopes), far)
        crossed = _reached(boundary[time], sums)
        value = crossed + (1 - crossed) * value
    table[0] = table[1]  # before the first boundary a capital near the target has no meaning
    # Rounded, so that the bets do not follow the last digits of a machine.
    return np.asarray(np.round(table, 6))


def _kernel() -> FloatArray:
    """The probabilities of the change of the sum within one step of the table."""
    wide = math.ceil(6 / math.sqrt(_TIMES) / _SPACING)
    weights = np.exp(-_TIMES * (np.arange(-wide, wide + 1) * _SPACING) ** 2 / 2)
    return np.asarray(weights / weights.sum())


def _boundary(delta: float, power: float, sums: FloatArray, kernel: FloatArray) -> FloatArray:
    """The sums at which delta (t / m)^power is spent; shape (_TIMES + 1,), -inf at time 0."""
    boundary = np.full(_TIMES + 1, -np.inf)
    alive = (sums == 0) * 1.0
    spent = 0.0
    for time in range(1, _TIMES + 1):
        alive = np.convolve(alive, kernel, mode="same")
        room = delta * (time / _TIMES) ** power - spent
        below = np.add.accumulate(alive)
        cell = int(np.searchsorted(below, room))
        part = float((room - (below[cell - 1] if cell else 0.0)) / alive[cell])
        boundary[time] = sums[cell] + (part - 0.5) * _SPACING
        alive[:cell] = 0.0
        alive[cell] *= 1 - part
        spent += room
    return boundary


def _reached(boundary: float, sums: FloatArray) -> FloatArray:
    """The share of each cell of sums that lies below the boundary."""
    return np.clip((boundary - sums) / _SPACING + 0.5, 0.0, 1.0)
