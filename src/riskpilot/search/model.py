"""What evaluations showed, and one surrogate per objective that was fitted to it.

Objectives are columns: the c risks in the problem's order, then the free objective.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.losses import ValidationLosses
from riskpilot.search import surrogate
from riskpilot.search.believed import Believed, fit_believing
from riskpilot.search.penalties import cut_at
from riskpilot.search.surrogate import Surrogate

# A surrogate rests on at most so many observations: one proposal then takes a fraction of a second,
# however large the study is.
MOST_OBSERVATIONS = 400
# Fewer evaluations than this say nothing about how smooth objectives are.
ENOUGH_TO_SMOOTH = 4


@dataclass(frozen=True)
class Observations:
    """What the finished evaluations showed on validation data, and where others still run.

    ``x``: (n, d) in the unit cube; ``values``: (n, c + 1); ``variances``: those of the noise that
    values do not have in common, (n, c + 1), NaN columns where it is not known; ``pending``:
    (p, d); ``has_safe``: whether one of the evaluations was known to be safe beforehand;
    ``failed``: where evaluations gave no result, (f, d); ``failed_before`` and ``gave_before``:
    where those of an earlier study gave none, and one, (f', d) and (g, d); ``penalised``: which of
    the values of the free objective stand for penalties, (n,). They count as what is known of these
    evaluations, and say nothing of others.
    """

    x: FloatArray
    values: FloatArray
    variances: FloatArray
    pending: FloatArray
    has_safe: bool = False
    failed: FloatArray | None = None
    failed_before: FloatArray | None = None
    gave_before: FloatArray | None = None
    penalised: BoolArray | None = None


def values_and_variances(validation: ValidationLosses) -> tuple[FloatArray, FloatArray]:
    """Read objectives and the variances of their noise from validation losses, (n, c + 1) each.

    Variances are NaN where the noise is not known.
    """
    error = validation.free_error
    free = np.full(len(validation.free), np.nan) if error is None else error
    return validation.objectives, np.column_stack([validation.standard_errors, free]) ** 2


@dataclass(frozen=True)
class Model:
    """One surrogate per objective, fitted to the observations."""

    observations: Observations
    surrogates: tuple[Surrogate | Believed, ...]

    @cached_property
    def evaluated(self) -> FloatArray:
        """The posterior means at evaluations, finished and then under way, shape (n + p, c + 1).

        Free objectives that are penalties are as they were observed.
        """
        known = self.observations
        means = self.means(np.vstack([known.x, known.pending]))
        if known.penalised is not None:
            rows = np.flatnonzero(known.penalised)
            means[rows, -1] = known.values[rows, -1]
        return means

    @property
    def earlier_places(self) -> FloatArray:
        """Where an earlier study evaluated, shape (m, d); empty where there is none."""
        first = self.surrogates[0]
        return first.earlier.x if isinstance(first, Believed) else self.observations.x[:0]

    def means(self, x: FloatArray) -> FloatArray:
        """Compute the posterior means at ``x``, shape (n, d); returns shape (n, c + 1)."""
        return np.column_stack([s.mean(x) for s in self.surrogates])

    def means_and_stds(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute posterior means and standard deviations at ``x``, shape (n, c + 1) each."""
        pairs = [s.mean_and_std(x) for s in self.surrogates]
        return np.column_stack([m for m, _ in pairs]), np.column_stack([s for _, s in pairs])


def fit_model(
    observations: Observations,
    earlier: Sequence[Surrogate] | None = None,
    *,
    misfit: bool = False,
    caution: float = 0.0,
    at_checkpoints: bool = False,
) -> Model:
    """Fit a surrogate to every objective, with the noise of its observations where it is known.

    ``earlier``: those of an earlier study, which are believed as far as they prove right;
    ``misfit``: see `surrogate.fit`, for surrogates without an earlier one; ``caution``: see
    there, for risks. The free objective has none. ``at_checkpoints``: see there.

    Time grows with the cube of the number of observations and memory with its square; where there
    are more than `MOST_OBSERVATIONS`, `representative_rows` says which of them to take.
    """
    columns = list(_columns(observations))
    cautions = [caution] * (len(columns) - 1) + [0.0]
    if earlier is None:
        fitted = (
            surrogate.fit(*column, misfit=misfit, caution=each, at_checkpoints=at_checkpoints)
            for column, each in zip(columns, cautions, strict=True)
        )
        return Model(observations, tuple(fitted))
    believed = (
        fit_believing(*column, before, caution=each, at_checkpoints=at_checkpoints)
        for column, before, each in zip(columns, earlier, cautions, strict=True)
    )
    return Model(observations, tuple(believed))


def with_free_up_to(model: Model, line: float, *, at_checkpoints: bool = False) -> Model:
    """Fit the surrogate of the free objective again, to values that are cut off at a line.

    The surrogates of the risks stay as they are. ``at_checkpoints``: see `surrogate.fit`.
    """
    values = cut_at(model.observations.values, line)
    observations = replace(model.observations, values=values)
    column = list(_columns(observations))[-1]
    *risks, last = model.surrogates
    fitted: Surrogate | Believed
    if isinstance(last, Believed):
        fitted = fit_believing(*column, last.earlier, at_checkpoints=at_checkpoints)
    else:
        fitted = surrogate.fit(*column, at_checkpoints=at_checkpoints)
    return Model(observations, (*risks, fitted))


def even_draws(n: int, columns: int) -> FloatArray:
    """Return standard normal numbers that are spread evenly and even about 0, shape (n, columns).

    They are always the same: multiples of irrational numbers modulo 1 fill the unit cube evenly,
    and are turned into normal ones.
    """
    ratio = 1.5  # the root of ratio^(columns + 1) = ratio + 1, which spreads them best
    for _ in range(32):
        ratio = (1 + ratio) ** (1 / (columns + 1))
    steps = ratio ** -np.arange(1.0, columns + 1)
    half: FloatArray = ndtri((0.5 + np.outer(np.arange(1, n // 2 + 1), steps)) % 1)
    return np.vstack([half, -half])


def smoothed_values(observations: Observations, most: int = MOST_OBSERVATIONS) -> FloatArray:
    """Estimate every objective at every observation from it and its neighbours, (n, c + 1).

    Up to ``most`` observations these are the means of `fit_model`. None of them is a penalty.
    """
    columns = [surrogate.smoothed(*column, most) for column in _columns(observations)]
    return np.column_stack(columns)


def cautious_values(observations: Observations, most: int = MOST_OBSERVATIONS) -> FloatArray:
    """Take the larger of what each observation says itself and with its neighbours, (n, c + 1).

    The smallest of many noisy means is small by luck, too, and the surrogate's posterior mean at
    the same place says so; where the surrogate does not fit, the mean does.
    """
    return np.maximum(observations.values, smoothed_values(observations, most))


def _columns(
    observations: Observations,
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray | None]]:
    """Yield, for each objective, where it was observed, its values and their noise.

    The noise is None where it is not known. Penalties are no values of the free objective.
    """
    x, last = observations.x, observations.values.shape[1] - 1
    for i, (values, variances) in enumerate(
        zip(observations.values.T, observations.variances.T, strict=True)
    ):
        noise = None if np.isnan(variances).any() else variances
        if i == last and observations.penalised is not None:
            told = ~observations.penalised
            yield x[told], values[told], None if noise is None else noise[told]
        else:
            yield x, values, noise
