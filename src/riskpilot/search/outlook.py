"""What may still be gained: the worth of the next evaluation, in units of the free objective."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from riskpilot.common.arrays import FloatArray
from riskpilot.guarantee import DOUBT, TRUST, Interval, non_dominated
from riskpilot.search.acquisition import misses, score, worth_of_anything
from riskpilot.search.choices import chance_to_pass, posterior_front
from riskpilot.search.hypervolume import improvement_over
from riskpilot.search.model import (
    ENOUGH_TO_SMOOTH,
    Model,
    Observations,
    cautious_values,
    even_draws,
    with_free_up_to,
)
from riskpilot.search.penalties import outlier_line, without_penalties
from riskpilot.search.prospects import chance_of_result, novelty
from riskpilot.search.strategies import Strategy
from riskpilot.search.surrogate import is_flat
from riskpilot.search.worlds import volume_added, worlds

# The posterior of the objectives at a place is averaged over so many draws.
_DRAWS = 256
# What the noise of all evaluations has in common counts at so many places of equal chances.
_COMMON = ndtri((np.arange(64) + 0.5) / 64)


@dataclass(frozen=True)
class Whole:
    """Whole evaluations as a selection reads them: what a race foretold is filled in cautiously.

    ``numbers``: those of their trials; ``values`` and ``variances``: their objectives, and the
    variances of their noise, NaN where it is not known, (n, c + 1) each.
    """

    numbers: Sequence[int]
    values: FloatArray
    variances: FloatArray


@dataclass(frozen=True)
class Outlook:
    """What a search has found so far, and what its next evaluation may bring.

    Attributes
    ----------
    gain : float
        How much better the free objective of the choice is expected to be after the next
        evaluation: a mean over what it may show and over what may pass on calibration data, times
        the chance that it does not repeat an earlier evaluation. Where no configuration was named
        as safe, that anything passes counts as well: nothing certified is worse than the worst
        free objective, as the strategy's ``fallback`` says. Where all evaluations have the same
        free objective, nothing shows that it changes at all, and the gain is 0.
    chance : float
        The chance of the finished evaluation that a selection is most likely to certify now. A
        selection tests those that no other one dominates, one after another, and certifies one
        where it passes and all before it do. The chance counts that, the noise on validation and
        calibration data, and how far what a race foretold errs. Validation data counts as right,
        unless the search was told to doubt it more than by default.
    free : float or None
        The free objective, on validation data, of the best finished evaluation that is more likely
        to be certified than not; None where there is none.
    free_chance : float or None
        The chance of that evaluation to be certified.
    trial : int or None
        The number of its trial.
    spread : float
        How far the free objectives of the finished evaluations lie apart; 0 where they count as
        the same: by less than a trillionth of their size, or by less than 1e-100. A penalty counts
        as the worst of the others: it is ten times as far from the best as five or more others
        are, which are no fewer than penalties, and one of them has risks as low or is more likely
        to be certified than not; or it is a million times as far from the best. One of those whose
        risks no other evaluation has counts as worse than the worst, by as much as the others
        differ.
    needs : int or None
        Where nothing can pass, because there are too few calibration examples, how many it takes
        at least; None elsewhere.
    """

    gain: float
    chance: float
    free: float | None
    free_chance: float | None
    trial: int | None
    spread: float
    needs: int | None = None


def outlook(
    model: Model,
    region: Sequence[Interval],
    x: FloatArray,
    strategy: Strategy,
    whole: Whole,
) -> Outlook:
    """Look ahead from what a fitted model knows.

    ``x``: points that cover the space, (n, d); ``whole``: the whole evaluations, which are the
    first of the observations.
    """
    needs = max((part.needs for part in region if not part.feasible), default=None)
    passing = certified_chances(model, region, whole, float(strategy.own_noise))
    likely = passing >= 0.5
    # A penalty says nothing about what may be gained. The search may go by it nevertheless.
    values = model.observations.values
    others = np.zeros(len(values) - len(likely), dtype=bool)  # stopped, and no candidates
    searched, line = model, outlier_line(values, np.append(likely, others))
    if line < math.inf:
        model = with_free_up_to(model, line, at_checkpoints=True)
    observed = model.observations.values[: len(likely), -1]
    spread = 0.0 if is_flat(observed) else float(np.ptp(observed))
    if needs is not None:
        return Outlook(0.0, 0.0, None, None, None, spread, needs)
    front = posterior_front(model)
    # A penalty counts as the worst of the others, and is no choice while there is another one. The
    # best goes by what was observed: beside an outlier, posterior means hardly tell others apart.
    free = whole.values[:, -1]
    no_penalty = likely & (free <= observed)
    best = int(np.argmin(np.where(no_penalty if no_penalty.any() else likely, free, np.inf)))
    is_likely, trial = bool(passing[best] >= 0.5), whole.numbers[best]
    worst = max(float(front[:, -1].max()), float(model.observations.values[:, -1].max()))
    worst += worth_of_anything(model, region, strategy)
    added, _ = volume_added(front, np.append(np.full(len(region), np.inf), worst), region)
    # The next evaluation is where the search would go to, among the points that cover the space.
    scores, _ = score(searched, region, x, strategy)
    place = x[[np.argmax(scores)]]
    means, stds = model.means_and_stds(place)
    draws = even_draws(_DRAWS, means.shape[1])
    gain = float(added(means + draws * stds).mean())
    if strategy.avoid_repeats:
        gain *= float(novelty(searched.observations)(place)[0])
    gain *= float(chance_of_result(searched.observations)(place)[0])
    return Outlook(
        gain=0.0 if spread == 0 else gain,
        chance=float(passing.max()),
        free=float(free[best]) if is_likely else None,
        free_chance=float(passing[best]) if is_likely else None,
        trial=trial if is_likely else None,
        spread=spread,
    )


def certified_chances(
    model: Model, region: Sequence[Interval], whole: Whole, own_noise: float
) -> FloatArray:
    """Compute the chances that a selection would certify evaluations now, shape (n,).

    It tests those that no other one dominates, in the order of their estimated risks, and certifies
    one where it passes and all before it do; others have no chance. The noise of their risks is in
    common but for a share, ``own_noise``, and for what the surrogates do not know of them, such as
    how far what a race foretold errs. Validation data counts as right, unless there is more doubt
    of it than by default. ``whole``: the evaluations, which are the first observations of the
    model.
    """
    told, x = whole.values, model.observations.x[: len(whole.values)]
    means, stds = model.means_and_stds(x)
    estimates = told.copy()
    if len(told) >= ENOUGH_TO_SMOOTH:
        risks = Observations(x, told[:, :-1], whole.variances[:, :-1], x[:0])
        estimates[:, :-1] = cautious_values(risks)
    tested = np.flatnonzero(non_dominated(estimates))
    order = tested[np.argsort(misses(region, estimates[tested]), kind="stable")]
    # Where no evaluation near what passes had a loss, its noise is that of a single one.
    single = np.sqrt(np.nan_to_num(whole.variances[:, :-1]).max(axis=0))
    noise = np.array(
        [
            np.inf if part.without_loss else max(part.noise or least, 1e-12)
            for part, least in zip(region, single, strict=True)
        ]
    )
    # Of what is each one's own, surrogates know most on validation data, and nothing on the other.
    known = own_noise * np.nan_to_num(np.minimum(whole.variances[order, :-1] / noise**2, 1.0))
    own = own_noise - known + (stds[order, :-1] / noise) ** 2
    widths = np.sqrt(np.maximum(1 - own_noise + own, 1e-6))
    own = np.clip(own / widths**2, 1e-6, 1.0)
    chances = np.zeros(len(told))
    trusting = [replace(part, trust=1.0, doubt=0.0) for part in region]
    for weight, world in worlds(region if has_unusual_doubt(region) else trusting):
        missed = chance_to_pass(world, 0.0)(means[order])[:, :-1]
        gaps = -ndtri(np.clip(missed, 1e-12, 1 - 1e-12)) / widths
        common = np.sqrt(1 - own)[..., None] * _COMMON
        passes = ndtr((gaps[..., None] - common) / np.sqrt(own)[..., None])
        all_before = np.multiply.accumulate(passes, axis=0).mean(axis=2)
        chances[order] += weight * all_before.prod(axis=1)
    return chances


def has_unusual_doubt(region: Sequence[Interval]) -> bool:
    """Tell whether there is more doubt of validation data than by default.

    By default a search hedges against what is seldom so, and a chance that counts it says too
    little most times.
    """
    return any(
        part.trust < TRUST or part.doubt > (1 + 1e-9) * DOUBT * abs(part.alpha_max)
        for part in region
    )


def best_rows(values: FloatArray, region: Sequence[Interval], n: int) -> list[int]:
    """Choose up to ``n`` of some evaluations that are worth most together, best first.

    ``values``: their objectives, shape (rows, c + 1); ``region``: what passes.
    """
    points = without_penalties(chance_to_pass(region, 0.0)(values))
    reference = np.append(np.ones(len(region)), points[:, -1].max())
    chosen: list[int] = []
    for _ in range(n):
        gains = improvement_over(points[chosen], reference)(points)
        if gains.max() <= 0:
            break
        chosen.append(int(gains.argmax()))
    return chosen
