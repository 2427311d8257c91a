"""The cells of a table: which types of columns can be read, and texts that are numbers."""

from collections.abc import Sequence

from riskpilot.errors import TableError
from riskpilot.tables.columns import Columns, Wanted
from riskpilot.tables.sources import Source, identifier, text

_WHOLE = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"
}  # fmt: skip
_LONG = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_FLOATS = {"FLOAT", "DOUBLE"}
# Where a cell of a file is no number, DuckDB stops with this word and the text of the cell.
_MARK = "riskpilot-no-number:"


def is_numeric(kind: str) -> bool:
    """Say whether a type of DuckDB holds numbers or truth values."""
    return (
        kind in _WHOLE or kind in _LONG or kind in _FLOATS
        or kind in ("BOOLEAN", '"NULL"', "NULL") or kind.startswith("DECIMAL")
    )  # fmt: skip


def is_whole_column(source: Source, name: str) -> bool:
    """Say whether a column is of whole numbers or truth values.

    The cells of a text file have no type: they must all be written so, 1 and not 1.0.
    """
    kind, column = source.types[name], identifier(name)
    if not source.texts:
        return kind == "BOOLEAN" or kind in _WHOLE or kind in _LONG
    written = f"regexp_full_match(lower(trim({column})), '-?[0-9]+|true|false')"
    row = source.ask(f"SELECT bool_and({written}) FROM {source.rows}").fetchone()
    return row is not None and bool(row[0])


def is_name_type(kind: str) -> bool:
    """Say whether the values of a type can name configurations, examples and groups."""
    return (
        is_numeric(kind) or kind in ("VARCHAR", "UUID") or kind.startswith("ENUM") or is_time(kind)
    )


def is_time(kind: str) -> bool:
    """Say whether the values of a type are dates or times, with a zone or without."""
    return kind.startswith(("DATE", "TIME"))


def check_types(source: Source, columns: Columns, losses: Sequence[str], wanted: Wanted) -> None:
    """Refuse columns whose values are neither numbers nor names."""
    for name in (*columns.names, *wanted.texts):
        kind = source.types[name]
        if not is_name_type(kind):
            raise TableError(
                f"{source.name!r}: the column {name!r} must hold text or numbers, but its type is "
                f"{kind}. Write a configuration as the text of a JSON object."
            )
    for name in (*losses, *wanted.numbers):
        kind = source.types[name]
        if not source.texts and not is_numeric(kind):
            raise TableError(
                f"{source.name!r}: the losses of {name!r} must be numbers or booleans, but their "
                f"type is {kind}. Convert the column, or remove it"
                f"{_unless_groups(name, wanted)}."
            )


def name_cell(name: str) -> str:
    """Write in SQL how a cell is read that names an example or a trial: as a text, 7.0 as 7.

    A table writes 7 as 7.0 as soon as its column has an empty cell. Ids that are taken for one can
    be joined or refused; if they were taken for two, an example could be in both splits.
    """
    written = f"CAST({identifier(name)} AS VARCHAR)"
    no_sign = f"regexp_replace({written}, '^-(0+[.]0+)$', '\\1')"
    whole = f"regexp_replace({no_sign}, '^(-?[0-9]+)[.]0+$', '\\1')"
    return f"CASE WHEN contains({written}, '.0') THEN {whole} ELSE {written} END"


def named_by(source: Source, name: str) -> str:
    """Write in SQL a column that names configurations or examples, as it is.

    Of floats, 0 and -0 are one name, which DuckDB writes in two ways, and NaN is none. Dates and
    times become their texts, because Python's own are less exact than DuckDB's; where they have a
    zone, in UTC.
    """
    column, kind = identifier(name), source.types[name]
    written = f"CAST({column} AS VARCHAR)"
    if kind == "TIMESTAMP WITH TIME ZONE":
        in_utc = f"CAST(make_timestamp(epoch_us({column})) AS VARCHAR) || '+00'"
        return f"coalesce({in_utc}, {written})"  # infinity has no microseconds
    if is_time(kind):
        return written
    if kind in ("HUGEINT", "UHUGEINT"):  # Parquet files would keep them as floats
        return f"CAST({column} AS DECIMAL(38, 0))"
    if kind not in _FLOATS:
        return column
    zero = f"CAST(0 AS {kind})"
    return f"CASE WHEN isnan({column}) THEN NULL WHEN {column} = 0 THEN {zero} ELSE {column} END"


def group_cell(source: Source, name: str) -> str:
    """Write in SQL a column that names groups.

    Of numbers that Python would round, the text keeps all digits: 1 and 1.50 become '1' and '1.5'.
    """
    column, kind = identifier(name), source.types[name]
    if is_time(kind):
        raise TableError(
            f"{source.name!r}: the values of {name!r} must be texts or whole numbers to name "
            f"groups, but their type is {kind}. Write each as a text, such as '2024-01'."
        )
    written = f"CAST({column} AS VARCHAR)"
    if kind.startswith("DECIMAL"):
        shorter = f"regexp_replace({written}, '([.][0-9]*[1-9])0+$', '\\1')"
        return f"regexp_replace({shorter}, '[.]0+$', '')"
    return written if kind in ("HUGEINT", "UHUGEINT") else column


def cell(source: Source, name: str, *, turned: bool = False) -> str:
    """Write in SQL how the number of a cell is read; ``turned``: one minus it is the loss.

    Whole numbers stay whole, and floats stay in their precision, in which the ends of ranges are
    read; what is missing is NULL.
    """
    column, kind = identifier(name), source.types[name]
    if source.texts:
        number = _number_of_text(column)
    elif kind == "BOOLEAN":
        number = f"CAST({column} AS TINYINT)"
    elif kind in _FLOATS:
        number = f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
    elif kind in _LONG:
        number = f"CAST({column} AS BIGINT)"
    elif kind in _WHOLE:
        number = column
    else:
        number = f"CAST({column} AS DOUBLE)"
    return f"1 - ({number})" if turned else number


def _number_of_text(column: str) -> str:
    """Read a text as a number, words for truth values and for nothing included."""
    return (
        f"CASE WHEN TRY_CAST({column} AS DOUBLE) IS NOT NULL THEN "
        f"CASE WHEN isnan(TRY_CAST({column} AS DOUBLE)) THEN NULL "
        f"ELSE TRY_CAST({column} AS DOUBLE) END "
        f"WHEN {column} IS NULL THEN NULL "
        f"ELSE CASE lower(trim({column})) WHEN 'true' THEN CAST(1 AS DOUBLE) "
        f"WHEN 'false' THEN CAST(0 AS DOUBLE) WHEN '' THEN NULL WHEN 'null' THEN NULL "
        f"WHEN 'none' THEN NULL WHEN 'na' THEN NULL "
        f"ELSE error({text(_MARK)} || {column}) END END"
    )


def _unless_groups(name: str, wanted: Wanted | None) -> str:
    """Add to advice on a column what is done where it names groups: only where all columns are
    read, nobody has said which of them do."""
    if wanted is None or wanted.losses is not None:
        return ""
    return f"; a column of groups is named: read_losses(path, groups=[{name!r}])"


def found_number(
    source: Source, names: Sequence[str], error: TableError, wanted: Wanted | None = None
) -> TableError:
    """Find the line of a cell that is no number, for the message; the error itself otherwise."""
    if not source.texts or _MARK not in str(error.__cause__):
        return error
    for name in names:
        column = identifier(name)
        odd = (
            f"TRY_CAST({column} AS DOUBLE) IS NULL AND {column} IS NOT NULL AND "
            f"lower(trim({column})) NOT IN ('true', 'false', '', 'null', 'none', 'na')"
        )
        row = source.ask(
            f"SELECT line, {column} FROM (SELECT *, row_number() OVER () + 1 AS line "
            f"FROM {source.rows}) WHERE {odd} ORDER BY line LIMIT 1"
        ).fetchone()
        if row is not None:
            shown = row[1] if len(row[1]) <= 60 else f"{row[1][:57]}..."
            return TableError(
                f"{source.name!r}: the losses of {name!r} must be numbers, or empty where there is "
                f"none, but line {row[0]} has {shown!r}. Correct or remove it"
                f"{_unless_groups(name, wanted)}."
            )
    return error
