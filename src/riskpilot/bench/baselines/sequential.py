"""Samplers that draw an initial pool at random and then propose from what the trials showed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.search_space import intersection_search_space
from optuna.trial import FrozenTrial
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from riskpilot.bench.baselines.pool import generator, settled, slot_of
from riskpilot.common import one_thread
from riskpilot.common.arrays import FloatArray
from riskpilot.problem import Problem
from riskpilot.search import uniform, values_and_variances
from riskpilot.study import (
    Space,
    finished_among,
    from_unit,
    problem_of,
    split_trials,
    validation_of,
)


@dataclass(frozen=True)
class History:
    """What a proposal may know: finished trials on validation data, and those still running.

    ``configs``: n of them; ``values``, ``variances``: shape (n, c + 1), the risks and then the free
    objective; variances are NaN where the noise is not known. Failed trials are not among them.
    """

    problem: Problem
    space: Space
    configs: list[dict[str, Any]]
    values: FloatArray
    variances: FloatArray
    pending: list[dict[str, Any]]

    def points(self) -> FloatArray:
        """Return the unit coordinates of the finished trials, shape (n, d)."""
        return _points(self.space, self.configs)

    def pending_points(self) -> FloatArray:
        """Return the unit coordinates of the trials still running, shape (p, d)."""
        return _points(self.space, self.pending)


class SequentialSampler(BaseSampler, ABC):
    """A uniformly random pool of ``n_startup_trials``, then one proposal per trial.

    Proposals depend on the seed, the trial's number and the trials so far alone: nothing is kept
    between trials, and an interrupted search goes on as if it had not been.
    """

    def __init__(self, *, n_startup_trials: int, seed: int | None) -> None:
        self._n_startup_trials = n_startup_trials
        self._seed = settled(seed)

    @abstractmethod
    def propose(self, history: History, seed: int) -> dict[str, Any]:
        """Return the next configuration; ``seed`` is all the randomness there is."""

    def reseed_rng(self) -> None:
        """Do nothing: every draw depends on the trial's number, so workers never repeat one."""

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        trials = study.get_trials(deepcopy=False)
        if trial.number < self._n_startup_trials or len(finished_among(trials).trials) < 2:
            return {}
        return intersection_search_space(trials)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        done, pending = split_trials(study, trial.number, search_space)
        if len(done.trials) < 2:
            return {}
        problem = problem_of(study)
        values, variances = values_and_variances(validation_of(problem, done.records))
        history = History(
            problem,
            Space(search_space),
            [_of_space(t.params, search_space) for t in done.trials],
            values,
            variances,
            [_of_space(params, search_space) for params in pending],
        )
        seed = int(generator(self._seed, "proposal", trial.number).integers(2**31))
        with one_thread(ThreadpoolController()):
            return self.propose(history, seed)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        slot = slot_of(study, trial)
        place = uniform(slot, slot + 1, generator(self._seed, param_name))
        return from_unit(param_distribution, place)


def _points(space: Space, configs: list[dict[str, Any]]) -> FloatArray:
    """Compute the unit coordinates of configurations, shape (n, d)."""
    rows = [space.point(config) for config in configs]
    return np.array(rows).reshape(-1, len(space.distributions))


def _of_space(params: Mapping[str, Any], space: dict[str, BaseDistribution]) -> dict[str, Any]:
    """Return the parameters that belong to the search space."""
    return {name: params[name] for name in space}
