"""Workers: any number of processes that carry one study to its number of finished trials.

`work` is a plain function of an address. Run it as a process, submit it to Dask, or make it a Ray
task: each of them joins the study, and the same call continues the study after a crash.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from riskpilot.errors import StudyError, shown
from riskpilot.guarantee import as_number
from riskpilot.study.creation import load_study
from riskpilot.study.kept.stopped import was_stopped
from riskpilot.study.kept.trials import was_evaluated
from riskpilot.study.objectives import Evaluate, objective
from riskpilot.study.storages import (
    GRACE_SECONDS,
    PATIENCE_SECONDS,
    StorageUnreachableError,
    clear_errors,
    existing_storage,
    fail_overdue_trials,
    fail_silent_trials,
    get_trial,
    has_heartbeat,
    trials_of,
    was_told_to_stop,
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
    patience: float = PATIENCE_SECONDS,
    callbacks: Iterable[Callback] = (),
) -> int:
    """Evaluate trials of a study until it has a number of finished ones.

    Workers that run at once share that number between them. An evaluation that fails, or that
    raises `optuna.TrialPruned`, is recorded and does not count. Where the storage has heartbeats,
    the trial of a worker that died is waited for and taken over with its configuration; a storage
    that is named by its address or file has them. In one that has none, a new trial takes the place
    of one whose worker died.

    Parameters
    ----------
    evaluate : callable
        A function of a trial that returns an `Evaluation`, as for `objective`.
    storage : str or Path or BaseStorage
        Where the study is: an address, a SQLite or journal file, or an Optuna storage.
    study_name : str, optional
        The name of the study; it may be left out where the storage holds only one.
    artifact_store : str, Path or Optuna artifact store, optional
        Where losses go. By default this is the folder beside the file of the storage.
    n_trials : int
        How many trials are to be finished, those of all workers and earlier runs together.
    time_limit : float, optional
        Seconds after which an evaluation is given up. In a storage without heartbeats a trial that
        has run for that long and three minutes more is failed and taken over.
    patience : float, default 600
        Seconds to wait for a storage that does not answer: a server that restarts, a connection
        that is cut, a disk that is full. The worker says so once and goes on when the storage is
        back. After that time it ends; losses that it has computed are kept, and the worker that
        takes its trial over uses them. A storage that is given as an object has its own patience.
    callbacks : iterable of callables, default ()
        Functions of the study and a finished trial, as for ``study.optimize``. One that calls
        ``study.stop()``, as `StopWhenSettled` does, ends this worker; others go by their own.

    Returns
    -------
    int
        How many trials were finished by this worker.

    Raises
    ------
    StudyError
        If ``n_trials`` is below 1 or ``patience`` below 0, if there is no such study, if ten
        evaluations in a row failed or were pruned, or if the storage was away for too long.

    Examples
    --------
    >>> import tempfile
    >>> from riskpilot import Evaluation, Problem, Risk, create_study
    >>> def evaluate(trial):
    ...     x = trial.suggest_float("x", 0, 1)
    ...     return Evaluation({"error": [x, 0, 0, 1], "cost": 1 - x}, {"error": [0, x, 1, 0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = f"{folder}/study.log"
    ...     study = create_study(Problem([Risk("error", 0.8)], minimize="cost"), storage=journal)
    ...     work(evaluate, storage=journal, n_trials=2)
    2
    """
    if n_trials < 1:
        raise StudyError(f"n_trials is how many trials are to be finished, but it is {n_trials!r}.")
    seconds = as_number(patience)
    if seconds is None or seconds < 0:
        raise StudyError(
            f"patience is how many seconds a storage is waited for, a number of at least 0, but it "
            f"is {shown(patience)}. Leave it out for {PATIENCE_SECONDS:g}."
        )
    if isinstance(storage, str | Path):
        with clear_errors(storage):
            storage = existing_storage(storage, patience_seconds=seconds, wait=True)
    study = load_study(storage=storage, study_name=study_name, artifact_store=artifact_store)
    run = objective(study, evaluate, on_error="record", time_limit=time_limit)
    ran = failures = 0
    while True:
        if time_limit is not None and not has_heartbeat(study):
            for number in fail_overdue_trials(study, time_limit + GRACE_SECONDS):
                logger.warning("Trial %d is overdue: its worker died", number)
        finished, going = _counts(trials_of(study))
        if finished >= n_trials:
            return ran
        if finished + going >= n_trials and has_heartbeat(study):
            time.sleep(_POLL_SECONDS)  # others evaluate the last trials; one of them may die
            fail_silent_trials(study)
            continue
        state = _one_trial(study, run, n_trials, callbacks)
        if state == TrialState.COMPLETE:
            ran, failures = ran + 1, 0
        elif state is not None:
            failures += 1
        if was_told_to_stop(study):
            return ran
        if failures == _MOST_FAILURES:
            raise StudyError(
                f"{failures} evaluations in a row failed or were pruned, so this worker stops. See "
                f"why with `riskpilot status`, and start it again when that is mended."
            )


def _one_trial(
    study: optuna.Study, run: Objective, n_trials: int, callbacks: Iterable[Callback]
) -> TrialState | None:
    """Run a trial and return the state in which it ended.

    None is returned where the trial turned out to be one too many, or where other workers took this
    one for dead and finished its trial.
    """
    asked: list[optuna.Trial] = []
    surplus: list[optuna.Trial] = []
    ended: list[FrozenTrial] = []

    def unless_surplus(trial: optuna.Trial) -> tuple[float, ...]:
        asked.append(trial)
        others = [t for t in trials_of(study) if t.number != trial.number]
        finished, going = _counts([t for t in others if not _is_later(t, trial.number)])
        # One that waits was there before this one, and whoever is free takes it first.
        going += sum(t.state == TrialState.WAITING and t.number < trial.number for t in others)
        if has_heartbeat(study) and finished + going >= n_trials:
            surplus.append(trial)
            raise optuna.TrialPruned("other workers have begun the last trials")
        return run(trial)

    def keep(_: optuna.Study, trial: FrozenTrial) -> None:
        ended.append(trial)

    try:
        study.optimize(unless_surplus, n_trials=1, callbacks=[keep, *callbacks])
    except StorageUnreachableError:
        raise
    except (AssertionError, ValueError, optuna.exceptions.UpdateFinishedTrialError):
        # Heartbeats of this worker did not arrive, so that another one failed the trial; or two
        # workers had taken the same waiting trial.
        if not asked or not get_trial(study, asked[0]).state.is_finished():
            raise
        logger.warning("Trial %d was finished by another worker meanwhile", asked[0].number)
        return None
    if was_stopped(ended[0]):  # by a race, which is as good as finished
        return TrialState.COMPLETE
    return None if surplus else ended[0].state


def _is_later(trial: FrozenTrial, number: int) -> bool:
    """Tell whether a running trial began after the one with this number."""
    return trial.state == TrialState.RUNNING and trial.number > number


def _counts(trials: Sequence[FrozenTrial]) -> tuple[int, int]:
    """Count the trials that are evaluated, as far as is worth it, and those that are running."""
    going = sum(trial.state == TrialState.RUNNING for trial in trials)
    return sum(map(was_evaluated, trials)), going
