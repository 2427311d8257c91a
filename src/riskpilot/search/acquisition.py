"""Local hypervolume improvement: which configuration to evaluate next, from validation alone.

Objectives are columns: the c risks in the problem's order, then the free objective.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from riskpilot.guarantee import Interval, hypervolume_improvement
from riskpilot.search import surrogate
from riskpilot.search.surrogate import Surrogate

FloatArray = npt.NDArray[np.float64]
Reference = Callable[[Sequence[Interval], FloatArray, FloatArray], FloatArray]
Front = Callable[["Model"], FloatArray]
Score = Callable[[FloatArray], FloatArray]

Scale = Callable[[Sequence[Interval], float], Callable[[FloatArray], FloatArray]]

# How far below its posterior mean an objective is taken to be when the means promise nothing.
_OPTIMISM = 1.0
# The same as long as everything evaluated would pass.
_BOLDNESS = 3.0
# A configuration is safe when its risks lie this many standard errors below what passes.
_SAFE = 1.0
# The median gap between two places in the same step, as a share of the step's width: 1 - sqrt(1/2).
_MEDIAN_GAP = 0.2929
# Looking for a safer one is worth an evaluation when it may be safer by this much.
_SAFER = 0.3


@dataclass(frozen=True)
class Observations:
    """What the finished evaluations showed on validation data, and where others still run.

    ``x``: (n, d) in the unit cube; ``values``: (n, c + 1); ``variances``: (n, c + 1), NaN columns
    where the noise is not known; ``pending``: (p, d).
    """

    x: FloatArray
    values: FloatArray
    variances: FloatArray
    pending: FloatArray


@dataclass(frozen=True)
class Model:
    """One surrogate per objective, fitted to the observations."""

    observations: Observations
    surrogates: tuple[Surrogate, ...]

    def means(self, x: FloatArray) -> FloatArray:
        """Posterior means at ``x``, shape (n, d). Returns shape (n, c + 1)."""
        return np.column_stack([s.mean(x) for s in self.surrogates])

    def means_and_stds(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        pairs = [s.mean_and_std(x) for s in self.surrogates]
        return np.column_stack([m for m, _ in pairs]), np.column_stack([s for _, s in pairs])


def fit(observations: Observations) -> Model:
    surrogates = []
    for values, variances in zip(observations.values.T, observations.variances.T, strict=True):
        known = None if np.isnan(variances).any() else variances
        surrogates.append(surrogate.fit(observations.x, values, known))
    return Model(observations, tuple(surrogates))


def guided_reference(
    region: Sequence[Interval], means: FloatArray, observed: FloatArray
) -> FloatArray:
    """eq:ref_point. ``means``: posterior means over the space; ``observed``: values; (n, c + 1).

    R_low can be empty: no configuration is so safe that it wastes the free objective. Then nothing
    has to be cut away, and the worst free value below the region's upper edges bounds the region.
    """
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
    """The paper's ablation: the region's upper edges, and the worst free value inside them."""
    high = np.array([part.high for part in region])
    inside = (means[:, :-1] <= high).all(axis=1)
    free = means[inside, -1] if inside.any() else observed[:, -1]
    return np.append(high, max(float(free.max()), float(observed[:, -1].max())))


def fixed_reference(
    region: Sequence[Interval], means: FloatArray, observed: FloatArray
) -> FloatArray:
    """Plain HVI: the worst value seen of every objective, and no region at all."""
    worst: FloatArray = observed.max(axis=0)
    return worst


def open_reference(
    region: Sequence[Interval], means: FloatArray, observed: FloatArray
) -> FloatArray:
    """No edge on the risks, which `chance_to_pass` weighs instead; the worst free value seen."""
    return np.append(np.full(len(region), np.inf), observed[:, -1].max())


def as_they_are(region: Sequence[Interval], lift: float) -> Callable[[FloatArray], FloatArray]:
    """Hypervolume in the units of the objectives, as the paper has it."""
    return lambda points: points


def chance_to_pass(region: Sequence[Interval], lift: float) -> Callable[[FloatArray], FloatArray]:
    """Hypervolume with each risk on the scale of the test: its chance to miss what passes.

    From validation data, what passes on calibration data is a random threshold, about normal around
    ``alpha_max``. The hypervolume on this scale is then how much the free objective of the choice
    gains on average over that threshold: the region of interest with soft edges. ``lift`` moves the
    threshold up by that many standard errors.
    """
    noise = np.array([max(part.noise, 1e-12) for part in region])
    threshold = np.array([part.alpha_max for part in region]) + lift * noise

    def transform(points: FloatArray) -> FloatArray:
        return np.column_stack([ndtr((points[:, :-1] - threshold) / noise), points[:, -1]])

    return transform


def posterior_front(model: Model) -> FloatArray:
    """Posterior means where evaluations are, or are under way (each believed to meet its mean)."""
    observations = model.observations
    return model.means(np.vstack([observations.x, observations.pending]))


def observed_front(model: Model) -> FloatArray:
    """The observations themselves, as the paper has it; pending ones are believed as above."""
    observations = model.observations
    if not len(observations.pending):
        return observations.values
    return np.vstack([observations.values, model.means(observations.pending)])


def risk_excess(model: Model, x: FloatArray, region: Sequence[Interval]) -> FloatArray:
    """By how many standard errors the worst risk may miss what passes, optimistically; (n,)."""
    means, stds = model.means_and_stds(x)
    return _misses(region, means - _OPTIMISM * stds)


def novelty(observations: Observations) -> Score:
    """The chance that an evaluation brings something new, shape (n,) for x of shape (n, d).

    Two configurations with the very same results show that the objectives have steps (a threshold
    over few scores, a share of twelve heads). How wide the steps are, the gaps between such pairs
    tell; within one step of an evaluation, another one probably repeats it.
    """
    _, label = np.unique(observations.values, axis=0, return_inverse=True)
    same = label.reshape(-1, 1) == label.reshape(1, -1)
    i, j = np.nonzero(np.triu(same, 1))
    if not len(i):
        return _certain
    gaps = np.median(np.abs(observations.x[i] - observations.x[j]), axis=0)
    width = np.maximum(gaps / _MEDIAN_GAP, 1e-12)
    tried = np.vstack([observations.x, observations.pending])

    def chance(x: FloatArray) -> FloatArray:
        new = np.ones(len(x))
        for place in tried:
            new *= 1 - np.prod(np.maximum(1 - np.abs(x - place) / width, 0.0), axis=1)
        return new

    return chance


def safety(model: Model, region: Sequence[Interval], means: FloatArray) -> tuple[float, float]:
    """By how many standard errors the safest evaluation misses what passes, and the safest of all.

    ``means``: posterior means over the space, (n, c + 1). Negative: it is expected to pass.
    """
    evaluated, anywhere = (_misses(region, p).min() for p in (posterior_front(model), means))
    return float(evaluated), float(anywhere)


def riskiest(model: Model, region: Sequence[Interval]) -> float:
    """By how many standard errors the riskiest evaluation misses what passes; negative: none
    does."""
    return float(_misses(region, posterior_front(model)).max())


def _misses(region: Sequence[Interval], points: FloatArray) -> FloatArray:
    """By how many standard errors the worst risk of each point misses what passes, shape (n,)."""
    alpha_max = np.array([part.alpha_max for part in region])
    noise = np.array([max(part.noise, 1e-12) for part in region])
    worst: FloatArray = ((points[:, :-1] - alpha_max) / noise).max(axis=1)
    return worst


def score(
    model: Model,
    region: Sequence[Interval],
    x: FloatArray,
    *,
    reference: Reference,
    front: Front,
    scale: Scale,
    safe_first: bool,
    bold: bool,
    avoid_repeats: bool,
) -> tuple[FloatArray, Score]:
    """The function whose maximum over the space is the next evaluation (Algorithm alg:bo, line 8).

    ``x``: points that cover the space, (n, d); they fix the reference point and tell whether the
    improvement is flat. With ``safe_first``, a safe configuration comes before everything else as
    long as there may be a safer one; where there is none, the target moves up to what there is.
    With ``bold``, as long as everything evaluated is expected to pass, values count as optimistic:
    nothing has shown yet where the limits lie, and means fall back to what is known far from it.
    Where the means promise no improvement anywhere, optimistic values are tried, and at last the
    least certain place that may still be safe. With ``avoid_repeats``, improvements count by the
    chance that they are not what an earlier evaluation has shown. Returns the values at ``x``,
    shape (n,), and the function itself.
    """
    means = model.means(x)
    lift = 0.0
    if safe_first:
        evaluated, anywhere = safety(model, region, means)
        if evaluated > -_SAFE:
            if anywhere < evaluated - _SAFER:
                return _with_values(x, lambda at: -risk_excess(model, at, region))
            lift = evaluated + _SAFE
    transform = scale(region, lift)
    points = transform(front(model))
    r = transform(reference(region, means, model.observations.values)[None])[0]
    floor = 1e-9 * float(np.prod(np.maximum(r - points.min(axis=0), 0.0)))  # rounding error
    chance_of_news = novelty(model.observations) if avoid_repeats else _certain

    def improvement(at: FloatArray, at_means: FloatArray) -> FloatArray:
        return hypervolume_improvement(transform(at_means), points, r) * chance_of_news(at)

    daring = bold and riskiest(model, region) < 0
    values = improvement(x, means)
    if values.max() > floor and not daring:
        return values, lambda at: improvement(at, model.means(at))

    def optimistic(at: FloatArray) -> FloatArray:
        at_means, stds = model.means_and_stds(at)
        return improvement(at, at_means - (_BOLDNESS if daring else _OPTIMISM) * stds)

    values = optimistic(x)
    if values.max() > floor:
        return values, optimistic
    return _with_values(x, lambda at: _doubt(model, region, at))


def _certain(x: FloatArray) -> FloatArray:
    return np.ones(len(x))


def _with_values(x: FloatArray, function: Score) -> tuple[FloatArray, Score]:
    return function(x), function


def _doubt(model: Model, region: Sequence[Interval], x: FloatArray) -> FloatArray:
    """Posterior deviation, in units of the observed spread, where the risks may still pass."""
    means, stds = model.means_and_stds(x)
    high = np.array([part.high for part in region])
    spread = np.maximum(np.ptp(model.observations.values, axis=0), 1e-12)
    doubt: FloatArray = (stds / spread).max(axis=1)
    allowed = (means[:, :-1] - _OPTIMISM * stds[:, :-1] <= high).all(axis=1)
    return np.where(allowed, doubt, doubt - doubt.max() - 1.0)
