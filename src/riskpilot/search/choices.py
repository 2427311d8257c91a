"""What a strategy chooses from: reference points, fronts, and scales on which risks count.

Objectives are columns: the c risks in the problem's order, then the free objective.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtr

from riskpilot.common.arrays import FloatArray
from riskpilot.guarantee import Interval
from riskpilot.search.model import Model

Reference = Callable[[Sequence[Interval], FloatArray, FloatArray], FloatArray]
Front = Callable[[Model], FloatArray]
Scale = Callable[[Sequence[Interval], float], Callable[[FloatArray], FloatArray]]


def guided_reference(
    region: Sequence[Interval], means: FloatArray, observed: FloatArray
) -> FloatArray:
    """Put the reference point at the region's upper edges, and cut off what is needlessly safe.

    ``means``: posterior means over the space; ``observed``: values of the evaluations; shape
    (n, c + 1) each. Where no configuration is so safe that it wastes the free objective, nothing
    has to be cut off, and the worst free value below the region's upper edges bounds the region.
    """
    # eq:ref_point
    high = np.array([part.high for part in region])
    low = np.array([part.low for part in region])
    risks, free = means[:, :-1], means[:, -1]
    overly_safe = (risks < low).all(axis=1)  # R_low
    if overly_safe.any():
        return np.append(high, free[overly_safe].min())
    return one_sided_reference(region, means, observed)


def one_sided_reference(
    region: Sequence[Interval], means: FloatArray, observed: FloatArray
) -> FloatArray:
    """Put it at the region's upper edges and the worst free value inside: the paper's ablation."""
    high = np.array([part.high for part in region])
    inside = (means[:, :-1] <= high).all(axis=1)
    free = means[inside, -1] if inside.any() else observed[:, -1]
    return np.append(high, max(float(free.max()), float(observed[:, -1].max())))


def fixed_reference(
    region: Sequence[Interval], means: FloatArray, observed: FloatArray
) -> FloatArray:
    """Put it at the worst observed value of every objective, as plain HVI does without a region."""
    worst: FloatArray = observed.max(axis=0)
    return worst


def open_reference(
    region: Sequence[Interval], means: FloatArray, observed: FloatArray
) -> FloatArray:
    """Put it at the worst observed free value, without an edge for risks.

    `chance_to_pass` weighs the risks instead.
    """
    return np.append(np.full(len(region), np.inf), observed[:, -1].max())


def as_they_are(region: Sequence[Interval], lift: float) -> Callable[[FloatArray], FloatArray]:
    """Measure hypervolume in the units of the objectives, as the paper does."""
    return lambda points: points


def chance_to_pass(region: Sequence[Interval], lift: float) -> Callable[[FloatArray], FloatArray]:
    """Measure hypervolume with each risk on the scale of the test: its chance to miss what passes.

    From validation data, what passes on calibration data is a random threshold, about normal around
    ``alpha_max``. Validation may also be too optimistic (a model was stopped early on it, or it is
    of another month). The search hedges: with a chance of ``trust`` validation is right, and
    otherwise it is too optimistic by anything up to ``doubt``. The hypervolume on this scale is
    then how much the free objective of the choice gains on average over all of that: the region of
    interest with soft edges. ``lift`` moves the threshold up by that many standard errors. Where
    only a calibration sample without any loss passes, the chance is that of such a sample, and
    nothing is moved.
    """
    noise = np.array([max(part.noise, 1e-12) for part in region])
    threshold = np.array([part.alpha_max for part in region]) + lift * noise
    doubt = np.array([part.doubt for part in region]) / noise
    trust = np.array([part.trust for part in region])

    def transform(points: FloatArray) -> FloatArray:
        gap = threshold / noise - points[:, :-1] / noise
        missed = trust * ndtr(-gap) + (1 - trust) * _chance_above(gap, doubt)
        for i, part in enumerate(region):
            if part.without_loss is not None:
                missed[:, i] = 1 - part.without_loss.chance(points[:, i] - part.alpha_max)
        return np.column_stack([missed, points[:, -1]])

    return transform


def _chance_above(gap: FloatArray, most: FloatArray) -> FloatArray:
    """Compute the chance that a standard normal and a uniform number exceed a gap together.

    ``most``: the uniform number lies between 0 and it; below 0.001 it is left out.

    >>> _chance_above(np.array([[0.0, 0.0]]), np.array([0.0, 1.0])).round(3)
    array([[0.5  , 0.684]])
    """
    width = np.maximum(most, 1e-3)
    gap = np.clip(gap, -40.0, width + 40.0)  # beyond, the chance is 1 or 0
    averaged = (_integral_of_ndtr(width - gap) - _integral_of_ndtr(-gap)) / width
    return np.where(most > 1e-3, np.clip(averaged, 0.0, 1.0), ndtr(-gap))


def _integral_of_ndtr(x: FloatArray) -> FloatArray:
    """Integrate the normal distribution function from minus infinity up to ``x``."""
    near = np.clip(x, -40.0, 40.0)  # the density is 0 beyond
    integral: FloatArray = x * ndtr(x) + np.exp(-0.5 * near**2) / np.sqrt(2 * np.pi)
    return integral


def posterior_front(model: Model) -> FloatArray:
    """Take the posterior means at evaluations, finished or under way, as the front.

    An evaluation under way is believed to meet its mean.
    """
    return model.evaluated


def observed_front(model: Model) -> FloatArray:
    """Take the observations themselves as the front, as the paper does.

    An evaluation under way is believed to meet its posterior mean.
    """
    observations = model.observations
    if not len(observations.pending):
        return observations.values
    return np.vstack([observations.values, model.means(observations.pending)])
