"""A SQLite file that several workers write to."""

import functools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from riskpilot.study.storages import locks
from riskpilot.study.storages.location import file_of
from riskpilot.study.storages.locks import file_lock
from riskpilot.study.storages.optuna_internals import NewParam
from riskpilot.study.storages.sql import statements
from riskpilot.study.storages.sql.connections import clear_errors
from riskpilot.study.storages.sql.patient import PatientStorage
from riskpilot.study.storages.sql.rows import read_trials
from riskpilot.study.storages.sql.storage import SqlStorage

_threads = threading.Lock()


class _QueueOfWriters(SqlStorage):
    """Optuna's storage in a SQLite file, whose writers queue.

    Without a queue writers find the file locked and sleep, also those that write heartbeats. And
    two workers could take the same waiting trial, because SQLite has no locks on rows.
    """

    @functools.cached_property
    def path(self) -> Path:
        """The file of the database."""
        path = file_of(self)
        assert path is not None, "a database in memory is never opened with this class"
        return path

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until no other thread or process writes to the file."""
        with _threads, file_lock(self.path, "write", locks.LEASE_SECONDS):
            yield

    def add_trial(self, study_id: int, template_trial: FrozenTrial | None) -> FrozenTrial:
        with self.turn():
            added = self.begin_trial(study_id) if template_trial is None else None
            return added or super().add_trial(study_id, template_trial)

    def begin_trial(self, study_id: int) -> FrozenTrial | None:
        """Add a new trial that runs, and return it; None where there is no such study."""
        given = {"study": study_id, "now": datetime.now(UTC).replace(tzinfo=None)}
        with clear_errors(), self.engine.begin() as connection:
            added = connection.execute(statements.ADD_TRIAL_TO_SQLITE, given)
            if not added.rowcount:
                return None
            found = read_trials(connection, statements.TRIALS_BY_ID, {"ids": [added.lastrowid]})
        return found[0] if found else None

    def add_param(self, trial_id: int, param: NewParam) -> None:
        with self.turn():
            super().add_param(trial_id, param)

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        with self.turn():
            super().set_trial_user_attr(trial_id, key, value)

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        with self.turn():
            super().set_trial_system_attr(trial_id, key, value)

    def change_state(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None, now: datetime
    ) -> bool:
        with self.turn():
            return super().change_state(trial_id, state, values, now)

    def record_heartbeat(self, trial_id: int) -> None:
        with self.turn():
            super().record_heartbeat(trial_id)


class SqliteStorage(PatientStorage, _QueueOfWriters):
    """A SQLite file whose writers queue, and wait where its disk is full."""
