"""Locks between workers, held by a file, a PostgreSQL database, or this process alone."""

import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
from optuna.storages import RDBStorage
from optuna.storages.journal import JournalFileOpenLock

from riskpilot.study.storages.location import file_of
from riskpilot.study.storages.optuna_internals import sql_storage_of, storage_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_threads = threading.RLock()


@contextmanager
def exclusive(study: optuna.Study, *, whole_storage: bool = False) -> Iterator[None]:
    """Let one worker at a time into the block.

    Processes that share a SQLite file, a journal file or a PostgreSQL database exclude each other.
    With any other storage only the threads of this process do. ``whole_storage``: exclude the
    writers to all studies of the storage, not to this one alone; a file has one lock anyway.
    """
    storage = storage_of(study)
    path, sql = file_of(storage), sql_storage_of(storage)
    with _threads:
        if path is not None:
            with file_lock(path, "proposal"):
                yield
        elif sql is not None and sql.engine.dialect.name == "postgresql":
            with _advisory_lock(sql, ", all studies" if whole_storage else f":{study.study_name}"):
                yield
        else:
            yield


@contextmanager
def file_lock(path: Path, purpose: str) -> Iterator[None]:
    """Hold the lock for one purpose that lies beside a file."""
    if fcntl is None:
        lock = JournalFileOpenLock(f"{path}.{purpose}")
        lock.acquire()
        try:
            yield
        finally:
            lock.release()
        return
    # A lock of the operating system is free as soon as its holder dies. A lock that consists in
    # the existence of a file is not.
    with Path(f"{path}.{purpose}-lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _advisory_lock(sql: RDBStorage, purpose: str) -> Iterator[None]:
    """Hold a PostgreSQL lock. It ends with the transaction, so also with a crash."""
    key = zlib.crc32(f"riskpilot{purpose}".encode())
    with sql.engine.begin() as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({key})")
        yield
