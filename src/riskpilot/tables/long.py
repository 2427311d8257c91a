"""Tables with one row per configuration and example, read split by split.

DuckDB does the work on rows. What comes out is one row per configuration: 0/1 losses as packed
bits, others as numbers. Nothing of a split is read before it is asked for, and of calibration only
the configurations that are tested need to be.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from riskpilot.common import Array
from riskpilot.errors import TableError
from riskpilot.tables.cells import (
    cell,
    check_types,
    found_number,
    group_cell,
    name_cell,
    named_by,
)
from riskpilot.tables.columns import SPLITS, Columns, Wanted, check_columns
from riskpilot.tables.examples import ID, Examples, draw_split, list_examples, read_examples
from riskpilot.tables.reading import SplitReader
from riskpilot.tables.sources import Source, identifier, open_source
from riskpilot.tables.split_rows import SplitRows, rows_of_split
from riskpilot.tables.survey import Survey, survey_rows


@dataclass(frozen=True)
class LongTable:
    """An open table.

    ``losses``: the names of its columns of losses. ``labels``: how the column of splits writes
    each split; None where an example says by itself which split its rows are of.
    """

    source: Source
    columns: Columns
    wanted: Wanted
    losses: tuple[str, ...]
    survey: Survey
    labels: Mapping[str, Sequence[str] | None] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """What messages call the table."""
        return self.source.name

    @property
    def configs(self) -> tuple[dict[str, Any], ...]:
        """What the rows of losses stand for."""
        return self.survey.configurations.configs

    def ids(self, split: str) -> Array | None:
        """The ids of the examples of a split, as texts; None where they have none."""
        if self.columns.example is None:
            return None
        rows = self.source.ask(f"SELECT {ID} AS id FROM {split} ORDER BY code").fetchnumpy()
        return np.asarray(rows["id"], dtype=np.object_)

    def drawn_from(self) -> str | None:
        """Compute a digest of the examples whose split was drawn; None where it was given."""
        if isinstance(self.columns.split, str):
            return None
        rows = self.source.ask(f"SELECT count(*), bit_xor(md5_number({ID})) FROM everything")
        ((n, digest),) = rows.fetchall()
        return f"{n:,} examples, {digest:032x}"

    def read(self, split: str, *, rows: Sequence[int] | None = None) -> dict[str, Any]:
        """Read the losses of a split, and what stands beside them.

        ``rows``: which configurations, in this order; all by default. The free objective has shape
        (n,) where it is one number for each configuration. A column that is empty throughout the
        split was not measured on it and is not there.
        """
        found = SplitRows(self.source, self.survey.configurations, split, self.labels[split])
        return SplitReader(found, self.survey, self.losses, self.wanted).read(rows)


@contextmanager
def open_table(table: Any, columns: Columns, wanted: Wanted) -> Iterator[LongTable]:
    """Open a long table and check all of it but the losses."""
    with open_source(table) as source:
        losses = check_columns(source.name, list(source.types), columns, wanted)
        check_types(source, columns, losses, wanted)
        prepared = replace(_prepared(source, columns, losses, wanted), texts=source.texts)
        survey = survey_rows(prepared, columns, wanted)
        if not survey.alike:  # one example may be written in two ways
            spelled = f"* REPLACE ({name_cell('e')} AS e)"
            prepared.ask(f"CREATE OR REPLACE TEMP VIEW r AS SELECT {spelled} FROM {prepared.rows}")
        opened = LongTable(prepared, columns, wanted, losses, survey)
        _check_spelling(opened)
        yield _with_splits(opened)


def _prepared(source: Source, columns: Columns, losses: Sequence[str], wanted: Wanted) -> Source:
    """Bring the rows into one form, the view ``r``.

    c0, c1, ...: the cells of the configuration; e: the example; s: the split; x0, x1, ...: losses;
    b0, b1, ...: what stands beside them; f: the free objective, whose NaN need not be NULL.
    """
    selected = [f"{named_by(source, name)} AS c{i}" for i, name in enumerate(columns.config)]
    if isinstance(columns.split, str):
        selected.append(f"{identifier(columns.split)} AS s")
    if columns.example is not None:
        selected.append(f"{named_by(source, columns.example)} AS e")
    for i, name in enumerate(losses):
        selected.append(f"{cell(source, name, turned=name in wanted.turned)} AS x{i}")
    for i, name in enumerate(wanted.beside):
        read = (group_cell if name in wanted.texts else cell)(source, name)
        selected.append(f"{read} AS b{i}")
    free = _free_cell(source, wanted)
    has_ids = columns.example is not None
    if source.texts or source.relation is not None or not has_ids:
        try:
            source = source.stored(selected, keep_order=not has_ids)
        except TableError as error:
            raise found_number(source, (*losses, *wanted.numbers), error, wanted) from error
        selected, free = ["*"], "NULL" if wanted.free is None else f"x{losses.index(wanted.free)}"
    if not has_ids:
        source = _numbered(source, columns)
    listed = ", ".join([*selected, f"{free} AS f"])
    source = replace(source, rows=f"(SELECT {listed} FROM {source.rows})")
    source.ask(f"CREATE TEMP VIEW r AS FROM {source.rows}")
    return source


def _free_cell(source: Source, wanted: Wanted) -> str:
    """Write in SQL the free objective of a row, with NaN where a column of floats has it."""
    if wanted.free is None:
        return "NULL"
    is_float = source.types[wanted.free] in ("FLOAT", "DOUBLE")
    return identifier(wanted.free) if is_float else cell(source, wanted.free)


def _numbered(source: Source, columns: Columns) -> Source:
    """Number the examples of every configuration in the order of the file, where none have ids."""
    keys = ", ".join(["s", *(f"c{i}" for i in range(len(columns.config)))])
    number = f"row_number() OVER (PARTITION BY {keys} ORDER BY {source.order}) - 1 AS e"
    return source.stored(["* EXCLUDE (file_row_number)", number], keep_order=False)


def _check_spelling(table: LongTable) -> None:
    """Refuse one configuration under two names where examples have no ids: were they two, each
    example would count twice."""
    twice = table.survey.configurations.spelled_twice()
    if table.columns.example is None and twice is not None:
        one, other = (key[0] if len(key) == 1 else key for key in twice)
        raise TableError(
            f"{table.file!r}: a configuration has one name, but {one!r} and {other!r} mean the "
            f"same one. Write it in one way; if they are two, give them labels that are no numbers."
        )


def _with_splits(table: LongTable) -> LongTable:
    """List the examples of each split, drawing them where no column says which is which."""
    columns, source, configurations = table.columns, table.source, table.survey.configurations
    by_example: dict[str, Sequence[str] | None] = dict.fromkeys(SPLITS)
    has_splits = isinstance(columns.split, str)
    found = read_examples(source, configurations, table.wanted, has_splits)
    if not isinstance(columns.split, str):
        draw = secrets.randbits(53) if columns.draw is None else columns.draw
        draw_split(source, configurations, found, columns.split, draw)
        return replace(table, columns=replace(columns, draw=draw), labels=by_example)
    labels = _split_labels(table, found)
    have_ids = columns.example is not None
    conditions = {split: rows_of_split(labels[split]) for split in SPLITS}
    list_examples(source, configurations, found, conditions, have_ids=have_ids)
    return replace(table, labels=by_example if table.survey.alike and have_ids else labels)


def _split_labels(table: LongTable, examples: Examples) -> dict[str, list[str]]:
    """Find how the column of splits writes each of the two."""
    written = examples.labels
    if not table.survey.alike:  # other configurations may write them otherwise
        distinct = "SELECT CAST(s AS VARCHAR) FROM (SELECT DISTINCT s FROM r)"
        written = tuple(label for (label,) in table.source.ask(distinct).fetchall())
    labels: dict[str, list[str]] = {split: [] for split in SPLITS}
    for label in written:
        name = str(label).strip().lower()
        if label is None or name not in labels:
            raise TableError(
                f"{table.file!r}: {table.columns.split} is either 'validation' or 'calibration', "
                f"but a row has {label!r}. Rename it, or leave such rows out."
            )
        labels[name].append(label)
    for split, names in labels.items():
        if not names:
            raise TableError(
                f"{table.file!r} has no {split} rows. Both splits are needed: validation to choose "
                f"what is tested, calibration to test it."
            )
    return labels
