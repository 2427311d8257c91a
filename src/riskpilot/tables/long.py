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
from riskpilot.errors import LeakageError, TableError
from riskpilot.tables.cells import cell, check_types, found_number, name_cell
from riskpilot.tables.columns import SPLITS, Columns, Wanted, check_columns
from riskpilot.tables.configurations import Configurations, read_configurations
from riskpilot.tables.examples import draw_split, list_examples
from riskpilot.tables.reading import SplitReader, rows_of_split
from riskpilot.tables.sources import Source, identifier, open_source


@dataclass(frozen=True)
class LongTable:
    """An open table.

    ``losses``: the names of its columns of losses. ``labels``: how the column of splits writes
    each split; None where the splits were drawn.
    """

    source: Source
    columns: Columns
    wanted: Wanted
    losses: tuple[str, ...]
    configurations: Configurations
    labels: Mapping[str, Sequence[str] | None] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """What messages call the table."""
        return self.source.name

    @property
    def configs(self) -> tuple[dict[str, Any], ...]:
        """What the rows of losses stand for."""
        return self.configurations.configs

    def ids(self, split: str) -> Array | None:
        """The ids of the examples of a split, as texts; None where they have none."""
        if self.columns.example is None:
            return None
        rows = self.source.ask(f"SELECT t FROM {split} ORDER BY code").fetchnumpy()["t"]
        return np.asarray(rows, dtype=np.object_)

    def read(
        self, split: str, *, rows: Sequence[int] | None = None, free: str | None = None
    ) -> dict[str, Any]:
        """Read the losses of a split, and what stands beside them.

        ``rows``: which configurations, in this order; all by default. ``free``: the column of the
        free objective, which has shape (n,) where it is one number for each configuration.
        A column that is empty throughout the split was not measured on it and is not there.
        """
        reader = SplitReader(
            self.source, self.configurations, split, self.labels[split], self.losses, self.wanted
        )
        return reader.read(self.losses, rows, free)


@contextmanager
def open_table(table: Any, columns: Columns, wanted: Wanted) -> Iterator[LongTable]:
    """Open a long table and check all of it but the losses."""
    with open_source(table) as source:
        losses = check_columns(source.name, list(source.types), columns, wanted)
        check_types(source, columns, losses, wanted)
        prepared = replace(_prepared(source, columns, losses, wanted), texts=source.texts)
        configurations = _configurations(prepared, columns)
        opened = LongTable(prepared, columns, wanted, losses, configurations)
        _check_spelling(opened)
        yield _with_splits(opened)


def _prepared(source: Source, columns: Columns, losses: Sequence[str], wanted: Wanted) -> Source:
    """Bring the rows into one form, the view ``r``.

    c0, c1, ...: the cells of the configuration; e: the example; s: the split; x0, x1, ...: losses;
    b0, b1, ...: what stands beside them.
    """
    selected = [f"{identifier(name)} AS c{i}" for i, name in enumerate(columns.config)]
    if isinstance(columns.split, str):
        selected.append(f"{identifier(columns.split)} AS s")
    if columns.example is not None:
        selected.append(f"{name_cell(source, columns.example, always=False)} AS e")
    for i, name in enumerate(losses):
        selected.append(f"{cell(source, name, turned=name in wanted.turned)} AS x{i}")
    for i, name in enumerate(wanted.beside):
        read = identifier(name) if name in wanted.texts else cell(source, name)
        selected.append(f"{read} AS b{i}")
    has_ids = columns.example is not None
    if source.texts or source.relation is not None or not has_ids:
        try:
            source = source.stored(selected, keep_order=not has_ids)
        except TableError as error:
            raise found_number(source, (*losses, *wanted.numbers), error) from error
        selected = ["*"]
    if not has_ids:
        source = _numbered(source, columns)
    source.ask(f"CREATE TEMP VIEW r AS SELECT {', '.join(selected)} FROM {source.rows}")
    return source


def _numbered(source: Source, columns: Columns) -> Source:
    """Number the examples of every configuration in the order of the file, where none have ids."""
    keys = ", ".join(["s", *(f"c{i}" for i in range(len(columns.config)))])
    number = f"row_number() OVER (PARTITION BY {keys} ORDER BY {source.order}) - 1 AS e"
    return source.stored(["* EXCLUDE (file_row_number)", number], keep_order=False)


def _configurations(source: Source, columns: Columns) -> Configurations:
    """Read the configurations of a table, in sorted order."""
    n = len(columns.config)
    values = ", ".join(f"c{i}" for i in range(n))
    keys = ", ".join(f"CAST(c{i} AS VARCHAR)" for i in range(n))
    rows = source.ask(f"SELECT {keys}, {values} FROM (SELECT DISTINCT {values} FROM r)").fetchall()
    if not rows:
        raise TableError(
            f"{source.name!r} has columns but no rows. Give one row per configuration and example."
        )
    cells = [(row[:n], row[n:]) for row in rows]
    return read_configurations(source.name, columns.config, cells, source.texts)


def _check_spelling(table: LongTable) -> None:
    """Refuse one configuration under two names where examples have no ids: were they two, each
    example would count twice."""
    twice = table.configurations.spelled_twice()
    if table.columns.example is None and twice is not None:
        one, other = (key[0] if len(key) == 1 else key for key in twice)
        raise TableError(
            f"{table.file!r}: a configuration has one name, but {one!r} and {other!r} mean the "
            f"same one. Write it in one way; if they are two, give them labels that are no numbers."
        )


def _with_splits(table: LongTable) -> LongTable:
    """List the examples of each split, drawing them where no column says which is which."""
    columns, source = table.columns, table.source
    if not isinstance(columns.split, str):
        draw = secrets.randbits(53) if columns.draw is None else columns.draw
        draw_split(source, table.configurations, table.wanted, columns.split, draw)
        drawn: dict[str, Sequence[str] | None] = dict.fromkeys(SPLITS)
        return replace(table, columns=replace(columns, draw=draw), labels=drawn)
    labels = _split_labels(table)
    conditions = {split: rows_of_split(labels[split]) for split in SPLITS}
    list_examples(source, table.configurations, table.wanted, conditions)
    if columns.example is not None:
        _check_shared(source)
    return replace(table, labels=labels)


def _split_labels(table: LongTable) -> dict[str, list[str]]:
    """Find how the column of splits writes each of the two."""
    found = table.source.ask("SELECT CAST(s AS VARCHAR) FROM (SELECT DISTINCT s FROM r)").fetchall()
    labels: dict[str, list[str]] = {split: [] for split in SPLITS}
    for (label,) in found:
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


def _check_shared(source: Source) -> None:
    """Refuse ids that occur in both splits."""
    row = source.ask(
        "SELECT count(*), min(v.t) FROM validation v JOIN calibration c ON v.t = c.t"
    ).fetchone()
    assert row is not None
    shared, first = row
    if shared:
        raise LeakageError(
            f"{source.name!r}: validation and calibration must not share examples, but {shared} "
            f"ids occur in both, such as {first!r}. Remove them from one of the two; if they are "
            f"different examples that are counted from 0 in each split, give them ids of their "
            f"own, or leave the column out."
        )
