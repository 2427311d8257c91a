"""Studies: ordinary Optuna studies that carry a problem, and limits that are set late."""

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from riskpilot.addresses import hide_password
from riskpilot.artifacts import attach_store, chosen_store
from riskpilot.errors import StudyError
from riskpilot.objectives import objective
from riskpilot.p_values import largest_passing_mean
from riskpilot.plan import check_seed
from riskpilot.problem import Problem
from riskpilot.sampler import sampler_for
from riskpilot.statistics import family, steering_family
from riskpilot.storages import address_of, clear_errors, open_storage
from riskpilot.store import (
    LEDGER_KEY,
    PROBLEM_KEY,
    SETTINGS_KEY,
    problem_of,
    record_of,
    validation_of,
)

__all__ = [
    "LimitSuggestion",
    "create_study",
    "load_study",
    "objective",
    "set_limits",
    "suggest_limits",
]

logging.getLogger("riskpilot").addHandler(logging.NullHandler())  # quiet until somebody listens


def create_study(
    problem: Problem,
    *,
    storage: str | Path | BaseStorage | None = None,
    study_name: str | None = None,
    sampler: BaseSampler | None = None,
    seed: int | None = None,
    safe: Mapping[str, Any] | None = None,
    n_calibration: int | None = None,
    artifact_store: Any = None,
    load_if_exists: bool = False,
) -> optuna.Study:
    """An Optuna study for ``problem``, with `GuidedSampler` unless another ``sampler`` is given.

    ``safe``: a configuration known to keep the risks low; it is evaluated first, and makes a run
    that certifies nothing rare. ``n_calibration``: how many calibration examples there will be,
    where evaluations do not bring their losses along. ``storage``: an address such as
    ``sqlite:///study.db`` or ``postgresql+psycopg://...``, a SQLite or journal file, or an Optuna
    storage. ``artifact_store``: the folder or the Optuna artifact store where losses go; by default
    a folder beside the file of a SQLite or journal storage, memory without a storage.
    ``load_if_exists``: go on with the study of this name, where there is one.

    >>> from riskpilot import Problem, Risk
    >>> study = create_study(Problem([Risk("error", 0.2)], minimize="cost"), seed=0)
    >>> len(study.directions)
    2
    """
    if not isinstance(problem, Problem):
        raise StudyError(
            f"create_study takes a Problem, but got a {type(problem).__name__}. "
            f'Write create_study(Problem([Risk("error", limit=0.1)], minimize="cost")).'
        )
    if safe is not None and not isinstance(safe, Mapping):
        raise StudyError(
            f"safe is a configuration, a mapping of parameters to values, but it is {safe!r}. "
            f'Write safe={{"threshold": 0.5}}.'
        )
    seed = int(np.random.default_rng().integers(2**31)) if seed is None else check_seed(seed)
    with clear_errors(storage):
        opened = _opened(storage)
        store = chosen_store(opened, artifact_store)
        if store is None:
            raise StudyError(
                "Losses need a place of their own beside this storage, and none was given. Name a "
                'folder that every worker sees, create_study(..., artifact_store="losses"), or an '
                "Optuna artifact store."
            )
        study = optuna.create_study(
            storage=opened,
            study_name=study_name,
            directions=["minimize"] * (len(problem.risks) + 1),
            load_if_exists=load_if_exists,
        )
    attach_store(study, store)
    if PROBLEM_KEY in study.user_attrs:
        return _continued(study, problem, sampler)
    study.set_user_attr(PROBLEM_KEY, problem.to_dict())
    study.set_user_attr(SETTINGS_KEY, {"seed": seed, "n_calibration": n_calibration})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names([*problem.names, problem.minimize])
    study.sampler = sampler or sampler_for(study, problem, seed)
    if safe is not None:
        study.enqueue_trial(dict(safe), user_attrs={"riskpilot:safe": True})
    return study


def load_study(
    *,
    storage: str | Path | BaseStorage,
    study_name: str | None = None,
    sampler: BaseSampler | None = None,
    artifact_store: Any = None,
) -> optuna.Study:
    """A study made by `create_study`, ready to go on or to select from."""
    with clear_errors(storage):
        opened = _opened(storage)
        assert opened is not None
        try:
            study = optuna.load_study(study_name=study_name, storage=opened)
        except KeyError as error:
            address = address_of(storage)
            shown = type(storage).__name__ if address is None else hide_password(address)
            raise StudyError(
                f"There is no study {study_name!r} in the storage {shown!r}. "
                f"Make it with riskpilot.create_study(problem, storage=..., study_name=...)."
            ) from error
    attach_store(study, chosen_store(opened, artifact_store))
    return _continued(study, problem_of(study), sampler)


def _opened(storage: str | Path | BaseStorage | None) -> str | BaseStorage | None:
    return open_storage(storage) if isinstance(storage, str | Path) else storage


def _continued(study: optuna.Study, problem: Problem, sampler: BaseSampler | None) -> optuna.Study:
    stored = problem_of(study)
    if stored != problem:
        raise StudyError(
            f"The study {study.study_name!r} exists and has another problem: {stored} "
            f"Use another study_name, or set limits with riskpilot.set_limits(study, ...)."
        )
    seed = study.user_attrs[SETTINGS_KEY]["seed"]
    study.sampler = sampler or sampler_for(study, problem, seed)
    return study


@dataclass(frozen=True)
class LimitSuggestion:
    """What the evaluations so far say about a limit for one risk, from validation alone.

    ``lowest``, ``highest``: the range of the risk over the pool; ``smallest_limit``: the smallest
    limit that the safest of them is expected to pass.
    """

    name: str
    lowest: float
    highest: float
    smallest_limit: float

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.lowest:.4g} to {self.highest:.4g} on validation; "
            f"limits from {self.smallest_limit:.4g} can be certified"
        )


def suggest_limits(study: optuna.Study) -> dict[str, LimitSuggestion]:
    """For each risk, its range over the finished trials and the smallest limit worth setting.

    The paper's advice: choose limits inside the range that the initial pool shows. Looks at
    validation alone, so that the limits can still be chosen freely.
    """
    problem = problem_of(study)
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    records = [record for trial in trials if (record := record_of(trial)) is not None]
    if not records:
        raise StudyError(
            "suggest_limits reads finished evaluations, and there is none yet. Run the initial "
            "pool first: study.optimize(objective, n_trials=5)."
        )
    last = records[-1]
    settings = study.user_attrs.get(SETTINGS_KEY, {})
    m = last.n_calibration or settings.get("n_calibration") or last.n_validation
    validation = validation_of(problem, records)
    result = {}
    for risk in problem.risks:
        summary = validation.risks[risk.name].summary
        safest = int(np.argmin(summary.mean))
        smallest = _smallest_limit(
            steering_family(risk, family(risk, summary.binary)),
            float(summary.mean[safest]),
            max(round(m * summary.n[safest] / validation.n_examples), 1),
            problem.delta,
            float(summary.standard_deviation[safest]),
        )
        result[risk.name] = LimitSuggestion(
            risk.name,
            risk.from_unit(float(summary.mean.min())),
            risk.from_unit(float(summary.mean.max())),
            risk.from_unit(smallest),
        )
    return result


def set_limits(study: optuna.Study, **limits: float) -> Problem:
    """Set limits that were left open; not after a selection has opened the calibration data."""
    problem = problem_of(study)
    if study.user_attrs.get(LEDGER_KEY):
        raise StudyError(
            "The limits of this study cannot change any more: a selection has opened the "
            "calibration data. Ask with other limits through select(study, problem=...), which "
            "records that as another use of the data."
        )
    changed = problem.with_limits(**limits)
    study.set_user_attr(PROBLEM_KEY, changed.to_dict())
    return changed


def _smallest_limit(test: str, mean: float, n: int, delta: float, std: float) -> float:
    """The smallest limit (unit scale) whose alpha_max reaches ``mean``, by bisection."""
    low, high = mean, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        passing = largest_passing_mean(test, middle, n, delta, std)
        if passing is not None and passing >= mean:
            high = middle
        else:
            low = middle
    return high
