"""Candidates with 0/1 losses against the exact boundary, label by label or in batches of any size.

The mathematics stands in `sequential.boundary`. The p-value of a candidate is the error
that the boundary had spent when the candidate's path crossed it, and 1 before. It may be looked at
after every label: for every u, {p <= u at some time} is the event that the path crosses while the
error spent is still at most u, whose probability at the limit is at most u.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import BoolArray, FloatArray, IntArray
from riskpilot.errors import LossError
from riskpilot.statistics.sequential.boundary import (
    Spending,
    Walk,
    advance,
    allowed_errors,
    exact_boundary,
    largest_critical,
    quadratic,
    shared_errors,
    start_walk,
)
from riskpilot.statistics.sequential.labels import losses_of


@dataclass(frozen=True)
class Counts:
    """What the labels so far say about n candidates with 0/1 losses.

    Attributes
    ----------
    walks : tuple of Walk
        The boundary of each candidate; candidates for which the same labels count share one.
    allowed : array of shape (m,)
        The error that may have been spent after each label.
    conditional : bool
        Whether some losses may be NaN.
    labels : int
        How many labels there were.
    counts : array of int, shape (n,)
        The number of losses so far.
    counted : array of int, shape (n,)
        How many labels counted.
    log_p : array of shape (n,)
        The log p-value: of the error spent at the label at which a candidate crossed, 0 before.
    """

    walks: tuple[Walk, ...]
    allowed: FloatArray
    conditional: bool
    labels: int
    counts: IntArray
    counted: IntArray
    log_p: FloatArray

    @property
    def crossed(self) -> BoolArray:
        """Which candidates have crossed the boundary, shape (n,)."""
        return self.log_p < 0

    @property
    def hopeless(self) -> BoolArray:
        """Which candidates can no longer cross before the horizon, shape (n,)."""
        most = np.array([walk.most for walk in self.walks], np.int64)
        left = len(self.allowed) - self.labels
        if self.conditional:
            delta = float(self.allowed[-1])
            fewer = [
                largest_critical(walk.limit, delta, int(counted) + max(left, 0))
                for walk, counted in zip(self.walks, self.counted, strict=True)
            ]
            most = np.minimum(most, fewer)
        return np.asarray(~self.crossed & ((self.counts > most) | (left <= 0)))


def start_counts(
    n: int,
    limit: float,
    delta: float,
    horizon: int,
    *,
    conditional: bool = False,
    spending: Spending = quadratic,
) -> Counts:
    """n candidates before the first label.

    Parameters
    ----------
    n : int
        The number of candidates.
    limit, delta, horizon, spending
        As in `exact_boundary`.
    conditional : bool, optional
        Whether some losses do not count and are NaN, as with a condition or a group.

    Returns
    -------
    Counts
        With nothing counted and every p-value at 1.
    """
    zeros = np.zeros(n, np.int64)
    walk = start_walk(limit, delta, horizon)
    usual = spending is quadratic
    allowed = shared_errors(delta, horizon) if usual else allowed_errors(delta, horizon, spending)
    if not conditional:  # then the last critical count is known: beyond it there is no way back
        boundary = exact_boundary(limit, delta, horizon, spending=spending)
        walk = replace(walk, most=int(boundary.critical[-1]))
    return Counts((walk,) * n, allowed, conditional, 0, zeros, zeros, np.zeros(n))


def add_counts(state: Counts, losses: npt.ArrayLike) -> Counts:
    """The losses of the next labels, in the order of the labels.

    The result depends on the losses and their order, not on how they were divided into batches.
    The order must have been settled before the labels were seen. Labels beyond the horizon change
    nothing any more.

    Parameters
    ----------
    state : Counts
        What was known before.
    losses : array of shape (n, b)
        Losses of the n candidates at the next b labels. Anything above 0 is a loss; NaN does not
        count.

    Returns
    -------
    Counts
        What is known now.

    Raises
    ------
    LossError
        Where the losses are not those of n candidates, or are NaN without a condition.

    Examples
    --------
    >>> state = start_counts(2, 0.1, 0.1, 100)
    >>> state = add_counts(state, np.zeros((2, 60)))
    >>> state.crossed.tolist(), np.exp(state.log_p).round(4).tolist()
    ([True, True], [0.0148, 0.0148])
    """
    values = losses_of(len(state.walks), losses)
    counting = ~np.isnan(values)
    if not state.conditional and not counting.all():
        raise LossError(
            "A loss that does not count is NaN, which needs conditional=True, but these candidates "
            "were started without. Start them with start_counts(..., conditional=True)."
        )
    here = state.allowed[state.labels : state.labels + values.shape[1]]
    seen = len(here)
    walked: dict[tuple[int, bytes], tuple[Walk, IntArray, FloatArray]] = {}
    walks, log_p = [], state.log_p.copy()
    running = state.counts[:, None] + np.add.accumulate(values > 0, axis=1, dtype=np.int64)
    for row, walk in enumerate(state.walks):
        pattern = counting[row, :seen]
        key = (id(walk), pattern.tobytes())
        if key not in walked:
            walked[key] = advance(walk, here, None if pattern.all() else pattern)
        after, critical, spent = walked[key]
        walks.append(after)
        below = running[row, :seen] <= critical
        if log_p[row] == 0 and below.any():
            log_p[row] = math.log(spent[below.argmax()])
    return replace(
        state,
        walks=tuple(walks),
        labels=state.labels + values.shape[1],
        counts=running[:, -1] if values.shape[1] else state.counts,
        counted=state.counted + counting.sum(axis=1),
        log_p=log_p,
    )


def log_boundary(
    losses: npt.ArrayLike,
    limit: float,
    delta: float,
    horizon: int,
    *,
    spending: Spending = quadratic,
) -> FloatArray:
    """log p-values of "the risk is above its limit" after the labels so far, at any time.

    P(some p-value up to any time <= u) <= u for every u in [0, 1]: a candidate's p-value is the
    error that had been spent when its path crossed, and 1 before.

    Parameters
    ----------
    losses : array of shape (n, t)
        0/1 losses in the order of the labels; NaN does not count.
    limit, delta, horizon, spending
        As in `exact_boundary`.

    Returns
    -------
    array of shape (n,)
        At most log(delta) where a candidate has crossed, else 0.
    """
    values = np.asarray(losses, dtype=np.float64)
    conditional = bool(np.isnan(values).any())
    state = start_counts(
        len(values), limit, delta, horizon, conditional=conditional, spending=spending
    )
    return add_counts(state, values).log_p
