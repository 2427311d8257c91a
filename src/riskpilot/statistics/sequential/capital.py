"""A betting capital for losses in [0, 1] that are labelled one after another, up to a horizon.

The null hypothesis is H: E[loss_t | past] >= limit, at every t at which a loss counts. The capital

    K_t = prod_{s <= t} (1 + b_s (limit - loss_s)),    0 <= b_s < 1 / (1 - limit),

with bets b_s that depend on the losses before s alone, is a nonnegative supermartingale under H, so
that P(K_t >= 1 / u for some t) <= u for every u (Ville). The p-value 1 / max_{s <= t} K_s may
therefore be looked at after every label, and one may stop whenever one likes. A loss that does not
count (NaN) leaves the capital as it is; whether it counts may depend on the past and on the
example, but given that it counts its mean must be the conditional risk.

What is bet in a block of labels follows from the losses before it: the result depends on the losses
and their order, never on how they were divided into batches (`sequential.labels`).
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import FloatArray
from riskpilot.statistics.sequential.bets import LARGEST_BET, slope
from riskpilot.statistics.sequential.labels import (
    Bettor,
    at_the_start,
    check_unit,
    in_blocks,
    losses_of,
    running_sums,
)

# Half an observation of a loss of 1 stands before the observed squares: a variance that is taken
# too small makes bets that the first large loss ruins.
_PRIOR = 0.5


@dataclass(frozen=True)
class Capital(Bettor):
    """What the labels so far say about n candidates with losses in [0, 1].

    Attributes
    ----------
    log_capital : array of shape (n,)
        The logs of the capital now.
    total, squares : array of shape (n,)
        Sums over the labels that counted: of limit - loss, and of its squared distance from its
        mean before the block.
    bet, centre : array of shape (n,)
        The bet of the present block and that mean.
    """

    log_capital: FloatArray
    total: FloatArray
    squares: FloatArray
    bet: FloatArray
    centre: FloatArray


def start_capital(
    n: int, limit: npt.ArrayLike, delta: float, horizon: int, *, power: float = 2.0
) -> Capital:
    """n candidates before the first label, with a capital of 1 each.

    Parameters
    ----------
    n : int
        The number of candidates.
    limit : float or array of shape (n,)
        Limits on the unit scale, in (0, 1).
    delta : float
        The level that is played for, in (0, 1); p-values are valid at every level.
    horizon : int
        The number of labels that the bets are made for. More labels are allowed.
    power : float, optional
        2 plays for an early end, 8 for the end of the horizon.

    Returns
    -------
    Capital
        With every p-value at 1.

    Raises
    ------
    ProblemError
        Where a limit or delta does not lie in (0, 1), or the horizon is not positive.
    """
    zeros = np.zeros(n)
    state = Capital(
        **at_the_start(n, limit, delta, horizon, power),
        log_capital=zeros,
        total=zeros,
        squares=zeros,
        bet=zeros,
        centre=zeros,
    )
    return _next_block(state)


def add_losses(state: Capital, losses: npt.ArrayLike) -> Capital:
    """The losses of the next labels, in the order of the labels.

    Parameters
    ----------
    state : Capital
        What was known before.
    losses : array of shape (n, b)
        Losses of the n candidates at the next b labels, in [0, 1]; NaN does not count. Their order
        must have been settled before the labels were seen.

    Returns
    -------
    Capital
        What is known now.

    Raises
    ------
    LossError
        Where the losses are not those of n candidates.
    LossRangeError
        Where one lies outside [0, 1].

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> state = start_capital(1, limit=0.3, delta=0.1, horizon=1000)
    >>> state = add_losses(state, rng.beta(2, 6, (1, 400)))
    >>> state.crossed.tolist()
    [True]
    """
    values = losses_of(len(state.limit), losses)
    check_unit("Losses", values)

    def add(state: Capital, some: slice) -> Capital:
        return _within_block(state, values[:, some])

    return in_blocks(state, values.shape[1], add, _next_block)


def log_anytime_betting(
    losses: npt.ArrayLike,
    limit: npt.ArrayLike,
    delta: float,
    horizon: int,
    *,
    power: float = 2.0,
) -> FloatArray:
    """log p-values of "the risk is at its limit or above" after the labels so far, at any time.

    Parameters
    ----------
    losses : array of shape (n, t)
        Losses in [0, 1], in the order of the labels; NaN does not count.
    limit, delta, horizon, power
        As in `start_capital`.

    Returns
    -------
    array of shape (n,)
        One over the largest capital so far, as a log.
    """
    values = np.asarray(losses, dtype=np.float64)
    start = start_capital(len(values), limit, delta, horizon, power=power)
    return add_losses(start, values).log_p


def _within_block(state: Capital, losses: FloatArray) -> Capital:
    """Add labels of one block; each sum goes on from where the labels before have left it."""
    counts = ~np.isnan(losses)
    gain = np.where(counts, state.limit[:, None] - losses, 0.0)
    path = running_sums(state.log_capital, np.log1p(state.bet[:, None] * gain))
    deviation = np.where(counts, gain - state.centre[:, None], 0.0)
    return replace(
        state,
        labels=state.labels + losses.shape[1],
        log_capital=path[:, -1],
        best=np.maximum(state.best, path.max(axis=1)),
        counted=state.counted + counts.sum(axis=1),
        total=running_sums(state.total, gain)[:, -1],
        squares=running_sums(state.squares, deviation**2)[:, -1],
    )


def _next_block(state: Capital) -> Capital:
    """Settle the bets of the block that begins now, from the past alone."""
    target = state.next_target(state.log_capital)
    variance = (state.squares + _PRIOR * (1 - state.limit) ** 2) / (state.counted + _PRIOR)
    all_counted = state.all_counted
    share = state.counted / all_counted
    wanted = slope(state.delta, state.power, share, target - state.log_capital)
    bet = np.minimum(wanted / np.sqrt(variance * all_counted), LARGEST_BET / (1 - state.limit))
    return replace(
        state,
        target=target,
        block_end=state.next_block_end,
        bet=bet,
        centre=state.total / (state.counted + 1),
    )
