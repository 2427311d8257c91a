"""The examples of each split, as tables of DuckDB that rows are joined with.

Each example has a place, ``code``, a random weight ``w`` by which it is told whether every
configuration has each example once, its id as a text ``t``, and what stands beside its losses.
Examples are sorted by their ids, so that the order of the rows changes nothing.
"""

import numpy as np

from riskpilot.common import Array
from riskpilot.errors import TableError
from riskpilot.tables.columns import Wanted
from riskpilot.tables.configurations import Configurations
from riskpilot.tables.sources import Source

# Weights are whole numbers below this. Sums of weights of two different collections of examples are
# equal with a probability of at most one in so many.
_WEIGHTS = 2**48


def list_examples(
    source: Source,
    configurations: Configurations,
    wanted: Wanted,
    split: str,
    condition: str,
) -> None:
    """List the examples of a split, which are those of one configuration, as ``condition`` says."""
    mine = configurations.condition([0])
    beside = "".join(f", b{i}" for i in range(len(wanted.beside)))
    rows = f"SELECT e, CAST(e AS VARCHAR) AS t{beside} FROM r WHERE {condition} AND {mine}"
    _number(source, split, rows, beside)
    _check_once(source, split, configurations)


def draw_split(
    source: Source, configurations: Configurations, wanted: Wanted, share: float, draw: int
) -> None:
    """Draw a share of the examples for validation; the others are for calibration."""
    list_examples(source, configurations, wanted, "everything", "true")
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
        f"CREATE TEMP TABLE {split} AS SELECT e, t, w, row_number() OVER (ORDER BY code) - 1 AS "
        f"code{beside} FROM everything WHERE code IN (SELECT unnest(CAST(? AS BIGINT[])))",
        [codes],
    )


def _number(source: Source, split: str, rows: str, beside: str) -> None:
    """Give every example its place: by size where all ids are numbers, otherwise as texts."""
    source.ask(f"CREATE TEMP TABLE {split}_rows AS {rows}")
    row = source.ask(
        f"SELECT bool_and(coalesce(isfinite(TRY_CAST(t AS DOUBLE)), false)) FROM {split}_rows"
    ).fetchone()
    # "1" and "01" are two ids of one size.
    by = "TRY_CAST(t AS DOUBLE), t" if row is not None and row[0] else "t"
    source.ask(
        f"CREATE TEMP TABLE {split} AS SELECT e, t, row_number() OVER (ORDER BY {by}) - 1 AS code, "
        f"CAST(floor(random() * {_WEIGHTS}) AS BIGINT) AS w{beside} FROM {split}_rows"
    )
    source.ask(f"DROP TABLE {split}_rows")


def no_id(file: str) -> TableError:
    """Make the error of a row without an id."""
    return TableError(
        f"{file!r}: some rows have no example id and others do. Give every row one, or leave the "
        f"column out."
    )


def _check_once(source: Source, split: str, configurations: Configurations) -> None:
    """Refuse an example that the first configuration has twice, or that has no id."""
    missing = source.ask(f"SELECT 1 FROM {split} WHERE coalesce(trim(t), '') = '' LIMIT 1")
    if missing.fetchone() is not None:
        raise no_id(source.name)
    row = source.ask(
        f"SELECT t FROM {split} GROUP BY t HAVING count(*) > 1 ORDER BY t LIMIT 1"
    ).fetchone()
    if row is not None:
        raise two_rows(source.name, split, configurations.configs[0], row[0])


def two_rows(file: str, split: str, config: object, example: str) -> TableError:
    """Make the error of an example that a configuration has twice."""
    what = "example" if split == "everything" else f"{split} example"
    return TableError(
        f"{file!r}: a configuration has one row per {what}, but {config} has two for example "
        f"{example!r}. Remove one."
    )
