"""A log as a file: what it holds is read with care, and what is missing is said in a sentence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from riskpilot.common import read_json_file
from riskpilot.errors import TableError, shown


@dataclass(frozen=True)
class LogFile:
    """A log, and the name of the tool that wrote it."""

    path: Path
    tool: str

    @property
    def name(self) -> str:
        """The name of the file, as messages call it."""
        return self.path.name

    def text(self) -> str:
        """Read a log that is a text."""
        try:
            return read_json_file(self.path, "The log", TableError)
        except UnicodeDecodeError as error:
            raise self.cut(f"it is not UTF-8: {error.reason}") from None
        except OSError as error:
            raise self.unreadable(error) from None

    def parsed(self, text: str | bytes) -> Any:
        """Read the JSON of a log, or say that it is not whole."""
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.cut(str(error)) from None

    def field(self, data: Any, *path: str) -> Any:
        """Return a part of a log that its tool always writes."""
        found = data
        for name in path:
            if not isinstance(found, Mapping) or name not in found:
                raise self.unlike(f"it has no {'.'.join(path)}")
            found = found[name]
        return found

    def part(self, data: Any, *path: str) -> Mapping[str, Any]:
        """Return an object inside a log; an empty one where the log leaves it out."""
        found = self._object(data, "what it holds")
        for name in path:
            found = self._object(found.get(name), name)
        return found

    def parts(self, data: Any, name: str) -> list[Mapping[str, Any]]:
        """Return a list of objects inside a log; an empty one where the log leaves it out."""
        found = self.part(data).get(name)
        found = [] if found is None else found
        if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
            raise self.unlike(f"{name} is no list of objects but {shown(found, 60)}")
        return found

    def _object(self, found: Any, name: str) -> Mapping[str, Any]:
        """Check that a part of a log is an object; an empty one stands for none."""
        if found is None:
            return {}
        if not isinstance(found, Mapping):
            raise self.unlike(f"{name} is no object but {shown(found, 60)}")
        return found

    def cut(self, reason: str) -> TableError:
        """Make the error of a log that is not whole."""
        return TableError(
            f"{self.name!r} is no complete log of {self.tool} ({reason}). It may have been cut "
            f"short while it was written or copied: take the original again, or run the "
            f"evaluation again."
        )

    def unlike(self, what: str) -> TableError:
        """Make the error of a log that lacks what its tool writes."""
        return TableError(
            f"{self.name!r} is not written as riskpilot knows logs of {self.tool}: {what}. Convert "
            f"it to a table with one row per configuration and example, or name the version of "
            f"{self.tool} in a report to riskpilot."
        )

    def unreadable(self, error: OSError) -> TableError:
        """Make the error of a file that cannot be opened."""
        return TableError(f"{self.name!r} cannot be read: {error}. Check that it is there.")

    def check_version(self, version: Any, known: tuple[Any, ...]) -> None:
        """Refuse a version of the form that is not known."""
        if version not in known:
            versions = ", ".join(map(str, known))
            raise self.unlike(f"its version is {shown(version)}, and riskpilot reads {versions}")
