"""The examples of each split, as tables of DuckDB that rows are joined with.

Each example has its id as the table writes it, ``e``, a place, ``code``, and what stands beside its
losses. Examples are sorted by their ids, so that the order of the rows changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from riskpilot.common import Array, how_many
from riskpilot.errors import LeakageError, TableError
from riskpilot.tables.cells import name_cell
from riskpilot.tables.columns import SPLITS, Wanted
from riskpilot.tables.configurations import Configurations
from riskpilot.tables.sources import Source

ID = name_cell("e")  # the id of an example as a text, in SQL
_WRITTEN = "CAST(e AS VARCHAR)"  # the same where no id is that of a whole number with zeros
LACKING = f"coalesce(trim({_WRITTEN}), '') = ''"


@dataclass(frozen=True)
class Examples:
    """What is known of the examples of one configuration, in the table ``examples``.

    ``labels``: how their splits are written. ``plain``: whether no id is that of a whole number
    with zeros; ``sound``: whether moreover every row has an id of its own; ``numbers``: whether ids
    may be numbers.
    """

    labels: tuple[str | None, ...]
    plain: bool
    sound: bool
    numbers: bool


def read_examples(
    source: Source, configurations: Configurations, wanted: Wanted, has_splits: bool
) -> Examples:
    """Make the table ``examples`` of those of one configuration, with their splits where known."""
    columns = ["e", "s" if has_splits else "NULL AS s"]
    columns += [f"b{i}" for i in range(len(wanted.beside))]
    source.ask(
        f"CREATE TEMP TABLE examples AS SELECT {', '.join(columns)} FROM r "
        f"WHERE {configurations.condition([0])}"
    )
    rows = source.ask(
        f"SELECT CAST(s AS VARCHAR), bool_or(contains({_WRITTEN}, '.0')), bool_or({LACKING}), "
        f"TRY_CAST(min({_WRITTEN}) AS DOUBLE) IS NOT NULL, count(*), "
        f"(SELECT count(DISTINCT e) FROM examples) FROM examples GROUP BY s"
    ).fetchall()
    labels, dotted, lacking, numbers, n, n_different = zip(*rows, strict=True)
    plain = not any(dotted)
    sound = plain and not any(lacking) and sum(n) == n_different[0]
    return Examples(labels, plain, sound, any(numbers))


def list_examples(
    source: Source,
    configurations: Configurations,
    found: Examples,
    splits: Mapping[str, str],
    *,
    have_ids: bool,
) -> None:
    """Make a table of the examples of each split.

    ``splits``: by name, which examples are of the split, in SQL. An example without an id, or with
    that of another one, is refused.
    """
    for split, condition in splits.items():
        if not found.sound:
            _check_ids(source, configurations, split, condition)
        _number(source, split, condition, found)
    if not found.sound and have_ids and len(splits) > 1:
        _check_shared(source)


def draw_split(
    source: Source, configurations: Configurations, found: Examples, share: float, draw: int
) -> None:
    """Draw a share of the examples for validation; the others are for calibration."""
    list_examples(source, configurations, found, {"everything": "true"}, have_ids=True)
    row = source.ask("SELECT count(*) FROM everything").fetchone()
    n = 0 if row is None else int(row[0])
    n_validation = round(share * n)
    if not 0 < n_validation < n:
        raise TableError(
            f"{source.name!r}: a share of {share:g} of {how_many(n, 'example')} leaves nothing "
            f"for one of the two splits. Give another share, or more examples."
        )
    order = np.random.default_rng(draw).permutation(n)
    in_validation = np.zeros(n, dtype=bool)
    in_validation[order[:n_validation]] = True
    for split, kept in zip(SPLITS, (in_validation, ~in_validation), strict=True):
        _keep(source, split, kept)


def _keep(source: Source, split: str, kept: Array) -> None:
    """Make the table of a split of the examples that were drawn for it."""
    codes = np.flatnonzero(kept).tolist()
    source.ask(
        f"CREATE TEMP TABLE {split} AS SELECT * REPLACE (CAST(row_number() OVER (ORDER BY code) - "
        f"1 AS INTEGER) AS code) FROM everything "
        f"WHERE code IN (SELECT unnest(CAST(? AS BIGINT[])))",
        [codes],
    )


def _check_ids(source: Source, configurations: Configurations, split: str, condition: str) -> None:
    """Refuse an example of a split that the configuration has twice, or that has no id."""
    if source.ask(f"SELECT 1 FROM examples WHERE {condition} AND {LACKING} LIMIT 1").fetchone():
        raise no_id(source.name)
    twice = source.ask(
        f"SELECT {ID} AS t FROM examples WHERE {condition} GROUP BY t HAVING count(*) > 1 "
        f"ORDER BY t LIMIT 1"
    ).fetchone()
    if twice is not None:
        raise two_rows(source.name, split, configurations.configs[0], twice[0])


def _number(source: Source, split: str, condition: str, found: Examples) -> None:
    """Give every example its place: by size where all ids are numbers, otherwise as texts."""
    mine = f"FROM examples WHERE {condition}"
    text = _WRITTEN if found.plain else ID
    number = f"TRY_CAST({text} AS DOUBLE)"
    some_are_texts = f"SELECT 1 {mine} AND NOT coalesce(isfinite({number}), false) LIMIT 1"
    are_numbers = found.numbers and source.ask(some_are_texts).fetchone() is None
    # "1" and "01" are two ids of one size.
    by = f"{number}, {text}" if are_numbers else text
    source.ask(
        f"CREATE TEMP TABLE {split} AS SELECT * EXCLUDE (s), "
        f"CAST(row_number() OVER (ORDER BY {by}) - 1 AS INTEGER) AS code {mine}"
    )


def _check_shared(source: Source) -> None:
    """Refuse ids that occur in both splits."""
    row = source.ask(
        f"SELECT count(*), min(t) FROM (SELECT {ID} AS t FROM validation) JOIN "
        f"(SELECT {ID} AS t FROM calibration) USING (t)"
    ).fetchone()
    assert row is not None
    shared, first = row
    if shared:
        raise LeakageError(
            f"{source.name!r}: validation and calibration must not share examples, but "
            f"{how_many(shared, 'id occurs', 'ids occur')} in both, such as {first!r}. Remove "
            f"them from one of the two; if they are different examples that are counted from 0 in "
            f"each split, give them ids of their own, or leave the column out."
        )


def no_id(file: str) -> TableError:
    """Make the error of a row without an id."""
    return TableError(
        f"{file!r}: some rows have no example id and others do. Give every row one, or leave the "
        f"column out."
    )


def two_rows(file: str, split: str, config: object, example: str) -> TableError:
    """Make the error of an example that a configuration has twice."""
    what = "example" if split == "everything" else f"{split} example"
    return TableError(
        f"{file!r}: a configuration has one row per {what}, but {config} has two for example "
        f"{example!r}. Remove one."
    )
