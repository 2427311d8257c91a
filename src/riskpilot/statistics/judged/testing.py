"""Few labels and many judged examples: a betting capital that a judge helps, and cannot deceive.

Labelled examples have a loss L and a score F = f(x) of a frozen judge, both in [0, 1]; fresh
unlabelled examples have scores G = f(x) alone. Whatever f is, Z = L - rho (F - mean of G) has the
mean of L for every rho, and where F goes along with L it has a smaller variance. Every label gets a
share of k unlabelled scores of its own, each used once, and multiplies the capital by

    (1 + b (limit - L) + b rho (F - a)) * prod_{j <= k} (1 + (b rho / k) (a - G_j)),

where the bet b, the weight rho and the centre a depend on what came before this label alone. To
first order this is a bet on Z. **It is fair under the null hypothesis E[L] >= limit for every
judge.** (L, F) and the scores G_j are independent of each other and of the past. With
mu = E[f] and x = b rho (mu - a) the mean of the product, given the past, is

    (1 + b (limit - E[L]) + x) (1 - x / k)^k <= (1 + x) (1 - x / k)^k
        <= ((1 + x + k (1 - x / k)) / (k + 1))^(k + 1) = 1,

by the inequality of the arithmetic and the geometric mean, as long as no factor can be negative.
The worst outcomes of the factors are known: L = 1 with F = 0 (with F = 1 where rho < 0), and G = 1
(G = 0). b is kept below what they would ruin. So the capital is a nonnegative supermartingale, and
one over its maximum is a p-value, at any time (Ville). The centre a, the mean of the scores so
far, keeps x near 0, where the inequality loses nothing; and since it is the small centre and not a
whole score that stands in the worst outcome, bets may be nearly as large as without a judge.

The weight is learned: rho is the regression coefficient of L on F so far, times k / (k + 1) for
the noise of the mean of G. A judge that is worth nothing, or whose scores run against the losses,
gets a weight near 0 or below. A share of the capital is bet with rho = 0 throughout, so that the
whole is never worse than that share. Everything that is learned steers the power; none of it is
needed for validity.

Where only some examples count (NaN), whether one does must be known without its label, since the
unlabelled examples that count must be like the labelled ones that count. The judge must be frozen
before the first calibration label, and the unlabelled examples must come from where the labelled
ones come from.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import FloatArray
from riskpilot.errors import LossError
from riskpilot.statistics.judged.capital import Judged, next_block, start_judged, within_block
from riskpilot.statistics.sequential.labels import check_unit, in_blocks

__all__ = ["Judged", "add_judged", "log_judged", "start_judged"]


# Without stopping early only the end counts: see `riskpilot.statistics.sequential.bets`.
_AT_THE_END = 8.0


def add_judged(
    state: Judged, losses: npt.ArrayLike, labelled: npt.ArrayLike, unlabelled: npt.ArrayLike
) -> Judged:
    """The losses of the next labels, in the order of the labels, and the judge's scores.

    The result depends on losses, scores and their order, not on how they were divided into batches.

    Parameters
    ----------
    state : Judged
        What was known before.
    losses : array of shape (n, b)
        Losses of the n candidates at the next b labels, in [0, 1]; NaN does not count.
    labelled : array of shape (n, b) or (1, b)
        The judge's scores of the same examples, in [0, 1]; NaN where the loss is.
    unlabelled : array of shape (n, M) or (1, M)
        The judge's scores of all M fresh examples; NaN where one does not count. Label t uses
        the columns from (t - 1) M // m to t M // m, for the horizon m.

    Returns
    -------
    Judged
        What is known now.

    Raises
    ------
    LossError
        Where the shapes do not fit, there are more labels than the horizon has, or a loss counts
        where its score does not.
    LossRangeError
        Where a loss or a score lies outside [0, 1].

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> losses = (rng.random((1, 300)) < 0.05) * 1.0
    >>> scores = 0.9 * losses + 0.05
    >>> fresh = 0.9 * (rng.random((1, 3000)) < 0.05) + 0.05
    >>> state = start_judged(1, 0.1, 0.1, horizon=300, pool=3000, binary=True)
    >>> state = add_judged(state, losses[:, :100], scores[:, :100], fresh)
    >>> state.crossed.tolist()
    [True]
    """
    values, scores, pool = _checked(state, losses, labelled, unlabelled)

    def add(state: Judged, some: slice) -> Judged:
        return within_block(state, values[:, some], scores[:, some], pool)

    return in_blocks(state, values.shape[1], add, next_block)


def log_judged(
    losses: npt.ArrayLike,
    labelled: npt.ArrayLike,
    unlabelled: npt.ArrayLike,
    limit: npt.ArrayLike,
    delta: float,
    *,
    binary: bool = False,
) -> FloatArray:
    """log p-values of "the risk is at its limit or above" from all labels at once.

    Parameters
    ----------
    losses : array of shape (n, m)
        Losses in [0, 1], in an order that does not depend on them; NaN does not count.
    labelled : array of shape (n, m) or (1, m)
        The judge's scores of the same examples, in [0, 1]; NaN where the loss is.
    unlabelled : array of shape (n, M) or (1, M)
        The judge's scores of fresh examples; NaN where one does not count.
    limit : float or array of shape (n,)
        Limits on the unit scale, in (0, 1).
    delta : float
        The level that is played for.
    binary : bool, optional
        Whether losses are 0/1. It steers the bets only.

    Returns
    -------
    array of shape (n,)
        One over the largest capital, as a log.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> losses = (rng.random((1, 300)) < 0.06) * 1.0
    >>> useless, fresh = rng.random((1, 300)), rng.random((1, 3000))
    >>> bool(log_judged(losses, useless, fresh, 0.1, 0.1, binary=True)[0] < np.log(0.1))
    True
    """
    n, m = np.atleast_2d(np.asarray(losses)).shape
    size = np.atleast_2d(np.asarray(unlabelled)).shape[1]
    state = start_judged(n, limit, delta, max(m, 1), size, binary=binary, power=_AT_THE_END)
    values, scores, pool = _checked(state, losses, labelled, unlabelled)
    if np.isnan(values).any() or np.isnan(pool).any():
        pool = _shared_out(values, pool)
        state = replace(state, pool=pool.shape[1])
    return add_judged(state, values, scores, pool).log_p


def _shared_out(losses: FloatArray, pool: FloatArray) -> FloatArray:
    """The unlabelled scores that count, in equal shares behind the labels that do; NaN elsewhere.

    ``pool``: shape (n, M). Returns shape (n, m * k), k columns for each of the m labels. What a row
    has beyond about twice its share of the pool is left unused.
    """
    n, m = losses.shape
    most = 2 * -(-pool.shape[1] // max(m, 1)) + 1
    shared = np.full((n, m, most), np.nan)
    for row, (loss, scores) in enumerate(zip(losses, pool, strict=True)):
        labels = np.flatnonzero(~np.isnan(loss))
        found = scores[~np.isnan(scores)][: len(labels) * most]
        edges = np.arange(len(labels) + 1) * len(found) // max(len(labels), 1)
        sizes = np.diff(edges)
        place = np.arange(len(found)) - np.repeat(edges[:-1], sizes)
        shared[row, np.repeat(labels, sizes), place] = found
    used = int((~np.isnan(shared)).sum(axis=2).max(initial=0))
    return shared[:, :, :used].reshape(n, m * used)


def _checked(
    state: Judged, losses: npt.ArrayLike, labelled: npt.ArrayLike, unlabelled: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Losses and scores as arrays of n rows, in their ranges."""
    n = len(state.limit)
    values = np.asarray(losses, dtype=np.float64)
    scores, pool = np.asarray(labelled, dtype=np.float64), np.asarray(unlabelled, dtype=np.float64)
    shapes = (values.shape, scores.shape, pool.shape)
    expected = values.ndim == 2 and len(values) == n
    expected = expected and scores.shape in (values.shape, (1, *values.shape[1:]))
    if not expected or pool.shape not in ((n, state.pool), (1, state.pool)):
        raise LossError(
            f"{n} candidates need losses of shape ({n}, b), scores of the same labels of shape "
            f"({n}, b) or (1, b), and unlabelled scores of shape ({n}, {state.pool}) or "
            f"(1, {state.pool}), but the shapes are {shapes}. Bring them in the same order."
        )
    if state.labels + values.shape[1] > state.horizon:
        raise LossError(
            f"The unlabelled scores were shared out over {state.horizon} labels, but now there "
            f"are {state.labels + values.shape[1]}. Leave the later labels out."
        )
    for what, part in (("Losses", values), ("A judge's scores", scores), ("Its scores", pool)):
        check_unit(what, part)
    scores = np.broadcast_to(scores, values.shape)
    _check_pattern(values, scores)
    return values, scores, np.broadcast_to(pool, (n, state.pool))


def _check_pattern(losses: FloatArray, labelled: FloatArray) -> None:
    """Scores and losses must count for the same examples, or their means would differ."""
    if (np.isnan(losses) != np.isnan(labelled)).any():
        raise LossError(
            "A score of the judge is NaN exactly where the loss is, but for some label only one of "
            "them is. Whether an example counts must be known without its label, and be the same "
            "for losses, scores and unlabelled scores."
        )
