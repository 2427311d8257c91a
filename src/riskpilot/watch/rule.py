"""What is fixed when a watch begins: limits, the bets against them, and the pay of restarts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import FloatArray
from riskpilot.errors import ProblemError

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
# Where a judge helps, the capital is divided among these weights of its scores, each with a share.
# Nothing is learned on the way: the account whose weight suits the judge soon holds most of it.
JUDGE_WEIGHTS = (0.0, 0.4, 0.8)
_JUDGE_SHARES = (0.2, 0.2, 0.6)
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
    judge : tuple of K tuples of float, length G
        The weight that each bet gives to the scores of a judge; 0 where none helps.
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
    judge: tuple[tuple[float, ...], ...]

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
    def judge_array(self) -> FloatArray:
        return np.array(self.judge)

    @cached_property
    def judged(self) -> bool:
        """Whether a judge helps with any stream."""
        return bool(self.judge_array.any())

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
        """Compute what is left of the reserve after that many restarts, in the same shape."""
        left = np.log1p(np.asarray(restarts, dtype=np.float64) / self.pace)
        return np.asarray(self.reserve / (1 + left))

    def start_share(self, start: int) -> float:
        """Compute the weight of intervals that begin after ``start`` labels; all sum to 1."""
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
    judged: Sequence[bool] | None = None,
) -> Rule:
    """Choose the bets against some limits.

    Parameters
    ----------
    limits : sequence of float, length K
        The limit of each stream on its unit scale, in (0, 1).
    delta : float, default 0.05
        The probability of any false alarm over the whole life of the watch.
    shares : sequence of float, length K, optional
        How much of ``delta`` each stream may spend; all the same where left out.
    weighted : sequence of bool, length K, optional
        Whether the labels of each stream have weights; none has where left out.
    judged : sequence of bool, length K, optional
        Whether a judge helps with each stream; with none where left out.

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
    helped = _flags(judged, len(levels), "judged")
    grids = [_grid(limit, helps) for limit, helps in zip(levels, helped, strict=True)]
    width = max(len(bets) for bets, _, _ in grids)
    return Rule(
        limits=levels,
        shares=parts,
        delta=delta,
        bets=tuple(_padded(bets, width) for bets, _, _ in grids),
        prior=tuple(_padded(prior, width) for _, prior, _ in grids),
        reserve=RESERVE,
        pace=PACE,
        memory=tuple(max(_SHORTEST_MEMORY, _REMEMBERED / limit) for limit in levels),
        weighted=_flags(weighted, len(levels), "weighted"),
        judge=tuple(_padded(weights, width) for _, _, weights in grids),
    )


def _inside(value: float, what: str) -> float:
    """Return a number that lies strictly between 0 and 1; refuse others."""
    number = float(value)
    if not 0 < number < 1:
        raise ProblemError(
            f"{what} must lie strictly between 0 and 1, but it is {value!r}. "
            f"Map the losses and their limit to the unit scale first."
        )
    return number


def _shares(shares: Sequence[float] | None, n: int) -> tuple[float, ...]:
    """Return the share of delta that each of n streams may spend."""
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


def _flags(given: Sequence[bool] | None, n: int, name: str) -> tuple[bool, ...]:
    """Return what is true of each of n streams; nothing where it was left out."""
    flags = (False,) * n if given is None else tuple(map(bool, given))
    if len(flags) != n:
        raise ProblemError(
            f"Each of the {n} streams is {name} or not, but there are {len(flags)} entries in "
            f"{name}. Give one for each stream, or leave it out."
        )
    return flags


def _grid(limit: float, judged: bool) -> tuple[list[float], list[float], list[float]]:
    """Choose the bets against a limit, their prior, and the weight that each gives to a judge."""
    bets: list[float] = []
    prior: list[float] = []
    weights: list[float] = []
    parts = zip(JUDGE_WEIGHTS, _JUDGE_SHARES, strict=True) if judged else [(0.0, 1.0)]
    for weight, share in parts:
        some = _bets(limit, weight)
        bets += some
        prior += [share * part for part in _prior(some, limit)]
        weights += [weight] * len(some)
    return bets, prior, weights


def _bets(limit: float, weight: float) -> list[float]:
    """Choose the bets against a limit that give a judge this weight, largest first. At the worst, a
    loss of 0 comes with a score of 1 and fresh scores of 0."""
    largest = LARGEST_BET / (limit + weight)
    n = max(1, math.ceil(math.log(largest / _SMALLEST_BET, _RATIO)) + 1)
    return [largest / _RATIO**j for j in range(n)]


def _prior(bets: list[float], limit: float) -> list[float]:
    """Divide the capital among the bets; the shares sum to 1."""
    usual = min(_USUAL_EXCESS / (1 - limit), 0.5 / limit)
    bell = [1 / (1 + (math.log(bet / usual) / _WIDTH) ** 2) for bet in bets]
    whole = math.fsum(bell)
    return [part / whole for part in bell]


def _padded(values: list[float], width: int) -> tuple[float, ...]:
    """Append zeros until there are ``width`` values."""
    return (*values, *[0.0] * (width - len(values)))
