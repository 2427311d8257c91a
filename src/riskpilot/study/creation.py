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

from riskpilot.errors import StudyError, shown
from riskpilot.guarantee import MOST_EXAMPLES, is_whole
from riskpilot.losses import family, steering_family
from riskpilot.problem import Problem
from riskpilot.statistics import largest_passing_mean
from riskpilot.study.loss_store import attach_store, chosen_store
from riskpilot.study.objectives import objective
from riskpilot.study.records import (
    LEDGER_KEY,
    PROBLEM_KEY,
    SETTINGS_KEY,
    problem_of,
    record_of,
    validation_of,
)
from riskpilot.study.sampler import LARGEST_SEED, sampler_for
from riskpilot.study.storages import address_of, clear_errors, hide_password, open_storage

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

    Parameters
    ----------
    problem : Problem
        What is limited, and what is minimised.
    storage : str, Path or optuna storage, optional
        An address such as ``sqlite:///study.db`` or ``postgresql+psycopg://...``, a SQLite or
        journal file, or an Optuna storage; memory by default.
    study_name : str, optional
        The name of the study in its storage.
    sampler : optuna sampler, optional
        What proposes configurations, instead of a `GuidedSampler`.
    seed : int, optional
        The same seed gives the same search.
    safe : mapping of str to values, optional
        A configuration known to keep the risks low; it is evaluated first, and makes a run that
        certifies nothing rare.
    n_calibration : int, optional
        How many calibration examples there will be, where evaluations do not bring their losses
        along.
    artifact_store : str, Path or optuna artifact store, optional
        Where losses go; by default a folder beside the file of a SQLite or journal storage, memory
        without a storage.
    load_if_exists : bool, default False
        Go on with the study of this name, where there is one.

    Returns
    -------
    optuna.Study
        An ordinary study, which carries the problem.

    Raises
    ------
    StudyError
        If an argument cannot be meant, the storage cannot be opened, or the study that is there
        has another problem.

    Examples
    --------
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
    if safe is not None and not (
        isinstance(safe, Mapping) and all(isinstance(name, str) for name in safe)
    ):
        raise StudyError(
            f"safe is a configuration, a mapping of parameters to values, but it is {shown(safe)}. "
            f'Write safe={{"threshold": 0.5}}.'
        )
    _check_place(storage, study_name, sampler, load_if_exists)
    _check_numbers(seed, n_calibration)
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
    seed = int(np.random.default_rng().integers(2**31)) if seed is None else int(seed)
    n_calibration = None if n_calibration is None else int(n_calibration)
    study.set_user_attr(PROBLEM_KEY, problem.to_dict())
    study.set_user_attr(SETTINGS_KEY, {"seed": seed, "n_calibration": n_calibration})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names([*(risk.title for risk in problem.risks), problem.minimize])
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
    """A study made by `create_study`, ready to go on or to select from.

    Parameters
    ----------
    storage : str, Path or optuna storage
        Where the study is, as `create_study` takes it.
    study_name : str, optional
        Its name, where the storage holds several.
    sampler : optuna sampler, optional
        What proposes configurations, instead of a `GuidedSampler`.
    artifact_store : str, Path or optuna artifact store, optional
        Where its losses are, if not in the folder beside its storage.

    Returns
    -------
    optuna.Study

    Raises
    ------
    StudyError
        If the storage cannot be opened or has no such study.
    """
    _check_place(storage, study_name, sampler)
    if storage is None:
        raise StudyError(
            "load_study needs the storage that the study is in, but it is None. "
            'Write load_study(storage="sqlite:///study.db").'
        )
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


def _check_place(
    storage: object, study_name: object, sampler: object, load_if_exists: object = False
) -> None:
    """Refuse what Optuna would not know where to put."""
    if storage is not None and not isinstance(storage, str | Path | BaseStorage):
        raise StudyError(
            f"storage is an address, a file or an Optuna storage, but it is {shown(storage)}. "
            f'Write storage="sqlite:///study.db", or leave it out to stay in memory.'
        )
    if study_name is not None and not isinstance(study_name, str):
        raise StudyError(
            f"study_name is a text, but it is {shown(study_name)}. "
            f'Write study_name="adult", or leave it out.'
        )
    if sampler is not None and not isinstance(sampler, BaseSampler):
        raise StudyError(
            f"sampler is an Optuna sampler, but it is {shown(sampler)}. "
            f"Leave it out for the GuidedSampler."
        )
    if not isinstance(load_if_exists, bool):
        raise StudyError(
            f"load_if_exists is True or False, but it is {shown(load_if_exists)}. Leave it out to "
            f"make a new study."
        )


def _check_numbers(seed: object, n_calibration: object) -> None:
    """Refuse numbers that no search can use."""
    if seed is not None and not is_whole(seed, 0, LARGEST_SEED):
        raise StudyError(
            f"seed is a whole number from 0 to 2**64 - 1, but it is {shown(seed)}. "
            f"Leave it out for one that is drawn."
        )
    if n_calibration is not None and not is_whole(n_calibration, 1, MOST_EXAMPLES):
        raise StudyError(
            f"n_calibration is the number of calibration examples, a whole number of at least 1 "
            f"and at most 10**12, but it is {shown(n_calibration)}. Leave it out where evaluations "
            f"bring their calibration losses along."
        )


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

    All numbers are in the words of the risk, as `set_limits` takes them: of a precision that must
    be at least something they are precisions.

    Parameters
    ----------
    name : str
        The name of the risk.
    title : str
        The name, and what is limited.
    lowest, highest : float
        The range over the pool.
    tightest_limit : float
        The tightest limit that the safest of them is expected to pass.
    at_least : bool
        Whether limits are lower ones.
    """

    name: str
    title: str
    lowest: float
    highest: float
    tightest_limit: float
    at_least: bool = False

    def __str__(self) -> str:
        way = "up to" if self.at_least else "from"
        return (
            f"{self.title}: {self.lowest:.4g} to {self.highest:.4g} on validation; "
            f"limits {way} {self.tightest_limit:.4g} can be certified"
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
        values = [float(summary.mean.min()), float(summary.mean.max()), smallest]
        low, high, limit = (risk.in_words(risk.from_unit(value)) for value in values)
        title = f"{risk.subject} ({risk.words})" if risk.words else risk.subject
        result[risk.name] = LimitSuggestion(
            risk.name, title, min(low, high), max(low, high), limit, risk.complement
        )
    return result


def set_limits(study: optuna.Study, **limits: float) -> Problem:
    """Set limits that were left open; not after a selection has opened the calibration data.

    Parameters
    ----------
    study : optuna.Study
        A study of `create_study`.
    **limits : float
        The limits by name of the risk, each in the words of the risk: a lower limit where the risk
        is better when larger.

    Returns
    -------
    Problem
        The study's problem with these limits.

    Raises
    ------
    StudyError
        Where a selection has opened the calibration data.
    ProblemError
        Where a limit cannot be meant.
    """
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
