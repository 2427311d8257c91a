"""The losses of one split of a long table, brought to one row per configuration."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot.common import Array
from riskpilot.errors import LossError, TableError
from riskpilot.losses import PackedLosses, is_missing, text_array
from riskpilot.tables.checks import check_rows
from riskpilot.tables.columns import Wanted
from riskpilot.tables.split_rows import SplitRows
from riskpilot.tables.survey import Survey

# So many rows of numbers are brought out of DuckDB at a time ...
_BLOCK = 4_000_000
# ... and arrays of more bytes than this lie in a temporary file instead of memory.
_IN_MEMORY = 1 << 28


@dataclass(frozen=True)
class SplitReader:
    """Reads the losses in the rows of a split.

    ``losses``: the names of x0, x1, ...; ``wanted.beside`` those of b0, b1, ...
    """

    rows: SplitRows
    survey: Survey
    losses: Sequence[str]
    wanted: Wanted

    def read(self, rows: Sequence[int] | None) -> dict[str, Any]:
        """Read the losses of some configurations, in the order of ``rows``.

        Where the free objective is one number for each configuration, its shape is (n,).
        """
        chosen = list(range(len(self.survey.configurations.configs)) if rows is None else rows)
        if not self.survey.alike:
            check_rows(self.rows, self.wanted, chosen)
        result: dict[str, Any] = {}
        others = []
        for place, name in enumerate(self.losses):
            is_free = name == self.wanted.free
            array = self._constants(place, chosen) if is_free else self._ones(place, chosen)
            if array is not None:
                result[name] = array
            elif self._some_are_there(place, chosen):  # the split may have none of them
                others.append(place)
        result |= self._numbers(others, chosen)
        return {**{name: result[name] for name in self.losses if name in result}, **self._beside()}

    def _constants(self, place: int, chosen: Sequence[int]) -> Array | None:
        """Read a column that has one number for each configuration; None where it has several."""
        if self.survey.free is not None:
            return self.survey.free[chosen]
        x = f"x{place}"
        table, of = self.rows.by_configuration(
            f"count(*) - count({x}) AS missing, min({x}) AS least, max({x}) AS most",
            self.rows.joined(chosen=chosen),
            chosen,
        )
        least, most = (np.ma.getdata(table[name]) for name in ("least", "most"))
        if np.any(table["missing"]) or (least != most).any() or len(of) != len(chosen):
            return None
        values = np.empty(len(chosen))
        values[of] = least
        return values

    def _ones(self, place: int, chosen: Sequence[int]) -> PackedLosses | None:
        """Read a column of losses that are all 0 or 1; None where some are missing or others.

        Those that are not 0 are gathered, as packed bits, so all of them must be 1.
        """
        x, m = f"x{place}", self.rows.n_examples
        table, of = self.rows.by_configuration(
            f"bool_and({x} IS NOT DISTINCT FROM 1) AS are_ones, "
            f"CAST(bitstring_agg(code, 0, {8 * _bytes(m) - 1}) AS BLOB) AS ones",
            self.rows.joined(f"{x} IS DISTINCT FROM 0", chosen),
            chosen,
        )
        if not np.all(table["are_ones"]):
            return None
        bits = np.zeros((len(chosen), _bytes(m)), dtype=np.uint8)
        for row, packed in zip(of, table["ones"], strict=True):
            bits[row] |= np.frombuffer(packed, dtype=np.uint8)
        return PackedLosses(bits, m)

    def _some_are_there(self, place: int, chosen: Sequence[int]) -> bool:
        """Say whether a column has a number at all."""
        rows = self.rows.joined(f"x{place} IS NOT NULL", chosen)
        return self.rows.source.ask(f"SELECT 1 FROM {rows} LIMIT 1").fetchone() is not None

    def _beside(self) -> dict[str, Array]:
        """Read what stands beside the losses, shape (m,) each; what is empty is not there."""
        found: dict[str, Array] = {}
        for i, name in enumerate(self.wanted.beside):
            column = self.rows.source.ask(
                f"SELECT b{i} FROM {self.rows.split} ORDER BY code"
            ).fetchnumpy()
            values: Any = column[f"b{i}"]
            if name in self.wanted.numbers:
                numbers = _filled(values)
                if not np.isnan(numbers).all():
                    found[name] = numbers
                continue
            masked = zip(np.ma.getmaskarray(values), np.ma.getdata(values).tolist(), strict=True)
            listed = [None if gone else _blank_as_none(value) for gone, value in masked]
            if all(map(is_missing, listed)):
                continue
            try:
                found[name] = text_array(
                    listed, f"{self.rows.source.name!r}: the values of {name!r}"
                )
            except LossError as error:
                raise TableError(str(error)) from error
        return found

    def _numbers(self, places: Sequence[int], chosen: Sequence[int]) -> dict[str, Array]:
        """Read losses that are not 0 and 1, some configurations at a time."""
        if not places:
            return {}
        m = self.rows.n_examples
        arrays: dict[int, Array] = {}
        step = max(1, _BLOCK // m)
        for start in range(0, len(chosen), step):
            block = chosen[start : start + step]
            part = self._scattered(places, block)
            for place, values in part.items():
                if place not in arrays:
                    arrays[place] = _room((len(chosen), m), values.dtype)
                elif arrays[place].dtype != values.dtype:  # a later block has missing numbers
                    arrays[place] = arrays[place].astype(np.result_type(arrays[place], values))
                arrays[place][start : start + step] = values
        return {self.losses[place]: array for place, array in arrays.items()}

    def _scattered(self, places: Sequence[int], block: Sequence[int]) -> dict[int, Array]:
        """Read numbers of some configurations, shape (len(block), m) each."""
        m = self.rows.n_examples
        self.rows.choose(block)
        columns = ", ".join(f"x{i}" for i in places)
        table = self.rows.source.ask(
            f"SELECT place * {m} + code AS flat, {columns} FROM {self.rows.joined()} "
            f"JOIN chosen ON {self.rows.is_chosen}"
        ).fetchnumpy()
        found = {}
        for i in places:
            numbers = _filled(table[f"x{i}"])
            flat = np.empty(len(block) * m, dtype=numbers.dtype)
            flat[np.asarray(table["flat"])] = numbers
            found[i] = flat.reshape(len(block), m)
        return found


def _bytes(n: int) -> int:
    """Return how many bytes as many bits take."""
    return (n + 7) // 8


def _filled(values: Any) -> Array:
    """Numbers of DuckDB as an array, NaN where they are missing."""
    if isinstance(values, np.ma.MaskedArray):
        if not values.mask.any():
            return np.asarray(values.data)
        wide = np.result_type(values.dtype, np.float32 if values.dtype.itemsize < 4 else float)
        wide = values.dtype if values.dtype.kind == "f" else wide
        return np.where(values.mask, np.nan, values.data).astype(wide)
    return np.asarray(values)


def _blank_as_none(value: Any) -> Any:
    """An empty text names no group, and is refused where groups are read."""
    return None if isinstance(value, str) and not value.strip() else value


def _room(shape: tuple[int, int], dtype: Any) -> Array:
    """Make an array, in a temporary file where it would be large: pages of it come and go."""
    if np.dtype(dtype).itemsize * shape[0] * shape[1] <= _IN_MEMORY:
        return np.empty(shape, dtype=dtype)
    with tempfile.NamedTemporaryFile(prefix="riskpilot-", dir=Path(tempfile.gettempdir())) as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)
