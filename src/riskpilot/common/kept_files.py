"""Files that keep what nobody can do again: they are not to be written over."""

import os
import re
import zipfile
from contextlib import suppress
from pathlib import Path

from riskpilot.common.ordinary_files import other_than_file
from riskpilot.common.passwords import shown_safely
from riskpilot.errors import RiskpilotError

LEDGER = ".ledger.json"  # how the name of the ledger beside a table ends
LOSSES = ".losses"  # how the name of the folder of a study's losses ends
_BESIDE_DATABASE = re.compile(r"(.+)-(?:wal|shm|journal)")
_LOCK = re.compile(r"(.+)\.(?:[a-z]+-)?lock")
_SIGNS = {
    re.compile(rb"SQLite format 3\0"): "a database",
    re.compile(rb'\s*{\s*"op_code"\s*:\s*\d+\s*,\s*"worker_id"\s*:'): "the journal of a study",
    re.compile(rb'\s*\[\s*{\s*"use"\s*:\s*1\s*,\s*"question"\s*:'): "the ledger of a table",
    re.compile(rb'\s*{\s*"schema"\s*:\s*"riskpilot-seal/'): "a seal",
    re.compile(rb'\s*{\s*"schema"\s*:\s*"riskpilot-watch-file/'): "the state of a watch",
}


def kept_in(path: str | Path) -> str | None:
    """Say what a file keeps that cannot be made again, by its content; None for other files.

    Locks and what lies in the folder of a study's losses are told by the file that they lie beside.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text('{"schema": "riskpilot-seal/1"}')
    ...     kept_in(file.name)
    'a seal'
    """
    if not isinstance(path, str | Path):  # the number of an open file is no path
        return None
    with suppress(OSError, ValueError):
        if other_than_file(path) is None:
            real = Path(os.path.realpath(path))
            return _by_place(real) or _by_content(real)
    return None


def check_replaceable(
    path: str | Path, what: str, error: type[RiskpilotError], renewed: str | None = None
) -> None:
    """Refuse to write over what cannot be made again.

    ``what``: what is to be written; ``renewed``: the kind of file that it may take the place of.
    """
    kept = kept_in(path)
    if kept not in (None, renewed):
        raise error(
            f"The {what} takes the place of what lies in its file, but {shown_safely(path)} is "
            f"{kept}, which cannot be made again. Name another file."
        )


def _by_place(path: Path) -> str | None:
    """Say what a file is by where it lies; None where that says nothing."""
    if any(
        folder.name.endswith(LOSSES) and Path(str(folder).removesuffix(LOSSES)).is_file()
        for folder in path.parents
    ):
        return "in the folder of a study's losses"
    if not path.exists():
        return None
    if path.name.endswith(LEDGER):
        return "the ledger of a table"
    database = _BESIDE_DATABASE.fullmatch(str(path))
    if database is not None and _by_content(Path(database[1])) == "a database":
        return "a part of a database"
    lock = _LOCK.fullmatch(str(path))
    return "the lock of another file" if lock is not None and Path(lock[1]).is_file() else None


def _by_content(path: Path) -> str | None:
    """Say what a file is by how it begins, or by what its archive holds."""
    with path.open("rb") as file:
        start = file.read(100)
    if start.startswith(b"PK") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        is_calibration = "head.npy" in names and any(n.startswith("validation.") for n in names)
        return "a saved calibration" if is_calibration else None
    return next((what for sign, what in _SIGNS.items() if sign.match(start)), None)
