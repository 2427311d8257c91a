"""Tables with one row for each example of one configuration, read in the order of the file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot.common import Array, check_file, reason_of, shown_safely
from riskpilot.errors import TableError, raise_alone
from riskpilot.tables.cells import cell, check_types, found_number, name_cell
from riskpilot.tables.columns import Columns, Wanted, check_columns
from riskpilot.tables.sources import Source, identifier, open_source


def read_rows(
    path: str | Path, wanted: Wanted, names: Sequence[str] = (), *, parts: str | None = None
) -> dict[str, Array]:
    """Read columns of a CSV, Parquet or JSON file, of all its rows in their order.

    ``wanted``: losses and what stands beside them; ``names``: columns that name examples or
    configurations, as texts; ``parts``: how a user gives these names, None where they are fixed.
    What is missing is NaN among numbers, and None among texts.
    """
    try:
        if Path(path).is_file():
            check_file(Path(path), "The table of losses", TableError)
        with open_source(path) as source:
            return _read(source, wanted, names, parts)
    except OSError as error:
        raise_alone(
            TableError(
                f"{shown_safely(path)} cannot be read: {reason_of(error)}. Check its permissions, "
                f"or copy it again."
            )
        )


def _read(
    source: Source, wanted: Wanted, names: Sequence[str], parts: str | None
) -> dict[str, Array]:
    """Read the columns of an open table."""
    columns = _NamedRows(config=tuple(names))
    losses = check_columns(source.name, list(source.types), columns, wanted, parts)
    check_types(source, columns, losses, wanted)
    numbers = (*losses, *wanted.numbers)
    texts = tuple(dict.fromkeys((*wanted.texts, *names)))
    selected = [
        f"{cell(source, name, turned=name in wanted.turned)} AS x{i}"
        for i, name in enumerate(numbers)
    ]
    for i, name in enumerate(texts):
        written = f"CAST({identifier(name)} AS VARCHAR)"
        selected.append(f"{name_cell(name) if name in names else written} AS t{i}")
    order = f" ORDER BY {source.order}" if source.order else ""
    try:
        found = source.ask(f"SELECT {', '.join(selected)} FROM {source.rows}{order}").fetchnumpy()
    except TableError as error:
        raise found_number(source, numbers, error) from error
    read = {name: _numbers(found[f"x{i}"]) for i, name in enumerate(numbers)}
    return read | {name: _texts(found[f"t{i}"]) for i, name in enumerate(texts)}


class _NamedRows(Columns):
    """The columns that name what a row is of, in a table that has no splits."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.config


def _numbers(column: Any) -> Array:
    """Return a column of numbers, NaN where there is none."""
    if np.ma.is_masked(column):
        return np.asarray(np.ma.filled(column.astype(np.float64), np.nan))
    return np.asarray(column)


def _texts(column: Any) -> Array:
    """Return a column of texts, None where there is none."""
    texts = np.array(np.ma.getdata(column), dtype=object)
    texts[np.ma.getmaskarray(column)] = None
    return texts
