"""What the trials of a study show to the search: surrogates, region of interest, places tried."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from riskpilot.common.arrays import FloatArray, IntArray
from riskpilot.guarantee import Interval, non_dominated
from riskpilot.losses import ValidationLosses
from riskpilot.problem import Problem
from riskpilot.search import (
    MOST_OBSERVATIONS,
    Model,
    Observations,
    Strategy,
    Whole,
    fit_model,
    has_passing,
    penalised,
    representative_rows,
    values_and_variances,
    without_penalties,
)
from riskpilot.study.kept.attributes import SAFE_KEY
from riskpilot.study.kept.earlier import Earlier
from riskpilot.study.kept.foretold import Foretold, foretold_of
from riskpilot.study.kept.records import Record, record_of, validation_of
from riskpilot.study.kept.remembered import Remembered
from riskpilot.study.kept.stopped import stopped_of, was_stopped
from riskpilot.study.kept.trials import (
    ended_before,
    n_calibration_of,
    nothing_new,
    was_evaluated,
)
from riskpilot.study.space import Space, to_unit

Region = Callable[[ValidationLosses, int | None], list[Interval]]
"""The region of interest, from validation losses and the number of calibration examples."""

# So many evaluations are asked whether an earlier study misleads.
_ASKED = 20


@dataclass(frozen=True)
class Survey:
    """All that a proposal needs.

    ``cover``: points that cover the space, as surrogates see them, (m, d'), and ``cover_means``:
    the posterior means there; ``fitted``: the points of the finished evaluations that the model was
    fitted to, (k, d); ``tried``: the points that were evaluated, or will bring nothing new, shape
    (n, d); ``known``: the numbers of the trials whose results were there when the model was
    fitted; ``whole``: the whole evaluations that it was fitted to, which are its first
    observations.
    """

    space: Space
    model: Model
    region: list[Interval]
    cover: FloatArray
    cover_means: FloatArray
    fitted: FloatArray
    tried: FloatArray
    known: frozenset[int]
    whole: Whole

    @property
    def has_penalties(self) -> bool:
        """Whether an evaluation gave a penalty, which shows nothing of its free objective."""
        return self.model.observations.penalised is not None

    @property
    def front(self) -> FloatArray:
        """The finished evaluations that no other one is expected to dominate, shape (n, d)."""
        return self.fitted[non_dominated(self.model.evaluated[: len(self.fitted)])]


def branched_space(
    trials: Iterable[FrozenTrial],
    search_space: Mapping[str, BaseDistribution],
    earlier: Earlier | None = None,
) -> Space:
    """Return a space that knows which parameters are active where, as finished trials show it.

    Those of an earlier study show it, too; the space then has all of its parameters.
    """
    if earlier is not None:
        points = _points(_evaluated(trials), earlier.space)
        return Space(earlier.space).learned_from(np.vstack([earlier.points, points]))
    return Space(search_space).learned_from(_points(_evaluated(trials), search_space))


def unless_misled(earlier: Earlier | None, trials: Iterable[FrozenTrial]) -> Earlier | None:
    """Return what an earlier study showed, unless the first evaluations are nothing like it.

    The first evaluation is that of the safe configuration, where one is known. Where the earlier
    study is wrong about it, or far off one of the next, the search is that of a study which knows
    of no earlier one. How far it is to be believed later is left to the surrogates.
    """
    done = list(filter(was_evaluated, trials))
    if earlier is None or not done:
        return earlier
    point, values = _points(done[:1], earlier.space), np.array([_values(done[0])])
    if not earlier.agrees_with(point, values):
        return None
    whole = [trial for trial in done[:_ASKED] if not was_stopped(trial)]
    points = _points(whole, earlier.space)
    contradicted = len(whole) > 1 and earlier.is_contradicted_by(
        points, np.array([_values(trial) for trial in whole])
    )
    return None if contradicted else earlier


def tried_first(
    earlier: Earlier | None, number: int, trials: Iterable[FrozenTrial]
) -> Mapping[str, Any] | None:
    """Return what was best in an earlier study, for a trial that is to try it; else None.

    They are tried as long as all evaluations are about as the earlier study foretells them.
    """
    if earlier is None or not 0 < number <= len(earlier.first):
        return None
    done = _evaluated(trials)
    if done:
        values = np.array([_values(trial) for trial in done])
        if not earlier.agrees_with(_points(done, earlier.space), values):
            return None
    return earlier.first[number - 1]


def survey(
    trials: Sequence[FrozenTrial],
    problem: Problem,
    space: Space,
    cover: FloatArray,
    region_of: Region,
    strategy: Strategy,
    most: int = MOST_OBSERVATIONS,
    earlier: Earlier | None = None,
) -> Survey:
    """Fit surrogates to what finished trials show, and compute the region of interest.

    ``cover``: points that cover the space, (n, d). Of more than ``most`` trials, those that tell
    most are fitted. Trials that are not finished are left to `with_pending`. ``earlier``: what an
    earlier study showed.
    """
    done = _evaluated(trials)
    points = _points(done, space.distributions)
    x, encoded_cover = space.encode(points), space.encode(cover)
    rows = _rows(problem, done, x, encoded_cover, region_of, most)
    if was_stopped(done[rows[0]]):  # whole evaluations come first, and one shows what passes
        rows = np.insert(rows, 0, 0)
    chosen = [done[row] for row in rows]
    whole = _whole(chosen)
    validation = validation_of(problem, whole)
    values, variances = values_and_variances(validation)
    numbers = tuple(trial.number for trial in chosen[: len(whole)])
    as_selected = Whole(numbers, values.copy(), variances)
    foretold = [foretold_of(trial) for trial in chosen[: len(whole)]]
    for row, note in enumerate(foretold):
        if note is not None:  # its losses were filled in cautiously
            values[row] = note.values
    stopped = [stopped_of(trial) for trial in chosen[len(whole) :]]
    has_safe = any(SAFE_KEY in trial.user_attrs for trial in done)
    values_of_all = np.vstack([values, *(each.values for each in stopped)])
    is_penalty = penalised(values_of_all)
    failed = gave = None
    if earlier is not None and len(earlier.failed_points):
        failed, gave = map(space.encode, (earlier.failed_points, earlier.points_with_results))
    observations = Observations(
        x[rows],
        without_penalties(values_of_all),
        # What one has not shown is its own, whatever examples it shares with others.
        np.vstack(
            [
                float(strategy.own_noise) * variances + _foretold_variances(foretold, variances),
                *(each.variances for each in stopped),
            ]
        ),
        np.empty((0, x.shape[1])),
        has_safe,
        failed_before=failed,
        gave_before=gave,
        penalised=is_penalty if is_penalty.any() else None,
    )
    region = region_of(validation, n_calibration_of(whole, None))
    before = None if earlier is None else earlier.surrogates
    # Who has nothing that would pass has to look where nothing was evaluated, unless a
    # configuration that was named as safe shows where to look.
    cautious = has_passing(region, values, has_safe=has_safe)
    caution = float(strategy.caution) if cautious else 0.0
    model = fit_model(observations, before, caution=caution, at_checkpoints=True)
    return Survey(
        space,
        model,
        region,
        encoded_cover,
        model.means(encoded_cover),
        points[rows],
        points,
        frozenset(trial.number for trial in done),
        as_selected,
    )


def with_pending(fitted: Survey, trials: Sequence[FrozenTrial]) -> Survey:
    """Add the places that will bring nothing new, as the trials say at this moment.

    The latest that are under way count as observations that met their means, and the latest that
    failed make it less likely that their neighbours give a result; all of them count as tried.
    """
    space = fitted.space
    under_way, failed = nothing_new(trials, space.is_whole, fitted.known)
    failed += [t.params for t in ended_before(trials) if not space.is_whole(t.params)]
    if not under_way and not failed:
        return fitted
    configs = [*under_way, *failed]
    # What failed without asking for parameters of its neighbours counts with the middle of each.
    points = np.array([space.point(config) for config in configs])
    points = space.masked(np.nan_to_num(points, nan=0.5))
    x, n = space.encode(points), len(under_way)
    observations = replace(
        fitted.model.observations,
        pending=x[:n][-MOST_OBSERVATIONS:],
        failed=x[n:][-MOST_OBSERVATIONS:] if failed else None,
    )
    return replace(
        fitted,
        model=replace(fitted.model, observations=observations),
        tried=np.vstack([fitted.tried, points]),
    )


def _rows(
    problem: Problem,
    done: Sequence[FrozenTrial],
    x: FloatArray,
    cover: FloatArray,
    region_of: Region,
    most: int,
) -> IntArray:
    """Choose the trials that surrogates are fitted to: all of them, or those that tell most."""
    rows = np.arange(len(done))
    if len(done) <= most:
        return rows
    # Sample sizes and spread of losses make the region, and evenly picked trials show both.
    some = _whole(done[:: math.ceil(len(done) / most)])
    region = region_of(validation_of(problem, some), n_calibration_of(some, None))
    values = np.array([_values(trial) for trial in done])  # validation risks and free objective
    return representative_rows(x, values, region, cover, most)


def _foretold_variances(notes: Sequence[Foretold | None], like: FloatArray) -> FloatArray:
    """Return by how much what is foretold may err, squared, 0 where nothing is, (n, c + 1)."""
    variances = np.zeros_like(like)
    for row, note in enumerate(notes):
        if note is not None:
            variances[row] = np.square(note.errors)
    return variances


def _evaluated(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials that a search learns from, whole evaluations first."""
    found = list(filter(was_evaluated, trials))
    return sorted(found, key=was_stopped)


def _whole(done: Sequence[FrozenTrial]) -> list[Record]:
    """Read the records of those trials that are whole, and not of those that a race stopped."""
    records = [record_of(trial) for trial in done if not was_stopped(trial)]
    return [record for record in records if record is not None]


def _values(trial: FrozenTrial) -> Sequence[float]:
    """Return the validation risks and the free objective of a trial."""
    return stopped_of(trial).values if was_stopped(trial) else trial.values


def _points(
    trials: Sequence[FrozenTrial], search_space: Mapping[str, BaseDistribution]
) -> FloatArray:
    """Compute the unit coordinates of trials, NaN for parameters that one has not, (n, d)."""
    # A list for every trial would be garbage that Python collects between proposals, which takes
    # long where there are many trials.
    numbers = (
        place.get(name, math.nan) for place in map(_coordinates, trials) for name in search_space
    )
    n, d = len(trials), len(search_space)
    return np.fromiter(numbers, dtype=np.float64, count=n * d).reshape(n, d)


def _unit_coordinates(trial: FrozenTrial) -> dict[str, float]:
    """Compute where a trial stands in [0, 1] along each of its parameters."""
    return {name: to_unit(trial.distributions[name], at) for name, at in trial.params.items()}


_coordinates = Remembered(_unit_coordinates)
