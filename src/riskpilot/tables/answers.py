"""What DuckDB answers to a query, and in riskpilot's words what goes wrong on the way."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from riskpilot.errors import TableError


@dataclass(frozen=True)
class Answer:
    """The rows that answer a query. ``name``: what messages call the table that was asked."""

    name: str
    found: duckdb.DuckDBPyConnection

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None after the last one."""
        with in_words(self.name):
            return self.found.fetchone()

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        with in_words(self.name):
            return self.found.fetchall()

    def fetchnumpy(self) -> Any:
        """Return the columns as arrays, by name."""
        with in_words(self.name):
            return self.found.fetchnumpy()


@contextmanager
def in_words(name: str) -> Iterator[None]:
    """Say in riskpilot's words what DuckDB cannot read; ``name``: what messages call the table."""
    try:
        yield
    except duckdb.Error as error:
        raise TableError(what_is_wrong(name, str(error))) from error


def what_is_wrong(name: str, message: str) -> str:
    """Turn what DuckDB says of rows that it cannot read into the rule and the way out."""
    wide = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if wide:
        line = re.search(r"Original Line: (.*)", message)
        row = "" if line is None else f" {_shorten(line[1].strip())!r}"
        return (
            f"{name!r}: every row needs {wide[1]} fields, one per column, but the row{row} has "
            f"{wide[2]}. Complete it, or quote its commas."
        )
    if "utf-8" in message.lower() or "unicode" in message.lower():
        return f"{name!r} is not text in UTF-8 (invalid bytes). Save it with UTF-8 encoding."
    first = _shorten(" ".join(message.split()), 200)
    if message.startswith(
        ("Conversion Error", "Not implemented Error", "Invalid Input Error: Req")
    ):
        return (
            f"{name!r}: every value that is read must be one that Python holds, but one is not "
            f"({first}). Correct it, or write its column as texts."
        )
    if "parquet" in message.lower():
        return (
            f"{name!r} is no complete Parquet file ({first}). It may have been cut short while it "
            f"was written or copied: take the original again."
        )
    return (
        f"{name!r} cannot be read as a table: {first}. Check that it is there, whole, and written "
        f"as its name says; a CSV has commas between fields and double quotes around text that "
        f"holds commas."
    )


def _shorten(text: str, longest: int = 60) -> str:
    """Cut a text to at most so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
