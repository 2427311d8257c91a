"""Where a command may write: over no file that it reads, nor over what must not be lost."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from riskpilot.common import LOSSES, kept_in, other_than_file, shown_safely
from riskpilot.errors import ProblemError
from riskpilot.selection import ledger_beside
from riskpilot.study import file_of, is_storage
from riskpilot.tables import local_files, local_path

_SQLITE = ("", "-wal", "-shm", "-journal")  # the names of a database's files end so
RENEWED = {"--out": "a certificate"}  # for commands whose certificate may replace an earlier one


def check_outputs(
    outputs: Mapping[str, Path | None],
    *inputs: str | Path | None,
    artifacts: Path | None = None,
    renewed: Mapping[str, str] = {},
) -> None:
    """Refuse to write over a file that the command reads, before it does anything.

    ``outputs``: by option, where it writes; None where it does not. ``inputs``: paths, globs and
    storages that it reads or keeps its state in. ``artifacts``: the folder of a study's losses,
    where one is named. Two outputs in one file, and files that keep what must not be lost, are
    refused as well; but for the kind that ``renewed`` names by option, which may be replaced or of
    which the command itself takes care.
    """
    written = [(option, path) for option, path in outputs.items() if path is not None]
    read = [file for given in inputs if given is not None for file in _files_of(given)]
    folders = [Path(f"{file}{LOSSES}") for file in read]
    folders += [] if artifacts is None else [artifacts]
    for place, (option, path) in enumerate(written):
        what = _what_is_lost(path, read, folders, renewed.get(option))
        if what is not None:
            raise ProblemError(
                f"{option} names a file that is written anew, but {shown_safely(path)} is {what}. "
                f"Name another file."
            )
        twice = next((other for other, one in written[:place] if _is_same(one, path)), None)
        if twice is not None:
            raise ProblemError(
                f"Every output has a file of its own, but {twice} and {option} both name "
                f"{shown_safely(path)}. Name two files."
            )


def _what_is_lost(
    path: Path, read: list[Path], folders: list[Path], renewed: str | None
) -> str | None:
    """Say what would be lost if a file were written; None where that is nothing of worth."""
    if any(_is_same(path, file) for file in read):
        return "what this command reads"
    real = _real(path)
    if any(real.is_relative_to(_real(folder)) for folder in folders):
        return "in the folder of the study's losses"
    kept = kept_in(real)
    return None if kept == renewed else kept


def _files_of(given: str | Path) -> Iterator[Path]:
    """List the files that a path, a glob or the address of a storage means, with those beside."""
    text = str(given)
    if "://" in text and is_storage(text):
        database = file_of(text)
        if database is None:
            return
        text = str(database)
    for file in {str(local_path(text)), *local_files(text)}:
        yield from (Path(f"{file}{ending}") for ending in _SQLITE)
    yield ledger_beside(text)


def _is_same(one: Path, other: Path) -> bool:
    """Tell whether two paths mean one file; what is no ordinary file, such as /dev/null, is free
    to be written to."""
    if other_than_file(one) is not None:
        return False
    with suppress(OSError, ValueError):
        return os.path.samefile(one, other)
    return _real(one) == _real(other)


def _real(path: Path) -> Path:
    """Return where a path leads to, through links; as it is where no system takes its name."""
    with suppress(OSError, ValueError):
        return Path(os.path.realpath(path))
    return path
