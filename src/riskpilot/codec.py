"""Losses of one configuration as bytes, and back: small, exact where it matters, no pickles.

Losses that sit at the two ends of their range (0/1 losses) take one bit each, two where some
examples do not count, and come back exactly. Numbers of more than four bytes become float32,
rounded up: what is stored is never below what was given, so a limit that is shown to hold for the
stored losses holds for the given ones. The ends of the range come back exactly.
"""

import io
import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.errors import StudyError

Array = npt.NDArray[Any]
Ranges = Mapping[str, tuple[float, float]]

_UNIT = (0.0, 1.0)
_VERSION = 2
_LARGEST = float(np.finfo(np.float32).max)


def encode(
    table: Mapping[str, Array], ranges: Ranges | None = None, exact: Collection[str] = ()
) -> bytes:
    """A table of one row, shape (1, m) for each name, as bytes. A column of shape (1,) stays as is.

    ``ranges``: the lowest and the highest possible loss of each risk. What has no range is not
    tested against a limit and is rounded to nearest. ``exact``: what is not rounded at all.
    """
    ranges = {} if ranges is None else ranges
    arrays: dict[str, Array] = {}
    columns = []
    for i, (name, values) in enumerate(table.items()):
        column, parts = _pack(values, ranges.get(name), name in exact)
        columns.append({"name": name, **column})
        arrays.update({f"{kind}{i}": part for kind, part in parts.items()})
    head = json.dumps({"version": _VERSION, "columns": columns})
    buffer = io.BytesIO()
    np.savez_compressed(buffer, head=np.array(head), **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def decode(blob: bytes) -> dict[str, Array]:
    """The table that `encode` turned into bytes."""
    with np.load(io.BytesIO(blob), allow_pickle=False) as arrays:
        if "head" not in arrays:
            # Reading any array of a file that holds pickled objects ends in NumPy's refusal.
            names = [str(arrays[key].dtype) for key in arrays]
            raise StudyError(
                f"Losses must be in riskpilot's format, but this file holds arrays of {names}. "
                f"Restore the folder of losses that belongs to the storage."
            )
        head = json.loads(str(arrays["head"]))
        if head["version"] != _VERSION:
            raise StudyError(
                f"Losses must be in format {_VERSION}, but these are in format "
                f"{head['version']!r}. Read them with the version of riskpilot that wrote them."
            )
        return {
            column["name"]: _unpack(column, i, arrays) for i, column in enumerate(head["columns"])
        }


def _pack(
    values: Array, ends: tuple[float, float] | None, exact: bool
) -> tuple[dict[str, Any], Mapping[str, Array]]:
    if values.ndim != 2 or values.dtype.kind not in "biuf":  # names of groups are texts
        return {"kind": "as is"}, {"v": values}
    low, high = _UNIT if ends is None else ends
    at_top = values == high
    counts = at_top | (values == low)
    length = values.shape[1]
    if counts.all():
        column = {"kind": "bits", "low": low, "high": high, "length": length}
        return column, {"v": np.packbits(at_top, axis=1)}
    if values.dtype.kind == "f" and bool((counts | np.isnan(values)).all()):
        column = {"kind": "masked bits", "low": low, "high": high, "length": length}
        return column, {"v": np.packbits(at_top, axis=1), "m": np.packbits(counts, axis=1)}
    largest = np.abs(values[~np.isnan(values)]).max(initial=0)
    if exact or values.dtype.itemsize <= 4 or max(abs(low), abs(high), largest) > _LARGEST:
        return {"kind": "as is"}, {"v": values}
    if ends is None:
        return {"kind": "as is"}, {"v": values.astype(np.float32)}
    return {"kind": "rounded", "low": low, "high": high}, {"v": _rounded_up(values, low)}


def _rounded_up(values: Array, low: float) -> Array:
    """The smallest float32 that is not below each value; at the low end, not above it."""
    exact = np.asarray(values, dtype=np.float64)
    nearest = exact.astype(np.float32)
    at_low = exact == low
    up = ~at_low & (nearest < exact)
    down = at_low & (nearest > exact)
    nearest[up] = np.nextafter(nearest[up], np.float32(np.inf))
    nearest[down] = np.nextafter(nearest[down], np.float32(-np.inf))
    return nearest


def _unpack(column: Mapping[str, Any], i: int, arrays: Mapping[str, Array]) -> Array:
    values = arrays[f"v{i}"]
    kind = column["kind"]
    if kind == "as is":
        return values
    low, high = column["low"], column["high"]
    if kind == "rounded":
        clipped = np.clip(values.astype(np.float64), low, high)
        return values if np.array_equal(clipped, values, equal_nan=True) else clipped
    at_top = np.unpackbits(values, axis=1, count=column["length"]).astype(bool)
    if kind == "bits":
        return at_top if (low, high) == _UNIT else np.where(at_top, high, low)
    counts = np.unpackbits(arrays[f"m{i}"], axis=1, count=column["length"]).astype(bool)
    return np.where(counts, np.where(at_top, high, low), np.nan)
