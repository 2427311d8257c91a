"""Objectives: functions for ``study.optimize`` that evaluate a trial and record what came of it."""

import logging
import math
from collections.abc import Callable, Generator, Sequence
from threading import TIMEOUT_MAX
from typing import Any, Literal

import numpy.typing as npt
import optuna
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.trial import TrialState

from riskpilot.common import TimeLimitError, within
from riskpilot.errors import RiskpilotError, StudyError, shown, visible
from riskpilot.guarantee import as_number
from riskpilot.losses import Evaluation, read_ids
from riskpilot.problem import Problem
from riskpilot.study.kept.attributes import ERROR_KEY, problem_of
from riskpilot.study.kept.records import RECORD_KEY, Record
from riskpilot.study.kept.stopped import STOPPED_KEY
from riskpilot.study.kept.trial_losses import read_calibration, read_validation
from riskpilot.study.kept.unsent import UnsentRecords
from riskpilot.study.queued import checked
from riskpilot.study.racing import Blocks, Race
from riskpilot.study.storages import (
    StorageUnreachableError,
    address_of,
    get_trial,
    storage_of,
    system_attrs_of,
    without_password,
)
from riskpilot.study.telling import Recorder, check_parameters, is_of, optuna_values

logger = logging.getLogger("riskpilot")

Evaluate = Callable[[optuna.Trial], Evaluation | Blocks]

# What a storage raises is not blamed on the evaluation: its trial is not marked as failed for it.
_OF_THE_STORAGE = (StorageUnreachableError, StorageInternalError, UpdateFinishedTrialError)


def objective(
    study: optuna.Study,
    evaluate: Evaluate,
    *,
    validation_ids: Sequence[Any] | npt.NDArray[Any] | None = None,
    calibration_ids: Sequence[Any] | npt.NDArray[Any] | None = None,
    on_error: Literal["raise", "record"] = "raise",
    time_limit: float | None = None,
) -> Callable[[optuna.Trial], tuple[float, ...]]:
    """Make the function for ``study.optimize`` that evaluates a trial and records its losses.

    Optuna sees the validation means of the risks and the free objective. Calibration losses go to
    the artifact store unread.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`.
    evaluate : callable
        A function of a trial that returns an `Evaluation`, or a generator that yields the losses
        of one block of validation examples after the other, always in the same order, and returns
        the calibration losses. One that can no longer become the choice is stopped: its trial is
        pruned, the search learns from what it showed, and it is no candidate. A ``yield`` gives
        True when enough is known of a promising one: then the other blocks may be left out, and
        the trial is a candidate as any other.
    validation_ids : sequence or array, optional
        The ids of the validation examples: one for each, no two alike, and the same in every
        trial.
    calibration_ids : sequence or array, optional
        The ids of the calibration examples likewise, none of which may be a validation example.
    on_error : str, default "raise"
        "raise" or "record": what follows when an evaluation raises, returns losses that cannot be
        used, or suggests no parameter although a configuration was queued for it or all other
        evaluations have some. The trial fails and keeps the error; "raise" then raises it, as
        Optuna does, so that a mistake in the code shows at once, and "record" goes on with the next
        trial.
    time_limit : float, optional
        Seconds after which an evaluation is given up; its trial fails, and the study goes on. The
        evaluation then runs in a thread of its own that is asked to stop: Python code does at its
        next step, while a call that never returns stays behind in the background.

    Returns
    -------
    callable
        A function of a trial, for ``study.optimize``.

    Raises
    ------
    StudyError
        If an argument is not of its kind, or the losses of the study have no place to go.
    LeakageError
        If validation and calibration share an id.

    Examples
    --------
    >>> import riskpilot as rp
    >>> study = rp.create_study(rp.Problem([rp.Risk("error", 0.8)], minimize="cost"))
    >>> def evaluate(trial):
    ...     x = trial.suggest_float("x", 0, 1)
    ...     return rp.Evaluation({"error": [x, 0, 0, 1], "cost": 1 - x}, {"error": [0, x, 1, 0]})
    >>> study.optimize(rp.objective(study, evaluate), n_trials=2)
    >>> len(study.trials)
    2
    """
    problem = problem_of(study)  # its limits may change later; names and ranges do not
    if not callable(evaluate):
        raise StudyError(
            f"objective takes a function of a trial that returns an Evaluation, but got "
            f"{shown(evaluate)}. Write rp.objective(study, evaluate)."
        )
    if not isinstance(on_error, str) or on_error not in ("raise", "record"):
        raise StudyError(
            f'on_error says what follows a failed evaluation, "raise" or "record", but it is '
            f"{shown(on_error)}. Leave it out to see the error."
        )
    if time_limit is not None and not 0 < (as_number(time_limit) or 0) <= TIMEOUT_MAX:
        raise StudyError(
            f"time_limit is a number of seconds above 0 and at most {TIMEOUT_MAX:.0f}, the longest "
            f"that a thread can be waited for, but it is {shown(time_limit)}. "
            f"Leave it out for evaluations that may take any time."
        )
    ids = read_ids(validation_ids, calibration_ids)
    recorder, unsent = Recorder(study, problem, ids), UnsentRecords(study)

    def record(begun: optuna.Trial) -> tuple[float, ...]:
        if not isinstance(begun, optuna.Trial):
            raise StudyError(
                f"An objective takes a running trial, which study.optimize gives it, but got "
                f"{shown(begun, 80)}. To try an evaluation once, call evaluate(trial) itself."
            )
        if not is_of(study, begun):
            raise StudyError(
                f"An objective is made for one study, this one for {study.study_name!r}, but the "
                f"trial is of the study {begun.study.study_name!r}. Make one for that study: "
                f"rp.objective(study, evaluate)."
            )
        trial = checked(begun)
        if STOPPED_KEY in trial.user_attrs:
            raise optuna.TrialPruned("a worker that died had stopped it")
        written = _recovered(study, problem, trial, unsent)
        try:
            if written is None:
                evaluation, race = within(time_limit, evaluate, trial), None
                if isinstance(evaluation, Generator):
                    race = Race(study, trial)
                    evaluation = race.run(evaluation, time_limit)
                if isinstance(evaluation, Evaluation):  # what is none is refused with its losses
                    check_parameters(study, trial)
                written = recorder.write(trial, evaluation)
                if race is not None:
                    race.keep_course()
        except (optuna.TrialPruned, *_OF_THE_STORAGE):
            raise
        except Exception as error:
            message = visible(f"{type(error).__name__}: {error}"[:2000])
            message = without_password(message, address_of(storage_of(study)) or "")
            trial.set_user_attr(ERROR_KEY, message)
            if on_error == "raise" and not isinstance(error, TimeLimitError):
                raise
            logger.warning("Trial %d failed: %s", trial.number, message)
            return (math.nan,) * (len(problem.risks) + 1)  # Optuna marks the trial as failed
        return optuna_values(problem, written)

    return record


def _recovered(
    study: optuna.Study, problem: Problem, trial: optuna.Trial, unsent: UnsentRecords
) -> Record | None:
    """Return the record of a worker that died after it had stored losses, before it could say so.

    The trial that is queued in its place carries its record, or the record was kept beside the
    losses because the storage was away; the losses count if they can be read.
    """
    stored = trial.user_attrs.get(RECORD_KEY)
    if stored is None:
        stored = unsent.of(system_attrs_of(trial).get("retry_history", ()))
        if stored is None:
            return None
        trial.set_user_attr(RECORD_KEY, stored)
    frozen = get_trial(study, trial)
    assert frozen.state == TrialState.RUNNING
    try:
        record = Record.from_json(stored)
        read_validation(study, problem, frozen)
        if record.n_calibration is not None:
            read_calibration(study, problem, frozen)
    except StorageUnreachableError:
        raise
    except (RiskpilotError, KeyError, TypeError):
        return None
    logger.info("Trial %d takes over the losses of a worker that died", trial.number)
    return record
