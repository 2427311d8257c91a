"""Reads Parquet files of losses. The one module that needs pyarrow (extra ``parquet``)."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from riskpilot.common import check_memory
from riskpilot.errors import TableError
from riskpilot.tables.long import NOT_LOSSES, Labels, LongTable, check_header


def read_columns(path: Path, groups: Collection[str] = ()) -> LongTable:
    """Read the columns of a Parquet file, as `tabulate` takes them; ``groups`` hold names."""
    try:
        file = pq.ParquetFile(path)
        # Rows that are all alike take no room in the file, but 8 bytes for each number in memory.
        cells = file.metadata.num_rows * file.metadata.num_columns
        check_memory(8 * cells, f"The table of losses {path.name!r}", TableError)
        table = file.read()
    except (pa.ArrowException, OSError) as error:
        raise TableError(
            f"{path.name!r} is no complete Parquet file ({error}). It may have been cut short "
            f"while it was written or copied: take the original again."
        ) from error
    names = list(table.column_names)
    check_header(path.name, names)
    labels, losses, group_names = {}, {}, {}
    for name in names:
        if name.startswith("__index_level_"):
            continue  # what pandas adds for its own use
        column = table.column(name)
        if name in NOT_LOSSES:
            labels[name] = _labels(path.name, name, column)
        elif name in groups:
            group_names[name] = _labels(path.name, name, column)
        else:
            losses[name] = _numbers(path.name, name, column)
    return LongTable(labels, losses, group_names)


def _labels(file: str, name: str, column: Any) -> Labels:
    """Read a column of labels."""
    try:
        encoded = column.combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):  # an empty column has no chunk to combine
            encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else pa.nulls(0)
        if pa.types.is_dictionary(encoded.type):
            encoded = encoded.dictionary_decode()  # a stored dictionary may name what no row has
        encoded = encoded.dictionary_encode(null_encoding="encode")
    except pa.ArrowException as error:
        raise TableError(
            f"{file!r}: the column {name!r} must hold text or numbers, but its type is "
            f"{column.type}. Write a configuration as the text of a JSON object."
        ) from error
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return Labels(encoded.dictionary.to_pylist(), codes.astype(np.int64))


def _numbers(file: str, name: str, column: Any) -> Any:
    """Read a column of numbers or booleans."""
    if not _is_number(column.type):
        raise TableError(
            f"{file!r}: the losses of {name!r} must be numbers or booleans, but their type is "
            f"{column.type}. Convert the column, or remove it; a column of groups is named: "
            f"read_losses(path, groups=[{name!r}])."
        )
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    try:
        # Floats stay in their precision, in which the ends of ranges are read.
        numbers = column if pa.types.is_floating(column.type) else column.cast(pa.float64())
    except pa.ArrowInvalid as error:
        raise TableError(
            f"{file!r}: the losses of {name!r} must be numbers of double precision, but some are "
            f"not: {error}. Measure them in a larger unit; a column of groups is named: "
            f"read_losses(path, groups=[{name!r}])."
        ) from error
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def _is_number(kind: Any) -> bool:
    """Say whether a type of Arrow holds numbers."""
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )
