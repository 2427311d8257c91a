"""Storages opened by their address, in such a way that workers may die."""

import functools
import logging
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from riskpilot.errors import RiskpilotError, StudyError
from riskpilot.study.storages.addresses import (
    JOURNAL_FILES,
    SQLITE_FILES,
    hide_password,
    without_password,
)
from riskpilot.study.storages.heartbeats import GRACE_SECONDS, HEARTBEAT_SECONDS, queue_again
from riskpilot.study.storages.location import is_in_memory
from riskpilot.study.storages.optuna_internals import unexpected

logger = logging.getLogger("riskpilot")

_BUSY_SECONDS = 60  # how long a writer waits for another one's lock on a SQLite file
_RECYCLE_SECONDS = 300  # an evaluation may outlive a connection that nobody uses meanwhile

_UNUSABLE = (ImportError, StorageInternalError, OSError, RuntimeError, ValueError)


def open_storage(
    address: str | Path,
    *,
    heartbeat_seconds: int = HEARTBEAT_SECONDS,
    grace_seconds: int = GRACE_SECONDS,
) -> str | BaseStorage:
    """Open the storage at an address, or in a SQLite or journal file.

    An SQL storage that is opened here gets heartbeats: a trial whose worker is gone is marked as
    failed and queued again with the same configuration. A journal file has none.

    Parameters
    ----------
    address : str or Path
        An address such as ``sqlite:///study.db`` or ``postgresql+psycopg://...``, or the path of a
        SQLite file (``.db``, ``.sqlite``, ``.sqlite3``) or a journal (``.log``, ``.journal``).
    heartbeat_seconds : int, default 60
        How often a worker says that it lives.
    grace_seconds : int, default 180
        After how long a silence the trial of a worker is given to another one.

    Returns
    -------
    BaseStorage or str
        A storage for ``create_study`` and ``load_study``. An address that means memory is returned
        as it is, because every storage opened for it would be another one.

    Raises
    ------
    StudyError
        If the address is neither one of a database nor a file of a known kind.
    StorageInternalError
        If the database cannot be opened.

    Examples
    --------
    >>> open_storage("sqlite:///:memory:")
    'sqlite:///:memory:'
    """
    address = str(address)
    suffix = Path(address).suffix.lower()
    if "://" not in address and suffix in JOURNAL_FILES:
        return JournalStorage(JournalFileBackend(address))
    if "://" not in address and suffix in SQLITE_FILES:
        address = f"sqlite:///{address}"
    if "://" not in address:
        raise StudyError(
            f"A storage is an address such as sqlite:///study.db or a file that ends in "
            f"{', '.join((*SQLITE_FILES, *JOURNAL_FILES))}, but it is {address!r}. Name one."
        )
    if is_in_memory(address):
        return address
    return _open_database(address, heartbeat_seconds, grace_seconds)


def existing_storage(address: str | Path) -> str | BaseStorage:
    """Open the storage at an address or in a file that exists; nothing is created."""
    address = str(address)
    if "://" not in address:
        _check_file(address, Path(address))
    elif not is_in_memory(address):
        try:
            parts = urlsplit(address)
        except ValueError as error:
            raise StudyError(
                f"The storage {hide_password(address)!r} cannot be opened: "
                f"{without_password(str(error), address)}. Give an address such as "
                f"sqlite:///study.db."
            ) from None  # the chained error could show the password
        if parts.scheme.startswith("sqlite") and parts.path.strip("/"):
            _check_file(address, Path(parts.path[1:]))
    with clear_errors(address):
        return open_storage(address)


def _check_file(address: str, path: Path) -> None:
    """Refuse a file that does not exist; SQLite would make an empty one of a slip."""
    if not path.is_file():
        raise StudyError(
            f"There is no study at {hide_password(address)!r}: the file {str(path)!r} does not "
            f"exist. Give the path relative to the folder in which the command runs."
        )


@contextmanager
def clear_errors(
    address: object, as_error: Callable[[str], Exception] = StudyError
) -> Iterator[None]:
    """Raise what a database says when it cannot be opened in one message, without the password."""
    try:
        yield
    except RiskpilotError:
        raise
    except _UNUSABLE as error:
        shown = hide_password(str(address)) if isinstance(address, str | Path) else "given"
        reason = without_password(f"{error}\n".splitlines()[0].rstrip(" ."), str(address))
        raise as_error(
            f"The storage {shown!r} cannot be opened: {reason or type(error).__name__}. Give an "
            f"address such as sqlite:///study.db, and install the driver of its database."
        ) from None  # the chained error could show the password


def _open_database(address: str, heartbeat_seconds: int, grace_seconds: int) -> RDBStorage:
    """Open an SQL storage with heartbeats."""
    # This function and those below are the door to SQLAlchemy. Its import takes about as long as
    # that of Optuna, and studies in memory or in a journal do not need it.
    from riskpilot.study.storages.sql import opening_errors

    options: dict[str, Any] = {"pool_recycle": _RECYCLE_SECONDS}
    if address.startswith("sqlite"):
        options["connect_args"] = {"timeout": _BUSY_SECONDS}
    with opening_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        storage = _storage_class(address)(
            address,
            engine_kwargs=options,
            heartbeat_interval=heartbeat_seconds,
            grace_period=grace_seconds,
            heartbeat_stale_trial_callback=queue_again(),
        )
    weakref.finalize(storage, storage.engine.dispose)  # Optuna leaves its connections open
    return storage


def _storage_class(address: str) -> type[RDBStorage]:
    """Choose the class for a database: Optuna's own where riskpilot has none that fits."""
    from riskpilot.study.storages.sql import SqliteStorage, SqlStorage

    if not address.startswith(("sqlite", "postgresql")) or not _optuna_is_known():
        return RDBStorage
    return SqliteStorage if address.startswith("sqlite") else SqlStorage


@functools.cache  # the warning is logged once in a process
def _optuna_is_known() -> bool:
    """Tell whether riskpilot's SQL storages fit the Optuna that is installed, and warn if not."""
    from riskpilot.study.storages.sql import SqliteStorage

    difference = unexpected(SqliteStorage)  # which inherits all that SqlStorage replaces
    if difference is not None:
        logger.warning(
            "riskpilot does not know the inside of Optuna %s (%s), so studies in databases use "
            "Optuna's own storage: it sends more statements, and workers that share a SQLite file "
            "wait for each other longer.",
            optuna.__version__,
            difference,
        )
    return difference is None
