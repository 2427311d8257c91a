"""Storages by their address: opened so that workers may die, locked where a file or database can.

A SQL storage that is named by an address gets heartbeats: a trial whose worker is gone is marked as
failed and queued again with the same configuration.
"""

import contextlib
import functools
import threading
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.exceptions import ExperimentalWarning, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from riskpilot.errors import RiskpilotError, StudyError
from riskpilot.study.storages.addresses import (
    JOURNAL_FILES,
    SQLITE_FILES,
    hide_password,
    without_password,
)
from riskpilot.study.storages.sql import SqlStorage

HEARTBEAT_SECONDS = 60
GRACE_SECONDS = 180
_RETRIES = 3
_BUSY_SECONDS = 60  # how long a writer waits for another one's lock on a SQLite file
_RECYCLE_SECONDS = 300  # an evaluation may outlive a connection that nobody uses meanwhile
_SQLITE = "sqlite:///"

_UNUSABLE = (ImportError, SQLAlchemyError, StorageInternalError, OSError, RuntimeError, ValueError)
_memory_lock = threading.RLock()
_write_lock = threading.Lock()


def open_storage(
    address: str | Path,
    *,
    heartbeat_seconds: int = HEARTBEAT_SECONDS,
    grace_seconds: int = GRACE_SECONDS,
) -> str | BaseStorage:
    """The storage at an address, or in a SQLite or journal file.

    ``heartbeat_seconds``: how often a worker says that it lives; ``grace_seconds``: after how long
    a silence its trial is given to another one. A journal file has no heartbeats.
    """
    address = str(address)
    suffix = Path(address).suffix.lower()
    if "://" not in address and suffix in JOURNAL_FILES:
        return JournalStorage(JournalFileBackend(address))
    if "://" not in address and suffix in SQLITE_FILES:
        address = _SQLITE + address
    if "://" not in address:
        raise StudyError(
            f"A storage is an address such as sqlite:///study.db or a file that ends in "
            f"{', '.join((*SQLITE_FILES, *JOURNAL_FILES))}, but it is {address!r}. Name one."
        )
    if is_in_memory(address):
        return address
    options: dict[str, Any] = {"pool_recycle": _RECYCLE_SECONDS}
    if address.startswith("sqlite"):
        options["connect_args"] = {"timeout": _BUSY_SECONDS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        storage = _kind(address)(
            address,
            engine_kwargs=options,
            heartbeat_interval=heartbeat_seconds,
            grace_period=grace_seconds,
            heartbeat_stale_trial_callback=_queue_again(),
        )
    weakref.finalize(storage, storage.engine.dispose)  # Optuna leaves its connections open
    return storage


def _queue_again() -> Callable[[optuna.Study, FrozenTrial], None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=_RETRIES)


class _SqliteStorage(SqlStorage):
    """A SQLite file for several writers, who queue. Without that they would find the file locked
    and sleep, heartbeats among them; and, as SQLite has no row locks, two workers could take the
    same waiting trial."""


def _queued(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def locked(self: _SqliteStorage, *args: Any, **kwargs: Any) -> Any:
        path = file_of(self)
        assert path is not None
        with _write_lock, _file_lock(path, "write"):
            return method(self, *args, **kwargs)

    return locked


for _name in (
    "_create_new_trial",
    "_set_trial_param",
    "record_heartbeat",
    "set_trial_state_values",
    "set_trial_system_attr",
    "set_trial_user_attr",
):
    setattr(_SqliteStorage, _name, _queued(getattr(SqlStorage, _name)))


def _kind(address: str) -> type[RDBStorage]:
    if address.startswith("sqlite"):
        return _SqliteStorage
    return SqlStorage if address.startswith("postgresql") else RDBStorage


def is_in_memory(storage: object) -> bool:
    """Whether a storage, or what an address means, is gone with its process.

    >>> is_in_memory("sqlite:///:memory:"), is_in_memory("sqlite:///study.db")
    (True, False)
    """
    if storage is None or isinstance(storage, InMemoryStorage):
        return True
    address = address_of(storage)
    if address is None or not address.startswith("sqlite"):
        return False
    return address.endswith("://") or ":memory:" in address or "mode=memory" in address


@contextmanager
def clear_errors(
    address: object, as_error: Callable[[str], Exception] = StudyError
) -> Iterator[None]:
    """What a database says when it cannot be opened, in one message and without the password."""
    try:
        yield
    except RiskpilotError:
        raise
    except _UNUSABLE as error:
        shown = hide_password(str(address)) if isinstance(address, str | Path) else "given"
        told = without_password(f"{error}\n".splitlines()[0].rstrip(" ."), str(address))
        raise as_error(
            f"The storage {shown!r} cannot be opened: {told or type(error).__name__}. Give an "
            f"address such as sqlite:///study.db, and install the driver of its database."
        ) from None  # the chained error could show the password


def address_of(storage: object) -> str | None:
    """The address of a SQL storage, with its password; None for other storages."""
    if isinstance(storage, str):
        return storage
    url = getattr(_backend(storage), "url", None)
    return url if isinstance(url, str) else None


def file_of(storage: object) -> Path | None:
    """The file of a SQLite or journal storage."""
    if isinstance(storage, JournalStorage):
        path = getattr(getattr(storage, "_backend", None), "_file_path", None)
        return None if path is None else Path(path)
    address = address_of(storage)
    if address is None or not address.startswith("sqlite") or is_in_memory(address):
        return None
    return Path(address.partition(":///")[2].split("?")[0])


def has_heartbeat(storage: BaseStorage) -> bool:
    interval = getattr(storage, "get_heartbeat_interval", None)
    return interval is not None and interval() is not None


def fail_silent_trials(study: optuna.Study) -> None:
    """Fail the trials of workers that died, and queue them again.

    Optuna knows those whose heartbeat stopped. A worker that died before its first heartbeat left
    a trial that Optuna would wait for, for ever.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)
    backend = _backend(study._storage)
    if not isinstance(backend, RDBStorage) or backend.heartbeat_interval is None:
        return
    grace = backend.grace_period or 2 * backend.heartbeat_interval
    begun_before = datetime.now() - timedelta(seconds=2 * grace)
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if trial.datetime_start is None or trial.datetime_start > begun_before:
            continue
        with backend.engine.connect() as connection:
            query = sqlalchemy.text("SELECT 1 FROM trial_heartbeats WHERE trial_id = :id")
            if connection.execute(query, {"id": trial._trial_id}).first() is not None:
                continue
        with contextlib.suppress(UpdateFinishedTrialError):
            study._storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL)
            if backend.heartbeat_stale_trial_callback is not None:
                backend.heartbeat_stale_trial_callback(study, trial)


def fail_overdue_trials(study: optuna.Study, seconds: float) -> list[int]:
    """Fail trials that have run for longer than any may, and queue them again; for storages without
    heartbeats. Returns their numbers."""
    failed = []
    begun_before = datetime.now() - timedelta(seconds=seconds)
    queue_again = _queue_again()
    with exclusive(study), contextlib.suppress(UpdateFinishedTrialError):
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if trial.datetime_start is not None and trial.datetime_start < begun_before:
                study._storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL)
                queue_again(study, trial)
                failed.append(trial.number)
    return failed


@contextmanager
def exclusive(study: optuna.Study, *, whole_storage: bool = False) -> Iterator[None]:
    """One writer at a time among the processes that share a SQLite or journal file or a PostgreSQL
    database, and among the threads of this process with any other storage.

    ``whole_storage``: among the writers to all studies of the storage; a file has one lock anyway.
    """
    path, backend = file_of(study._storage), _backend(study._storage)
    with _memory_lock:
        if path is not None:
            with _file_lock(path, "proposal"):
                yield
        elif isinstance(backend, RDBStorage) and backend.engine.dialect.name == "postgresql":
            locked = "riskpilot, all studies" if whole_storage else f"riskpilot:{study.study_name}"
            key = {"key": zlib.crc32(locked.encode())}
            with backend.engine.begin() as connection:  # the lock ends with the transaction
                connection.execute(sqlalchemy.text("SELECT pg_advisory_xact_lock(:key)"), key)
                yield
        else:
            yield


@contextmanager
def _file_lock(path: Path, name: str) -> Iterator[None]:
    if fcntl is None:
        lock = JournalFileOpenLock(f"{path}.{name}")
        lock.acquire()
        try:
            yield
        finally:
            lock.release()
        return
    # Unlike a lock that is the existence of a file, this one is free when its holder dies.
    with Path(f"{path}.{name}-lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _backend(storage: object) -> Any:
    if isinstance(storage, JournalStorage):
        return storage
    return getattr(storage, "_backend", storage)  # a cached RDB storage wraps the real one
