"""Files whose loss nobody wants, told by what they hold: they are not to be written over."""

import json
import os
import re
import zipfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from riskpilot.common.ordinary_files import other_than_file
from riskpilot.common.passwords import shown_safely
from riskpilot.common.size_limits import read_json_file
from riskpilot.errors import RiskpilotError

LEDGER = ".ledger.json"  # how the name of the ledger beside a table ends
LOSSES = ".losses"  # how the name of the folder of a study's losses ends
_BESIDE_DATABASE = re.compile(r"(.+)-(?:wal|shm|journal)")
_LOCK = re.compile(r"(.+)\.(?:[a-z]+-)?lock")
_JOURNAL, _TABLE_LEDGER = "the journal of a study", "the ledger of a table"
_SCHEMAS = {
    "riskpilot-seal": "a seal",
    "riskpilot-watch-file": "the state of a watch",
    "riskpilot-certificate": "a certificate",
}
# The texts that such a file has in it, in whatever order its names stand.
_WORDS = {
    _JOURNAL: ('"op_code"', '"worker_id"'),
    _TABLE_LEDGER: ('"use"', '"question"', '"calibration"', '"previous"'),
    **{what: ('"schema"', f'"{schema}') for schema, what in _SCHEMAS.items()},
}
_LONGEST_LINE = 1 << 20  # bytes; the first line of a journal, which makes a study, is far shorter


def kept_in(path: str | Path) -> str | None:
    """Say what a file keeps that must not be lost, by its content; None for other files.

    The names in a JSON file may stand in any order, since such a file still says the same. Locks
    and what lies in the folder of a study's losses are told by the file that they lie beside.

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
    """Refuse to write over what must not be lost.

    ``what``: what is to be written; ``renewed``: the kind of file that it may take the place of.
    """
    kept = kept_in(path)
    if kept not in (None, renewed):
        raise error(
            f"The {what} takes the place of what lies in its file, but {shown_safely(path)} is "
            f"{kept}, which would be lost. Name another file."
        )


def _by_place(path: Path) -> str | None:
    """Say what a file is by where it lies; None where that says nothing."""
    # An earlier version named the folder of losses by the address of the study, codes and all.
    if any(
        folder.name.endswith(LOSSES) and Path(name.removesuffix(LOSSES)).is_file()
        for folder in path.parents
        for name in (str(folder), unquote(str(folder)))
    ):
        return "in the folder of a study's losses"
    if not path.exists():
        return None
    if path.name.endswith(LEDGER):
        return _TABLE_LEDGER
    database = _BESIDE_DATABASE.fullmatch(str(path))
    if database is not None and _by_content(Path(database[1])) == "a database":
        return "a part of a database"
    lock = _LOCK.fullmatch(str(path))
    return "the lock of another file" if lock is not None and Path(lock[1]).is_file() else None


def _by_content(path: Path) -> str | None:
    """Say what a file is by what it holds; of a large one, little is read."""
    with path.open("rb") as file:
        start = file.readline(_LONGEST_LINE)
    if start.startswith(b"SQLite format 3\0"):
        return "a database"
    if start.startswith(b"PK") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return _by_members(archive.namelist())
    if not start.lstrip().startswith((b"{", b"[")):
        return None
    if _by_json(start.decode(errors="replace")) == _JOURNAL:  # all of its lines are JSON
        return _JOURNAL
    with suppress(RiskpilotError):  # so large that it is read as none of these, either
        return _by_json(read_json_file(path, "The file", RiskpilotError))
    return None


def _by_members(names: list[str]) -> str | None:
    """Say what an archive of arrays is by their names."""
    splits = {name.partition(".")[0] for name in names if name.endswith(".npy")}
    if "validation" not in splits:
        return None
    if "head.npy" in names:
        return "a saved calibration"
    return "a table of losses" if "calibration" in splits else None


def _by_json(text: str) -> str | None:
    """Say what a JSON text is; one that is damaged goes by the words in it."""
    likely = [what for what, words in _WORDS.items() if all(word in text for word in words)]
    if not likely:
        return None  # without reading what may be large
    try:
        value = json.loads(text)
    except (RecursionError, ValueError):
        return likely[0]
    if isinstance(value, list):
        return _TABLE_LEDGER if value and _has_names(value[0], _TABLE_LEDGER) else None
    if not isinstance(value, dict):
        return None
    if _has_names(value, _JOURNAL):
        return _JOURNAL
    return _SCHEMAS.get(str(value.get("schema")).partition("/")[0])


def _has_names(value: object, what: str) -> bool:
    """Tell whether a value is an object with the names that such a file has."""
    return isinstance(value, dict) and all(word.strip('"') in value for word in _WORDS[what])
