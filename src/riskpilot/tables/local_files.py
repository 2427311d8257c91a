"""The files on this machine that a path or a glob means."""

import glob
import re
from pathlib import Path
from urllib.request import url2pathname

from riskpilot.common import LEDGER as LEDGER
from riskpilot.common import other_than_file, shown_safely
from riskpilot.errors import TableError

_FILE = re.compile(r"file:(//(localhost)?)?(?=/)", re.IGNORECASE)


def local_path(path: str | Path) -> str | Path:
    """Return the path that an address of a local file means; every other path as it is.

    >>> local_path("file:///data/my%20losses.csv"), local_path("s3://data/losses.csv")
    ('/data/my losses.csv', 's3://data/losses.csv')
    """
    start = _FILE.match(str(path))
    return path if start is None else url2pathname(str(path)[start.end() :])


def is_ledger(file: str) -> bool:
    """Say whether a file is the ledger beside a table, or its lock, which a glob may find, too."""
    return file.endswith((LEDGER, f"{LEDGER}.lock"))


def local_files(path: str | Path) -> list[str]:
    """List the files that a path or a glob means, without ledgers; none for an address."""
    path = local_path(path)
    try:
        if Path(path).is_file():
            return [str(path)]
        found = glob.glob(str(path), recursive=True)
        return sorted(file for file in found if Path(file).is_file() and not is_ledger(file))
    except (OSError, ValueError):  # such as a name that is too long
        return []


def no_table(path: str | Path) -> TableError:
    """Make the error that says what is in the place of a table: something else, or nothing."""
    kind = other_than_file(path)
    if kind is not None:
        return TableError(
            f"The table of losses must be an ordinary file, but {shown_safely(path)} is {kind}. "
            f"Give the path of a file."
        )
    return TableError(
        f"There is no file {shown_safely(path)}. Give the path of a table of losses, relative to "
        f"the folder in which the command runs."
    )
