"""How each statistic becomes a stream of losses with a limit that can be tested after every label.

Both tests of a stream may be looked at after every label: the exact boundary for 0/1 losses
(`boundary`, `sequential`) and the betting capital for losses in [0, 1] (`capital`). Everything is
on the unit scale. A stream must be a function of the labels so far in their order, and under the
null hypothesis the mean of each of its values, given the ones before, must be at its limit or
above.

| statistic | null hypothesis | stream and limit | test |
|---|---|---|---|
| mean, 0/1 losses | E[L] > l | L, l | boundary |
| mean, graded losses | E[L] > l | L, l | betting |
| mean given a condition | E[L given C] > l | L where C holds, else NaN; l | as above |
| worst group | E[L given g] > l for a group g | for each group L in g, else NaN; l | as above |
| quantile at level q | P(L > l) > 1 - q | `exceedances`; 1 - q | boundary |
| difference, limit 0, 0/1 losses | E[L - R] > 0 | `changes`; 1/2 | boundary |
| difference, other | E[L - R] > d | `differences`; (1 + d) / 2 | betting |
| weighted mean | E[w L] > l E[w] | `weighted`; l | betting |
| weighted quantile | E[w 1(L > l)] > (1 - q) E[w] | `weighted` of `exceedances` | betting |
| mean of a tail | CVaR(L) > l | `tail_excess` | betting |
| gap, ratio of groups | a E[L given g] + b E[L given h] > c | `contrasts` of every pair | betting |

**Several risks, groups or pairs**: a candidate is certified when all of its streams have crossed,
each at a label of its own. No correction is needed, since under the null hypothesis one of the
streams, fixed by the truth, has a mean above its limit, and already that one crosses with
probability at most delta (an intersection-union test). **Several candidates** in a frozen order: a
candidate is certified when it and all before it have crossed; the first of them that breaks its
limit has to cross for any error to happen.

**Refused**: a gap or ratio of groups with weights, since the two weighted means are ratios with
different denominators, for which no fair bet is known; groups that are known only after all labels
(a boundary or bet needs the group of an example when its label arrives); a quantile, gap or ratio
with a judge, whose scores stand for the loss itself and not for these functions of it.
"""

import numpy as np
import numpy.typing as npt

from riskpilot.errors import LossError

FloatArray = npt.NDArray[np.float64]


def exceedances(losses: npt.ArrayLike, limit: float) -> FloatArray:
    """Whether losses are above the limit on a quantile; NaN stays NaN.

    The quantile at level q is at most l exactly where P(L > l) <= 1 - q, so that these are 0/1
    losses with a limit of 1 - q.

    Parameters
    ----------
    losses : array of shape (n, t)
        Losses of any scale.
    limit : float
        The limit on the quantile, on that scale.

    Returns
    -------
    array of shape (n, t)
        0, 1 or NaN.

    Examples
    --------
    >>> exceedances([[0.2, 0.7, np.nan]], 0.5)
    array([[ 0.,  1., nan]])
    """
    values = np.asarray(losses, dtype=np.float64)
    return np.where(np.isnan(values), np.nan, values > limit)


def differences(losses: npt.ArrayLike, reference: npt.ArrayLike) -> FloatArray:
    """(1 + L - R) / 2 for losses L and those of a reference R on the same examples.

    It lies in [0, 1], and E[L - R] <= d is a mean of at most (1 + d) / 2. For 0/1 losses the
    variance is that of the examples on which the two differ, and the bets find it out.

    Parameters
    ----------
    losses, reference : array of shape (n, t)
        In [0, 1]; NaN where an example counts for neither.

    Returns
    -------
    array of shape (n, t)
        In [0, 1], or NaN.

    Raises
    ------
    LossError
        Where an example counts for one of the two alone: their difference is then not that of
        the two conditional risks.

    Examples
    --------
    >>> differences([[1, 0, 1]], [[0, 0, 1]])
    array([[1. , 0.5, 0.5]])
    """
    ours, theirs = _both(losses, reference)
    return np.asarray((1 + ours - theirs) / 2)


def changes(losses: npt.ArrayLike, reference: npt.ArrayLike) -> FloatArray:
    """1 where a 0/1 loss is worse than the reference's, 0 where it is better, else NaN.

    With a limit of 0 on the difference the null hypothesis is P(worse) > P(better), which is
    P(worse given a change) > 1/2: 0/1 losses that count where something changed, with a limit of
    1/2 (McNemar's test after every label). This needs the limit 0: for another one the share of
    changes matters, which is not known.

    Parameters
    ----------
    losses, reference : array of shape (n, t)
        0/1 losses; NaN where an example counts for neither.

    Returns
    -------
    array of shape (n, t)
        1, 0 or NaN.

    Raises
    ------
    LossError
        Where a loss is neither 0 nor 1, or an example counts for one of the two alone.

    Examples
    --------
    >>> changes([[1, 0, 1]], [[0, 1, 1]])
    array([[ 1.,  0., nan]])
    """
    ours, theirs = _both(losses, reference)
    for values in (ours, theirs):
        if not (np.isnan(values) | (values == 0) | (values == 1)).all():
            raise LossError(
                "Changes are counted between losses that are 0 or 1, but one is neither. "
                "Test graded losses by their differences."
            )
    changed = np.abs(ours - theirs) == 1  # False where one of them is NaN
    return np.where(changed, ours, np.nan)


def weighted(losses: npt.ArrayLike, weights: npt.ArrayLike, limit: npt.ArrayLike) -> FloatArray:
    """limit + w (L - limit), for weights w as shares of the largest possible weight.

    It lies in [0, 1] as the losses do, and its mean is above the limit exactly where
    E[w L] > limit E[w]. A weight of 0 leaves the capital as it is.

    Parameters
    ----------
    losses : array of shape (n, t)
        In [0, 1]; NaN where an example does not count.
    weights : array of shape (t,) or (n, t)
        In [0, 1]: divided by a bound on them that was declared beforehand.
    limit : float or array of shape (n,)
        The limits, on the unit scale.

    Returns
    -------
    array of shape (n, t)
        In [0, 1], or NaN.

    Examples
    --------
    >>> weighted([[1.0, 0.0]], [0.5, 1.0], 0.2)
    array([[0.6, 0. ]])
    """
    values, shares = np.asarray(losses, float), np.asarray(weights, float)
    if not ((shares >= 0) & (shares <= 1)).all():
        raise LossError(
            "Weights are shares of the largest weight, in [0, 1], but one is not. "
            "Divide them by the largest weight that was declared beforehand."
        )
    base = np.asarray(limit, float).reshape(-1, 1)
    return np.asarray(np.clip(base + shares * (values - base), 0.0, 1.0))


def tail_excess(
    losses: npt.ArrayLike, thresholds: npt.ArrayLike, level: float, limit: float
) -> tuple[FloatArray, FloatArray]:
    """(L - t)+ / (1 - t), and the limit on its mean that limits the mean of the tail.

    For any t that was fixed beforehand CVaR(L) <= t + E[(L - t)+] / (1 - level) (Rockafellar and
    Uryasev), so that a mean of at most (limit - t) (1 - level) / (1 - t) is enough.

    Parameters
    ----------
    losses : array of shape (n, t)
        In [0, 1]; NaN where an example does not count.
    thresholds : array of shape (n,)
        Where each candidate's tail is believed to begin, in [0, 1), fixed before the first label.
    level : float
        The tail is the worst ``1 - level`` share of the losses.
    limit : float
        The limit on its mean, on the unit scale.

    Returns
    -------
    excess : array of shape (n, t)
        In [0, 1], or NaN.
    limits : array of shape (n,)
        Where one is not in (0, 1), this candidate cannot be tested: its p-value is 1.

    Examples
    --------
    >>> tail_excess([[0.2, 0.7]], [0.4], 0.9, 0.6)
    (array([[0. , 0.5]]), array([0.03333333]))
    """
    start = np.asarray(thresholds, dtype=np.float64)
    room = np.maximum(1 - start, 1e-12)
    excess = (np.asarray(losses, float) - start[:, None]) / room[:, None]
    return np.clip(excess, 0.0, 1.0), np.asarray((limit - start) * (1 - level) / room)


def contrasts(
    losses: npt.ArrayLike,
    codes: npt.ArrayLike,
    *,
    groups: tuple[int, int],
    factors: tuple[float, float],
    bound: float,
    sizes: tuple[int, int] = (1, 1),
) -> tuple[FloatArray, float]:
    """Values that test a E[L given g] + b E[L given h] <= c, one from each pair of small shares.

    The first value is made from the first shares of examples of g and h to arrive, the second from
    the second ones, and so on: which examples meet is settled by their groups and their order
    alone. Given the groups the values are independent with the mean a E[L given g] +
    b E[L given h]; they are tested as the bounded losses they are. A gap E[L given g] -
    E[L given h] has the factors (1, -1), and "the rate of g is at least r times that of h" has
    (-1, r) and the bound 0. Unequal groups are best used up with unequal shares: with three times
    as many examples of h, ``sizes=(1, 3)``.

    Parameters
    ----------
    losses : array of shape (n, t)
        In [0, 1]. Where some are NaN, pass the candidates one by one, without those labels.
    codes : array of int, shape (t,)
        The group of each label.
    groups : tuple of two int
        The codes of g and h.
    factors : tuple of two float
        a and b.
    bound : float
        c.
    sizes : tuple of two int, optional
        How many examples of g and of h make a value; fixed before the first label.

    Returns
    -------
    values : array of shape (n, v)
        On the unit scale. They only grow in number as labels arrive.
    limit : float
        Of their mean, on the same scale; not in (0, 1) where the bound cannot be tested.

    Raises
    ------
    LossError
        Where a loss is NaN or the labels have no group each.

    Examples
    --------
    >>> values, limit = contrasts([[1, 0, 0, 1]], [0, 1, 1, 0], groups=(0, 1),
    ...                           factors=(1, -1), bound=0.1)
    >>> values, limit
    (array([[1., 1.]]), 0.55)
    """
    table, group = np.asarray(losses, dtype=np.float64), np.asarray(codes)
    if np.isnan(table).any() or group.shape != table.shape[1:]:
        raise LossError(
            f"Groups are compared by losses that all count, with the group of every label, but "
            f"losses of shape {table.shape} with NaN or codes of shape {group.shape} are not that. "
            f"Leave labels that do not count out, candidate by candidate."
        )
    members = [np.flatnonzero(group == code) for code in groups]
    pairs = min(len(found) // size for found, size in zip(members, sizes, strict=True))
    means = [
        table[:, found[: pairs * size]].reshape(len(table), pairs, size).mean(axis=2)
        for found, size in zip(members, sizes, strict=True)
    ]
    low = min(factors[0], 0.0) + min(factors[1], 0.0)
    width = abs(factors[0]) + abs(factors[1])
    values = factors[0] * means[0] + factors[1] * means[1]
    return np.clip((values - low) / width, 0.0, 1.0), (bound - low) / width


def _both(losses: npt.ArrayLike, reference: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both as arrays, if the same examples count for both."""
    ours, theirs = np.broadcast_arrays(
        np.asarray(losses, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    )
    if (np.isnan(ours) != np.isnan(theirs)).any():
        raise LossError(
            "A difference is taken on examples that count for both sides, but one counts for one "
            "side alone. A difference of two conditional risks cannot be tested example by example."
        )
    return ours, theirs
