"""Where the rows of a table come from: files, globs, buckets, frames and relations, by DuckDB."""

import csv
import glob
import gzip
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from riskpilot.common import shown_safely
from riskpilot.errors import TableError, shown, type_in_words
from riskpilot.tables import logs
from riskpilot.tables.answers import Answer, in_words, what_is_wrong
from riskpilot.tables.engine import own_connection, shared_connection
from riskpilot.tables.local_files import is_ledger, local_files, local_path, no_table

_KINDS = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_COMPRESSED = (".gz", ".zst")
_ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
# What a CSV file is written in: never guessed, so that no value decides how others are read.
_DIALECT = "auto_detect = false, delim = ',', quote = '\"', escape = '\"'"
# DuckDB would take the value of a column from a folder that is called name=value.
_AS_WRITTEN = "hive_partitioning = false"
_LONGEST_HEADER = 1 << 18
# The columns of JSON are those of the first files; DuckDB holds 32 MiB of each of them at once.
_SAMPLE_FILES = 4
_NOT_A_LINE = "\x1f"  # a delimiter that no header holds: a line comes back whole


@dataclass(frozen=True)
class Source:
    """Rows that DuckDB can read.

    ``name``: what messages call them. ``connection``: where SQL is run. ``rows``: the expression
    after FROM. ``types``: DuckDB's name of the type of each column. ``texts``: whether all values
    are texts as a file wrote them. ``order``: the expression that gives the order of the rows,
    where there is one. ``folder``: for temporary files.
    """

    name: str
    connection: duckdb.DuckDBPyConnection
    rows: str
    types: Mapping[str, str]
    folder: Path
    texts: bool = False
    order: str | None = None
    relation: duckdb.DuckDBPyRelation | None = None

    def ask(self, query: str, values: Sequence[Any] = ()) -> Answer:
        """Run a query; what goes wrong in it, or in reading its answer, is said in riskpilot's
        words."""
        with in_words(self.name):
            return Answer(self.name, self.connection.execute(query, list(values)))

    def stored(self, selected: Sequence[str], *, keep_order: bool) -> "Source":
        """Write some expressions of every row to a temporary Parquet file, and read that instead.

        Text is read once this way, and a relation is asked once, on its own connection.
        """
        path = self.folder / f"rows-{len(list(self.folder.iterdir()))}.parquet"
        listed = ", ".join(selected)
        if self.relation is not None:
            with in_words(self.name):
                self.relation.project(listed).write_parquet(str(path))
        else:
            by = f" ORDER BY {self.order}" if keep_order and self.order and not self.texts else ""
            self.ask(
                f"COPY (SELECT {listed} FROM {self.rows}{by}) TO {text(str(path))} "
                f"(PRESERVE_ORDER {keep_order})"
            )
        rows = f"read_parquet({text(str(path))}, file_row_number = true, {_AS_WRITTEN})"
        stored = replace(self, rows=rows, order="file_row_number", texts=False, relation=None)
        return replace(stored, types=_types(stored))


def identifier(name: str) -> str:
    """Write a name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Write a text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def kind_of(path: str) -> str | None:
    """Say how a file is written, by the ending of its name; None where that is not known."""
    place = Path(path)
    while place.suffix.lower() in _COMPRESSED:
        place = place.with_suffix("")
    return _KINDS.get(place.suffix.lower())


def is_address(path: str) -> bool:
    """Say whether a path is an address of a bucket or a server, such as s3://bucket/file."""
    return _ADDRESS.match(path) is not None


def column_names(table: Any) -> list[str]:
    """List the names of a table's columns."""
    with open_source(table) as source:
        return list(source.types)


@contextmanager
def open_source(table: Any) -> Iterator[Source]:
    """Open a path, a frame or a relation; what is temporary goes when it is closed."""
    path = str(local_path(table)) if isinstance(table, str | Path) else None
    is_small = path is None or (kind_of(path) == "parquet" and not is_address(path))
    with (
        tempfile.TemporaryDirectory(prefix="riskpilot-") as folder,
        shared_connection() if is_small else own_connection() as connection,
    ):
        source = _opened(table if path is None else path, connection, Path(folder))
        before = [] if path is None else _stamps(path)
        yield source
        if path is not None and _stamps(path) != before:
            raise TableError(
                f"{source.name!r} was changed while it was read, so that its rows may be of two "
                f"versions. Ask again when nothing writes to it."
            )


def _stamps(path: str) -> list[tuple[str, int, int, int]]:
    """Tell by size, time and place on disk which versions of its files a path means now."""
    found = []
    for file in local_files(path):
        stat = Path(file).stat()
        found.append((file, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return found


def _opened(table: Any, connection: duckdb.DuckDBPyConnection, folder: Path) -> Source:
    """Find out what a table is, and which columns it has."""
    if isinstance(table, str):
        return _open_path(table, connection, folder)
    if isinstance(table, duckdb.DuckDBPyRelation):
        with in_words("the relation"):
            types = dict(zip(table.columns, map(str, table.types), strict=True))
        _check_names("the relation", table.columns)
        return Source("the relation", connection, "", types, folder, relation=table)
    try:
        connection.register("frame", table)
    except (duckdb.Error, TypeError, ValueError, ImportError, RuntimeError) as error:
        raise TableError(
            f"A table is a pandas, Polars or Arrow table, a DuckDB relation, or the path of a "
            f"file, but this is {type_in_words(table)}: {shown(str(error))}. Convert it to one."
        ) from error
    source = Source("the frame", connection, "frame", {}, folder)
    source = replace(source, types=_types(source))
    _check_renamed(source, lambda: getattr(table, "column_names", getattr(table, "columns", ())))
    return source


def _open_path(path: str, connection: duckdb.DuckDBPyConnection, folder: Path) -> Source:
    """Open a file, a glob of files, or an address."""
    name = path.rsplit("/", 1)[-1]
    source = Source(name, connection, "", {}, folder)
    files = _files(source, path)
    kinds = {kind_of(file) for file in files}
    kind = next(iter(kinds))
    if len(kinds) > 1 or (kind is None and not files[0].lower().endswith(".eval")):
        raise TableError(
            f"A table has one row per example and is a .csv, .parquet, .json or .jsonl file, or a "
            f"log of an evaluation tool, but this is {shown_safely(path)}. Write it in one of "
            f"these forms; select, verify and read_losses take an .npz file, too."
        )
    if kind in (None, "json") and logs.are_logs(files):
        return _open_logs(source, files)
    place = f"[{', '.join(map(_literally, files))}]"
    if kind == "parquet":
        one = len(files) == 1 and not is_address(path)
        if not one:
            _check_alike(source, place)
        # By name, a column has a type that suits all files; otherwise it has that of the first.
        how = f"filename = 'riskpilot_file', file_row_number = true, union_by_name = {not one}"
        source = replace(
            source,
            rows=f"read_parquet({place}, {how}, {_AS_WRITTEN})",
            order="riskpilot_file, file_row_number",
        )
        source = replace(source, types=_types(source))
        names = f"SELECT name FROM parquet_schema({place})"
        _check_renamed(source, lambda: [name for (name,) in source.ask(names).fetchall()])
        return source
    _check_room(source, files)
    if kind == "json":
        sample = f"maximum_sample_files = {_SAMPLE_FILES}"
        found = _types(replace(source, rows=f"read_json({place}, {sample}, {_AS_WRITTEN})"))
        columns = _as_texts(found)
        rows = f"read_json({place}, columns = {columns}, {_AS_WRITTEN})"
    else:
        found = dict.fromkeys(_header(source, files), "VARCHAR")
        columns = _as_texts(found)
        rows = f"read_csv({place}, header = true, columns = {columns}, {_DIALECT}, {_AS_WRITTEN})"
    types = dict.fromkeys(found, "VARCHAR")
    return replace(source, rows=rows, types=types, texts=True, order="")


def _open_logs(source: Source, files: Sequence[str]) -> Source:
    """Bring logs of evaluation tools into a table of DuckDB."""
    written = source.folder / "logs.jsonl"
    types = logs.write_rows(logs.read_runs(files), written)
    columns = ", ".join(f"{text(name)}: {text(kind)}" for name, kind in types.items())
    source.ask(
        f"CREATE TEMP TABLE logs AS SELECT * FROM read_json({text(str(written))}, "
        f"format = 'newline_delimited', columns = {{{columns}}})"
    )
    return replace(source, rows="logs", types=types)


def _files(source: Source, path: str) -> list[str]:
    """List the files that a path means; an address is left to DuckDB."""
    if is_address(path):
        return [path]
    if Path(path).is_file():
        return [path]
    found = [row[0] for row in source.ask("SELECT file FROM glob(?) ORDER BY 1", [path]).fetchall()]
    # A folder, a device or a ledger may have a name that fits, too.
    found = [file for file in found if Path(file).is_file() and not is_ledger(file)]
    if not found:
        raise no_table(path)
    return found


def _literally(file: str) -> str:
    """Write the name of a file in SQL so that DuckDB takes no sign in it for more than it is."""
    if is_address(file):
        return text(file)
    return text(("./" if file.startswith("~") else "") + glob.escape(file))


def _check_room(source: Source, files: Sequence[str]) -> None:
    """Refuse text that the disk cannot take: its rows are kept in a temporary file."""
    size = sum(Path(file).stat().st_size for file in files if not is_address(file))
    free = shutil.disk_usage(source.folder).free
    if size > free:
        raise TableError(
            f"{source.name!r} claims {size / 2**30:,.1f} GiB, and its rows are kept in a temporary "
            f"file while they are read, but {str(source.folder.parent)!r} has room for "
            f"{free / 2**30:,.1f} GiB. Write it as a .parquet file, or set TMPDIR to a larger disk."
        )


def _first_line(source: Source, file: str) -> str:
    """Read the first line of a CSV file, and no more of it than a header may be long."""
    ending = Path(file).suffix.lower()
    if is_address(file) or ending == ".zst":  # what Python cannot open is DuckDB's
        row = source.ask(
            f"SELECT line FROM read_csv({_literally(file)}, auto_detect = false, header = false, "
            f"delim = {text(_NOT_A_LINE)}, quote = '', escape = '', {_AS_WRITTEN}, "
            f"max_line_size = {_LONGEST_HEADER}, columns = {{'line': 'VARCHAR'}}) LIMIT 1"
        ).fetchone()
        return "" if row is None or row[0] is None else str(row[0])
    try:
        with (gzip.open if ending == ".gz" else open)(file, "rb") as stream:
            start = stream.readline(_LONGEST_HEADER)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(what_is_wrong(source.name, str(error))) from error
    line = re.split(b"[\\r\\n]", start, maxsplit=1)[0]
    if len(line) == _LONGEST_HEADER:
        raise TableError(
            f"{source.name!r}: the first line of a CSV file names its columns, but its first "
            f"{_LONGEST_HEADER:,} bytes have no end of a line. Write one row per line."
        )
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(what_is_wrong(source.name, f"unicode: {error}")) from error


def _header(source: Source, files: Sequence[str]) -> list[str]:
    """Read the names of the columns of CSV files, which must be those of all of them."""
    headers = []
    for file in files:
        line = _first_line(source, file)
        headers.append([field.strip() for field in next(csv.reader([line]), [])])
    odd = next((i for i, header in enumerate(headers) if header != headers[0]), None)
    if odd is not None:
        raise TableError(
            f"{source.name!r}: files that are read as one table need the same columns in the same "
            f"order, but {Path(files[odd]).name!r} has {', '.join(headers[odd])} and "
            f"{Path(files[0]).name!r} has {', '.join(headers[0])}. Write them alike."
        )
    _check_names(source.name, headers[0])
    return headers[0]


def _check_alike(source: Source, place: str) -> None:
    """Refuse Parquet files with other columns than the first; ``place``: the files, in SQL."""
    rows = source.ask(
        f"SELECT file_name, list(name ORDER BY name) FROM parquet_schema({place}) "
        f"GROUP BY file_name ORDER BY file_name"
    ).fetchall()
    (first, columns), *others = rows
    for file, names in others:
        differing = sorted(set(columns) ^ set(names))
        if differing:
            has = Path(file if differing[0] in names else first).name
            raise TableError(
                f"{source.name!r}: files that are read as one table need the same columns, but "
                f"of {Path(first).name!r} and {Path(file).name!r} only {has!r} has "
                f"{differing[0]!r}. Write them alike."
            )


def _check_names(table: str, names: Sequence[str]) -> None:
    """Refuse two columns of one name; DuckDB takes capital letters for small ones."""
    first: dict[str, str] = {}
    for name in names:
        other = first.get(name.lower())
        first[name.lower()] = name
        if other is not None:
            two = f"named {name!r}" if other == name else f"{other!r} and {name!r}"
            raise TableError(
                f"{table!r} has two columns {two}. Give every column a name of its own, which "
                f"differs from all others in more than capital letters."
            )


def _check_renamed(source: Source, written: Callable[[], Collection[str]]) -> None:
    """Refuse columns that capital letters alone tell apart: of error and Error, DuckDB calls the
    second Error_1. ``written``: finds the names as they are written."""
    by_small = {name.lower(): name for name in source.types}
    for name in source.types:
        second, _, number = name.rpartition("_")
        first = by_small.get(second.lower())
        if first is not None and number.isdigit():
            names = written()
            if second in names and name not in names:
                _check_names(source.name, [first, second])


def _types(source: Source) -> dict[str, str]:
    """Find the type of every column."""
    described = source.ask(f"DESCRIBE SELECT * FROM {source.rows}").fetchall()
    added = {"riskpilot_file", "file_row_number"} if "read_parquet" in source.rows else set()
    return {
        row[0]: row[1]
        for row in described
        # pandas adds columns of its own for its index
        if row[0] not in added and not row[0].startswith("__index_level_")
    }


def _as_texts(names: Mapping[str, str]) -> str:
    """Write the columns of a file, all of them texts, as DuckDB's readers take them."""
    return "{" + ", ".join(f"{text(name)}: 'VARCHAR'" for name in names) + "}"
