"""Connections to a database, and its errors as Optuna raises them."""

import functools
import select
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import sqlalchemy
from optuna.exceptions import StorageInternalError
from sqlalchemy.exc import (
    DBAPIError,
    DisconnectionError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)

from riskpilot.study.storages.addresses import hide_password, without_password
from riskpilot.study.storages.location import without_dots
from riskpilot.study.storages.patience import PATIENCE_SECONDS, Patience, disk_reason

_RECYCLE_SECONDS = 300  # an evaluation may outlive a connection that nobody uses meanwhile
_BUSY_SECONDS = 60  # how long a writer waits for another one's lock on a SQLite file
_LIBPQ_DRIVERS = ("psycopg", "psycopg2")
# A network that is cut says nothing; without these limits a worker would wait for hours.
_LIBPQ_OPTIONS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
# PostgreSQL ends a transaction that its worker has left alone for so long, and frees what it had
# locked. No transaction of a worker that runs waits for anything but the database.
_IDLE_SECONDS = 30
_PASSING_SQLITE_ERRORS = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
}
_LOST_SQLITE_ERRORS = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# What is said of a database that is not there, or of a host that nobody knows.
_REFUSALS = ("unable to open database file", "failed to resolve host", "could not translate host")
_HUNG_UP = select.POLLHUP | select.POLLERR | select.POLLNVAL | getattr(select, "POLLRDHUP", 0)


def engine_options(address: str) -> dict[str, Any]:
    """Return the options of SQLAlchemy's engine for a database, by the kind of the database."""
    options: dict[str, Any] = {"pool_recycle": _RECYCLE_SECONDS}
    if address.startswith("sqlite"):
        options["connect_args"] = {"timeout": _BUSY_SECONDS}
    elif not address.startswith("postgresql"):
        options["pool_pre_ping"] = True
    elif sqlalchemy.make_url(address).get_driver_name() in _LIBPQ_DRIVERS:
        options["connect_args"] = dict(_LIBPQ_OPTIONS)
        options["pool_events"] = [(_set_up, "connect"), (_check, "checkout")]
    return options


def address_of_file(path: str) -> str:
    """Return the address for which SQLite opens the file at a path.

    SQLAlchemy may read what follows a % as the code of a character.

    >>> str(file_that_opens(address_of_file("100%25.db")))
    '100%25.db'
    """
    address = f"sqlite:///{path}"
    is_read_as_written = sqlalchemy.make_url(address).database == path
    return address if is_read_as_written else f"sqlite:///{path.replace('%', '%25')}"


@functools.lru_cache(maxsize=64)  # every write to a file asks for it
def file_that_opens(address: str) -> Path:
    """Return the file that SQLite opens for an address, which may write characters as codes.

    >>> str(file_that_opens("sqlite:///my%20study.db"))
    'my study.db'
    >>> str(file_that_opens("sqlite:///file:study.db?mode=rw&uri=true"))
    'study.db'
    """
    url = sqlalchemy.make_url(address)
    name = url.database or ""
    is_uri = "uri" in url.query and name.startswith("file:")
    return Path(unquote(urlsplit(name).path)) if is_uri else without_dots(name)


def _set_up(connection: Any, _: Any) -> None:
    """Let a connection to PostgreSQL keep UTC, and end a transaction that is abandoned.

    Heartbeats are written by the database in the time zone of the connection. In one with summer
    time, or in two of them, heartbeats would seem to be hours old.
    """
    was_autocommit, connection.autocommit = connection.autocommit, True
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'UTC'")
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'")
    connection.autocommit = was_autocommit


def _check(connection: Any, _: Any, __: Any) -> None:
    """Refuse a connection that the server has closed; the operating system knows that."""
    poll = select.poll()
    poll.register(connection.fileno(), _HUNG_UP)
    if poll.poll(0):
        raise DisconnectionError("the server has closed the connection")


def new_patience(address: str) -> Patience:
    """Make the patience with the database at an address."""
    what = f"The database {hide_password(address)}"
    reason_of = functools.partial(_shown_reason, address)
    return Patience(what, PATIENCE_SECONDS, reason_of, lost_reason)


def opening_patience(address: str, seconds: float) -> Patience:
    """Make the patience with a database that is opened: one that refuses is not waited for."""
    what = f"The database {hide_password(address)}"
    return Patience(what, seconds, functools.partial(_opening_reason, address))


def _shown_reason(address: str, error: Exception) -> str | None:
    """Say why a call to a database may succeed later, without its password."""
    reason = passing_reason(error)
    return None if reason is None else without_password(reason, address)


def _opening_reason(address: str, error: Exception) -> str | None:
    """Say why a database may open later; None where it has refused, or there is none."""
    reason = _shown_reason(address, error)
    if reason is None or any(words in reason for words in _REFUSALS):
        return None
    has_refused = "FATAL" in reason and "the database system is" not in reason
    return None if has_refused else reason


def passing_reason(error: Exception) -> str | None:
    """Say why a call to a database may succeed later; None where it will not."""
    cause = error.__cause__ if isinstance(error, StorageInternalError) else error
    if isinstance(cause, sqlalchemy.exc.TimeoutError):
        return "all connections of this worker are in use"
    if isinstance(cause, DBAPIError):
        return _passing_reason(cause)
    return disk_reason(error)


def _passing_reason(error: DBAPIError) -> str | None:
    """Say why an error of a database driver may pass in time; None where it will not."""
    words = f"{error.orig}\n".splitlines()[0].rstrip(" .") or type(error.orig).__name__
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return words if code & 0xFF in _PASSING_SQLITE_ERRORS else None
    is_passing = isinstance(error, OperationalError | InterfaceError)
    return words if is_passing or error.connection_invalidated else None


def lost_reason(error: Exception) -> str | None:
    """Say why the file of a SQLite database is gone for good; None where an error is another."""
    if isinstance(error, FileNotFoundError):  # the lock beside the file has no folder any more
        return "its folder is gone"
    cause = error.__cause__ if isinstance(error, StorageInternalError) else error
    if not isinstance(cause, DBAPIError):
        return None
    words, code = str(cause.orig), getattr(cause.orig, "sqlite_errorcode", None)
    if code is None or (code & 0xFF not in _LOST_SQLITE_ERRORS and "no such table" not in words):
        return None
    return words


def is_made_elsewhere(error: Exception) -> bool:
    """Tell whether a database could not be set up because another worker did so just then."""
    cause = error.__cause__ if isinstance(error, StorageInternalError) else error
    return isinstance(cause, IntegrityError) or (
        isinstance(cause, DBAPIError)
        and any(words in str(cause.orig) for words in ("already exists", "database is locked"))
    )


@contextmanager
def opening_errors() -> Iterator[None]:
    """Raise an error of SQLAlchemy as one of Optuna's, in the same words."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StorageInternalError(str(error)) from error


@contextmanager
def clear_errors() -> Iterator[None]:
    """Raise an error of the database as Optuna does.

    A broken constraint is let through: it says that another worker has written the same row.
    """
    try:
        yield
    except IntegrityError:
        raise
    except SQLAlchemyError as error:
        raise StorageInternalError(
            f"The database did not answer as it should ({type(error).__name__}). Check that it "
            f"runs and can be reached."
        ) from error


@contextmanager
def one_statement(engine: sqlalchemy.Engine) -> Iterator[sqlalchemy.Connection]:
    """Open a connection for one statement, which is a transaction of its own."""
    with clear_errors():
        if engine.dialect.name == "sqlite":
            # Another mode of the connection would make SQLite forget its prepared statements, and
            # to prepare one takes longer than to execute it.
            with engine.begin() as connection:
                yield connection
        else:
            # A server would be asked to begin and to end a transaction as well.
            with engine.connect() as connection:
                yield connection.execution_options(isolation_level="AUTOCOMMIT")
