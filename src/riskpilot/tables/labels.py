"""Labels from a file, in its order: one row for each labelled example and trial."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskpilot.common import Array, BoolArray, FloatArray
from riskpilot.errors import TableError
from riskpilot.losses import whole_id
from riskpilot.tables.cells import cell, check_types, found_number, name_cell
from riskpilot.tables.columns import Columns, Wanted, check_columns
from riskpilot.tables.sources import column_names, identifier, open_source

# What a column of truth values may say.
_MARKS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
_PARTS = "--trial and --example"


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
    path: str, trials: Sequence[int], wanted: Wanted, *, n_trials: int, trial: str, example: str
) -> LabelFile:
    """Read the losses of some trials out of ``n_trials``, which are counted from 0; ``trial``,
    ``example``: the columns that name trials and examples."""
    columns = Columns((trial,), example, split=0.5)  # labels that arrive are all of one split
    with open_source(path) as source:
        names = check_columns(source.name, list(source.types), columns, wanted, _PARTS)
        check_types(source, columns, names, wanted)
        selected = [
            f"{name_cell(trial)} AS c",
            f"{name_cell(example)} AS e",
            *(
                f"{cell(source, name, turned=name in wanted.turned)} AS x{i}"
                for i, name in enumerate(names)
            ),
        ]
        for i, name in enumerate(wanted.beside):
            text = f"CAST({identifier(name)} AS VARCHAR)"
            selected.append(f"{text if name in wanted.texts else cell(source, name)} AS b{i}")
        try:
            stored = source.stored(selected, keep_order=True)
        except TableError as error:
            raise found_number(source, (*names, *wanted.numbers), error) from error
        rows = stored.ask(f"SELECT * FROM {stored.rows} ORDER BY {stored.order}").fetchnumpy()
    _check_known(source.name, rows["c"], n_trials)
    return _assembled(source.name, rows, trials, names, wanted)


def _check_known(file: str, cells: Any, n_trials: int) -> None:
    """Refuse rows of trials that the study does not have, of which nobody can tell what they are:
    they may be a candidate's, under a wrong number."""
    known = set(map(str, range(n_trials)))
    given = np.ma.filled(np.ma.asarray(cells, dtype=object), "").tolist()
    odd = next((i for i, one in enumerate(given) if example_id(one) not in known), None)
    if odd is not None:
        named = example_id(given[odd])
        raise TableError(
            f"{file!r}: every row names a trial of the study, 0 to {n_trials - 1}, but row "
            f"{odd + 1} names {repr(named) if named else 'none'}. Correct the number, or remove "
            f"the rows of other models."
        )


def _assembled(
    file: str, rows: Any, trials: Sequence[int], names: Sequence[str], wanted: Wanted
) -> LabelFile:
    """Give every example a column in the order of the file, and every trial its row."""
    texts = [
        example_id(value) for value in np.ma.filled(np.ma.asarray(rows["e"], dtype=object), "")
    ]
    if "" in texts:
        raise TableError(
            f"{file!r}: every row names its example, which tells it from all others, but row "
            f"{texts.index('') + 1} names none. Fill the column of the examples."
        )
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    row_of = {str(number): i for i, number in enumerate(trials)}
    at = np.array([row_of.get(example_id(value), -1) for value in rows["c"]], dtype=np.int64)
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


def example_id(value: Any) -> str:
    """Write the id of an example: 7 and 7.0 are one, 7 and 07 are two.

    >>> example_id("7.0"), example_id(" 7 "), example_id("07"), example_id("q7.0")
    ('7', '7', '07', 'q7.0')
    """
    return whole_id("" if value is None else str(value).strip())


def _filled(values: Any) -> FloatArray:
    """Numbers with NaN where there is none."""
    return np.asarray(np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan))


@dataclass(frozen=True)
class JudgeFile:
    """A judge's scores from a file, of examples that may be labelled and of fresh ones.

    ``column``: the place of each example among the columns; ``fresh``: which columns are of fresh
    examples, shape (examples,); ``given``: whether a trial has a row for an example at all;
    ``scores``: by risk, shape (trials, examples), NaN where a cell is empty.
    """

    column: dict[str, int]
    fresh: BoolArray
    given: Array
    scores: dict[str, FloatArray]


def read_judge_file(
    path: str,
    trials: Sequence[int],
    wanted: Wanted,
    *,
    n_trials: int,
    trial: str,
    example: str,
    fresh: str,
) -> JudgeFile:
    """Read a judge's scores, which stand in the columns of a file as losses do.

    ``wanted``: those of the labels; ``fresh``: the column that says which examples are never
    labelled; the others as for labels.
    """
    risks = wanted.losses or ()
    known = column_names(path)
    judged = tuple(name for name in risks if name in known)
    if not judged:
        raise TableError(
            f"{path!r}: a judge's scores for a risk stand in a column of its name, but there is "
            f"none for {', '.join(risks)}; the table has {', '.join(known[:20])}. Name the columns "
            f"as the risks are named."
        )
    scores = Wanted(judged, texts=(fresh,), turned=wanted.turned)
    file = read_label_file(path, trials, scores, n_trials=n_trials, trial=trial, example=example)
    column = {name: i for i, name in enumerate(file.examples)}
    is_fresh = marked_fresh(path, fresh, file.beside[fresh], file.examples)
    return JudgeFile(column, is_fresh, file.given, file.losses)


def marked_fresh(path: str, name: str, marks: Array, examples: Sequence[str]) -> BoolArray:
    """Read a column that says of each example whether it is never labelled."""
    texts = [str(mark).strip().lower() for mark in marks.tolist()]
    odd = next((i for i, text in enumerate(texts) if text not in _MARKS), None)
    if odd is not None:
        raise TableError(
            f"{path!r}: the column {name!r} says true of examples that are never labelled and "
            f"false of the others, but of example {examples[odd]!r} it says "
            f"{str(marks[odd])!r}. Settle it for every example before the first label."
        )
    return np.array([_MARKS[text] for text in texts], dtype=bool)
