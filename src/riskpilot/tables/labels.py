"""Labels from a file, in its order: one row for each labelled example and trial."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskpilot.common import Array, FloatArray
from riskpilot.errors import TableError
from riskpilot.tables.cells import cell, check_types, found_number, name_cell
from riskpilot.tables.columns import Columns, Wanted, check_columns
from riskpilot.tables.sources import identifier, open_source


@dataclass(frozen=True)
class LabelFile:
    """The labels of a file, in the order in which their examples first appear.

    ``losses``: by name, of each wanted trial, shape (trials, labels), NaN where a loss does not
    count; ``given``: whether a trial has a row for an example at all, shape (trials, labels);
    ``beside``: by name, shape (labels,).
    """

    examples: tuple[str, ...]
    given: Array
    losses: dict[str, FloatArray]
    beside: dict[str, Array]


def read_label_file(
    path: str, trials: Sequence[int], wanted: Wanted, *, trial: str, example: str
) -> LabelFile:
    """Read the losses of some trials; ``trial``, ``example``: the columns that name them."""
    columns = Columns((trial,), example, split=0.5)  # labels that arrive are all of one split
    with open_source(path) as source:
        names = check_columns(source.name, list(source.types), columns, wanted)
        check_types(source, columns, names, wanted)
        selected = [
            f"{name_cell(source, trial)} AS c",
            f"{name_cell(source, example)} AS e",
            *(f"{cell(source, name)} AS x{i}" for i, name in enumerate(names)),
        ]
        for i, name in enumerate(wanted.beside):
            text = f"CAST({identifier(name)} AS VARCHAR)"
            selected.append(f"{text if name in wanted.texts else cell(source, name)} AS b{i}")
        try:
            stored = source.stored(selected, keep_order=True)
        except TableError as error:
            raise found_number(source, (*names, *wanted.numbers), error) from error
        rows = stored.ask(f"SELECT * FROM {stored.rows} ORDER BY {stored.order}").fetchnumpy()
    return _assembled(source.name, rows, trials, names, wanted)


def _assembled(
    file: str, rows: Any, trials: Sequence[int], names: Sequence[str], wanted: Wanted
) -> LabelFile:
    """Give every example a column in the order of the file, and every trial its row."""
    texts = [str(value).strip() for value in rows["e"]]
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    row_of = {str(number): i for i, number in enumerate(trials)}
    at = np.array([row_of.get(str(value).strip(), -1) for value in rows["c"]], dtype=np.int64)
    column = np.array([place[text] for text in texts], dtype=np.int64)
    shape = (len(trials), len(place))
    mine = at >= 0
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, (at[mine], column[mine]), 1)
    if (counts > 1).any():
        row, label = (int(part[0]) for part in np.nonzero(counts > 1))
        raise TableError(
            f"{file!r}: a trial has one row per example, but trial {trials[row]} has two for "
            f"example {list(place)[label]!r}. Remove one."
        )
    losses = {}
    for i, name in enumerate(names):
        losses[name] = np.full(shape, np.nan)
        losses[name][at[mine], column[mine]] = _filled(rows[f"x{i}"])[mine]
    beside: dict[str, Array] = {}
    for i, name in enumerate(wanted.beside):
        values = rows[f"b{i}"]
        read = np.asarray(values, dtype=np.str_) if name in wanted.texts else _filled(values)
        first = np.unique(column, return_index=True)[1]
        beside[name] = read[first]
        if not (read == beside[name][column]).all():
            raise TableError(
                f"{file!r}: what stands beside the losses belongs to the example, but {name!r} "
                f"differs between the trials of one. Correct it."
            )
    return LabelFile(tuple(place), counts > 0, losses, beside)


def _filled(values: Any) -> FloatArray:
    """Numbers with NaN where there is none."""
    return np.asarray(np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan))
