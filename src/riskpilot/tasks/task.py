"""What an experiment is to everything that replays it: a space, and the losses of any point in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution
from optuna.trial import BaseTrial

from riskpilot.problem import Problem

Config = dict[str, Any]
Split = Literal["validation", "held_out"]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
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
    and the example does not count."""
    free: Callable[[Split, Config, IntArray | None], float]
    """The free objective on the given rows of a split (all rows where None)."""
    grid: Sequence[Config] | None = None
    """Every configuration of the dense grid, or None where the space is too large for one."""
    safe: Config | None = None
    """A configuration known beforehand to keep risks low, where the experiment has one."""

    def suggest(self, trial: BaseTrial) -> Config:
        """The configuration that an Optuna trial proposes."""
        return {name: trial._suggest(name, dist) for name, dist in self.space.items()}  # type: ignore[attr-defined]
