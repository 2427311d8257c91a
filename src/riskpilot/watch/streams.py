"""Which values in [0, 1] and which limit belong to each statistic, and what their alarm says.

Each function maps losses to the values of a stream whose mean, at every moment and given the past,
is at most its limit if the risk is at most its own. So an alarm is false with probability at most
delta, under H0 that the risk is at most its limit at every moment. In the other direction, a risk
that goes above its limit raises the mean above the limit of the stream, and the alarm comes, but
for the statistics where the table says otherwise.

================  ==================================  =========================================
statistic         value                               mean <= limit of the stream
================  ==================================  =========================================
mean              the loss                            exactly where the risk is <= limit
conditional mean  the loss, NaN where it does not     exactly; the moments are those of the
                  count                               examples that count
worst group       one stream for each group, and one  exactly; the stream of all groups is at
                  of all groups together              most its limit where every group is
quantile          whether the loss is above the       exactly: the quantile is <= limit where
                  limit                               P(loss > limit) <= 1 - level
difference        loss minus reference, from          exactly
                  [-width, width] to [0, 1]
with weights      limit + w (value - limit)           exactly, for E[w loss] / E[w]
CVaR              the loss if it is above the limit,  follows from CVaR <= limit; the converse
                  else 0                              is not true, see `tail_values`
gap, ratio        differences of the groups' means    exactly, if the order in which the groups
                  in blocks, see `blocks`             come is random; see there
================  ==================================  =========================================

Late labels. A label counts at the moment when it comes. The order of labels, and which examples are
labelled at all, must not depend on their losses given the past: if errors are reported sooner than
successes, the first labels are not a sample of anything.

Sampled labels. If each example is labelled with the same probability, whatever it is, labels are
like the traffic and need no weights. If the probability p depends on the example, it must be known,
positive, decided before the label is seen, and the draw must be independent of the loss given the
example. Then labelled examples with weights 1 / p stand for the traffic: E[1(labelled) / p
(loss - limit) | past] = E[loss - limit | past], and examples without a label multiply the capital
by 1. `sampling_weights` gives them as shares of the largest, 1 / (the smallest p).
"""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from riskpilot.errors import LossError, ProblemError

FloatArray = npt.NDArray[np.float64]

# The share of the false alarms of a worst group that belongs to all groups together. If all of them
# become worse, that stream has the labels of all; if only one does, the others have their shares.
_TOGETHER = 0.3


def to_unit(values: npt.ArrayLike, low: float, high: float) -> FloatArray:
    """Map losses, or a limit on their mean, from [low, high] to [0, 1].

    Parameters
    ----------
    values : array of any shape
        Losses, NaN where they do not count.
    low, high : float
        The declared range.

    Returns
    -------
    array of the same shape
        On the unit scale.
    """
    return np.asarray((np.asarray(values, dtype=np.float64) - low) / (high - low))


def quantile_values(losses: npt.ArrayLike, limit: float) -> FloatArray:
    """Say of each loss whether it is above the limit on a quantile.

    Parameters
    ----------
    losses : array of shape (b,)
        On any scale, NaN where they do not count.
    limit : float
        On the same scale.

    Returns
    -------
    array of shape (b,)
        0 or 1, or NaN. The limit of the stream is 1 - level.
    """
    losses = np.asarray(losses, dtype=np.float64)
    return np.where(np.isnan(losses), np.nan, losses > limit)


def difference_values(
    losses: npt.ArrayLike, reference: npt.ArrayLike, low: float, high: float
) -> FloatArray:
    """Map losses minus those of a reference to [0, 1].

    Parameters
    ----------
    losses, reference : array of shape (b,)
        Of the same examples, in [low, high]; NaN in either where an example does not count.
    low, high : float
        The declared range of both.

    Returns
    -------
    array of shape (b,)
        The limit of the stream is ``to_unit(limit, low - high, high - low)``.
    """
    difference = np.asarray(losses, dtype=np.float64) - np.asarray(reference, dtype=np.float64)
    return to_unit(difference, low - high, high - low)


def tail_values(losses: npt.ArrayLike, limit: float) -> FloatArray:
    """Keep the losses above the limit on a CVaR, and set the others to 0.

    Write c for the limit and s for 1 - level. If CVaR <= c, then P(L > c) <= s, or else the worst
    share s of the losses would lie above c altogether. So the losses above c are among the worst
    share s, whose other losses are at least 0: E[L; L > c] <= s CVaR <= s c.

    A sharper stream is not to be had for every law. The usual bound t + E[(L - t)+] / s, with a t
    that was fixed before, may be above the limit while the CVaR is not, and its alarm would be
    false. Nor can any test answer to every CVaR above the limit: if the law takes turns between a
    constant loss of c and a loss of 1 with probability s c, each has a CVaR of c, but together they
    look like a law with a larger one. So the alarm comes where the losses above c have, by
    themselves, too large a mean; a CVaR that is only a little above its limit may raise none.

    Parameters
    ----------
    losses : array of shape (b,)
        On the unit scale, NaN where they do not count.
    limit : float
        On the unit scale.

    Returns
    -------
    array of shape (b,)
        The limit of the stream is ``(1 - level) * limit``.
    """
    losses = np.asarray(losses, dtype=np.float64)
    return np.where(losses <= limit, 0.0, losses)


def group_values(
    losses: npt.ArrayLike, groups: Sequence[Hashable], names: Sequence[Hashable]
) -> FloatArray:
    """Give each loss to the stream of its group, and to that of all groups together.

    Parameters
    ----------
    losses : array of shape (b,)
        On the unit scale, NaN where they do not count.
    groups : sequence of length b
        The group of each example.
    names : sequence of length n
        The groups that the promise names. Examples of others count nowhere.

    Returns
    -------
    array of shape (b, 1 + n), or (b, 1) for a single group
        All groups together first, then each in the order of ``names``; NaN in other groups'
        columns. Every column has the limit of the worst group.
    """
    losses = np.asarray(losses, dtype=np.float64)
    if losses.shape != (len(groups),):
        raise LossError(
            f"Every loss has a group, but there are losses of shape {losses.shape} and "
            f"{len(groups)} groups. Give one group for each loss."
        )
    column = {name: place for place, name in enumerate(names)}
    code = np.array([column.get(group, -1) for group in groups], dtype=np.int64)
    is_member = code[:, None] == np.arange(len(column))
    if len(column) > 1:
        is_member = np.concatenate((is_member.any(axis=1, keepdims=True), is_member), axis=1)
    return np.where(is_member, losses[:, None], np.nan)


def group_shares(n: int) -> tuple[float, ...]:
    """Divide the false alarms of a worst group among its streams.

    Parameters
    ----------
    n : int
        How many groups the promise names.

    Returns
    -------
    tuple of float, length 1 + n, or 1 for a single group
        In the order of `group_values`; they sum to 1.

    Examples
    --------
    >>> group_shares(2)
    (0.3, 0.35, 0.35)
    """
    if n == 1:
        return (1.0,)
    return (_TOGETHER, *[(1 - _TOGETHER) / n] * n)


def sampling_weights(probabilities: npt.ArrayLike, smallest: float) -> FloatArray:
    """Weigh examples that were labelled with known probabilities, so that they stand for the rest.

    Parameters
    ----------
    probabilities : array of any shape
        With which each labelled example was drawn.
    smallest : float
        The smallest probability that any example can have, fixed before the watch begins.

    Returns
    -------
    array of the same shape
        ``smallest / probabilities``: weights as shares of the largest.

    Raises
    ------
    ProblemError
        Where ``smallest`` is not in (0, 1].
    LossError
        Where a probability is not in [smallest, 1].
    """
    if not 0 < smallest <= 1:
        raise ProblemError(
            f"The smallest sampling probability lies in (0, 1], but it is {smallest!r}. Examples "
            f"that can never be labelled cannot be spoken for: sample each with some probability."
        )
    p = np.asarray(probabilities, dtype=np.float64)
    if not ((p >= smallest) & (p <= 1)).all():
        raise LossError(
            f"Sampling probabilities lie in [{smallest}, 1], as declared when the watch began, but "
            f"one does not. Sample every example at least as often as declared, or begin a new "
            f"watch with a smaller probability."
        )
    return np.asarray(smallest / p)
