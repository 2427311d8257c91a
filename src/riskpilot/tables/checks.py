"""Whether configurations have the same examples of a split, asked where not all rows are alike."""

from collections.abc import Sequence

import numpy as np

from riskpilot.common import IntArray
from riskpilot.errors import TableError
from riskpilot.tables.columns import Wanted
from riskpilot.tables.examples import LACKING, no_id, two_rows
from riskpilot.tables.split_rows import SplitRows, rows_of_split
from riskpilot.tables.survey import fingerprint


def check_rows(rows: SplitRows, wanted: Wanted, chosen: Sequence[int]) -> None:
    """Refuse configurations that lack examples, or have one twice, or groups of their own."""
    summaries = f"count(*) AS n, {fingerprint(wanted)} AS ids, {fingerprint(wanted, ())} AS beside"
    ((m, ids, beside),) = rows.source.ask(f"SELECT {summaries} FROM {rows.split}").fetchall()
    table, of = rows.by_configuration(summaries, _unchecked(rows, chosen), chosen)
    n = np.bincount(of, table["n"], len(chosen)).astype(int)
    found = {name: np.zeros(len(chosen), dtype=np.uint64) for name in ("ids", "beside")}
    for name, prints in found.items():
        np.bitwise_xor.at(prints, of, table[name])
    whole = (n == m) & (found["ids"] == (ids or 0))
    if not whole.all() or m == 0:
        raise _not_whole(rows, n, int(np.argmin(whole)), chosen)
    if (found["beside"] != beside).any():
        raise _differing(rows, wanted)


def _unchecked(rows: SplitRows, chosen: Sequence[int]) -> str:
    """Write in SQL the rows of a split, those of examples that it does not have included; where
    the split is known by its examples, others are of no split."""
    known = f" SEMI JOIN {rows.split} x ON r.e = x.e" if rows.labels is None else ""
    return f"(SELECT * FROM r{known} WHERE {rows_of_split(rows.labels)} AND {rows.among(chosen)})"


def _not_whole(rows: SplitRows, n: IntArray, odd: int, chosen: Sequence[int]) -> TableError:
    """Say what is wrong with the examples of a configuration."""
    source, split, configs = rows.source, rows.split, rows.configurations.configs
    file = source.name
    listed = f"(SELECT * FROM r WHERE {rows_of_split(rows.labels)})"
    if source.ask(f"SELECT 1 FROM {listed} WHERE {LACKING} LIMIT 1").fetchone():
        return no_id(file)
    usual = int(np.bincount(n).argmax())
    if (n != n[0]).any():
        odd = int(np.flatnonzero(n != usual)[0])
        return TableError(
            f"{file!r}: every configuration needs the same number of {split} examples, but "
            f"{configs[chosen[odd]]} has {n[odd]} and others have {usual}. Complete or remove "
            f"it; leave a loss empty where an example does not count."
        )
    mine = rows.configurations.condition([chosen[odd]])
    twice = source.ask(
        f"SELECT CAST(e AS VARCHAR) AS t FROM {listed} WHERE {mine} GROUP BY t "
        f"HAVING count(*) > 1 ORDER BY t LIMIT 1"
    ).fetchone()
    if twice is not None:
        return two_rows(file, split, configs[chosen[odd]], twice[0])
    unknown = source.ask(
        f"SELECT CAST(e AS VARCHAR) AS t FROM {listed} WHERE {mine} AND CAST(e AS VARCHAR) NOT "
        f"IN (SELECT CAST(e AS VARCHAR) FROM {split}) ORDER BY t LIMIT 1"
    ).fetchone()
    example = "" if unknown is None else f", as at example {unknown[0]!r}"
    return TableError(
        f"{file!r}: every configuration needs the same {split} examples, but "
        f"{configs[chosen[odd]]} and {configs[0]} differ{example}. Evaluate all of them on the "
        f"same examples."
    )


def _differing(rows: SplitRows, wanted: Wanted) -> TableError:
    """Say which example has two groups, or two numbers, under one name."""
    found: tuple[str, object, object] = (wanted.beside[0], None, None)
    for i, name in enumerate(wanted.beside):
        row = rows.source.ask(
            f"SELECT r.b{i}, x.b{i} FROM (SELECT * FROM r WHERE {rows_of_split(rows.labels)}) r "
            f"JOIN {rows.split} x ON r.e = x.e WHERE r.b{i} IS DISTINCT FROM x.b{i} LIMIT 1"
        ).fetchone()
        if row is not None:
            found = (name, *row)
            break
    name, one, other = found
    return TableError(
        f"{rows.source.name!r}: {name!r} must be the same for every configuration, but one "
        f"example has {one!r} in one and {other!r} in another. Give every example one group "
        f"and one label; without a column of ids, list the examples of all configurations in "
        f"one order."
    )
