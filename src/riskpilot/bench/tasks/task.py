"""What an experiment is to everything that replays it: a space, and the losses of its points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import BaseTrial

from riskpilot.common.arrays import FloatArray, Places
from riskpilot.errors import TableError, type_in_words
from riskpilot.losses import Evaluation, value_of
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import Mean

Config = dict[str, Any]
Split = Literal["validation", "held_out"]
SPLITS: tuple[Split, ...] = ("validation", "held_out")
Losses = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Task:
    """One experiment whose losses are known at every point of ``space``.

    ``problem`` has open limits; ``cells`` lists the limits at which the experiment is run, one
    number per risk and cell. ``held_out`` examples are split into calibration and test by whoever
    replays the task; ``size`` gives the number of examples of each split.
    """

    name: str
    problem: Problem
    cells: Sequence[tuple[float, ...]]
    space: Mapping[str, BaseDistribution]
    n_trials: int  # the paper's N
    n_startup_trials: int  # the paper's N_0
    size: Mapping[Split, int]
    losses: Callable[[Split, Config], Losses]
    """Per-example losses of each risk, shape (size[split],) each; NaN where a risk is conditional
    and the example does not count; beside them what risks need there, such as groups. A continuous
    configuration goes to the nearest grid point."""
    free: Callable[[Split, Config, Places | None], float]
    """The free objective on the given rows of a split (all rows where None)."""
    grid: Sequence[Config] | None = None
    """Every configuration of the dense grid, or None where the space is too large for one."""
    safe: Config | None = None
    """A configuration known beforehand to keep risks low, where the experiment has one."""
    population: Callable[[Config], dict[str, float]] | None = None
    """The true risks and free objective, or None where only samples are known."""

    def suggest(self, trial: BaseTrial) -> Config:
        """Return the configuration that an Optuna trial proposes."""
        return {name: _suggest(trial, name, dist) for name, dist in self.space.items()}

    def evaluate(self, trial: BaseTrial, calibration: Places | None = None) -> Evaluation:
        """Replay the evaluation of a trial: the function that a study's objective calls.

        ``calibration`` picks the held-out rows that serve as calibration (all where None), so that
        the others can serve as test.
        """
        config = self.suggest(trial)
        rows = np.arange(self.size["held_out"]) if calibration is None else calibration
        free = self.problem.minimize
        held_out = self.losses("held_out", config)
        return Evaluation(
            validation={
                **self.losses("validation", config),
                free: self.free("validation", config, None),
            },
            calibration={
                **{name: losses[rows] for name, losses in held_out.items()},
                free: self.free("held_out", config, rows),
            },
        )

    def grid_means(self, split: Split, rows: Places | None = None) -> dict[str, FloatArray]:
        """Compute each risk and the free objective at every point of the grid, (len(grid),) each.

        The mean of a conditional risk is over the examples that count, NaN where there is none.
        """
        if self.grid is None:
            raise TableError(
                f"Means over a grid need a task with a grid, but {self.name!r} has none: its space "
                f"has {len(self.space)} dimensions. Evaluate single configurations instead."
            )
        names = (*self.problem.names, self.problem.minimize)
        means = {name: np.empty(len(self.grid)) for name in names}
        for index, config in enumerate(self.grid):
            losses = self.losses(split, config)
            for risk in self.problem.risks:
                means[risk.name][index] = _value(risk, losses, rows)
            means[self.problem.minimize][index] = self.free(split, config, rows)
        return means


def task_over_lam(
    name: str,
    problem: Problem,
    cells: Sequence[tuple[float, ...]],
    lam: FloatArray,
    *,
    n_trials: int,
    size: Mapping[Split, int],
    losses: Callable[[Split, Config], Losses],
    free: Callable[[Split, Config, Places | None], float],
    safe: float,
) -> Task:
    """Make a task of models that were trained for values ``lam``, shape (L,), of one weight.

    ``safe``: the value of lam that keeps the risk low. Five evaluations are initial.
    """
    return Task(
        name=name,
        problem=problem,
        cells=cells,
        space={"lam": FloatDistribution(0.0, 1.0)},
        n_trials=n_trials,
        n_startup_trials=5,
        size=size,
        losses=losses,
        free=free,
        grid=[{"lam": float(value)} for value in lam],
        safe={"lam": safe},
    )


def mean_over(values: npt.NDArray[Any], rows: Places | None) -> float:
    """Average values over the given rows, or over all of them."""
    return float(np.mean(values if rows is None else values[rows]))


def nearest(grid: FloatArray, value: float) -> int:
    """Find the index of the value of ``grid``, shape (n,), that is nearest; the first of two.

    >>> nearest(np.linspace(0, 1, 11), 0.52)
    5
    """
    return int(np.argmin(np.abs(grid - value)))


def _value(risk: Risk, losses: Losses, rows: Places | None) -> float:
    """Compute a risk from the losses of one configuration on the given rows."""
    names = (risk.name, *risk.labels, *risk.numbers)
    given = {name: losses[name] if rows is None else losses[name][rows] for name in names}
    if risk.statistic == Mean():
        return _mean(given[risk.name])
    return float(value_of(risk, {**given, risk.name: given[risk.name][None]})[0])


def _mean(losses: npt.NDArray[Any]) -> float:
    """Average the losses that count; NaN where none does."""
    counted = losses[~np.isnan(losses)]
    return float(counted.mean(dtype=np.float64)) if len(counted) else float("nan")


def _suggest(trial: BaseTrial, name: str, distribution: BaseDistribution) -> Any:
    """Ask a trial for the value of a parameter."""
    match distribution:
        case FloatDistribution(low=low, high=high, step=step, log=log):
            return trial.suggest_float(name, low, high, step=step, log=log)
        case IntDistribution(low=low, high=high, step=step, log=log):
            return trial.suggest_int(name, low, high, step=step, log=log)
        case CategoricalDistribution(choices=choices):
            return trial.suggest_categorical(name, choices)
    raise TableError(
        f"A space holds float, integer and categorical distributions, but {name!r} is "
        f"{type_in_words(distribution)}. Describe it by one of the three."
    )
