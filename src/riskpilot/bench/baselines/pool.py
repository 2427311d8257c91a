"""Samplers that look at no result: each parameter is settled by the trial's place in a pool."""

import zlib
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from riskpilot.study import from_unit


def slot_of(study: optuna.Study, trial: FrozenTrial) -> int:
    """The trial's place among those that were not enqueued with given values."""
    trials = study.get_trials(deepcopy=False)
    return sum(t.number < trial.number and "fixed_params" not in t.system_attrs for t in trials)


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), *numbers])


def settled(seed: int | None) -> int:
    """The seed, drawn where none is given."""
    return int(np.random.default_rng().integers(2**31)) if seed is None else seed


class PoolSampler(BaseSampler, ABC):
    """Places depend on the seed, the parameter and the trial's slot alone, so that workers and an
    interrupted search need not know of each other."""

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        place = self.place(slot_of(study, trial), param_name, param_distribution)
        return from_unit(param_distribution, place)

    @abstractmethod
    def place(self, slot: int, name: str, distribution: BaseDistribution) -> float:
        """Where the parameter stands in [0, 1] in the given slot."""
