"""Studies made and loaded: ordinary Optuna studies that carry a problem."""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage

from riskpilot.common import is_whole_text, plain_configs, shown_safely, unwarned
from riskpilot.errors import StudyError, shown, type_in_words
from riskpilot.guarantee import MOST_EXAMPLES, is_whole
from riskpilot.problem import Problem
from riskpilot.study.kept.attributes import (
    PROBLEM_KEY,
    SAFE_KEY,
    SETTINGS_KEY,
    attributes_of,
    problem_of,
    settings_of,
    write_problem,
    write_settings,
)
from riskpilot.study.kept.earlier import EARLIER_KEY, write_earlier
from riskpilot.study.kept.loss_store import attach_store, chosen_store
from riskpilot.study.kept.seen_ids import stored_ids
from riskpilot.study.kept.trials import trials_of
from riskpilot.study.sampler import GuidedSampler
from riskpilot.study.sampler_settings import LARGEST_SEED
from riskpilot.study.steering import sampler_for
from riskpilot.study.storages import (
    address_of,
    clear_errors,
    exclusive,
    existing_storage,
    hide_password,
    open_storage,
)
from riskpilot.study.warm_start import read_earlier

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
    warm_start: optuna.Study | None = None,
) -> optuna.Study:
    """Make an Optuna study for a problem, searched by a `GuidedSampler` unless another is given.

    Parameters
    ----------
    problem : Problem
        What is limited, and what is minimised.
    storage : str, Path or optuna storage, optional
        Where trials go: an address such as ``sqlite:///study.db`` or
        ``postgresql+psycopg://...``, a SQLite or journal file, or an Optuna storage. Memory by
        default.
    study_name : str, optional
        The name of the study in its storage. Optuna makes one by default.
    sampler : optuna sampler, optional
        What proposes configurations, instead of a `GuidedSampler`.
    seed : int, optional
        The same seed gives the same search. One is drawn by default.
    safe : mapping of str to values, optional
        A configuration that is known to keep the risks low. It is evaluated first, and with it a
        run seldom certifies nothing. Each value is one that its parameter can take: one of the
        choices, or a number inside the range and on its steps. A text or a truth value is no
        number; 2.0 is the whole number 2. An evaluation names its ranges only when it runs, so that
        a value that does not fit is found then: the first trial fails with a `StudyError`, and the
        study stays usable. A value outside the range does not fit because the search would take
        its losses for those at the end of the range. A study that is continued does not evaluate
        it again.
    n_calibration : int, optional
        How many calibration examples there will be, for evaluations that do not bring their
        losses. By default the search takes it to be the number of validation examples.
    artifact_store : str, Path or optuna artifact store, optional
        Where losses go; by default a folder beside the file of a SQLite or journal storage, memory
        without a storage.
    load_if_exists : bool, default False
        Whether the study of this name is continued where there is one; else that is an error.
    warm_start : optuna.Study, optional
        An earlier study with the same parameters, risks and free objective, on other data. What was
        best there is tried first, and its validation results help the search as far as they prove
        right. Its calibration losses are not read. Only a `GuidedSampler` goes by it. A study
        that is continued stays as it was made.

    Returns
    -------
    optuna.Study
        An ordinary study, which carries the problem.

    Raises
    ------
    StudyError
        If an argument is not of its kind, the storage cannot be opened, or a study of this name is
        there and is not to be continued, or has another problem; or if ``warm_start`` has other
        risks, or is given along with a sampler that is no `GuidedSampler`.

    Examples
    --------
    >>> from riskpilot import Problem, Risk
    >>> study = create_study(Problem([Risk("error", 0.2)], minimize="cost"), seed=0)
    >>> len(study.directions)
    2
    """
    if not isinstance(problem, Problem):
        raise StudyError(
            f"create_study takes a Problem, but got {type_in_words(problem)}. "
            f'Write create_study(Problem([Risk("error", limit=0.1)], minimize="cost")).'
        )
    first = None if safe is None else _enqueued(safe) or None
    earlier = None if warm_start is None else read_earlier(problem, warm_start)
    _check_place(storage, study_name, sampler, load_if_exists)
    if not (warm_start is None or sampler is None or isinstance(sampler, GuidedSampler)):
        raise StudyError(
            f"warm_start helps a GuidedSampler, and no other sampler goes by an earlier study, but "
            f"sampler is {type_in_words(sampler)}. Leave sampler out, or leave warm_start out."
        )
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
        try:
            study = optuna.create_study(
                storage=opened,
                study_name=study_name,
                directions=["minimize"] * (len(problem.risks) + 1),
                load_if_exists=load_if_exists,
            )
        except optuna.exceptions.DuplicatedStudyError as error:
            raise StudyError(
                f"A new study needs a name of its own, but there is a study "
                f"{shown_safely(study_name)} in this "
                f"storage already. Write load_if_exists=True to go on with it, or give another "
                f"study_name."
            ) from error
    # Of workers that make the same study at the same time one writes its settings and its problem.
    if PROBLEM_KEY not in attributes_of(study):
        seed = int(np.random.default_rng().integers(2**31)) if seed is None else int(seed)
        with clear_errors(storage), exclusive(study, "ledger"):
            if PROBLEM_KEY not in attributes_of(study):
                _check_new(study, problem)
                if earlier is not None:
                    ids = stored_ids(store, earlier["ids"])
                    write_earlier(study, {**earlier, "ids": ids})
                _write(study, problem, seed, n_calibration, first)
    attach_store(study, store)
    return _continued(study, problem, sampler)


def load_study(
    *,
    storage: str | Path | BaseStorage,
    study_name: str | None = None,
    sampler: BaseSampler | None = None,
    artifact_store: Any = None,
) -> optuna.Study:
    """Load a study that `create_study` made, ready to go on or to select from.

    Parameters
    ----------
    storage : str, Path or optuna storage
        Where the study is, as `create_study` takes it.
    study_name : str, optional
        The name of the study. It may be left out where the storage holds only one.
    sampler : optuna sampler, optional
        What proposes configurations, instead of a `GuidedSampler`.
    artifact_store : str, Path or optuna artifact store, optional
        Where the losses are. By default this is the folder beside the file of the storage.

    Returns
    -------
    optuna.Study
        The study with its problem, its trials and its losses.

    Raises
    ------
    StudyError
        If the storage cannot be opened or has no such study, or if another version of riskpilot
        wrote the study in another format.

    Examples
    --------
    >>> import tempfile
    >>> from riskpilot import Problem, Risk
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = f"{folder}/study.log"
    ...     problem = Problem([Risk("error", 0.2)], minimize="cost")
    ...     _ = create_study(problem, storage=place, study_name="adult")
    ...     load_study(storage=place, study_name="adult").study_name
    'adult'
    """
    _check_place(storage, study_name, sampler)
    if storage is None:
        raise StudyError(
            "load_study needs the storage that the study is in, but it is None. "
            'Write load_study(storage="sqlite:///study.db").'
        )
    with clear_errors(storage):
        # A slip in the name of a file must not leave an empty database behind.
        opened = existing_storage(storage) if isinstance(storage, str | Path) else storage
        name = _only_name(storage, opened) if study_name is None else study_name
        try:
            study = optuna.load_study(study_name=name, storage=opened)
        except KeyError as error:
            raise StudyError(
                f"There is no study {shown_safely(name)} in the storage {_named(storage)!r}. "
                f"Make it with riskpilot.create_study(problem, storage=..., study_name=...)."
            ) from error
    attach_store(study, chosen_store(opened, artifact_store))
    return _continued(study, problem_of(study), sampler)


def _only_name(storage: str | Path | BaseStorage, opened: str | BaseStorage) -> str:
    """Return the name of the study that a storage holds, if it holds one alone."""
    names = optuna.get_all_study_names(opened)
    if len(names) == 1:
        return names[0]
    raise StudyError(
        f"The name of a study may be left out where its storage holds one study alone, but "
        f"{_named(storage)!r} holds {', '.join(map(shown_safely, sorted(names))) or 'none'}. Write "
        f"load_study(storage=..., study_name=...) with the name of one that is there."
    )


def _named(storage: str | Path | BaseStorage) -> str:
    """Name a storage for a message: its address without the password, or its type."""
    address = str(storage) if isinstance(storage, Path) else address_of(storage)
    return type(storage).__name__ if address is None else hide_password(address)


def _write(
    study: optuna.Study,
    problem: Problem,
    seed: int,
    n_calibration: int | None,
    first: dict[str, Any] | None,
) -> None:
    """Write into a new study what makes it one of riskpilot's; ``first``: what is tried first."""
    write_settings(study, seed, None if n_calibration is None else int(n_calibration), first)
    with unwarned(optuna.exceptions.ExperimentalWarning):
        study.set_metric_names([*(risk.title for risk in problem.risks), problem.minimize])
    write_problem(study, problem)  # comes last: a study that has its problem has the rest, too


def _queue_safe(study: optuna.Study) -> None:
    """Queue the safe configuration of a study in which nothing was begun yet.

    Whoever comes first does it: its maker, or another worker where the maker was killed before.
    """
    safe = settings_of(study).get("safe")
    if safe is None or trials_of(study):
        return
    with exclusive(study, "ledger"):
        if not study.get_trials(deepcopy=False):
            study.enqueue_trial(safe, user_attrs={SAFE_KEY: True})


def _check_new(study: optuna.Study, problem: Problem) -> None:
    """Refuse to write a problem into a study that others made.

    A study of riskpilot's may lack its problem, where its maker was killed in between; it has no
    trials yet, and no attributes but its settings.
    """
    has_trials = bool(study.get_trials(deepcopy=False))
    foreign = attributes_of(study).keys() - {SETTINGS_KEY, EARLIER_KEY}
    if has_trials or foreign or len(study.directions) != 1 + len(problem.risks):
        raise StudyError(
            f"create_study goes on with studies that riskpilot made, but the study "
            f"{study.study_name!r} in this storage is one of plain Optuna's; it was left as it is. "
            f"Give another study_name, or take its finished trials over with "
            f"riskpilot.adopt(study, problem, losses)."
        )


def _enqueued(safe: object) -> dict[str, Any]:
    """Return the safe configuration as a storage can keep it, or refuse it."""
    if not (isinstance(safe, Mapping) and all(isinstance(name, str) for name in safe)):
        raise StudyError(
            f"safe is a configuration, a mapping of parameters to values, but it is {shown(safe)}. "
            f'Write safe={{"threshold": 0.5}}.'
        )
    plain: dict[str, Any] = {}
    for name, value in safe.items():
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise StudyError(
                f"safe gives parameters values that they can take, and no parameter takes a number "
                f"above {sys.float_info.max:.2g} or below its negative, but {shown(name)} is "
                f"{shown(value, 40)}. Give the value that your evaluation gets from "
                f"trial.suggest_int and its like."
            )
        try:
            (kept,) = plain_configs([{name: value}], StudyError)
        except StudyError:
            raise StudyError(_not_kept(name, value)) from None
        plain |= kept
    # A choice may be a tuple, which is not equal to the list that JSON makes of it.
    return {
        name: tuple(plain[name]) if isinstance(value, tuple) else plain[name]
        for name, value in safe.items()
    }


def _not_kept(name: str, value: object) -> str:
    """Say that a storage or a certificate cannot keep a value of the safe configuration."""
    return (
        f"safe gives parameters values that can be stored, which are finite numbers, texts, truth "
        f"values, None, or lists and mappings of these, but {shown(name)} is {shown(value)}. Give "
        f"the value that your evaluation gets from trial.suggest_float and its like."
    )


def _check_place(
    storage: object, study_name: object, sampler: object, load_if_exists: object = False
) -> None:
    """Refuse a storage, a name or a sampler that is not one."""
    if storage is not None and not isinstance(storage, str | Path | BaseStorage):
        raise StudyError(
            f"storage is an address, a file or an Optuna storage, but it is {shown(storage)}. "
            f'Write storage="sqlite:///study.db", or leave it out to stay in memory.'
        )
    if study_name is not None and not (isinstance(study_name, str) and is_whole_text(study_name)):
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
    """Open a storage that is named by its address or file; others are open already."""
    return open_storage(storage) if isinstance(storage, str | Path) else storage


def _continued(study: optuna.Study, problem: Problem, sampler: BaseSampler | None) -> optuna.Study:
    """Give a study of the storage its sampler, if its problem is the expected one."""
    stored = problem_of(study)
    if stored != problem:
        raise StudyError(
            f"The study {study.study_name!r} exists and has another problem: {stored} "
            f"Use another study_name, or set limits with riskpilot.set_limits(study, ...)."
        )
    trials_of(study)  # a damaged one is refused here, not in the middle of a search
    _queue_safe(study)
    seed = settings_of(study)["seed"]
    study.sampler = sampler or sampler_for(study, problem, seed)
    return study
