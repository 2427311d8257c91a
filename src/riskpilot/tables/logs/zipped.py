"""JSON in ZIP archives, also where its parts are compressed by Zstandard.

Python reads such parts from version 3.14 on; before, DuckDB does.
"""

import struct
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Literal

import duckdb

from riskpilot.common import check_memory
from riskpilot.errors import TableError
from riskpilot.tables.logs.log_files import LogFile

_ZSTANDARD = 93  # the number of this method in the format of ZIP archives
# Before the bytes of a part stand 30 bytes, of which the last four say how long two texts are
# that follow them.
_BEFORE = struct.Struct("<26xHH")
_LARGEST = 1 << 31  # bytes of one JSON object
_FACTOR = 16  # what is made of a JSON text takes up to about this many times its length


class ZippedJson:
    """A log that is an archive of JSON parts."""

    def __init__(self, log: LogFile) -> None:
        self.log = log
        self._taken = 0  # bytes of text that were read so far
        try:
            with zipfile.ZipFile(log.path) as archive:
                self._parts = {info.filename: info for info in archive.infolist()}
        except (zipfile.BadZipFile, ValueError) as error:
            raise log.cut(str(error)) from None
        except OSError as error:
            raise log.unreadable(error) from None

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def names(self) -> list[str]:
        """List the names of the parts."""
        return list(self._parts)

    def read(self, name: str, shape: Literal["object", "array"] = "object") -> Any:
        """Read a part that is a JSON object, or an array of JSON objects."""
        info = self._parts.get(name)
        if info is None:
            raise self.log.cut(f"it has no {name}")
        try:
            self._check_room(info.file_size)
            if info.compress_type == _ZSTANDARD:
                return self._by_duckdb(info, shape)
            with zipfile.ZipFile(self.log.path) as archive:
                text = archive.read(name)
        except (zipfile.BadZipFile, duckdb.Error, struct.error, EOFError, OSError) as error:
            first = " ".join(str(error).split())[:120]
            raise self.log.cut(f"its part {name}: {first}") from None
        return self.log.parsed(text)

    def _check_room(self, size: int) -> None:
        """Refuse a part that would take too much memory, with what was read before it."""
        self._taken += size
        check_memory(_FACTOR * self._taken, f"The log {self.log.name!r}", TableError)

    def _by_duckdb(self, info: zipfile.ZipInfo, shape: str) -> Any:
        """Read the compressed bytes of a part, and let DuckDB read the JSON in them."""
        with self.log.path.open("rb") as file:
            file.seek(info.header_offset)
            file.seek(sum(_BEFORE.unpack(file.read(_BEFORE.size))), 1)
            compressed = file.read(info.compress_size)
        how = "array" if shape == "array" else "unstructured"
        with tempfile.TemporaryDirectory(prefix="riskpilot-") as folder:
            part = Path(folder) / "part.json.zst"
            part.write_bytes(compressed)
            texts = (
                f"FROM read_json_objects(?, compression = 'zstd', format = '{how}', "
                f"maximum_object_size = {_LARGEST})"
            )
            with duckdb.connect() as connection:
                # An archive may claim less than its parts expand to.
                query = f"SELECT coalesce(sum(strlen(json)), 0) {texts}"
                size = connection.execute(query, [str(part)]).fetchone()
                self._check_room(max(0, int(size[0]) - info.file_size) if size else 0)
                rows = connection.execute(f"SELECT json {texts}", [str(part)]).fetchall()
        found = [self.log.parsed(row[0]) for row in rows]
        if shape == "array":
            return found
        if len(found) != 1:
            raise self.log.cut(f"its part {info.filename} is no JSON object")
        return found[0]
