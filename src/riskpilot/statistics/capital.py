"""A betting capital for losses in [0, 1] that are labelled one after another, up to a horizon.

The null hypothesis is H: E[loss_t | past] >= limit, at every t at which a loss counts. The capital

    K_t = prod_{s <= t} (1 + b_s (limit - loss_s)),    0 <= b_s < 1 / (1 - limit),

with bets b_s that depend on the losses before s alone, is a nonnegative supermartingale under H, so
that P(K_t >= 1 / u for some t) <= u for every u (Ville). The p-value 1 / max_{s <= t} K_s may
therefore be looked at after every label, and one may stop whenever one likes. A loss that does not
count (NaN) leaves the capital as it is; whether it counts may depend on the past and on the
example, but given that it counts its mean must be the conditional risk.

Bets stay the same for a short block of labels, which makes the computation fast. The blocks end at
label numbers that follow from the horizon alone, what is bet in a block follows from the losses
before it, and sums are made in the order of the labels: the result depends on the losses and their
order, never on how they were divided into batches.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from riskpilot.errors import LossError, LossRangeError, ProblemError
from riskpilot.statistics.bets import LARGEST_BET, slope

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Half an observation of a loss of 1 stands before the observed squares: a variance that is taken
# too small makes bets that the first large loss ruins.
_PRIOR = 0.5


@dataclass(frozen=True)
class Capital:
    """What the labels so far say about n candidates with losses in [0, 1].

    Attributes
    ----------
    limit : array of shape (n,)
        Limits on the unit scale, in (0, 1).
    delta, power : float
        The level that is played for, and how early: see `riskpilot.statistics.bets`.
    horizon : int
        The number of labels that the bets are made for.
    labels : int
        How many labels there were.
    log_capital, best : array of shape (n,)
        The logs of the capital now and of the largest capital so far.
    target : array of shape (n,)
        The log of the capital that is played for.
    counted : array of int, shape (n,)
        How many labels counted.
    total, squares : array of shape (n,)
        Sums over the labels that counted: of limit - loss, and of its squared distance from its
        mean before the block.
    block_end : int
        The label after which bets are made anew.
    bet, centre : array of shape (n,)
        The bet of the present block and that mean.
    """

    limit: FloatArray
    delta: float
    power: float
    horizon: int
    labels: int
    log_capital: FloatArray
    best: FloatArray
    target: FloatArray
    counted: IntArray
    total: FloatArray
    squares: FloatArray
    block_end: int
    bet: FloatArray
    centre: FloatArray

    @property
    def log_p(self) -> FloatArray:
        """log p-values of "the risk is at its limit or above", shape (n,); valid at any time."""
        return -self.best

    @property
    def crossed(self) -> npt.NDArray[np.bool_]:
        """Which candidates have been shown to keep their limit at level delta, shape (n,)."""
        return self.log_p < math.log(self.delta)


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
    limits = np.broadcast_to(np.asarray(limit, dtype=np.float64), (n,)).copy()
    if not ((limits > 0) & (limits < 1)).all() or not 0 < delta < 1 or horizon < 1:
        raise ProblemError(
            f"Betting needs limits and delta in (0, 1) and a horizon of at least 1, but they are "
            f"{limit!r}, {delta!r} and {horizon!r}. Put the losses on the unit scale first."
        )
    zeros = np.zeros(n)
    state = Capital(
        limit=limits,
        delta=float(delta),
        power=float(power),
        horizon=int(horizon),
        labels=0,
        log_capital=zeros,
        best=zeros,
        target=np.full(n, math.log(1 / delta)),
        counted=np.zeros(n, np.int64),
        total=zeros,
        squares=zeros,
        block_end=0,
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
    values = np.asarray(losses, dtype=np.float64)
    n = len(state.limit)
    if values.ndim != 2 or len(values) != n:
        raise LossError(
            f"Losses of {n} candidates need the shape ({n}, b), but they have {values.shape}. "
            f"Pass one row for each candidate and one column for each label."
        )
    if (values < 0).any() or (values > 1).any():
        worst = float(values.flat[np.nanargmax(np.abs(values - 0.5))])
        raise LossRangeError(
            f"Losses on the unit scale lie in [0, 1], but one is {worst:g}. Declare the range of "
            f"the losses beforehand, and divide by it."
        )
    start = 0
    while start < values.shape[1]:
        stop = min(start + state.block_end - state.labels, values.shape[1])
        state = _within_block(state, values[:, start:stop])
        if state.labels == state.block_end:
            state = _next_block(state)
        start = stop
    return state


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
    path = _sums(state.log_capital, np.log1p(state.bet[:, None] * gain))
    deviation = np.where(counts, gain - state.centre[:, None], 0.0)
    return replace(
        state,
        labels=state.labels + losses.shape[1],
        log_capital=path[:, -1],
        best=np.maximum(state.best, path.max(axis=1)),
        counted=state.counted + counts.sum(axis=1),
        total=_sums(state.total, gain)[:, -1],
        squares=_sums(state.squares, deviation**2)[:, -1],
    )


def _next_block(state: Capital) -> Capital:
    """Settle the bets of the block that begins now, from the past alone."""
    level = math.log(1 / state.delta)
    # Past a target, play for the next one: the largest capital is kept whatever comes.
    reached = state.log_capital >= state.target
    target = np.where(reached, state.log_capital + level, state.target)
    variance = (state.squares + _PRIOR * (1 - state.limit) ** 2) / (state.counted + _PRIOR)
    # The labels that will count, if they go on at the rate so far.
    rate = (state.counted + 1) / (state.labels + 1)
    all_counted = state.counted + rate * max(state.horizon - state.labels, 1)
    share = state.counted / all_counted
    wanted = slope(state.delta, state.power, share, target - state.log_capital)
    bet = np.minimum(wanted / np.sqrt(variance * all_counted), LARGEST_BET / (1 - state.limit))
    return replace(
        state,
        target=target,
        block_end=next_block_end(state.labels, state.horizon),
        bet=bet,
        centre=state.total / (state.counted + 1),
    )


def next_block_end(labels: int, horizon: int) -> int:
    """The label at which the block ends that begins after ``labels`` labels.

    Blocks are short against the past, whose statistics they use, and against the time left, after
    which every bet must have been made.

    >>> [next_block_end(labels, 1000) for labels in (0, 7, 100, 990)]
    [1, 8, 109, 991]
    """
    return labels + max(1, min(labels // 4, (horizon - labels) // 100))


def _sums(start: FloatArray, terms: FloatArray) -> FloatArray:
    """Running sums of the rows of ``terms``, shape (n, b), that go on from ``start``."""
    return np.asarray(np.add.accumulate(np.column_stack([start, terms]), axis=1)[:, 1:])
