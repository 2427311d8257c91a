"""What the trials of a study show to the search: surrogates, region of interest, places tried."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from riskpilot.common.arrays import FloatArray, IntArray
from riskpilot.guarantee import Interval
from riskpilot.losses import ValidationLosses
from riskpilot.problem import Problem
from riskpilot.search import (
    MOST_OBSERVATIONS,
    Model,
    Observations,
    fit_model,
    representative_rows,
    values_and_variances,
)
from riskpilot.study.kept.records import Record, record_of, validation_of
from riskpilot.study.kept.remembered import Remembered
from riskpilot.study.kept.stopped import stopped_of, was_stopped
from riskpilot.study.kept.trials import n_calibration_of, nothing_new, was_evaluated
from riskpilot.study.space import Space, to_unit

Region = Callable[[ValidationLosses, int | None], list[Interval]]
"""The region of interest, from validation losses and the number of calibration examples."""


@dataclass(frozen=True)
class Survey:
    """All that a proposal needs.

    ``tried``: the points that were evaluated, or will bring nothing new, shape (n, d); ``known``:
    the numbers of the trials whose results were there when the model was fitted.
    """

    space: Space
    model: Model
    region: list[Interval]
    tried: FloatArray
    known: frozenset[int]


def branched_space(
    trials: Iterable[FrozenTrial], search_space: Mapping[str, BaseDistribution]
) -> Space:
    """Return a space that knows which parameters are active where, as finished trials show it."""
    return Space(search_space).learned_from(_points(_evaluated(trials), search_space))


def survey(
    trials: Sequence[FrozenTrial],
    problem: Problem,
    space: Space,
    cover: FloatArray,
    region_of: Region,
    most: int = MOST_OBSERVATIONS,
) -> Survey:
    """Fit surrogates to what finished trials show, and compute the region of interest.

    ``cover``: points that cover the space, (n, d). Of more than ``most`` trials, those that tell
    most are fitted. Trials that are not finished are left to `with_pending`.
    """
    done = _evaluated(trials)
    points = _points(done, space.distributions)
    x = space.encode(points)
    rows = _rows(problem, done, x, space.encode(cover), region_of, most)
    chosen = [done[row] for row in rows]
    validation = validation_of(problem, [_record(trial) for trial in chosen])
    nothing_yet = np.empty((0, x.shape[1]))
    observations = Observations(x[rows], *values_and_variances(validation), nothing_yet)
    return Survey(
        space,
        fit_model(observations),
        _region(problem, chosen, region_of),
        points,
        frozenset(trial.number for trial in done),
    )


def with_pending(fitted: Survey, trials: Sequence[FrozenTrial]) -> Survey:
    """Add the places that will bring nothing new, as the trials say at this moment.

    The latest of them count as observations that met their means; all of them count as tried.
    """
    space = fitted.space
    configs = nothing_new(trials, space.is_whole, fitted.known)
    if not configs:
        return fitted
    points = space.masked(np.array([space.point(config) for config in configs]))
    pending = space.encode(points[-MOST_OBSERVATIONS:])
    observations = replace(fitted.model.observations, pending=pending)
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
    region = _region(problem, done[:: math.ceil(len(done) / most)], region_of)
    values = np.array([_values(trial) for trial in done])  # validation risks and free objective
    return representative_rows(x, values, region, cover, most)


def _evaluated(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials that a search learns from, whole evaluations first."""
    found = list(filter(was_evaluated, trials))
    return sorted(found, key=was_stopped)


def _region(problem: Problem, done: Sequence[FrozenTrial], region_of: Region) -> list[Interval]:
    """Compute the region of interest from whole evaluations, which show how large samples are."""
    whole = [_record(trial) for trial in done if not was_stopped(trial)]
    return region_of(validation_of(problem, whole), n_calibration_of(whole, None))


def _record(trial: FrozenTrial) -> Record:
    """Read what a trial showed, on all validation examples or on the first of them."""
    record = stopped_of(trial).record if was_stopped(trial) else record_of(trial)
    assert record is not None
    return record


def _values(trial: FrozenTrial) -> Sequence[float]:
    """Return the validation risks and the free objective of a trial."""
    return stopped_of(trial).values if was_stopped(trial) else trial.values


def _points(
    trials: Sequence[FrozenTrial], search_space: Mapping[str, BaseDistribution]
) -> FloatArray:
    """Compute the unit coordinates of trials, NaN for parameters that one has not, (n, d)."""
    places = [_coordinates(trial) for trial in trials]
    rows = [[place.get(name, math.nan) for name in search_space] for place in places]
    return np.array(rows).reshape(len(rows), len(search_space))


def _unit_coordinates(trial: FrozenTrial) -> dict[str, float]:
    """Compute where a trial stands in [0, 1] along each of its parameters."""
    return {name: to_unit(trial.distributions[name], at) for name, at in trial.params.items()}


_coordinates = Remembered(_unit_coordinates)
