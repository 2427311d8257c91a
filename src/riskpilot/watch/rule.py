"""What is fixed when a watch begins: limits, the bets against them, and when restarts are paid."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from riskpilot.errors import ProblemError

FloatArray = npt.NDArray[np.float64]

# The largest bet, as a share of the one that a loss of 0 would ruin.
LARGEST_BET = 0.95
# Bets are a factor of 2 apart. Between two of them a bet grows at 89 % of the best rate or faster.
_RATIO = 2.0
# Below this bet, the risk is so close to its limit that an alarm takes tens of thousands of labels.
_SMALLEST_BET = 0.1
# The prior of the bets is a bell over their logarithms around the best bet for a risk of 1.5 times
# the limit. Cauchy tails leave something to every bet.
_USUAL_EXCESS = 0.5
_WIDTH = 1.0
# This share of the capital is kept for restarts; the rest bets from the first label on.
RESERVE = 0.25
# How slowly the reserve is spent, in restarts.
PACE = 300.0
# The recent mean remembers about as many labels as have this total loss at the limit.
_REMEMBERED = 5.0
_SHORTEST_MEMORY = 10.0


@dataclass(frozen=True)
class Rule:
    """The bets on K streams of losses in [0, 1], one for each risk or group that has a limit.

    Stream k raises an alarm when its capital reaches ``1 / (delta * shares[k])``. Each stream does
    that falsely with probability at most ``delta * shares[k]`` (see `capital`), so that any does
    with probability at most ``delta``, whatever the streams have to do with one another.

    Parameters
    ----------
    limits : tuple of float, length K
        Each in (0, 1), on the unit scale of its stream.
    shares : tuple of float, length K
        How much of ``delta`` each stream may spend; their sum is at most 1.
    delta : float
        The probability of any false alarm over the whole life of the watch.
    bets, prior : tuple of K tuples of float, length G
        The bets against each limit, each below 1 / limit, and the capital that each starts with.
        Streams with fewer than G bets have bets of 0 with no capital.
    reserve : float
        The share of the capital that is kept for restarts.
    pace : float
        After r restarts the share ``1 / (1 + log(1 + r / pace))`` of the reserve is left.
    memory : tuple of float, length K
        How many labels the recent mean of each stream remembers.
    weighted : tuple of bool, length K
        Whether the labels of the stream have weights.
    """

    limits: tuple[float, ...]
    shares: tuple[float, ...]
    delta: float
    bets: tuple[tuple[float, ...], ...]
    prior: tuple[tuple[float, ...], ...]
    reserve: float
    pace: float
    memory: tuple[float, ...]
    weighted: tuple[bool, ...]

    @property
    def n_streams(self) -> int:
        return len(self.limits)

    @cached_property
    def limit_array(self) -> FloatArray:
        return np.array(self.limits)

    @cached_property
    def bet_array(self) -> FloatArray:
        return np.array(self.bets)

    @cached_property
    def prior_array(self) -> FloatArray:
        return np.array(self.prior)

    @cached_property
    def forgetting_array(self) -> FloatArray:
        return 1 / np.array(self.memory)

    @cached_property
    def threshold_array(self) -> FloatArray:
        return 1 / (self.delta * np.array(self.shares))

    def reserve_after(self, restarts: npt.ArrayLike) -> FloatArray:
        """What is left of the reserve after that many restarts; an array of the same shape."""
        left = np.log1p(np.asarray(restarts, dtype=np.float64) / self.pace)
        return np.asarray(self.reserve / (1 + left))

    def start_share(self, start: int) -> float:
        """The weight of intervals that begin after ``start`` labels; all of them sum to 1."""
        if start == 0:
            return 1 - self.reserve
        before, after = self.reserve_after([start - 1, start])
        return float(before - after)


def make_rule(
    limits: Sequence[float],
    *,
    delta: float = 0.05,
    shares: Sequence[float] | None = None,
    weighted: Sequence[bool] | None = None,
) -> Rule:
    """Choose the bets against some limits.

    Parameters
    ----------
    limits : sequence of float, length K
        The limit of each stream on its unit scale, in (0, 1).
    delta : float
        The probability of any false alarm over the whole life of the watch.
    shares : sequence of float, length K, optional
        How much of ``delta`` each stream may spend; all the same where left out.

    weighted : sequence of bool, length K, optional
        Whether the labels of each stream have weights; none has where left out.

    Returns
    -------
    Rule
        What `riskpilot.watch.begin` and `riskpilot.watch.update` need.

    Raises
    ------
    ProblemError
        Where there is no limit, one lies outside (0, 1), or the shares are not positive or sum to
        more than 1.

    Examples
    --------
    >>> rule = make_rule([0.1, 0.2])
    >>> rule.threshold_array
    array([40., 40.])
    """
    levels = tuple(_inside(value, "The limit of a stream") for value in limits)
    if not levels:
        raise ProblemError(
            "A watch needs at least one limit, but there is none. Name a risk and its limit."
        )
    delta = _inside(delta, "The probability of a false alarm, delta,")
    parts = _shares(shares, len(levels))
    grids = [_bets(limit) for limit in levels]
    width = max(map(len, grids))
    return Rule(
        limits=levels,
        shares=parts,
        delta=delta,
        bets=tuple(_padded(bets, width) for bets in grids),
        prior=tuple(
            _padded(_prior(bets, limit), width) for bets, limit in zip(grids, levels, strict=True)
        ),
        reserve=RESERVE,
        pace=PACE,
        memory=tuple(max(_SHORTEST_MEMORY, _REMEMBERED / limit) for limit in levels),
        weighted=_weighted(weighted, len(levels)),
    )


def _inside(value: float, what: str) -> float:
    number = float(value)
    if not 0 < number < 1:
        raise ProblemError(
            f"{what} must lie strictly between 0 and 1, but it is {value!r}. "
            f"Map the losses and their limit to the unit scale first."
        )
    return number


def _shares(shares: Sequence[float] | None, n: int) -> tuple[float, ...]:
    if shares is None:
        return (1 / n,) * n
    parts = tuple(float(share) for share in shares)
    # Shares such as three times 1/3 may sum to a little more than 1 in floating point.
    if len(parts) != n or not all(share > 0 for share in parts) or math.fsum(parts) > 1 + 1e-12:
        raise ProblemError(
            f"Each of the {n} streams needs a positive share of delta, and the shares sum to at "
            f"most 1, but they are {parts!r}. Leave them out for equal shares."
        )
    return parts


def _weighted(weighted: Sequence[bool] | None, n: int) -> tuple[bool, ...]:
    flags = (False,) * n if weighted is None else tuple(map(bool, weighted))
    if len(flags) != n:
        raise ProblemError(
            f"Each of the {n} streams has weights or not, but there are {len(flags)} entries in "
            f"weighted. Give one for each stream, or leave it out."
        )
    return flags


def _bets(limit: float) -> list[float]:
    largest = LARGEST_BET / limit
    n = max(1, math.ceil(math.log(largest / _SMALLEST_BET, _RATIO)) + 1)
    return [largest / _RATIO**j for j in range(n)]


def _prior(bets: list[float], limit: float) -> list[float]:
    usual = min(_USUAL_EXCESS / (1 - limit), 0.5 / limit)
    bell = [1 / (1 + (math.log(bet / usual) / _WIDTH) ** 2) for bet in bets]
    whole = math.fsum(bell)
    return [part / whole for part in bell]


def _padded(values: list[float], width: int) -> tuple[float, ...]:
    return (*values, *[0.0] * (width - len(values)))
