"""The next configuration: the best point of a space that has not been tried."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial
from scipy.spatial import KDTree

from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.study.kept.trials import was_evaluated
from riskpilot.study.space import Space, from_unit, n_values, to_unit, with_numbers

Score = Callable[[FloatArray], FloatArray]

# Proposals closer than this to an evaluated configuration would only repeat it.
_SAME = 1e-4
# How far, in how many directions and from how many places proposals are refined. Where there are
# more parameters than a few, a cover is thin: the best place may lie far from all of its points.
_FEW = 3
_REFINED = ((0.05, 64, 4), (0.01, 64, 4))
_CLIMBED = ((0.3, 32, 16), (0.1, 32, 16), (0.05, 32, 16), (0.01, 32, 16))
# Evaluations on the front are starts as well; around all of them so many places are looked at.
_AROUND, _AROUND_EACH, _ASIDE = 512, 8, 0.2
# Of a number with steps so many values are looked at, to find one that was not tried.
_LOOKED_AT = 64
# From this trial on, every so many look for any choice that was not tried.
_FIRST_TURN, _TURNS = 12, 4
# A proposal that leaves the line of all evaluations goes at least so far from it. What spreads by
# less than the second number spans no direction.
_OFF, _FLAT = 0.2, 0.05
# A bold step goes this share of the way, and all of a way that is shorter than the second number.
# It shows nothing new as near to an evaluation as the third.
_BOLD_SHARE, _SHORT, _NEAR = 0.6, 0.1, 0.01


def best_new_point(
    value: Score,
    space: Space,
    cover: FloatArray,
    scores: FloatArray,
    taken: FloatArray,
    rng: np.random.Generator,
    front: FloatArray | None = None,
) -> FloatArray | None:
    """Find the best new point of the cover and refine it; None where all have been tried.

    ``scores``: the values at the cover, shape (len(cover),); ``front``: evaluated points, near
    which there may be better ones, (n, d). With few parameters the cover shows these places, too.
    """
    taken_tree = KDTree(with_numbers(taken))
    new = _is_new(cover, taken_tree)
    if not new.any():
        return None
    candidates, scores = cover[new], scores[new]

    def look_around(points: FloatArray, scale: float, n: int) -> None:
        nonlocal candidates, scores
        more = space.near(points, scale, n, rng, _FEW)
        more = more[_is_new(more, taken_tree)]
        if len(more):
            candidates = np.vstack([candidates, more])
            scores = np.append(scores, value(more))

    many = len(space.distributions) > _FEW
    if many and front is not None and len(front):
        some = front[: _AROUND // _AROUND_EACH]
        look_around(some, _ASIDE, _AROUND // len(some))
    for scale, n, starts in _CLIMBED if many else _REFINED:
        look_around(candidates[np.argsort(-scores)[:starts]], scale, n)
    best: FloatArray = candidates[int(np.argmax(scores))]
    return best


def enough_to_learn(trials: Iterable[FrozenTrial]) -> bool:
    """Tell whether there are two finished trials of which a search can learn."""
    return len(list(itertools.islice(filter(was_evaluated, trials), 2))) == 2


def unlike_tried(
    value: Any,
    name: str,
    distribution: BaseDistribution,
    params: Mapping[str, Any],
    tried: Sequence[FrozenTrial],
    rng: np.random.Generator,
) -> Any:
    """Draw another value of a parameter where this one leads to nothing new.

    ``params``: the parameters that the trial has already; ``tried``: the trials that were
    evaluated, or failed. In a tree-shaped space a choice may end a configuration, or open a branch
    in which everything was tried, and few places of the initial pool are left for the others. The
    value stays as it is where every other one leads to nothing new, too.
    """

    def is_used_up(candidate: Any) -> bool:
        chosen = {**params, name: candidate}
        below = [trial for trial in tried if chosen.items() <= trial.params.items()]
        return _all_tried(below, chosen.keys())

    if not is_used_up(value):
        return value
    if isinstance(distribution, CategoricalDistribution):
        others = iter(distribution.choices[i] for i in rng.permutation(len(distribution.choices)))
    else:
        n = _LOOKED_AT if math.isfinite(n_values(distribution)) else 1
        others = (from_unit(distribution, u) for u in rng.random(n))
    return next(itertools.filterfalse(is_used_up, others), value)


def _all_tried(trials: Sequence[FrozenTrial], decided: Set[str]) -> bool:
    """Tell whether trials that agree in some parameters show every configuration that has them.

    ``decided``: the names of these parameters. A trial that has no others is all there is. Else the
    evaluation asks for another one first, which all trials have, and every value of whatever they
    all have must lead to nothing but what was tried.
    """
    if not trials:
        return False
    shared = set.intersection(*(set(trial.params) for trial in trials)) - decided
    if not shared:
        return any(trial.params.keys() <= decided for trial in trials)
    name = min(shared)
    distribution = trials[0].distributions[name]
    by_place: dict[float, list[FrozenTrial]] = {}
    for trial in trials:
        if trial.distributions[name] != distribution:
            return False
        by_place.setdefault(to_unit(distribution, trial.params[name]), []).append(trial)
    return len(by_place) == n_values(distribution) and all(
        _all_tried(some, decided | {name}) for some in by_place.values()
    )


def at_untried_choices(
    value: Score,
    space: Space,
    cover: FloatArray,
    scores: FloatArray,
    taken: FloatArray,
    any_choice: bool = False,
) -> tuple[Score, FloatArray]:
    """Let only points count that have a choice nobody has tried, among choices under a condition.

    Such a choice is active in few evaluations of the initial pool, and parameters may exist under
    one of its values alone: nothing is known of them before it was tried. ``any_choice``: whether
    all other choices count, too. Returns the value and the scores at the cover, as they are where
    everything was tried.
    """
    untried = space.untried_choices(taken, everywhere=any_choice)

    def is_untried(points: FloatArray) -> BoolArray:
        found = np.zeros(len(points), dtype=bool)
        for column, places in untried.items():
            found |= np.isin(points[:, column], places)
        return found

    return _only_where(is_untried, value, cover, scores)


def is_turn_of_any_choice(number: int) -> bool:
    """Tell whether a trial is to try a choice that nobody has tried, under a condition or not.

    Where there are many, a few evaluations are better spent on those that the initial pool has.
    """
    return number >= _FIRST_TURN and number % _TURNS == 0


def off_the_line(
    value: Score, space: Space, cover: FloatArray, scores: FloatArray, taken: FloatArray
) -> tuple[Score, FloatArray]:
    """Let only points count that leave the line, or the plane, on which all evaluations lie.

    Evaluations on a line change all parameters together, so that nothing shows which of them does
    what; one more on the same line would not show it either. Returns the value and the scores at
    the cover, as they are where evaluations lie on no line, where there are choices or branches or
    more than a few parameters, and where no point lies far enough away.
    """
    has_choices = any(
        isinstance(dist, CategoricalDistribution) for dist in space.distributions.values()
    )
    many = len(space.distributions) > _FEW
    if has_choices or many or np.isnan(cover).any() or np.isnan(taken).any():
        return value, scores
    origin = taken[0]
    _, spread, directions = np.linalg.svd(taken - origin, full_matrices=False)
    spanned = directions[spread > _FLAT]

    def is_off(points: FloatArray) -> BoolArray:
        ways = points - origin
        aside = ways - (ways @ spanned.T) @ spanned
        return np.asarray(np.linalg.norm(aside, axis=1) > _OFF)

    return _only_where(is_off, value, cover, scores)


def _only_where(
    counts: Callable[[FloatArray], BoolArray], value: Score, cover: FloatArray, scores: FloatArray
) -> tuple[Score, FloatArray]:
    """Let only the points count of which a rule says so; all do where none of the cover would."""
    of_cover = counts(cover)
    if not of_cover.any():
        return value, scores
    return (
        lambda points: np.where(counts(points), value(points), -np.inf),
        np.where(of_cover, scores, -np.inf),
    )


def bold_step(
    best: FloatArray,
    value: Score,
    may_pass: Callable[[FloatArray], BoolArray],
    space: Space,
    cover: FloatArray,
    taken: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Choose where to go as long as everything evaluated would pass, shape (d,).

    ``best``: the best point by its ``value``. Where it lies next to an evaluation that seems to be
    worth as much, such as the end of a range along which the free objective falls, nothing more is
    to be gained there: what it seems to be worth is noise. The step then goes to the place that is
    farthest from all evaluations, of those that may pass.
    """
    known = KDTree(space.encode(taken))
    gaps, rows = known.query(space.encode(best[None]), p=np.inf)
    if gaps[0] > _NEAR or value(taken[rows])[0] < value(best[None])[0]:
        return part_of_the_way(best, space, taken)

    def distance(points: FloatArray) -> FloatArray:
        return np.where(may_pass(points), known.query(space.encode(points))[0], -1.0)

    farthest = best_new_point(distance, space, cover, distance(cover), taken, rng)
    return best if farthest is None else farthest


def part_of_the_way(best: FloatArray, space: Space, taken: FloatArray) -> FloatArray:
    """Shorten a bold step: go part of the way from the nearest point that was tried, (d,).

    The end of a range says little about where between it and what is known a limit is reached.
    Where the way is short in every coordinate, the end is worth a look: parts of it would only come
    closer and closer. A step that would end next to a point that was tried, and one among more than
    a few parameters, stays as it is.
    """
    if len(space.distributions) > _FEW:
        return best
    tree = KDTree(with_numbers(taken))
    nearest = taken[tree.query(with_numbers(best[None]))[1][0]]
    if np.abs(with_numbers(best) - with_numbers(nearest)).max() < _SHORT:
        return best
    shorter = space.between(nearest, best, _BOLD_SHARE)
    gap = tree.query(with_numbers(shorter[None]), p=np.inf)[0][0]
    return shorter if gap > _NEAR else best


def _is_new(candidates: FloatArray, taken: KDTree) -> BoolArray:
    """Tell which candidates differ from everything tried so far in some coordinate, (n,)."""
    gaps, _ = taken.query(with_numbers(candidates), p=np.inf, distance_upper_bound=2 * _SAME)
    return np.asarray(gaps > _SAME)
