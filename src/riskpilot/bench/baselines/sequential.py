"""Samplers that draw an initial pool at random and then propose from what the trials showed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.search_space import intersection_search_space
from optuna.trial import FrozenTrial, TrialState
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from riskpilot.bench.baselines.pool import generator, settled, slot_of
from riskpilot.common import one_thread
from riskpilot.problem import Problem
from riskpilot.study import (
    Space,
    from_unit,
    objectives,
    problem_of,
    record_of,
    split_trials,
    uniform,
    validation_of,
)

FloatArray = npt.NDArray[np.float64]


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
        """Unit coordinates of the finished trials, shape (n, d)."""
        return _points(self.space, self.configs)

    def pending_points(self) -> FloatArray:
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
        """The next configuration; ``seed`` is all the randomness there is."""

    def reseed_rng(self) -> None:
        """Nothing to do: every draw depends on the trial's number, so workers never repeat one."""

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        trials = study.get_trials(deepcopy=False)
        finished = [t for t in trials if t.state == TrialState.COMPLETE and record_of(t)]
        if trial.number < self._n_startup_trials or len(finished) < 2:
            return {}
        return intersection_search_space(trials)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        done, records, running = split_trials(study, trial.number, search_space)
        if len(done) < 2:
            return {}
        problem = problem_of(study)
        values, variances = objectives(validation_of(problem, records))
        history = History(
            problem,
            Space(search_space),
            [_of_space(t.params, search_space) for t in done],
            values,
            variances,
            [_of_space(params, search_space) for params in running],
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
    rows = [space.point(config) for config in configs]
    return np.array(rows).reshape(-1, len(space.distributions))


def _of_space(params: Mapping[str, Any], space: dict[str, BaseDistribution]) -> dict[str, Any]:
    return {name: params[name] for name in space}
