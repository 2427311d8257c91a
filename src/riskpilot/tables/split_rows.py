"""The rows of one split, as DuckDB finds them in a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from riskpilot.common import IntArray
from riskpilot.tables.configurations import Configurations
from riskpilot.tables.sources import Source, text


def rows_of_split(labels: Sequence[str] | None) -> str:
    """Write in SQL which rows are of a split; None: those whose example is."""
    if labels is None:
        return "true"
    return f"CAST(s AS VARCHAR) IN ({', '.join(map(text, labels))})"


@dataclass(frozen=True)
class SplitRows:
    """The rows of the view ``r`` that are of a split, whose examples are in the table ``split``.

    ``labels``: how the column of splits writes it; None where its examples are in no other split.
    """

    source: Source
    configurations: Configurations
    split: str
    labels: Sequence[str] | None

    @cached_property
    def n_examples(self) -> int:
        """How many examples the split has."""
        row = self.source.ask(f"SELECT count(*) FROM {self.split}").fetchone()
        return 0 if row is None else int(row[0])

    def joined(self, condition: str = "true", chosen: Sequence[int] | None = None) -> str:
        """Write in SQL the rows for which a condition holds, of some configurations or of all, with
        the places of their examples."""
        return (
            f"(SELECT r.*, x.code FROM (SELECT * FROM r WHERE {rows_of_split(self.labels)} "
            f"AND {self.among(chosen)} AND {condition}) r JOIN {self.split} x ON r.e = x.e)"
        )

    def among(self, chosen: Sequence[int] | None) -> str:
        """Write in SQL that a row is of one of some configurations; None: of any."""
        if chosen is None or len(chosen) == len(self.configurations.configs):
            return "true"
        return self.configurations.condition(chosen)

    def choose(self, chosen: Sequence[int]) -> None:
        """Make a table of the cells of some configurations, with the place of each among them."""
        keys = self.configurations.keys_of(chosen)
        position = {row: i for i, row in enumerate(chosen)}
        cells = ", ".join(f"unnest(CAST(? AS VARCHAR[])) AS k{i}" for i in self._width)
        values: list[Any] = [[key[i] for key in keys] for i in self._width]
        values.append([position[self.configurations.row_of[key]] for key in keys])
        self.source.ask(
            f"CREATE OR REPLACE TEMP TABLE chosen AS SELECT {cells}, "
            f"unnest(CAST(? AS BIGINT[])) AS place",
            values,
        )

    @property
    def is_chosen(self) -> str:
        """Write in SQL that a row is of a configuration of the table of chosen ones."""
        return " AND ".join(f"CAST(c{i} AS VARCHAR) = k{i}" for i in self._width)

    def by_configuration(
        self, summaries: str, rows: str, chosen: Sequence[int]
    ) -> tuple[Any, IntArray]:
        """Summarise some rows by configuration, as arrays by name.

        The second value is the place among the ``chosen`` ones that each of their entries is of.
        """
        keys = ", ".join(f"CAST(c{i} AS VARCHAR) AS k{i}" for i in self._width)
        by = ", ".join(f"c{i}" for i in self._width)
        table = self.source.ask(
            f"SELECT {keys}, {summaries} FROM {rows} GROUP BY {by}"
        ).fetchnumpy()
        row_of = self.configurations.row_of
        position = {row: i for i, row in enumerate(chosen)}
        listed = [table[f"k{i}"].tolist() for i in self._width]
        of = [position[row_of[key]] for key in zip(*listed, strict=True)]
        return table, np.array(of, dtype=np.intp)

    @property
    def _width(self) -> range:
        """The places of the columns of a configuration."""
        return range(len(next(iter(self.configurations.row_of))))
