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
from riskpilot.study.kept.records import Record, validation_of
from riskpilot.study.kept.remembered import Remembered
from riskpilot.study.kept.trials import (
    finished_among,
    finished_with_losses,
    n_calibration_of,
    nothing_new,
)
from riskpilot.study.space import Space, to_unit

Region = Callable[[ValidationLosses, int | None], list[Interval]]
"""The region of interest, from validation losses and the number of calibration examples."""


@dataclass(frozen=True)
class Survey:
    """All that a proposal needs.

    ``tried``: the points that were evaluated, or will bring nothing new, shape (n, d); ``known``:
    the numbers of the trials whose results were there when the model was fitted; ``fitted``: the
    numbers of those that it was fitted to, in the order of its observations.
    """

    space: Space
    model: Model
    region: list[Interval]
    tried: FloatArray
    known: frozenset[int]
    fitted: tuple[int, ...]


def branched_space(
    trials: Iterable[FrozenTrial], search_space: Mapping[str, BaseDistribution]
) -> Space:
    """Return a space that knows which parameters are active where, as finished trials show it."""
    return Space(search_space).learned_from(_points(finished_with_losses(trials), search_space))


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
    done = finished_with_losses(trials)
    points = _points(done, space.distributions)
    x = space.encode(points)
    rows = _rows(problem, done, x, space.encode(cover), region_of, most)
    records = _records(done, rows)
    validation = validation_of(problem, records)
    nothing_yet = np.empty((0, x.shape[1]))
    observations = Observations(x[rows], *values_and_variances(validation), nothing_yet)
    return Survey(
        space,
        fit_model(observations),
        region_of(validation, n_calibration_of(records, None)),
        points,
        frozenset(trial.number for trial in done),
        tuple(done[row].number for row in rows),
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
    some = _records(done, rows[:: math.ceil(len(done) / most)])
    region = region_of(validation_of(problem, some), n_calibration_of(some, None))
    values = np.array([trial.values for trial in done])  # validation risks and free objective
    return representative_rows(x, values, region, cover, most)


def _records(done: Sequence[FrozenTrial], rows: IntArray) -> Sequence[Record]:
    """Read the records of some trials."""
    return finished_among(done[row] for row in rows).records


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
