"""Finished searches and replays, kept so that an interrupted run goes on where it was."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from riskpilot.common import digest_of


class Cache:
    """JSON values by key, in one file. Only one process writes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n")
        self._connection = sqlite3.connect(folder / "runs.sqlite")
        self._connection.execute("CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, value)")

    def __enter__(self) -> "Cache":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, key: str) -> Any:
        """Return the value of a key, or None where there is none yet."""
        row = self._connection.execute("SELECT value FROM runs WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def clear(self) -> None:
        """Forget everything."""
        with self._connection:
            self._connection.execute("DELETE FROM runs")

    def put(self, values: Mapping[str, Any]) -> None:
        """Store values by key."""
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?)", rows)


def as_json(value: Any) -> Any:
    """Write a frozen dataclass as plain JSON, with functions by name."""
    if is_dataclass(value):
        found = {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
        return {"type": type(value).__name__, **found}
    return getattr(value, "__qualname__", value)


def source_digest(modules: Iterable[str]) -> str:
    """Digest the source of modules and packages, so that no result outlives the code behind it.

    ``modules``: names below ``riskpilot``; a package stands for every module inside it.
    """
    return digest_of([_source(name) for name in modules])


@lru_cache
def _source(module: str) -> list[str]:
    """Digest the files of a module or a package."""
    spec = find_spec(module if module.startswith("riskpilot.") else f"riskpilot.{module}")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            f"The cache of the replay digests the source of {module!r}, but there is no such "
            f"module. Name the modules that a result depends on as they are called now."
        )
    origin = Path(spec.origin)
    files = sorted(origin.parent.rglob("*.py")) if origin.name == "__init__.py" else [origin]
    return [file_digest(path) for path in files]


def file_digest(path: Path) -> str:
    """Compute the SHA-256 digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
