"""Files that keep what nobody can do again: they are not to be written over."""

import re
from contextlib import suppress
from pathlib import Path

from riskpilot.common.ordinary_files import other_than_file

_SIGNS = {
    re.compile(rb"SQLite format 3\0"): "a database",
    re.compile(rb'\s*{\s*"schema"\s*:\s*"riskpilot-seal/'): "a seal",
    re.compile(rb'\s*{\s*"schema"\s*:\s*"riskpilot-watch-file/'): "the state of a watch",
}


def kept_in(path: str | Path) -> str | None:
    """Say what a file keeps that cannot be made again, by how it begins; None for other files.

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
            with Path(path).open("rb") as file:
                start = file.read(100)
            return next((what for sign, what in _SIGNS.items() if sign.match(start)), None)
    return None
