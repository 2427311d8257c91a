"""What an evaluation may bring, judged by where others lie: a result, or anything new."""

import math
from collections.abc import Callable

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from riskpilot.common.arrays import FloatArray
from riskpilot.search import surrogate
from riskpilot.search.model import Observations

Score = Callable[[FloatArray], FloatArray]

# The median gap between two places in the same step, as a share of the step's width: 1 - sqrt(1/2).
_MEDIAN_GAP = 0.2929
# How far what is near tells whether there is a result, in the unit cube of one parameter.
_REACH = 0.1


def novelty(observations: Observations) -> Score:
    """Make the function that gives the chance that an evaluation brings something new.

    It returns shape (n,) for x of shape (n, d). Two configurations with the very same results show
    that the objectives have steps (a threshold over few scores, a share of twelve heads). The gaps
    between such pairs show how wide the steps are; within one step of an evaluation, another
    evaluation probably repeats it.
    """
    found, label = np.unique(observations.values, axis=0, return_inverse=True)
    if len(found) == len(label):
        return certain
    same = label.reshape(-1, 1) == label.reshape(1, -1)
    i, j = np.nonzero(np.triu(same, 1))
    gaps = np.median(np.abs(observations.x[i] - observations.x[j]), axis=0)
    width = np.maximum(gaps / _MEDIAN_GAP, 1e-12)
    tried = np.vstack([observations.x, observations.pending])

    def chance(x: FloatArray) -> FloatArray:
        new = np.ones(len(x))
        for place in tried:
            new *= 1 - np.prod(np.maximum(1 - np.abs(x - place) / width, 0.0), axis=1)
        return new

    return chance


def remoteness(observations: Observations) -> Score:
    """Make the function that gives the distance to the nearest evaluation, finished or under way.

    It returns shape (n,) for x of shape (n, d). Those that gave no result count, too.
    """
    failed = observations.x[:0] if observations.failed is None else observations.failed
    known = KDTree(np.vstack([observations.x, observations.pending, failed]))
    return lambda x: np.asarray(known.query(x)[0])


def chance_of_result(observations: Observations) -> Score:
    """Make the function that gives the chance that an evaluation gives a result, and no penalty.

    It returns shape (n,) for x of shape (n, d). What failed in an earlier study counts as well, but
    takes away no more than half of the chance: the reason may be gone. It counts for nothing once
    most evaluations next to what failed there give results.
    """
    x, penalised = observations.x, observations.penalised
    gave = x if penalised is None else x[~penalised]
    failed = x[:0] if penalised is None else x[penalised]
    if observations.failed is not None:
        failed = np.vstack([failed, observations.failed])
    now, failed_before = _chance(gave, failed), observations.failed_before
    if failed_before is None:
        return now
    gave_before = x[:0] if observations.gave_before is None else observations.gave_before
    before = KDTree(np.vstack([gave_before, failed_before]))

    def n_in_doubt(places: FloatArray) -> int:
        """Count the places whose nearest evaluation of the earlier study failed."""
        return int((before.query(places)[1] >= len(gave_before)).sum()) if len(places) else 0

    if n_in_doubt(gave) > n_in_doubt(failed):
        return now
    in_all = _chance(np.vstack([gave, gave_before]), np.vstack([failed, failed_before]))
    return lambda x: np.maximum(in_all(x), now(x) / 2)


def _chance(gave: FloatArray, failed: FloatArray) -> Score:
    """Make the chance of a result from where there was one, and where there was none, (n, d) each.

    It is the mean of two chances. One goes by what is near: evaluations that gave a result speak
    for it, those that gave none against it, by one through their squared distance. The other goes
    by a surrogate of what is 1 where there was a result and 0 elsewhere, which learns how far that
    speaks for others along each parameter, and to which failures without a pattern are noise. By
    itself the first tries every part of a region that fails, and the second stays before one behind
    which there are results again.
    """
    if not len(failed):
        return certain
    reach = _REACH * math.sqrt(failed.shape[1])
    is_result = np.append(np.ones(len(gave)), np.zeros(len(failed)))
    pattern = surrogate.fit(np.vstack([gave, failed]), is_result, None)

    def weight(x: FloatArray, places: FloatArray) -> FloatArray:
        squares = np.maximum(cdist(x / reach, places / reach, "sqeuclidean"), 1e-12)
        total: FloatArray = (1 / squares).sum(axis=1)
        return total

    def chance(x: FloatArray) -> FloatArray:
        for_it = 1 + weight(x, gave)
        mean, std = pattern.mean_and_std(x)
        above_half = ndtr((mean - 0.5) / np.maximum(std, 1e-12))
        both: FloatArray = (for_it / (for_it + weight(x, failed)) + above_half) / 2
        return both

    return chance


def certain(x: FloatArray) -> FloatArray:
    """Return a chance of 1 for every place."""
    return np.ones(len(x))
