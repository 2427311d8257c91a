"""Storages opened by their address, in such a way that workers may die."""

import functools
import logging
import re
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import BaseStorage, RDBStorage

from riskpilot.common import other_than_file, unwarned
from riskpilot.errors import RiskpilotError, StudyError, raise_alone, shown
from riskpilot.study.storages.addresses import (
    JOURNAL_FILES,
    SQLITE_FILES,
    hide_password,
    is_certain,
    without_password,
)
from riskpilot.study.storages.heartbeats import GRACE_SECONDS, HEARTBEAT_SECONDS
from riskpilot.study.storages.journal import Journal, JournalFile
from riskpilot.study.storages.location import (
    address_of,
    file_of,
    is_in_memory,
    without_dots,
)
from riskpilot.study.storages.optuna_internals import unexpected
from riskpilot.study.storages.patience import PATIENCE_SECONDS, patience_with
from riskpilot.study.storages.retries import queue_again

logger = logging.getLogger("riskpilot")

_SLIP = re.compile(r"sqlite(\+[a-z0-9_]+)?:(?!///)")  # with fewer than three slashes
_MOST_ATTEMPTS = 20  # to set up a database that other workers set up at the same time
_ATTEMPT_PAUSE = 0.1  # seconds between two attempts


def open_storage(
    address: str | Path,
    *,
    heartbeat_seconds: int = HEARTBEAT_SECONDS,
    grace_seconds: int = GRACE_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
    wait: bool = False,
) -> str | BaseStorage:
    """Open the storage at an address, or in a SQLite or journal file.

    A storage that is opened here gets heartbeats: a trial whose worker is gone is marked as failed
    and queued again with the same configuration.

    Parameters
    ----------
    address : str or Path
        An address such as ``sqlite:///study.db`` or ``postgresql+psycopg://...``, or the path of a
        SQLite file (``.db``, ``.sqlite``, ``.sqlite3``) or a journal (``.log``, ``.journal``).
    heartbeat_seconds : int, default 60
        How often a worker says that it lives.
    grace_seconds : int, default 180
        After how long a silence the trial of a worker is given to another one.
    patience_seconds : float, default 600
        How long a storage that does not answer is waited for, whether its server restarts, its
        connection is cut or its disk is full.
    wait : bool, default False
        Whether a database that does not answer is waited for already when it is opened, as a
        worker does that joins a study. By default it is an error.

    Returns
    -------
    BaseStorage or str
        A storage for ``create_study`` and ``load_study``. An address that means memory is returned
        as it is, because every storage opened for it would be another one.

    Raises
    ------
    StudyError
        If the address is neither one of a database nor a file of a known kind, if the database
        cannot be opened, or if the file is somebody else's: a text that is no journal, or a SQLite
        file with other tables and none of a study. It is left as it is.

    Examples
    --------
    >>> open_storage("sqlite:///:memory:")
    'sqlite:///:memory:'
    """
    times = _Times(heartbeat_seconds, grace_seconds, patience_seconds)
    return _open(str(address), times, wait=wait, existing=False)


def _open(address: str, times: "_Times", *, wait: bool, existing: bool) -> str | BaseStorage:
    """Open a storage. ``existing``: whether it must hold studies already."""
    _check_spelling(address)
    suffix = Path(address).suffix.lower()
    if "://" not in address and suffix in JOURNAL_FILES:
        _check_ordinary(address, without_dots(address))
        with clear_errors(address):
            file = JournalFile(address, times.patience)
            return Journal(file, times.heartbeat, times.grace)
    if "://" not in address and suffix in SQLITE_FILES:
        if "?" in address:
            raise StudyError(
                f"A database of a study is named without '?', behind which an address has its "
                f"settings, but the file is {hide_password(address)!r}. Give it another name."
            )
        if "{" in address or "}" in address:
            raise StudyError(
                f"A database of a study is named without braces, which Optuna reads as something "
                f"to fill in, but the file is {hide_password(address)!r}. Give it another name."
            )
        from riskpilot.study.storages.sql import address_of_file  # it loads SQLAlchemy

        address = address_of_file(address)
    if "://" not in address:
        raise StudyError(
            f"A storage is an address such as sqlite:///study.db or a file that ends in "
            f"{', '.join((*SQLITE_FILES, *JOURNAL_FILES))}, but it is "
            f"{hide_password(address)!r}. Name one."
        )
    if is_in_memory(address):
        return address
    path = file_of(address)
    if path is not None:
        _check_ordinary(address, path)
    with clear_errors(address):
        return _open_database(address, times, wait=wait, existing=existing)


def existing_storage(
    address: str | Path, *, patience_seconds: float = PATIENCE_SECONDS, wait: bool = False
) -> str | BaseStorage:
    """Open the storage at an address or in a file that exists; nothing is created or written.

    ``patience_seconds``, ``wait``: as for `open_storage`.
    """
    address = str(address)
    _check_spelling(address)
    if "://" not in address:
        _check_file(address, without_dots(address))
    elif not is_in_memory(address):
        with clear_errors(address):
            path = _named_file(address)
        if path is not None:
            _check_file(address, path)
    times = _Times(HEARTBEAT_SECONDS, GRACE_SECONDS, patience_seconds)
    return _open(address, times, wait=wait, existing=True)


def _named_file(address: str) -> Path | None:
    """Return the file that an address of SQLite names; None where an address names no file."""
    parts = urlsplit(address)
    if not (parts.scheme.startswith("sqlite") and parts.path.strip("/")):
        return None
    if not address.startswith(f"{parts.scheme}:///"):
        return Path(parts.path[1:])
    from riskpilot.study.storages.sql import file_that_opens

    return file_that_opens(address)


def _check_spelling(address: str) -> None:
    """Refuse slips in an address or a path that would lead elsewhere."""
    if "\0" in address or not address.strip():
        raise StudyError(
            f"A storage is an address such as sqlite:///study.db or a file, but "
            f"{hide_password(address)!r} is a name that no system takes. Name one."
        )
    slip = _SLIP.match(address)
    if slip is not None and not is_in_memory(address):
        # Without an @ there is no password in it, however it is spelled.
        written = hide_password(address) if "@" in address else address
        raise StudyError(
            f"An address of SQLite has three slashes before the path of its file, and a fourth "
            f"where the path begins at the root, but it is {written!r}. Write sqlite:///study.db."
        )


def _check_file(address: str, path: Path) -> None:
    """Refuse a file that does not exist or is empty; Optuna would make a database of a slip."""
    _check_ordinary(address, path)
    if path.exists() and path.stat().st_size > 0:
        return
    why = "is empty" if path.exists() else "does not exist"
    raise StudyError(
        f"There is no study at {hide_password(address)!r}: the file "
        f"{without_password(shown(str(path)), address)} {why}. Give the path relative to the "
        f"folder in which the command runs."
    )


def _check_ordinary(address: str, path: Path) -> None:
    """Refuse a folder, a pipe or a device in the place of a file, and ``..`` of no folder."""
    kind = other_than_file(path)
    if kind is not None:
        raise StudyError(
            f"A study is kept in an ordinary file, but {hide_password(address)!r} is {kind}. Name "
            f"a file, or one that is yet to be made."
        )
    # SQLite itself would take `..` for the folder above one that is not there.
    if ".." in path.parts and not path.parent.exists():
        raise StudyError(
            f"A study is kept in a folder that exists, but the one of {hide_password(address)!r} "
            f"does not. Make it, or write the path without '..'."
        )


@contextmanager
def clear_errors(address: object) -> Iterator[None]:
    """Raise what a database says when it cannot be opened in one message, without the password.

    Whatever another library raises is dropped from the chain of errors, because it could show the
    password.
    """
    try:
        yield
    except RiskpilotError:
        raise
    except Exception as error:
        raise_alone(StudyError(_why_not(address, error)))


def _why_not(address: object, error: Exception) -> str:
    """Say why a storage cannot be opened, without its password."""
    named = str(address) if isinstance(address, str | Path) else address_of(address)
    cause = _cause(error)
    if named is None:
        storage, reason = f"of the type {type(address).__name__!r}", str(cause)
    else:
        storage, reason = repr(hide_password(named)), without_password(str(cause), named)
    if named is not None and not is_certain(named):  # what is said of it could show any part of it
        return (
            f"The storage {storage} cannot be opened: it is not written as SCHEME://USER:PASSWORD@"
            f"HOST/DATABASE ({type(error).__name__}). Write every other character of the password "
            f"than letters and digits as its code, @ as %40 and : as %3A."
        )
    first_line = f"{reason}\n".splitlines()[0].rstrip(" .")
    why = f"The storage {storage} cannot be opened: {first_line or type(error).__name__}."
    return f"{why} {_way_out(named, cause)}"


def _cause(error: Exception) -> BaseException:
    """Return what a database said, where Optuna raises it as an error of its own."""
    said = error.__cause__ if isinstance(error, StorageInternalError) else None
    return error if said is None else said


def _way_out(address: str | None, cause: BaseException) -> str:
    """Say what helps where a storage cannot be opened."""
    is_file = address is not None and ("://" not in address or file_of(address) is not None)
    if not is_file:
        if isinstance(cause, ImportError) or type(cause).__name__ == "NoSuchModuleError":
            return (
                "Give an address such as sqlite:///study.db, and install the driver of its "
                "database."
            )
        return "Check its address, and that the database runs and can be reached."
    if isinstance(cause, OSError) or "unable to open" in str(cause):
        return "Check that its folder exists, and that you may read and write there."
    return (
        "Optuna made no such file, or it was changed from outside: restore it from a copy, or "
        "name another file."
    )


class _Times(NamedTuple):
    """The times of a storage, in seconds: see `open_storage`."""

    heartbeat: int
    grace: int
    patience: float


def _open_database(address: str, times: _Times, *, wait: bool, existing: bool) -> RDBStorage:
    """Open an SQL storage with heartbeats and patience."""
    # This function and those below are the door to SQLAlchemy. Its import takes about as long as
    # that of Optuna, and studies in memory or in a journal do not need it.
    from riskpilot.study.storages.sql import (
        check_tables,
        engine_options,
        is_made_elsewhere,
        opening_errors,
        opening_patience,
    )

    def opened() -> RDBStorage:
        with opening_errors(), unwarned(ExperimentalWarning):
            check_tables(address, existing=existing)
            return _storage_class(address)(
                address,
                engine_kwargs=engine_options(address),
                heartbeat_interval=times.heartbeat,
                grace_period=times.grace,
                heartbeat_stale_trial_callback=queue_again(),
            )

    def made() -> RDBStorage:
        # Workers that set up a new database at the same time get in each other's way. Each of them
        # finds more of it done the next time.
        for _ in range(_MOST_ATTEMPTS):
            try:
                return opened()
            except StorageInternalError as error:
                if not is_made_elsewhere(error):
                    raise
            time.sleep(_ATTEMPT_PAUSE)
        return opened()

    storage = opening_patience(address, times.patience)(made) if wait else made()
    patience_with(storage).seconds = times.patience
    weakref.finalize(storage, storage.engine.dispose)  # Optuna leaves its connections open
    return storage


def _storage_class(address: str) -> type[RDBStorage]:
    """Choose the class for a database: Optuna's own where riskpilot has none that fits."""
    from riskpilot.study.storages.sql import PostgresqlStorage, SqliteStorage

    if not address.startswith(("sqlite", "postgresql")) or not _optuna_is_known():
        return RDBStorage
    return SqliteStorage if address.startswith("sqlite") else PostgresqlStorage


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
