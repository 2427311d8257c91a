"""The examples of each split, as tables of DuckDB that rows are joined with.

Each example has a place, ``code``, a random weight ``w`` by which it is told whether every
configuration has each example once, its id as a text ``t``, and what stands beside its losses.
Examples are sorted by their ids, so that the order of the rows changes nothing.
"""

from collections.abc import Mapping

import numpy as np

from riskpilot.common import Array
from riskpilot.errors import TableError
from riskpilot.tables.columns import Wanted
from riskpilot.tables.configurations import Configurations
from riskpilot.tables.sources import Source

# Weights are whole numbers below this. Sums of weights of two different collections of examples are
# equal with a probability of at most one in so many.
_WEIGHTS = 2**31 - 1


def list_examples(
    source: Source, configurations: Configurations, wanted: Wanted, splits: Mapping[str, str]
) -> None:
    """List the examples of each split, which are those of one configuration.

    ``splits``: by name, which rows are of the split, in SQL.
    """
    mine = configurations.condition([0])
    columns = "".join(f", b{i}" for i in range(len(wanted.beside)))
    flags = "".join(f", {condition} AS in_{split}" for split, condition in splits.items())
    source.ask(
        f"CREATE TEMP TABLE examples AS SELECT e, CAST(e AS VARCHAR) AS t{columns}{flags} FROM r "
        f"WHERE {mine}"
    )
    for split in splits:
        _number(source, split, columns, configurations)


def draw_split(
    source: Source, configurations: Configurations, wanted: Wanted, share: float, draw: int
) -> None:
    """Draw a share of the examples for validation; the others are for calibration."""
    list_examples(source, configurations, wanted, {"everything": "true"})
    row = source.ask("SELECT count(*) FROM everything").fetchone()
    n = 0 if row is None else int(row[0])
    n_validation = round(share * n)
    if not 0 < n_validation < n:
        raise TableError(
            f"{source.name!r}: a share of {share:g} of {n} examples leaves nothing for one of the "
            f"two splits. Give another share, or more examples."
        )
    order = np.random.default_rng(draw).permutation(n)
    in_validation = np.zeros(n, dtype=bool)
    in_validation[order[:n_validation]] = True
    _keep(source, "validation", in_validation, wanted)
    _keep(source, "calibration", ~in_validation, wanted)


def _keep(source: Source, split: str, kept: Array, wanted: Wanted) -> None:
    """Make the table of a split of the examples that were drawn for it."""
    codes = np.flatnonzero(kept).tolist()
    beside = "".join(f", b{i}" for i in range(len(wanted.beside)))
    source.ask(
        f"CREATE TEMP TABLE {split} AS SELECT e, t, w, CAST(row_number() OVER (ORDER BY code) - "
        f"1 AS INTEGER) AS code{beside} FROM everything "
        f"WHERE code IN (SELECT unnest(CAST(? AS BIGINT[])))",
        [codes],
    )


def _number(source: Source, split: str, columns: str, configurations: Configurations) -> None:
    """Give every example its place: by size where all ids are numbers, otherwise as texts.

    An example that the configuration has twice, or that has no id, is refused.
    """
    mine = f"examples WHERE in_{split}"
    row = source.ask(
        f"SELECT bool_and(coalesce(isfinite(TRY_CAST(t AS DOUBLE)), false)), "
        f"bool_or(coalesce(trim(t), '') = ''), count(*) > count(DISTINCT t) FROM {mine}"
    ).fetchone()
    assert row is not None
    are_numbers, some_lack, some_twice = row
    if some_lack:
        raise no_id(source.name)
    if some_twice:
        twice = source.ask(
            f"SELECT t FROM {mine} GROUP BY t HAVING count(*) > 1 ORDER BY t LIMIT 1"
        ).fetchone()
        assert twice is not None
        raise two_rows(source.name, split, configurations.configs[0], twice[0])
    # "1" and "01" are two ids of one size.
    by = "TRY_CAST(t AS DOUBLE), t" if are_numbers else "t"
    source.ask(
        f"CREATE TEMP TABLE {split} AS SELECT e, t, CAST(row_number() OVER (ORDER BY {by}) - 1 AS "
        f"INTEGER) AS code, CAST(floor(random() * {_WEIGHTS}) AS INTEGER) AS w{columns} FROM {mine}"
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
