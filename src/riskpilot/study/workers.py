"""Workers: any number of processes that carry one study to its number of finished trials.

`work` is a plain function of an address. Run it as a process, submit it to Dask, or make it a Ray
task: each of them joins the study, and the same call continues the study after a crash.
"""

import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from riskpilot.errors import StudyError
from riskpilot.study.creation import load_study
from riskpilot.study.objectives import Evaluate, objective
from riskpilot.study.records import record_of
from riskpilot.study.storages.opening import (
    GRACE_SECONDS,
    fail_overdue_trials,
    fail_silent_trials,
    has_heartbeat,
)

logger = logging.getLogger("riskpilot")

Callback = Callable[[optuna.Study, FrozenTrial], None]
Objective = Callable[[optuna.Trial], tuple[float, ...]]

_POLL_SECONDS = 0.5
_MOST_FAILURES = 10


def work(
    evaluate: Evaluate,
    *,
    storage: str | Path | BaseStorage,
    study_name: str | None = None,
    artifact_store: Any = None,
    n_trials: int,
    time_limit: float | None = None,
    callbacks: Iterable[Callback] = (),
) -> int:
    """Evaluate trials until the study has ``n_trials`` finished ones; returns how many ran here.

    Workers that run at once share the number between them. Evaluations that fail are recorded and
    do not count; after ten failures in a row the worker gives up. A trial of a worker that died is
    waited for and taken over, where the storage has heartbeats (SQL storages that were named by
    their address have). A journal file has none: a new trial takes its place, and with a
    ``time_limit`` a trial that has run for so long and three minutes more is failed and taken over.
    """
    if n_trials < 1:
        raise StudyError(f"n_trials is how many trials are to be finished, but it is {n_trials!r}.")
    study = load_study(storage=storage, study_name=study_name, artifact_store=artifact_store)
    run = objective(study, evaluate, on_error="record", time_limit=time_limit)
    ran = failures = 0
    while True:
        if time_limit is not None and not has_heartbeat(study._storage):
            for number in fail_overdue_trials(study, time_limit + GRACE_SECONDS):
                logger.warning("Trial %d is overdue: its worker died", number)
        finished, going = _counts(study.get_trials(deepcopy=False))
        if finished >= n_trials:
            return ran
        if finished + going >= n_trials and has_heartbeat(study._storage):
            time.sleep(_POLL_SECONDS)  # others are at the last ones; should they die, take over
            fail_silent_trials(study)
            continue
        state = _one_trial(study, run, n_trials, callbacks)
        if state == TrialState.COMPLETE:
            ran, failures = ran + 1, 0
        elif state == TrialState.FAIL:
            failures += 1
        if failures == _MOST_FAILURES:
            raise StudyError(
                f"{failures} evaluations in a row failed, so this worker stops. See why with "
                f"`riskpilot status`, and start it again when that is mended."
            )


def _one_trial(
    study: optuna.Study, run: Objective, n_trials: int, callbacks: Iterable[Callback]
) -> TrialState | None:
    """Run a trial and say how it ended; None where it turned out to be one too many, or where
    others took it for dead and gave it away."""
    asked: list[optuna.Trial] = []

    def unless_surplus(trial: optuna.Trial) -> tuple[float, ...]:
        asked.append(trial)
        others = [t for t in study.get_trials(deepcopy=False) if t.number != trial.number]
        finished, going = _counts([t for t in others if not _is_later(t, trial.number)])
        if has_heartbeat(study._storage) and finished + going >= n_trials:
            raise optuna.TrialPruned("other workers have begun the last trials")
        return run(trial)

    try:
        study.optimize(unless_surplus, n_trials=1, callbacks=list(callbacks))
    except (AssertionError, ValueError, optuna.exceptions.UpdateFinishedTrialError):
        # Its heartbeats did not arrive, so others gave it away; or they had taken it, too.
        if not asked or not study._storage.get_trial(asked[0]._trial_id).state.is_finished():
            raise
        logger.warning("Trial %d was finished by another worker meanwhile", asked[0].number)
        return None
    state = study._storage.get_trial(asked[0]._trial_id).state
    return None if state == TrialState.PRUNED else state


def _is_later(trial: FrozenTrial, number: int) -> bool:
    return trial.state == TrialState.RUNNING and trial.number > number


def _counts(trials: Iterable[FrozenTrial]) -> tuple[int, int]:
    """How many trials are finished with their losses, and how many are being evaluated."""
    finished = going = 0
    for trial in trials:
        finished += trial.state == TrialState.COMPLETE and record_of(trial) is not None
        going += trial.state == TrialState.RUNNING
    return finished, going
