"""ParEGO by SMAC3 (``pip install riskpilot[baselines]``)."""

import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ConfigSpace import (
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from smac import BlackBoxFacade, Scenario
from smac.multi_objective.parego import ParEGO
from smac.runhistory import TrialInfo, TrialValue

from riskpilot.bench.baselines.sequential import History, SequentialSampler
from riskpilot.study import from_unit, n_values, to_unit


class ParEGOSampler(SequentialSampler):
    """Scalarises the objectives by weights drawn anew for each proposal, and maximises the expected
    improvement of a Gaussian process (SMAC's black-box facade).

    SMAC is started for each proposal and learns of every finished trial, so that nothing has to be
    kept. It does not know of trials under way.
    """

    def __init__(self, *, n_startup_trials: int = 5, seed: int | None = None) -> None:
        super().__init__(n_startup_trials=n_startup_trials, seed=seed)

    def propose(self, history: History, seed: int) -> dict[str, Any]:
        distributions = history.space.distributions
        space = ConfigurationSpace(seed=seed)
        space.add([_hyperparameter(name, dist) for name, dist in distributions.items()])
        known = [Configuration(space, _to_smac(distributions, c)) for c in history.configs]
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            # SMAC asks ConfigSpace in a way that ConfigSpace would rather not be asked.
            warnings.filterwarnings("ignore", "Please use `dict\\(config\\)`", DeprecationWarning)
            scenario = Scenario(
                space,
                objectives=[*history.problem.names, history.problem.minimize],
                deterministic=True,
                n_trials=len(known) + 1,
                seed=seed,
                output_directory=Path(folder),
            )
            smac = BlackBoxFacade(
                scenario,
                _never_called,
                initial_design=BlackBoxFacade.get_initial_design(
                    scenario, n_configs=0, additional_configs=known
                ),
                config_selector=BlackBoxFacade.get_config_selector(scenario, retrain_after=1),
                multi_objective_algorithm=ParEGO(scenario),
                logging_level=False,
            )
            for config, values in zip(known, history.values, strict=True):
                value = TrialValue(cost=[float(v) for v in values])
                smac.tell(TrialInfo(config, seed=0), value, save=False)
            asked = dict(smac.ask().config)
        return {name: _from_smac(dist, asked[name]) for name, dist in distributions.items()}


def _never_called(config: Configuration, seed: int = 0) -> float:
    raise NotImplementedError("SMAC proposes here and evaluates nothing.")


def _hyperparameter(name: str, distribution: BaseDistribution) -> Any:
    """Describe a parameter to SMAC: choices by index, integers as such, others by their place."""
    if n_values(distribution) == 1 or isinstance(distribution, CategoricalDistribution):
        return CategoricalHyperparameter(name, list(range(int(n_values(distribution)))))
    if _is_plain_integer(distribution):
        assert isinstance(distribution, IntDistribution)
        return UniformIntegerHyperparameter(
            name, distribution.low, distribution.high, log=distribution.log
        )
    return UniformFloatHyperparameter(name, 0.0, 1.0)


def _is_plain_integer(distribution: BaseDistribution) -> bool:
    return isinstance(distribution, IntDistribution) and distribution.step == 1


def _to_smac(
    distributions: Mapping[str, BaseDistribution], config: Mapping[str, Any]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, distribution in distributions.items():
        value = config[name]
        if isinstance(distribution, CategoricalDistribution):
            values[name] = int(distribution.to_internal_repr(value))
        elif n_values(distribution) == 1:
            values[name] = 0
        elif _is_plain_integer(distribution):
            values[name] = int(value)
        else:
            values[name] = to_unit(distribution, value)
    return values


def _from_smac(distribution: BaseDistribution, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(value)]
    if n_values(distribution) == 1:
        return from_unit(distribution, 0.5)
    if _is_plain_integer(distribution):
        return int(value)
    return from_unit(distribution, float(value))
