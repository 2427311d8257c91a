"""Trials of workers that died: how they are known, failed and queued again.

A worker on an SQL storage writes a heartbeat for its trial every minute. A journal file has no
heartbeats, so that only the time since a trial began can say that its worker is gone.
"""

import contextlib
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta

import optuna
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

from riskpilot.study.storages.locks import exclusive
from riskpilot.study.storages.optuna_internals import (
    id_of,
    set_trial_state,
    sql_storage_of,
    storage_of,
)

HEARTBEAT_SECONDS = 60
GRACE_SECONDS = 180
_RETRIES = 3


def has_heartbeat(study: optuna.Study) -> bool:
    """Tell whether the storage of a study keeps heartbeats."""
    interval = getattr(storage_of(study), "get_heartbeat_interval", None)
    return interval is not None and interval() is not None


def queue_again() -> Callable[[optuna.Study, FrozenTrial], None]:
    """Return the callback that queues a failed trial with the same configuration, a few times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=_RETRIES)


def fail_silent_trials(study: optuna.Study) -> None:
    """Fail the trials of workers that died, and queue them again, where there are heartbeats.

    Optuna finds the trials whose heartbeat stopped. A worker that died before its first heartbeat
    left a trial that Optuna would wait for without end, so that such trials are looked for here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)
    sql = sql_storage_of(storage_of(study))
    if sql is None:
        return
    interval, callback = sql.get_heartbeat_interval(), sql.get_heartbeat_stale_trial_callback()
    if interval is None:
        return
    grace = sql.grace_period or 2 * interval
    for trial in _never_heard_of(sql, _running_for(study, 2 * grace)):
        with contextlib.suppress(UpdateFinishedTrialError):  # another worker was faster
            set_trial_state(study, trial, TrialState.FAIL)
            if callback is not None:
                callback(study, trial)


def fail_overdue_trials(study: optuna.Study, seconds: float) -> list[int]:
    """Fail trials that have run for longer than any may, and queue them again.

    This is for storages without heartbeats. Returns the numbers of the trials.
    """
    failed = []
    callback = queue_again()
    with exclusive(study):
        for trial in _running_for(study, seconds):
            with contextlib.suppress(UpdateFinishedTrialError):  # its worker has just finished it
                set_trial_state(study, trial, TrialState.FAIL)
                callback(study, trial)
                failed.append(trial.number)
    return failed


def _running_for(study: optuna.Study, seconds: float) -> list[FrozenTrial]:
    """Return the running trials that began longer ago than so many seconds."""
    begun_before = datetime.now() - timedelta(seconds=seconds)
    return [
        trial
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        if trial.datetime_start is not None and trial.datetime_start < begun_before
    ]


def _never_heard_of(sql: RDBStorage, trials: list[FrozenTrial]) -> list[FrozenTrial]:
    """Return those of the trials whose workers never wrote a heartbeat."""
    if not trials:
        return []
    ids = ", ".join(str(id_of(trial)) for trial in trials)
    with sql.engine.connect() as connection:
        if not connection.dialect.has_table(connection, "trial_heartbeats"):
            return []  # another Optuna keeps them elsewhere, so that nothing is known here
        rows = connection.exec_driver_sql(
            f"SELECT trial_id FROM trial_heartbeats WHERE trial_id IN ({ids})"
        ).all()
    heard = {trial_id for (trial_id,) in rows}
    return [trial for trial in trials if id_of(trial) not in heard]
