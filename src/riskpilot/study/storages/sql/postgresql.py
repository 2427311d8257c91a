"""A PostgreSQL database, and its locks."""

import contextlib
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import sqlalchemy
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from riskpilot.study.storages.notices import logger, say
from riskpilot.study.storages.patience import in_words, patience_with
from riskpilot.study.storages.sql import statements
from riskpilot.study.storages.sql.connections import clear_errors
from riskpilot.study.storages.sql.patient import PatientStorage
from riskpilot.study.storages.sql.rows import read_trials
from riskpilot.study.storages.sql.storage import SqlStorage

_QUIET_SECONDS = 10  # how long a worker waits for a lock before it says so
_LOCK_NOT_AVAILABLE = "55P03"


class _BeginsTrials(SqlStorage):
    """Optuna's storage in a PostgreSQL database, in which a trial begins in few statements."""

    def add_trial(self, study_id: int, template_trial: FrozenTrial | None) -> FrozenTrial:
        added = self.begin_trial(study_id) if template_trial is None else None
        return added or super().add_trial(study_id, template_trial)

    def begin_trial(self, study_id: int) -> FrozenTrial | None:
        """Add a new trial that runs, and return it; None where there is no such study."""
        given = {"study": study_id, "now": datetime.now(UTC).replace(tzinfo=None)}
        with clear_errors(), self.engine.begin() as connection:
            if connection.execute(statements.LOCK_STUDY, {"study": study_id}).first() is None:
                return None
            added = connection.execute(statements.ADD_TRIAL_TO_POSTGRESQL, given).scalar_one()
            found = read_trials(connection, statements.TRIALS_BY_ID, {"ids": [added]})
        return found[0] if found else None


class PostgresqlStorage(PatientStorage, _BeginsTrials):
    """Optuna's storage in a PostgreSQL database that may be away for some minutes."""


@contextmanager
def advisory_lock(
    sql: RDBStorage, purpose: str, lease: float | None
) -> Iterator[Callable[[], bool]]:
    """Hold a PostgreSQL lock, and give a function that tells whether it is held still.

    The lock ends with the transaction, so also with a crash.

    ``lease``: after how many seconds the server takes the lock from a worker that was stopped.
    """
    connection = patience_with(sql)(lambda: _locked(sql, purpose, lease))
    try:
        yield lambda: _is_alive(connection)
    except BaseException:
        with contextlib.suppress(SQLAlchemyError):
            connection.close()
        raise
    try:
        connection.commit()
    except SQLAlchemyError:
        connection.invalidate()
        logger.warning("The connection that held a lock was cut; the lock was free from then on")
    connection.close()


def _is_alive(connection: sqlalchemy.Connection) -> bool:
    """Tell whether the transaction that holds a lock goes on."""
    try:
        connection.exec_driver_sql("SELECT 1")
    except SQLAlchemyError:
        return False
    return True


def _locked(sql: RDBStorage, purpose: str, lease: float | None) -> sqlalchemy.Connection:
    """Wait for a lock, and return the connection whose transaction holds it."""
    key = zlib.crc32(f"riskpilot{purpose}".encode())
    idle = 0 if lease is None else round(1000 * lease)  # milliseconds; 0 is for ever
    question = (
        f"SELECT set_config('lock_timeout', '{_QUIET_SECONDS}s', true),"
        f" set_config('idle_in_transaction_session_timeout', '{idle}', true),"
        f" pg_advisory_xact_lock({key})"
    )
    begun, has_said = time.monotonic(), False
    while True:
        connection = sql.engine.connect()
        try:
            connection.exec_driver_sql(question)
        except OperationalError as error:
            connection.close()
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            if not has_said:
                say(
                    f"This worker waits for a lock of the database that another one has held for "
                    f"{in_words(time.monotonic() - begun)}. "
                    + (
                        "If that one was stopped, let it go on or end it."
                        if lease is None
                        else f"If that one was stopped, it loses the lock after {in_words(lease)}."
                    )
                )
                has_said = True
        except BaseException:
            connection.close()
            raise
        else:
            waited = time.monotonic() - begun
            # The server counts from the moment when the other worker was stopped.
            if lease is not None and waited > lease / 2:
                say(
                    f"Another worker held the proposal lock of the database for {in_words(waited)},"
                    f" so that it may have been stopped; this worker goes on."
                )
            return connection
