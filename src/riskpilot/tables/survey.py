"""One look at all rows of a table: its configurations, and whether all have the same examples.

Of every configuration's rows, DuckDB computes a fingerprint: the number of rows, and the exclusive
or of their hashes. A configuration with as many rows as another one, whose examples are all
different, and with the same exclusive or has the same rows: an example that it lacks, or has twice,
would be seen but for a chance of 2**-64. The hashes are salted with a number that is drawn for each
process, so that no file can be written to have the fingerprints of another.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from riskpilot.common import FloatArray
from riskpilot.errors import TableError
from riskpilot.tables.columns import Columns, Wanted
from riskpilot.tables.configurations import Configurations, read_configurations
from riskpilot.tables.sources import Source

_SALT = secrets.randbits(62)


@dataclass(frozen=True)
class Survey:
    """What is known of a table before the losses of a split are read.

    ``alike``: whether every configuration has the same examples, in the same splits and with the
    same values beside their losses, all of them written in the same way. ``free``: the free
    objective, shape (n,), where it is one number in all rows of each configuration.
    """

    configurations: Configurations
    alike: bool
    free: FloatArray | None


def survey_rows(source: Source, columns: Columns, wanted: Wanted) -> Survey:
    """Look at all rows of the view ``r``; of the losses, at the free objective alone."""
    width = len(columns.config)
    values = ", ".join(f"c{i}" for i in range(width))
    keys = ", ".join(f"CAST(c{i} AS VARCHAR)" for i in range(width))
    split = ["s"] if isinstance(columns.split, str) else []
    rows = source.ask(
        f"SELECT {keys}, {values}, count(*), {fingerprint(wanted, split)}, "
        f"count(f), min(f), max(f) FROM r GROUP BY {values}"
    ).fetchall()
    if not rows:
        raise TableError(
            f"{source.name!r} has columns but no rows. Give one row per configuration and example."
        )
    cells = [(row[:width], row[width : 2 * width]) for row in rows]
    configurations = read_configurations(source.name, columns.config, cells, source.texts)
    n_configs = len(configurations.configs)
    numbers, prints, least = [0] * n_configs, [0] * n_configs, np.full(n_configs, np.nan)
    for row in rows:
        place = configurations.row_of[row[:width]]
        number, print_, there, low, high = row[2 * width :]
        numbers[place] += number
        prints[place] ^= print_
        least[place] = low if there == number and low == high else np.nan
    free_is_known = len(rows) == n_configs and not np.isnan(least).any()
    alike = len(set(zip(numbers, prints, strict=True))) == 1
    return Survey(configurations, alike, least if free_is_known else None)


def fingerprint(wanted: Wanted, beside: Sequence[str] | None = None) -> str:
    """Write in SQL the fingerprint of the ids of some rows, and of what stands beside them.

    ``beside``: other columns than those that are ``wanted``, before them; None: the ids alone.
    """
    columns = [] if beside is None else [*beside, *(f"b{i}" for i in range(len(wanted.beside)))]
    # DuckDB mixes the hash so far before it brings in the next value, and not after the last one:
    # without the number at the end, two examples could change splits and nothing would be seen.
    return f"bit_xor(hash({_SALT}, {', '.join(['e', *columns])}, 0))"
