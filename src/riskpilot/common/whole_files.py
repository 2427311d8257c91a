"""Files that are whole or not there: written beside their place, and renamed when complete."""

import contextlib
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing whose content takes the place of an earlier one when all of it is on
    the disk.

    Until then the earlier file stays as it is: an error, such as that of a full disk, leaves it and
    nothing else behind, and a process that is killed leaves it and a hidden file that ends in
    ``.part``. A link keeps pointing to its file. What is no ordinary file, such as ``/dev/stdout``,
    is written to directly.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        with place.open("wb") as file:
            yield file
        return
    part = place.with_name(f".riskpilot-{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            part.chmod(stat.S_IMODE(place.stat().st_mode))  # as the earlier file had it
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(place.parent)


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write a text (as UTF-8) or bytes to a file, whole or not at all, and return where it is.

    Half of a surrogate pair, which UTF-8 does not have, is written as its code.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/page.html", "new").read_text()
    'new'
    """
    as_bytes = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    with replacing(path) as file:
        file.write(as_bytes)
    return Path(path)


def reason_of(error: Exception) -> str:
    """Say why a file cannot be used; the path, which a message names itself, is left out.

    >>> reason_of(FileNotFoundError(2, "No such file or directory", "postgresql:/ann:secret@h"))
    'No such file or directory'
    """
    known = error.strerror if isinstance(error, OSError) else None
    return known or str(error)


def _sync_folder(folder: Path) -> None:
    """Bring the new name of a file to the disk, where the system can do that for a folder."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
