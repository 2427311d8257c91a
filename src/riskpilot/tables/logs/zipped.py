"""JSON in ZIP archives, also where its parts are compressed by Zstandard.

Python reads such parts from version 3.14 on; before, DuckDB does.
"""

import struct
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Literal

import duckdb

from riskpilot.tables.logs.log_files import LogFile

_ZSTANDARD = 93  # the number of this method in the format of ZIP archives
# Before the bytes of a part stand 30 bytes, of which the last four say how long two texts are
# that follow them.
_BEFORE = struct.Struct("<26xHH")
_LARGEST = 1 << 31  # bytes of one JSON object


class ZippedJson:
    """A log that is an archive of JSON parts."""

    def __init__(self, log: LogFile) -> None:
        self.log = log
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
            if info.compress_type == _ZSTANDARD:
                return self._by_duckdb(info, shape)
            with zipfile.ZipFile(self.log.path) as archive:
                text = archive.read(name)
        except (zipfile.BadZipFile, duckdb.Error, struct.error, EOFError, OSError) as error:
            first = " ".join(str(error).split())[:120]
            raise self.log.cut(f"its part {name}: {first}") from None
        return self.log.parsed(text)

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
            with duckdb.connect() as connection:
                rows = connection.execute(
                    f"SELECT json FROM read_json_objects(?, compression = 'zstd', "
                    f"format = '{how}', maximum_object_size = {_LARGEST})",
                    [str(part)],
                ).fetchall()
        found = [self.log.parsed(row[0]) for row in rows]
        if shape == "array":
            return found
        if len(found) != 1:
            raise self.log.cut(f"its part {info.filename} is no JSON object")
        return found[0]
