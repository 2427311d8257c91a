"""Turns at a file: one process or thread at a time, kept by a lock of the operating system."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Wait until nobody else is in such a block for the same file, and keep the others waiting.

    The lock is an empty file beside the one that it protects. It stays there: to remove it would
    let in two at once, one that holds the old file and one that made a new one. The operating
    system frees the lock when its holder ends, however it ends.
    """
    with path.with_name(f"{path.name}.lock").open("ab") as lock:
        if sys.platform == "win32":
            msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)
        else:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
