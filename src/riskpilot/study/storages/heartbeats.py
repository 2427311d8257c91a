"""Trials of workers that died: how they are known, failed and queued again.

A worker writes a heartbeat for its trial every minute. A storage that was not opened here may have
no heartbeats, so that only the time since a trial began can say that its worker is gone.
"""

import contextlib

import optuna
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

from riskpilot.common import unwarned
from riskpilot.study.storages.journal import Journal
from riskpilot.study.storages.locks import exclusive
from riskpilot.study.storages.optuna_internals import (
    id_of,
    set_trial_state,
    sql_storage_of,
    storage_of,
)
from riskpilot.study.storages.patience import patience_with
from riskpilot.study.storages.reading import seconds_running, trials_of
from riskpilot.study.storages.retries import queue_again

HEARTBEAT_SECONDS = 60
GRACE_SECONDS = 180


def has_heartbeat(study: optuna.Study) -> bool:
    """Tell whether the storage of a study keeps heartbeats."""
    interval = getattr(storage_of(study), "get_heartbeat_interval", None)
    return interval is not None and interval() is not None


def fail_silent_trials(study: optuna.Study) -> None:
    """Fail the trials of workers that died, and queue them again, where there are heartbeats.

    Optuna finds the trials whose heartbeat stopped. A worker that died before its first heartbeat
    left a trial that Optuna would wait for without end. Such a trial gets a heartbeat here: if its
    worker does not live, no other follows. So only the clock of the database counts, and it does
    not matter whether those of the workers agree.
    """
    with unwarned(ExperimentalWarning):
        optuna.storages.fail_stale_trials(study)
    storage = storage_of(study)
    sql = sql_storage_of(storage)
    if isinstance(storage, Journal):
        for trial in storage.unheard(trials_of(study, (TrialState.RUNNING,))):
            storage.record_heartbeat(id_of(trial))
    elif sql is not None and sql.get_heartbeat_interval() is not None:
        for trial in _never_heard_of(sql, trials_of(study, (TrialState.RUNNING,))):
            sql.record_heartbeat(id_of(trial))


def fail_overdue_trials(study: optuna.Study, seconds: float) -> list[int]:
    """Fail trials that have run for longer than any may, and queue them again.

    This is for storages without heartbeats. Returns the numbers of the trials.
    """
    failed = []
    callback = queue_again()
    with exclusive(study):
        for trial in trials_of(study, (TrialState.RUNNING,)):
            if seconds_running(trial) <= seconds:
                continue
            with contextlib.suppress(UpdateFinishedTrialError):  # its worker has just finished it
                set_trial_state(study, trial, TrialState.FAIL)
                callback(study, trial)
                failed.append(trial.number)
    return failed


def _never_heard_of(sql: RDBStorage, trials: list[FrozenTrial]) -> list[FrozenTrial]:
    """Return those of the trials whose workers never wrote a heartbeat."""
    if not trials:
        return []
    heard = patience_with(sql)(lambda: _heard_of(sql, trials))
    return [trial for trial in trials if id_of(trial) not in heard]


def _heard_of(sql: RDBStorage, trials: list[FrozenTrial]) -> set[int]:
    """Return the ids of those of the trials that have a heartbeat."""
    ids = {id_of(trial) for trial in trials}
    with sql.engine.connect() as connection:
        if not connection.dialect.has_table(connection, "trial_heartbeats"):
            return ids  # another Optuna keeps them elsewhere, so that nothing is known here
        rows = connection.exec_driver_sql(
            f"SELECT trial_id FROM trial_heartbeats WHERE trial_id IN ({', '.join(map(str, ids))})"
        ).all()
    return {trial_id for (trial_id,) in rows}
