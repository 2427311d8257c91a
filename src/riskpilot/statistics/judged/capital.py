"""The capital that a judge helps: its state, its bets and one block of labels.

The mathematics stands in `judged.testing`. Here it is computed, in blocks of labels
whose bets are made from what came before the block.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import FloatArray, IntArray
from riskpilot.errors import ProblemError
from riskpilot.statistics.sequential.bets import LARGEST_BET, slope
from riskpilot.statistics.sequential.labels import Bettor, at_the_start, running_sums

# The shares of the capital that are bet with and without the judge.
_SHARES = np.log([[0.9], [0.1]])
# The weight at first, and how many losses of the variance at the limit it takes to outweigh it.
_FIRST_WEIGHT, _WEIGHT_PRIOR = 0.7, 2.0
# The prior of the variance, in observations: of 0/1 losses it is all but known beforehand.
_BINARY_PRIOR, _GRADED_PRIOR = 200.0, 0.5
# How much of the variance the judge explains is believed after about three losses of 1.
_EXPLAINED_PRIOR = 3.0


@dataclass(frozen=True)
class Block:
    """What the bets of one block of labels are made of, each of shape (n,): sums of squared
    deviations of losses and scores and of their products, how many there were, the centre of the
    scores, and the wanted bet times standard deviation."""

    losses: FloatArray
    scores: FloatArray
    products: FloatArray
    counted: FloatArray
    centre: FloatArray
    wanted: FloatArray


@dataclass(frozen=True)
class Judged(Bettor):
    """What labels, and the scores beside them, say about n candidates so far.

    Attributes
    ----------
    pool : int
        The number of unlabelled scores, which are shared out over the labels of the horizon.
    binary : bool
        Whether losses are 0/1; a wrong belief costs power only.
    log_capitals : array of shape (2, n)
        Logs of the capital with and without the judge; ``best`` and ``target`` are of their mix.
    sums : array of shape (7, n)
        Over labels that counted: of losses, scores, squared losses, squared scores and products;
        then of all scores, and their number.
    block : Block
        What the bets of the present block are made of.
    """

    pool: int
    binary: bool
    log_capitals: FloatArray
    sums: FloatArray
    block: Block


def start_judged(
    n: int,
    limit: npt.ArrayLike,
    delta: float,
    horizon: int,
    pool: int,
    *,
    binary: bool = False,
    power: float = 2.0,
) -> Judged:
    """n candidates before the first label.

    Parameters
    ----------
    n : int
        The number of candidates.
    limit : float or array of shape (n,)
        Limits on the unit scale, in (0, 1).
    delta : float
        The level that is played for, in (0, 1); p-values are valid at every level.
    horizon : int
        The largest number of labels.
    pool : int
        The number of unlabelled scores, which are shared out over the labels of the horizon.
    binary : bool, optional
        Whether losses are 0/1. It steers the bets only.
    power : float, optional
        2 plays for an early end, 8 for the end of the horizon.

    Returns
    -------
    Judged
        With every p-value at 1.

    Raises
    ------
    ProblemError
        Where a limit or delta does not lie in (0, 1), or a number is not positive.
    """
    if pool < 0:
        raise ProblemError(
            f"A judge's pool is a number of unlabelled scores, at least 0, but it is {pool!r}. "
            f"Give the number of scores that there are."
        )
    zeros = np.zeros(n)
    state = Judged(
        **at_the_start(n, limit, delta, horizon, power),
        pool=int(pool),
        binary=bool(binary),
        log_capitals=np.zeros((2, n)),
        sums=np.zeros((7, n)),
        block=Block(zeros, zeros, zeros, zeros, zeros, zeros),
    )
    return next_block(state)


def within_block(
    state: Judged, losses: FloatArray, labelled: FloatArray, unlabelled: FloatArray
) -> Judged:
    """Add labels of one block; each sum goes on from where the labels before have left it.

    ``losses``, ``labelled``: shape (n, b); ``unlabelled``: all scores of the pool, shape (n, M).
    """
    labels = losses.shape[1]
    counts = ~np.isnan(losses)
    edges = (state.labels + np.arange(labels + 1)) * state.pool // state.horizon
    fresh = unlabelled[:, edges[0] : edges[-1]]
    sizes = np.diff(edges)
    fresh = np.where(np.repeat(counts, sizes, axis=1), fresh, np.nan)
    used = ~np.isnan(fresh)
    k = _by_label(used * 1.0, sizes)
    loss = np.where(counts, losses, state.limit[:, None])
    score = np.where(counts, labelled, 0.0)
    centre = state.block.centre[:, None]
    distance = np.where(used, centre - fresh, 0.0)
    paths = []
    for weight in (_weight(state)[:, None] * k / (k + 1), np.zeros_like(k)):
        bet = _bet(state, weight, k)
        gain = state.limit[:, None] - loss + np.where(counts, weight * (score - centre), 0.0)
        each = np.repeat(bet * weight / np.maximum(k, 1), sizes, axis=1)
        logs = np.log1p(np.where(counts, bet * gain, 0.0))
        paths.append(logs + _by_label(np.log1p(each * distance), sizes))
    path = running_sums(state.log_capitals, np.stack(paths))
    mixed = np.logaddexp.reduce(_SHARES[:, :, None] + path, axis=0)
    kept = np.where(counts, loss, 0.0)
    scores = score + _by_label(np.where(used, fresh, 0.0), sizes)
    terms = [kept, score, kept**2, score**2, kept * score, scores, counts + k]
    return replace(
        state,
        labels=state.labels + labels,
        log_capitals=path[:, :, -1],
        best=np.maximum(state.best, mixed.max(axis=1)),
        counted=state.counted + counts.sum(axis=1),
        sums=running_sums(state.sums, np.stack(terms))[:, :, -1],
    )


def _weight(state: Judged) -> FloatArray:
    """The regression coefficient of losses on scores, before the noise of the unlabelled mean."""
    prior = _WEIGHT_PRIOR * state.limit * (1 - state.limit)
    block = state.block
    return np.asarray((block.products + prior * _FIRST_WEIGHT) / (block.scores + prior))


def _bet(state: Judged, weight: FloatArray, k: FloatArray) -> FloatArray:
    """The bets of labels that give the judge this weight, shape (n, b), within what is safe."""
    block, limit = state.block, state.limit[:, None]
    prior = _BINARY_PRIOR if state.binary else _GRADED_PRIOR
    at_first = limit * (1 - limit) if state.binary else (1 - limit) ** 2
    losses, scores, products = (
        part[:, None] for part in (block.losses, block.scores, block.products)
    )
    noise = 1 + 1 / np.maximum(k, 1)
    left = np.maximum(losses - 2 * weight * products + weight**2 * scores * noise, 0.0)
    unexplained = (_EXPLAINED_PRIOR + left) / (_EXPLAINED_PRIOR + losses)
    variance = (prior * at_first * unexplained + left) / (block.counted[:, None] + prior)
    wanted = block.wanted[:, None] / np.sqrt(np.maximum(variance, 1e-12))
    centre = block.centre[:, None]
    # The worst outcome of the factor of the loss, and of the factor of each unlabelled score.
    of_loss = 1 - limit + np.maximum(weight * centre, -weight * (1 - centre))
    of_score = np.maximum(weight * (1 - centre), -weight * centre) / np.maximum(k, 1)
    return np.asarray(np.minimum(wanted, LARGEST_BET / np.maximum(of_loss, of_score)))


def next_block(state: Judged) -> Judged:
    """Settle what the bets of the next block are made of, from the past alone."""
    capital = np.logaddexp.reduce(_SHARES + state.log_capitals, axis=0)
    target = state.next_target(capital)
    loss, score, loss2, score2, product, all_scores, number = state.sums
    n = np.maximum(state.counted, 1)
    all_counted = state.all_counted
    wanted = slope(state.delta, state.power, state.counted / all_counted, target - capital)
    block = Block(
        losses=np.maximum(loss2 - loss**2 / n, 0.0),
        scores=np.maximum(score2 - score**2 / n, 0.0),
        products=product - loss * score / n,
        counted=state.counted.astype(np.float64),
        centre=(state.limit + all_scores) / (1 + number),  # one score at the limit before the first
        wanted=wanted / np.sqrt(all_counted),
    )
    return replace(state, target=target, block_end=state.next_block_end, block=block)


def _by_label(values: FloatArray, sizes: IntArray) -> FloatArray:
    """Sums over the columns of each label's share, shape (n, b); 0 where a share is empty."""
    result = np.zeros((len(values), len(sizes)))
    filled = sizes > 0
    if filled.any():
        starts = (np.cumsum(sizes) - sizes)[filled]
        result[:, filled] = np.add.reduceat(values, starts, axis=1)
    return result
