"""Locks between workers, held by a file, a PostgreSQL database, or this process alone.

The lock around a proposal is a lease: a worker that is stopped while it holds the lock loses it
after a while, and the next one goes on. The stopped worker, when it continues, can see that it lost
the lock, and decides again. The locks around the ledger and around an adoption are no leases: two
entries that are written at once would be one, and two adoptions would double the trials.
"""

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Literal

import optuna
from optuna.storages.journal import JournalFileOpenLock

from riskpilot.study.storages.location import file_of
from riskpilot.study.storages.notices import say
from riskpilot.study.storages.optuna_internals import sql_storage_of, storage_of
from riskpilot.study.storages.patience import patience_with

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Purpose = Literal["proposal", "ledger", "adoption"]

LEASE_SECONDS = 30.0  # a proposal takes less than a second
_QUIET_SECONDS = 10.0  # how long a worker waits before it says so
_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02
_SIGNATURE = 64  # bytes, so that the next holder's name covers all of the last one's

_threads = threading.RLock()
_adopting = threading.RLock()  # an adoption takes long, and nobody else waits for it


@contextmanager
def exclusive(study: optuna.Study, purpose: Purpose = "proposal") -> Iterator[Callable[[], bool]]:
    """Let one worker at a time into the block, which gets a function that tells if it still holds.

    Processes that share a SQLite file, a journal file or a PostgreSQL database exclude each other.
    With any other storage only the threads of this process do. ``purpose``: "ledger" excludes the
    writers to the ledgers of all studies of the storage, and those who make a study; "adoption"
    those who adopt into the study. These locks are not leases.
    """
    storage = storage_of(study)
    path, sql = file_of(storage), sql_storage_of(storage)
    lease = LEASE_SECONDS if purpose == "proposal" else None
    with _adopting if purpose == "adoption" else _threads:
        if path is not None:
            with patience_with(storage)(lambda: file_lock(path, purpose, lease)) as lock:
                yield lambda: lock is None or _is_at(lock, _place(path, purpose))
        elif sql is not None and sql.engine.dialect.name == "postgresql":
            from riskpilot.study.storages.sql import advisory_lock  # it loads SQLAlchemy

            names = {
                "proposal": f":{study.study_name}",
                "ledger": ", all studies",
                "adoption": f", adoption:{study.study_name}",
            }
            with advisory_lock(sql, names[purpose], lease) as is_held:
                yield is_held
        else:
            yield lambda: True


def file_lock(
    path: Path, purpose: str, lease: float | None = None
) -> contextlib.AbstractContextManager[FileIO | None]:
    """Wait for the lock for one purpose that lies beside a file; it is held until it is closed.

    ``lease``: after how many seconds with the same holder the next one goes on without it.
    """
    # A lock of the operating system is free as soon as its holder dies. A lock that consists in
    # the existence of a file is not.
    return _existence_lock(path, purpose) if fcntl is None else _locked(path, purpose, lease)


@contextmanager
def _existence_lock(path: Path, purpose: str) -> Iterator[None]:
    """Hold a lock that consists in the existence of a file."""
    lock = JournalFileOpenLock(f"{path}.{purpose}")
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _locked(path: Path, purpose: str, lease: float | None) -> FileIO:
    """Wait for a lock, and return the open file that holds it until it is closed."""
    place = _place(path, purpose)
    seen: tuple[int, bytes] | None = None
    since = begun = time.monotonic()
    pause, has_said = _FIRST_PAUSE, False
    while True:
        file = _opened(place)
        if _is_free(file) and _is_current(file, place):
            return _signed(file)
        holder = _holder(file)
        file.close()
        now = time.monotonic()
        if holder != seen:
            seen, since = holder, now
        elif lease is not None and now - since > lease:
            taken = _taken_over(place, holder)
            if taken is not None:
                say(
                    f"A worker{_process(holder)} has held the {purpose} lock of {path} for "
                    f"{lease:g} seconds, so that it may have been stopped; this worker goes on."
                )
                return taken
        elif lease is None and now - begun > _QUIET_SECONDS and not has_said:
            has_said = True
            say(
                f"This worker waits for the {purpose} lock of {path}, which another one"
                f"{_process(holder)} holds. If that one was stopped, let it go on or end it."
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _opened(place: Path) -> FileIO:
    """Open the file of a lock, or make it, to be read and written over."""
    return FileIO(os.open(place, os.O_RDWR | os.O_CREAT, 0o666), "r+b")


def _is_free(file: FileIO) -> bool:
    """Lock an open file if nobody has; tell whether that was so."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _place(path: Path, purpose: str) -> Path:
    """Return where the lock for a purpose lies."""
    return Path(f"{path}.{purpose}-lock")


def _is_current(file: FileIO, place: Path) -> bool:
    """Tell whether an open file is still the one at its place; if not, it is closed."""
    if _is_at(file, place):
        return True
    file.close()
    return False


def _is_at(file: FileIO, place: Path) -> bool:
    """Tell whether an open file is the one at a place."""
    try:
        return os.fstat(file.fileno()).st_ino == place.stat().st_ino
    except FileNotFoundError:
        return False


def _signed(file: FileIO) -> FileIO:
    """Write into a lock who holds it, so that those who wait see when its holder changes.

    The file keeps its length: to empty and to fill it again takes a file system ten times as long.
    """
    with contextlib.suppress(OSError):  # a full disk must not keep anybody from the lock
        os.pwrite(file.fileno(), f"{os.getpid()} {uuid.uuid4()}".ljust(_SIGNATURE).encode(), 0)
    return file


def _holder(file: FileIO) -> tuple[int, bytes]:
    """Return what tells one holder of a lock from the next: the file, and what is written in it."""
    if file.closed:
        return 0, b""
    file.seek(0)
    return os.fstat(file.fileno()).st_ino, file.read(100)


def _process(holder: tuple[int, bytes]) -> str:
    """Name the process that holds a lock, as words within a sentence."""
    number, _, _ = holder[1].partition(b" ")
    return f" (process {number.decode()})" if number.isdigit() else ""


def _taken_over(place: Path, stale: tuple[int, bytes]) -> FileIO | None:
    """Put a lock of this process in the place of a stale one; None where another was faster.

    The stopped worker keeps its lock on a file that has no name any more.
    """
    with place.with_name(f"{place.name.removesuffix('-lock')}-takeover-lock").open(
        "ab", 0
    ) as guard:
        if not _is_free(guard):
            return None
        with _opened(place) as current:
            if _holder(current) != stale:
                return None
        fresh_place = place.with_name(f"{place.name}.{uuid.uuid4()}")
        fresh = _opened(fresh_place)
        fcntl.flock(fresh, fcntl.LOCK_EX)
        _signed(fresh)
        fresh_place.replace(place)
        return fresh
