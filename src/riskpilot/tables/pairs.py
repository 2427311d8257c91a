"""Two runs over the same examples: a changed configuration, and the reference beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot.common import Array
from riskpilot.errors import TableError, shown
from riskpilot.tables.cells import (
    cell,
    check_types,
    found_number,
    is_whole_column,
    name_cell,
)
from riskpilot.tables.columns import Columns, Wanted
from riskpilot.tables.configurations import parse_config
from riskpilot.tables.local_files import local_path
from riskpilot.tables.logs import check_examples, is_log, read_runs
from riskpilot.tables.sources import Source, identifier, open_source


@dataclass(frozen=True)
class OneRun:
    """What one configuration did on m examples.

    ``config``: what the file says of it. ``ids``: of the examples, in sorted order; ``numbers``: by
    column, shape (m,), integers where the type of the column holds whole numbers or truth values.
    ``repeated``: whether a number is an average over several answers.
    """

    config: dict[str, Any]
    ids: tuple[str, ...]
    numbers: dict[str, Array]
    repeated: bool


def read_pair(
    new: str | Path, reference: str | Path | None, columns: Sequence[str]
) -> tuple[OneRun, OneRun | None]:
    """Read some columns of two files, logs or tables, each of one configuration."""
    new, reference = local_path(new), None if reference is None else local_path(reference)
    one = _read_one(new, columns)
    if reference is None:
        return one, None
    other = _read_one(reference, columns)
    for mine, theirs, here, there in ((one, other, new, reference), (other, one, reference, new)):
        lacking = sorted(set(mine.ids) - set(theirs.ids))
        if lacking:
            raise TableError(
                f"Both runs need the same examples, but {len(lacking)} of {Path(here).name!r} are "
                f"not in {Path(there).name!r}, such as {shown(lacking[0])}. Run both on the same "
                f"ones."
            )
    if is_log(new) and is_log(reference):
        check_examples(read_runs([str(new), str(reference)]))
    return one, other


def _read_one(path: str | Path, columns: Sequence[str]) -> OneRun:
    """Read some columns of a file that holds one configuration."""
    with open_source(path) as source:
        for name in ("example", *columns):
            if name not in source.types:
                raise TableError(
                    f"{source.name!r} has no column {name!r}; it has {', '.join(source.types)}. "
                    f"Name a column of the file, or add it."
                )
        check_types(source, Columns(("example",), split=0.5), columns, Wanted())
        config = _config(source)
        read = ", ".join(cell(source, name) for name in columns)
        try:
            rows = source.ask(
                f"SELECT {name_cell('example')}, {read} FROM {source.rows} ORDER BY 1"
            ).fetchall()
        except TableError as error:
            raise found_number(source, columns, error) from error
        repeated = (
            "repeats" in source.types
            and source.ask(
                f"SELECT 1 FROM {source.rows} WHERE CAST(repeats AS BIGINT) > 1 LIMIT 1"
            ).fetchone()
        )
        run = _run(source.name, config, columns, rows, repeated=bool(repeated))
        whole = {name: is_whole_column(source, name) for name in columns}
        numbers = {n: v.astype(np.int64) if whole[n] else v for n, v in run.numbers.items()}
        return replace(run, numbers=numbers)


def _run(
    file: str,
    config: dict[str, Any],
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    *,
    repeated: bool,
) -> OneRun:
    """Check the rows of one configuration: each example once, with all its numbers."""
    ids = tuple(row[0] for row in rows)
    if not ids:
        raise TableError(f"{file!r} has no rows. Give one row for each example.")
    twice = next((one for one, two in pairwise(ids) if one == two), None)
    if None in ids or twice is not None:
        raise TableError(
            f"{file!r} needs one row for each example, with its id, but "
            f"{'a row has none' if None in ids else f'{shown(twice)} is there twice'}. Correct the "
            f"rows."
        )
    for row in rows:
        if None in row:
            raise TableError(
                f"{file!r}: every example needs its {columns[row.index(None) - 1]!r}, but "
                f"{shown(row[0])} has none. Complete the run."
            )
    numbers = np.array([row[1:] for row in rows], dtype=np.float64)
    return OneRun(config, ids, dict(zip(columns, numbers.T, strict=True)), repeated)


def _config(source: Source) -> dict[str, Any]:
    """Read the one configuration of a file; an empty one where the file does not say."""
    if "config" not in source.types:
        return {}
    found = source.ask(
        f"SELECT DISTINCT CAST({identifier('config')} AS VARCHAR) FROM {source.rows} LIMIT 2"
    ).fetchall()
    if len(found) > 1:
        raise TableError(
            f"{source.name!r} must hold one configuration, but it holds several. Name the log of "
            f"one of them; to choose among several, use riskpilot select."
        )
    return parse_config(found[0][0]) if found else {}
