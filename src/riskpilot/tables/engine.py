"""The DuckDB that the tables of a process are read with."""

import atexit
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import token_hex

import duckdb

# DuckDB spills to disk what it cannot hold in this much memory.
_MEMORY = "512MB"
# Of columns of any objects in pandas, DuckDB would guess the type from the first 1,000 rows, and
# make the others fit.
_OBJECTS_LOOKED_AT = 2**31 - 1


@contextmanager
def own_connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to a DuckDB of its own, for texts, which take memory while they are read, and for
    files far away, of which several parts are fetched at once."""
    with tempfile.TemporaryDirectory(prefix="riskpilot-") as folder:
        connection = _start(Path(folder) / "spilled")
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def shared_connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to the DuckDB of this process; what is temporary goes with the connection.

    It is started once, because that takes as long as counting a million rows.
    """
    engine = _engine(os.getpid())
    connection = engine.connect()
    try:
        yield connection
    finally:
        connection.close()
        engine.leave()


class _Engine:
    """A DuckDB with as many connections as are asked for.

    It stops its threads before the process is forked, because a child could not end without them;
    the child starts a DuckDB of its own.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._n_connected = 0
        self._database = self._started()
        if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
            os.register_at_fork(before=self._rest)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Make a connection that shares nothing with others but memory and threads."""
        with self._lock:
            if self._n_connected == 0:
                try:
                    self._database.execute("RESET threads")
                except duckdb.Error:  # an error of its own made it unusable
                    self._database = self._started()
            self._n_connected += 1
            return self._database.cursor()

    def leave(self) -> None:
        """Count a connection that was closed."""
        with self._lock:
            self._n_connected -= 1

    def _rest(self) -> None:
        """Stop all threads, unless someone is connected."""
        if os.getpid() != self._process:
            return
        with self._lock, suppress(duckdb.Error):
            if self._n_connected == 0:
                self._database.execute("SET threads = 1")

    def _started(self) -> duckdb.DuckDBPyConnection:
        """Start a DuckDB that is stopped with the process, when it removes what it spilled."""
        place = Path(tempfile.gettempdir()) / f"riskpilot-{token_hex(8)}"
        database = _start(place, async_threads=0)
        atexit.register(lambda: database.close() if os.getpid() == self._process else None)
        return database


@cache
def _engine(process: int) -> _Engine:
    """Return the DuckDB of a process; one that was forked from another has its own."""
    return _Engine()


def _start(spilled: Path, **settings: int) -> duckdb.DuckDBPyConnection:
    """Start a DuckDB that has nothing on disk but what it spills."""
    return duckdb.connect(
        config={
            "memory_limit": _MEMORY,
            "temp_directory": str(spilled),
            "pandas_analyze_sample": _OBJECTS_LOOKED_AT,
            **settings,
        }
    )
