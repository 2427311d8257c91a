"""What may still be gained: the worth of the next evaluation, in units of the free objective."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from riskpilot.common.arrays import FloatArray
from riskpilot.guarantee import Interval
from riskpilot.search.acquisition import novelty, score, worth_of_anything
from riskpilot.search.choices import chance_to_pass, posterior_front
from riskpilot.search.hypervolume import improvement_over
from riskpilot.search.model import Model, even_draws, with_free_up_to
from riskpilot.search.penalties import outlier_line, without_penalties
from riskpilot.search.strategies import Strategy
from riskpilot.search.surrogate import is_flat
from riskpilot.search.worlds import passing_chances, volume_added

# The posterior of the objectives at a place is averaged over so many draws.
_DRAWS = 256


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
        The chance to pass of the finished evaluation that is most likely to pass.
    free : float or None
        The free objective, on validation data, of the best finished evaluation that is more likely
        to pass than not; None where there is none.
    free_chance : float or None
        The chance to pass of that evaluation.
    trial : int or None
        The number of its trial.
    spread : float
        How far the free objectives of the finished evaluations lie apart; 0 where they count as
        the same: by less than a trillionth of their size, or by less than 1e-100. A penalty counts
        as the worst of the others: it is ten times as far from the best as five or more others
        are, which are no fewer than penalties, and one of them has risks as low; or it is a million
        times as far from the best. One of those whose risks no other evaluation has counts as worse
        than the worst, by as much as the others differ.
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
    free: Mapping[int, float],
) -> Outlook:
    """Look ahead from what a fitted model knows.

    ``x``: points that cover the space, (n, d); ``free``: the free objectives of the whole trials,
    which are the first of the observations, by their numbers.
    """
    # A penalty says nothing about what may be gained. The search may go by it nevertheless.
    searched, line = model, outlier_line(model.observations.values)
    if line < math.inf:
        model = with_free_up_to(model, line, at_checkpoints=True)
    observed = model.observations.values[: len(free), -1]
    spread = 0.0 if is_flat(observed) else float(np.ptp(observed))
    needs = max((part.needs for part in region if not part.feasible), default=None)
    if needs is not None:
        return Outlook(0.0, 0.0, None, None, None, spread, needs)
    front = posterior_front(model)
    # Behind them come those that were stopped and those under way, which are no candidates yet.
    finished = front[: len(free)]
    passing = passing_chances(region, finished)
    # A penalty counts as the worst of the others, and is no choice while there is another one. The
    # best goes by what was observed: beside an outlier, posterior means hardly tell others apart.
    likely, values = passing >= 0.5, np.array(list(free.values()))
    no_penalty = likely & (values <= observed)
    best = int(np.argmin(np.where(no_penalty if no_penalty.any() else likely, values, np.inf)))
    is_likely, trial = bool(passing[best] >= 0.5), list(free)[best]
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
    return Outlook(
        gain=0.0 if spread == 0 else gain,
        chance=float(passing.max()),
        free=free[trial] if is_likely else None,
        free_chance=float(passing[best]) if is_likely else None,
        trial=trial if is_likely else None,
        spread=spread,
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
