"""Losses of one configuration as bytes, and back: small, exact, no pickles.

Losses that sit at the two ends of their range (0/1 losses) take one bit each, two where some
examples do not count. Everything else is kept in the type in which it was given. The losses that
are read lead to the same test as those that were written.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from riskpilot.common import (
    Shape,
    ShapeError,
    check_archive,
    integer,
    list_of,
    parse,
    real,
    record,
    text,
    whole,
)
from riskpilot.common.arrays import Array
from riskpilot.errors import StudyError, shown
from riskpilot.losses import as_read, same_number

Ranges = Mapping[str, tuple[float, float]]

_UNIT = (0.0, 1.0)
_VERSION = 3
# The errors in which reading ends when a file was cut short or is something else.
_UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    OSError,
    zipfile.BadZipFile,
    zlib.error,
)


def _a_column(value: Any, place: str) -> None:
    """Accept the description of a column, as `_pack` writes it."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind not in ("as is", "bits", "masked bits"):
        raise ShapeError(f"{place} must be a column of a known kind, but its kind is {kind!r}")
    ends: dict[str, Shape] = (
        {} if kind == "as is" else {"low": real, "high": real, "length": whole()}
    )
    record(name=text, kind=text, **ends)(value, place)


_HEAD = record(version=integer, columns=list_of(_a_column))


def encode(table: Mapping[str, Array], ranges: Ranges | None = None) -> bytes:
    """Write a table of one row as bytes: shape (1, m) for each name, or (1,) for a number.

    ``ranges``: the lowest and the highest possible loss of each risk.
    """
    ranges = {} if ranges is None else ranges
    arrays: dict[str, Array] = {}
    columns = []
    for i, (name, values) in enumerate(table.items()):
        column, parts = _pack(values, ranges.get(name, _UNIT))
        columns.append({"name": name, **column})
        arrays.update({f"{kind}{i}": part for kind, part in parts.items()})
    head = json.dumps({"version": _VERSION, "columns": columns})
    buffer = io.BytesIO()
    np.savez_compressed(buffer, head=np.array(head), **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def decode(blob: bytes, *, is_own: bool = False) -> dict[str, Array]:
    """Read the table that `encode` turned into bytes; another format is refused.

    ``is_own``: whether this process has just made the bytes, so that they claim no more memory
    than the losses take that it has already.
    """
    try:
        file = io.BytesIO(blob)
        if not is_own:
            check_archive(file, "A file of losses", StudyError)
        with np.load(file, allow_pickle=False) as arrays:
            head = parse(str(arrays["head"])) if "head" in arrays else {}
            if not isinstance(head, dict):
                raise ValueError("its head is no object")
            if head.get("version") != _VERSION:
                # Reading any array of a file that holds pickled objects ends in NumPy's refusal.
                kinds = [str(arrays[key].dtype) for key in arrays]
                raise StudyError(
                    f"Losses must be in riskpilot's format {_VERSION}, but these are in format "
                    f"{shown(head.get('version'))}, arrays of {shown(kinds)}. Read them "
                    f"with the version of riskpilot that wrote them, or restore the folder of "
                    f"losses that belongs to the storage."
                )
            _HEAD(head, "the head")
            return {
                column["name"]: _unpack(column, i, arrays)
                for i, column in enumerate(head["columns"])
            }
    except StudyError:
        raise
    except (*_UNREADABLE, ShapeError) as error:
        raise StudyError(
            f"Losses must be a whole file that riskpilot wrote, but this one cannot be read: "
            f"{error}. Restore the folder of losses that belongs to the storage."
        ) from error


def _pack(values: Array, ends: tuple[float, float]) -> tuple[dict[str, Any], Mapping[str, Array]]:
    """Pack a column into bits where every loss sits at an end of its range."""
    if values.ndim != 2 or values.dtype.kind not in "biuf":  # names of groups are texts
        return {"kind": "as is"}, {"v": values}
    low, high = (as_read(end, values.dtype) for end in ends)
    at_top = values == high
    counts = at_top | (values == low)
    column = {"low": ends[0], "high": ends[1], "length": values.shape[1]}
    if same_number(*ends, values.dtype):  # too narrow a range for the type of the losses
        return {"kind": "as is"}, {"v": values}
    if counts.all():
        return {"kind": "bits", **column}, {"v": np.packbits(at_top, axis=1)}
    if values.dtype.kind == "f" and bool((counts | np.isnan(values)).all()):
        bits = {"v": np.packbits(at_top, axis=1), "m": np.packbits(counts, axis=1)}
        return {"kind": "masked bits", **column}, bits
    return {"kind": "as is"}, {"v": values}


def _unpack(column: Mapping[str, Any], i: int, arrays: Mapping[str, Array]) -> Array:
    """Unpack the column that `_pack` made, shape (1, m)."""
    values = arrays[f"v{i}"]
    kind = column["kind"]
    if kind == "as is":
        return values
    if values.ndim != 2 or column["length"] > 8 * values.shape[1]:
        raise ValueError(f"the column {column['name']!r} has fewer losses than it says")
    low, high = column["low"], column["high"]
    at_top = np.unpackbits(values, axis=1, count=column["length"]).astype(bool)
    if kind == "bits":
        return at_top if (low, high) == _UNIT else np.where(at_top, high, low)
    counts = np.unpackbits(arrays[f"m{i}"], axis=1, count=column["length"]).astype(bool)
    return np.where(counts, np.where(at_top, high, low), np.nan)
