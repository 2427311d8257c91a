"""Configurations as the cells of a table name them: read, told apart, and brought into an order."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from riskpilot.common import plain_configs
from riskpilot.errors import TableError
from riskpilot.tables.sources import text

_ZEROS = re.compile(r"-?\d+\.\d+0")  # "0.50"; what is written "2.0" is a number

Key = tuple[str, ...]
"""The cells of one configuration as DuckDB writes them as texts, one for each column."""


@dataclass(frozen=True)
class Configurations:
    """The configurations of a table in sorted order, and which of them each spelling means."""

    configs: tuple[dict[str, Any], ...]
    row_of: Mapping[Key, int]

    def keys_of(self, rows: Sequence[int]) -> list[Key]:
        """All spellings of some configurations."""
        chosen = set(rows)
        return [key for key, row in self.row_of.items() if row in chosen]

    def condition(self, rows: Sequence[int]) -> str:
        """Write in SQL that a row of the table is of one of some configurations."""
        keys = self.keys_of(rows)
        columns = [f"CAST(c{i} AS VARCHAR)" for i in range(len(keys[0]))]
        parts = [", ".join(map(text, dict.fromkeys(part))) for part in zip(*keys, strict=True)]
        one_by_one = (f"{column} IN ({part})" for column, part in zip(columns, parts, strict=True))
        if len(columns) == 1:
            return next(one_by_one)
        # DuckDB skips parts of a file by what it knows of one column, but not of pairs of columns.
        pairs = (f"({', '.join(map(text, key))})" for key in keys)
        together = f"({', '.join(columns)}) IN ({', '.join(pairs)})"
        return " AND ".join([*one_by_one, together])

    def spelled_twice(self) -> tuple[Key, Key] | None:
        """Find two spellings of one configuration, if there are any."""
        first: dict[int, Key] = {}
        for key, row in self.row_of.items():
            other = first.setdefault(row, key)
            if other != key:
                return other, key
        return None


def read_configurations(
    file: str, columns: Sequence[str], cells: Sequence[tuple[Key, tuple[Any, ...]]], texts: bool
) -> Configurations:
    """Read configurations from the different cells of their columns.

    ``cells``: the key of each combination, and its values; ``texts``: whether a file wrote the
    values as texts, of which those that are numbers stand for numbers.
    """
    for _, values in cells:
        for name, value in zip(columns, values, strict=True):
            if value is None or not str(value).strip() or value != value:
                raise TableError(
                    f"{file!r}: every row needs its configuration, but a field of the column "
                    f"{name} is empty. Write a JSON object or a label there."
                )
    _check_told_apart(file, columns, cells)
    as_written = _written_otherwise(columns, cells)
    parsed = {key: _config(columns, values, texts, as_written) for key, values in cells}
    texts_of = {key: json.dumps(config, sort_keys=True) for key, config in parsed.items()}
    by_text = {texts_of[key]: config for key, config in parsed.items()}
    ranked = sorted(by_text, key=lambda label: (_sort_key(by_text[label]), label))
    rank = {label: row for row, label in enumerate(ranked)}
    return Configurations(
        plain_configs([by_text[label] for label in ranked], TableError),
        {key: rank[label] for key, label in texts_of.items()},
    )


def _check_told_apart(
    file: str, columns: Sequence[str], cells: Sequence[tuple[Key, tuple[Any, ...]]]
) -> None:
    """Refuse decimal numbers of a column that are one number in double precision."""
    kept: dict[tuple[str, int | float], Decimal] = {}
    for _, values in cells:
        for name, value in zip(columns, values, strict=True):
            if isinstance(value, Decimal) and math.isfinite(value):
                other = kept.setdefault((name, _json_value(value)), value)
                if other != value:
                    raise TableError(
                        f"{file!r}: the numbers of a configuration must be ones that can be told "
                        f"apart, but {other} and {value} of the column {name} are not: they look "
                        f"the same as floats. Write them as texts."
                    )


def _written_otherwise(
    columns: Sequence[str], cells: Sequence[tuple[Key, tuple[Any, ...]]]
) -> set[str]:
    """Find the columns of which a text is no number, or one with zeros at its end, such as 1.10.

    Where one text of a column is a name, all are: 12e45 may be a hash beside 7f3a2, and 007 another
    name than 7. Such a text as 1.10 may name a version, another one than 1.1.
    """
    return {
        name
        for _, values in cells
        for name, value in zip(columns, values, strict=True)
        if isinstance(value, str)
        and (_ZEROS.fullmatch(value.strip()) or not isinstance(_parsed(value), int | float | dict))
    }


def parse_config(label: Any) -> dict[str, Any]:
    """Read a configuration from the text of a JSON object; any other label stands for itself.

    >>> parse_config('{"threshold": 0.5}'), parse_config("large"), parse_config("0.5")
    ({'threshold': 0.5}, {'config': 'large'}, {'config': 0.5})
    """
    value = _parsed(label)
    if isinstance(value, dict):
        return value
    return {"config": value if isinstance(value, int | float) else label}


def _config(
    columns: Sequence[str], values: Sequence[Any], texts: bool, as_written: Collection[str]
) -> dict[str, Any]:
    """Make a configuration of the cells of its columns."""
    if tuple(columns) == ("config",):
        label = _json_value(values[0])
        stays = as_written and not isinstance(_parsed(label), dict)
        return {"config": label} if stays else parse_config(label)
    return {
        name: _number_or_label(value) if texts and name not in as_written else _json_value(value)
        for name, value in zip(columns, values, strict=True)
    }


def _number_or_label(label: Any) -> Any:
    """Read a text that is a number of JSON as that number; "01" is none."""
    value = _parsed(label)
    return value if isinstance(value, int | float) else label


def _parsed(label: Any) -> Any:
    """Read the text of a JSON value; None where it is none."""
    if not isinstance(label, str):
        return None
    try:
        return _JSON.decode(label)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> float:
    """Refuse NaN and Infinity, which are no JSON: such a text is a label."""
    raise ValueError(name)


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


def _json_value(value: Any) -> Any:
    """Make a value of a column one that JSON has: a number stays one, a date becomes its text."""
    if isinstance(value, Decimal) and math.isfinite(value):
        return int(value) if value == int(value) else float(value)
    return value if isinstance(value, bool | int | float | str) else str(value)


def _sort_key(config: Mapping[str, Any]) -> list[tuple[str, int, float, str]]:
    """Make a key that sorts numbers by their size, before texts by their letters."""
    key = []
    for name in sorted(config):
        value = config[name]
        number = isinstance(value, int | float)
        key.append((name, int(not number), value if number else 0.0, "" if number else str(value)))
    return key
