"""Estimates of each risk: since the watch began, and since the estimated time of the change."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from riskpilot.watch.bounds import lower_bound, upper_bound
from riskpilot.watch.rule import Rule
from riskpilot.watch.state import Segment, State, best_segment, segment_between

_BOUNDS = (lower_bound, upper_bound)
# A mean weight of 0 is replaced by this number, so that it can be divided by: the bounds are then
# those of the losses.
_SMALLEST_WEIGHT = 1e-300


@dataclass(frozen=True)
class Estimate:
    """The mean risk over some labels of a stream, on its unit scale, between two bounds.

    ``mean`` is None where no label counts yet.
    """

    count: int
    mean: float | None
    lower: float
    upper: float


def since_begin(rule: Rule, state: State, *, delta: float | None = None) -> list[Estimate]:
    """Estimate the mean risk of every stream over the whole life of the watch.

    Parameters
    ----------
    rule : Rule
        The limits and bets.
    state : State
        What `begin` or `update` returned.
    delta : float, optional
        The probability that any bound of any stream is ever wrong; that of the rule if left out.

    Returns
    -------
    list of Estimate, length K
        The bounds hold for all streams and at all times together with probability 1 - delta. What
        they bound is the mean of the risks at the moments of the labels, which may have wandered.
    """
    zero = np.zeros(state.sums.shape[1])
    segments = [segment_between(zero, sums) for sums in state.sums]
    return _estimates(rule, range(rule.n_streams), segments, delta, np.ones(rule.n_streams))


def since_change(
    rule: Rule, state: State, *, delta: float | None = None
) -> list[tuple[Segment, Estimate]]:
    """Estimate when the risk of every stream last began to look too high, and its mean since then.

    The time is the one since which some bet has won the most. It is an estimate for streams with
    an alarm; for a stream that keeps its limit it is some recent moment, and there is no change.

    Parameters
    ----------
    rule : Rule
        The limits and bets.
    state : State
        What `begin` or `update` returned.
    delta : float, optional
        The probability that any bound of any stream is ever wrong; that of the rule if left out.

    Returns
    -------
    list of tuple of Segment and Estimate, length K
        The bounds hold whichever labels the segment begins after, at all times and for all streams
        together, with probability 1 - delta: each beginning has a share of delta of its own.
    """
    segments = [
        best_segment(rule, stream, state.rise, state.starts, state.sums)
        for stream in range(rule.n_streams)
    ]
    shares = [rule.start_share(segment.start) for segment in segments]
    every = range(rule.n_streams)
    return list(zip(segments, _estimates(rule, every, segments, delta, shares), strict=True))


def segment_estimates(
    rule: Rule, stream: int, segments: Sequence[Segment], *, delta: float | None = None
) -> list[Estimate]:
    """Estimate the mean risk over segments of one stream, such as that of an alarm.

    Parameters
    ----------
    rule : Rule
        The limits and bets.
    stream : int
        The stream that the segments are of.
    segments : sequence of Segment
        Labels from some moment on until another.
    delta : float, optional
        The probability that any bound of any stream is ever wrong; that of the rule if left out.

    Returns
    -------
    list of Estimate
        One for each segment, with bounds as in `since_change`.
    """
    shares = [rule.start_share(segment.start) for segment in segments]
    return _estimates(rule, [stream] * len(segments), segments, delta, shares)


def _estimates(
    rule: Rule,
    streams: Sequence[int],
    segments: Sequence[Segment],
    delta: float | None,
    start_shares: npt.ArrayLike,
) -> list[Estimate]:
    """Estimate the mean over each segment.

    ``start_shares``: the share of its stream's delta that each segment has.
    """
    shares = np.array([rule.shares[stream] for stream in streams])
    level = (rule.delta if delta is None else delta) * shares * np.asarray(start_shares)
    weighted = np.array([rule.weighted[stream] for stream in streams])
    limits = np.array([rule.limits[stream] for stream in streams])
    sums = np.array([[part.count, part.total, part.spread, part.mass] for part in segments])
    count, total, spread, mass = sums.T
    # Each side of the mean has half of the level; a quarter where the mean weight is bounded
    # on both sides, too.
    side = np.where(weighted, level / 4, level / 2)
    above = np.stack([bound(count, total, spread, side) for bound in _BOUNDS]) - limits
    # E[w loss] / E[w] = limit + E[w (loss - limit)] / E[w]; without weights the divisor is 1.
    divisors = np.stack([bound(count, mass, None, side) for bound in _BOUNDS])
    divisors = np.where(weighted, np.maximum(divisors, _SMALLEST_WEIGHT), 1.0)
    quotients = np.concatenate((above / divisors, above / divisors[::-1]))
    lower = np.maximum(limits + quotients.min(axis=0), 0.0)
    upper = np.minimum(limits + quotients.max(axis=0), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.clip(limits + (total - count * limits) / mass, 0.0, 1.0)
    return [
        Estimate(int(count[i]), float(means[i]) if mass[i] else None, *ends)
        for i, ends in enumerate(zip(lower.tolist(), upper.tolist(), strict=True))
    ]
