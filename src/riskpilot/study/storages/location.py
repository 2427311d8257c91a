"""Where a storage keeps a study: an address, a file, or memory that is gone with the process."""

import os
import re
import weakref
from pathlib import Path
from urllib.parse import quote

import optuna
from optuna.storages import InMemoryStorage, JournalStorage

from riskpilot.study.storages.optuna_internals import (
    journal_file_of,
    sql_storage_of,
    storage_of,
)

_NAMES_FILE = re.compile(r"sqlite[A-Za-z0-9+_]*:///")


def address_of(storage: object) -> str | None:
    """Return the address of an SQL storage, with its password; None for other storages."""
    if isinstance(storage, str):
        return storage
    sql = sql_storage_of(storage)
    return None if sql is None else sql.url


def file_of(storage: object) -> Path | None:
    """Return the file of a SQLite or journal storage; None for other storages.

    Of a link it is the file that the link leads to, so that losses and locks lie beside one file
    whatever name it is opened by.
    """
    file = _file_as_named(storage)
    return Path(os.path.realpath(file)) if file is not None and file.is_symlink() else file


def _file_as_named(storage: object) -> Path | None:
    """Return the file of a storage under the name that it is opened by, or None."""
    if isinstance(storage, JournalStorage):
        path = journal_file_of(storage)
        return None if path is None else Path(path)
    address = address_of(storage)
    if address is None or not address.startswith("sqlite") or is_in_memory(address):
        return None
    if not _NAMES_FILE.match(address):
        return Path()
    from riskpilot.study.storages.sql import file_that_opens  # it loads SQLAlchemy

    return file_that_opens(address)


def without_dots(path: str) -> Path:
    """Return the file that SQLAlchemy and a journal open for a path: ``..`` undoes the part before.

    The operating system looks into that part, which may not be there, or be a link to elsewhere.

    >>> str(without_dots("runs/../study.db")), str(without_dots("../study.db"))
    ('study.db', '../study.db')
    """
    return Path(os.path.normpath(path)) if ".." in Path(path).parts else Path(path)


def earlier_names_of(storage: object) -> list[Path]:
    """Return the names that earlier versions took the file of a storage to have, if others.

    They read an address as it is written, ``my%20study.db`` for the file ``my study.db``, and did
    not follow links.
    """
    address, file, named = address_of(storage), file_of(storage), _file_as_named(storage)
    if file is None or named is None:
        return []
    names = {named: None, Path(quote(str(named))): None}
    if address is not None:
        names[Path(address.partition(":///")[2].split("?")[0])] = None
    return [name for name in names if name != file and _is_free_or_link(name, file)]


def _is_free_or_link(name: Path, file: Path) -> bool:
    """Tell whether a name stands for no file, or for this one."""
    return not name.exists() or (file.exists() and os.path.samefile(name, file))


class SameFile:
    """Tells whether the file of a study is still the one that it was when this was made.

    An open database answers from a file that was removed, as if nothing had happened.
    """

    def __init__(self, study: optuna.Study) -> None:
        self._path = file_of(storage_of(study))
        self._first = self._seen()
        # While it is open, no new file can get the number by which this one is known. O_PATH opens
        # it without reading it: to close it otherwise would drop the locks of SQLite.
        if self._path is not None and self._first is not None and hasattr(os, "O_PATH"):
            weakref.finalize(self, os.close, os.open(self._path, os.O_PATH))

    def __bool__(self) -> bool:
        """Return True where the file is the same one, and for a study without a file."""
        return self._first is None or self._seen() == self._first

    def _seen(self) -> tuple[int, int] | None:
        """Return what tells the file from every other one, or None where there is none."""
        try:
            found = None if self._path is None else os.stat(self._path)
        except OSError:
            return None
        return None if found is None else (found.st_dev, found.st_ino)


def is_in_memory(storage: object) -> bool:
    """Tell whether a storage, or the storage at an address, is gone with its process.

    >>> is_in_memory("sqlite:///:memory:"), is_in_memory("sqlite:///study.db")
    (True, False)
    """
    if storage is None or isinstance(storage, InMemoryStorage):
        return True
    address = address_of(storage)
    if address is None or not address.startswith("sqlite"):
        return False
    return address.endswith("://") or ":memory:" in address or "mode=memory" in address
