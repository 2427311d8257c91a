"""Files that are read: a folder, a pipe or a device in the place of a file is refused unopened.

Opening a pipe waits for whoever writes to it, and reading a device may never end. Whoever can put a
file somewhere can put one of these there, or a link to one.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from riskpilot.common.passwords import shown_safely
from riskpilot.errors import RiskpilotError

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_WAY_OUT = "Give the path of a file."
# What a shell passes to a command in the place of a file: its input, or the output of another one.
_PASSED = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def other_than_file(path: str | Path) -> str | None:
    """Say what stands in the place of a file; None for an ordinary file, and where there is none.

    >>> other_than_file("/"), other_than_file("/no/such/file")
    ('a folder', None)
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # a name may hold what no system takes
        return None
    return _kind(mode)


def check_ordinary(
    path: str | Path, what: str, error: type[RiskpilotError], way_out: str = _WAY_OUT
) -> os.stat_result:
    """Return the status of a file, or refuse what is none.

    ``what``: its name in the message; ``way_out``: the sentence that ends the message.
    """
    status = os.stat(os.fspath(path))  # the number of an open file is no path
    _refuse(status, path, what, error, way_out)
    return status


def open_ordinary(
    path: str | Path, what: str, error: type[RiskpilotError], way_out: str = _WAY_OUT
) -> BinaryIO:
    """Open a file for reading, or refuse what is none, as `check_ordinary` does."""
    check_ordinary(path, what, error, way_out)
    # What lies there may be exchanged after it was looked at; a pipe must not hold anybody then.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _refuse(os.fstat(handle), path, what, error, way_out)
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def open_passed(path: str | Path, what: str, error: type[RiskpilotError]) -> BinaryIO:
    """Open a file for reading, as `open_ordinary` does, or a pipe that a shell passed."""
    if os.fsdecode(path).startswith(_PASSED) and stat.S_ISFIFO(os.stat(path).st_mode):
        return Path(path).open("rb")
    return open_ordinary(path, what, error)


def _refuse(
    status: os.stat_result, path: str | Path, what: str, error: type[RiskpilotError], way_out: str
) -> None:
    """Raise one sentence where a status is not that of an ordinary file."""
    kind = _kind(status.st_mode)
    if kind is not None:
        raise error(
            f"{what} must be an ordinary file, but {shown_safely(path)} is {kind}. {way_out}"
        )


def _kind(mode: int) -> str | None:
    """Name what is no ordinary file; None for an ordinary one."""
    if stat.S_ISREG(mode):
        return None
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
