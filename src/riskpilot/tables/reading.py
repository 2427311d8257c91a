"""One split of a long table: its rows joined with its examples, and brought to one per
configuration."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot.common import Array, IntArray
from riskpilot.errors import LossError, TableError
from riskpilot.losses import PackedLosses, is_missing, text_array
from riskpilot.tables.columns import Wanted
from riskpilot.tables.configurations import Configurations
from riskpilot.tables.examples import no_id, two_rows
from riskpilot.tables.sources import Source, text

# So many rows of numbers are brought out of DuckDB at a time ...
_BLOCK = 4_000_000
# ... and arrays of more bytes than this lie in a temporary file instead of memory.
_IN_MEMORY = 1 << 28


def rows_of_split(labels: Sequence[str] | None) -> str:
    """Write in SQL which rows are of a split; None: those whose example was drawn for it."""
    if labels is None:
        return "true"
    return f"CAST(s AS VARCHAR) IN ({', '.join(map(text, labels))})"


@dataclass(frozen=True)
class SplitReader:
    """Reads the split named ``split``, whose examples are in the table of that name.

    ``labels``: how the column of splits writes it; None where it was drawn. ``losses``: the names
    of x0, x1, ...; ``wanted.beside`` those of b0, b1, ...
    """

    source: Source
    configurations: Configurations
    split: str
    labels: Sequence[str] | None
    losses: Sequence[str]
    wanted: Wanted

    def read(
        self, names: Sequence[str], rows: Sequence[int] | None, free: str | None
    ) -> dict[str, Any]:
        """Read the named losses of some configurations, in the order of ``rows``.

        ``free``: the one of them that is the free objective. Where it is one number for each
        configuration, its shape is (n,).
        """
        chosen = list(range(len(self.configurations.configs)) if rows is None else rows)
        if rows is not None:
            self._choose(chosen)
        places = [self.losses.index(name) for name in names]
        place_of_free = None if free is None else self.losses.index(free)
        found = self._collected(places, place_of_free, rows is not None, chosen)
        result: dict[str, Any] = {}
        others = []
        for place, name in zip(places, names, strict=True):
            if found.n_missing(place) == len(chosen) * self.n_examples:
                continue  # the split has none of them
            is_free = place == place_of_free
            array = found.constants(place) if is_free else found.zeros_and_ones(place)
            if array is None:
                others.append(place)
            else:
                result[name] = array
        result |= self._numbers(others, chosen)
        return {**{name: result[name] for name in names if name in result}, **self._beside()}

    @cached_property
    def n_examples(self) -> int:
        """How many examples the split has."""
        row = self.source.ask(f"SELECT count(*) FROM {self.split}").fetchone()
        return 0 if row is None else int(row[0])

    @property
    def _width(self) -> range:
        """The places of the columns of a configuration."""
        return range(len(next(iter(self.configurations.row_of))))

    def _choose(self, chosen: Sequence[int]) -> None:
        """Make a table of the cells of some configurations, with the place of each among them."""
        keys = self.configurations.keys_of(chosen)
        position = {row: i for i, row in enumerate(chosen)}
        cells = ", ".join(f"unnest(CAST(? AS VARCHAR[])) AS k{i}" for i in self._width)
        values: list[Any] = [[key[i] for key in keys] for i in self._width]
        values.append([position[self.configurations.row_of[key]] for key in keys])
        self.source.ask(
            f"CREATE OR REPLACE TEMP TABLE chosen AS SELECT {cells}, "
            f"unnest(CAST(? AS BIGINT[])) AS place",
            values,
        )

    @property
    def _is_chosen(self) -> str:
        """Write in SQL that a row is of a configuration of the table of chosen ones."""
        return " AND ".join(f"CAST(c{i} AS VARCHAR) = k{i}" for i in self._width)

    def _rows(self, some: bool) -> str:
        """Write in SQL the rows of the split, of chosen configurations or of all, with the places
        of their examples. A row of an example that the split does not have has no place."""
        how = "LEFT JOIN" if self.labels is not None else "JOIN"
        among = f" SEMI JOIN chosen ON {self._is_chosen}" if some else ""
        return (
            f"(SELECT r.*, x.code, x.w{''.join(f', x.b{i} AS y{i}' for i in self._besides)} "
            f"FROM (SELECT * FROM r{among} WHERE {rows_of_split(self.labels)}) r "
            f"{how} {self.split} x ON r.e = x.e)"
        )

    @property
    def _besides(self) -> range:
        """The places of what stands beside the losses."""
        return range(len(self.wanted.beside))

    def _collected(
        self, places: Sequence[int], free: int | None, some: bool, chosen: Sequence[int]
    ) -> "_Collected":
        """Ask for the places of ones of every configuration, and check that each configuration has
        every example once."""
        keys = ", ".join(f"CAST(c{i} AS VARCHAR) AS k{i}" for i in self._width)
        by = ", ".join(f"c{i}" for i in self._width)
        losses = "".join(
            f", count(x{i}) AS there{i}, min(x{i}) AS least{i}, max(x{i}) AS most{i}"
            + ("" if i == free else self._ones(i))
            for i in places
        )
        differing = "".join(
            f", count(*) FILTER (WHERE b{i} IS DISTINCT FROM y{i}) AS differing{i}"
            for i in self._besides
        )
        table = self.source.ask(
            f"SELECT {keys}, count(*) AS n, "
            f"CAST(sum(w) AS VARCHAR) AS weight{losses}{differing} "
            f"FROM {self._rows(some)} GROUP BY {by}"
        ).fetchnumpy()
        row_of = self.configurations.row_of
        position = {row: i for i, row in enumerate(chosen)}
        listed = [table[f"k{i}"].tolist() for i in self._width]
        of = np.array([position[row_of[key]] for key in zip(*listed, strict=True)], dtype=np.intp)
        self._check(table, of, chosen)
        return _Collected(table, of, len(chosen), self.n_examples)

    def _ones(self, i: int) -> str:
        """Write in SQL which examples have a loss of 1, as packed bits, and a sum that is above 0
        where losses between 0 and 1 are not whole numbers."""
        last = 8 * _bytes(self.n_examples) - 1
        floats = self._types[f"x{i}"] in ("FLOAT", "DOUBLE")
        return (
            f", {f'sum(x{i} * (1 - x{i}))' if floats else 0} AS between{i}, "
            f"CAST(bitstring_agg(code, 0, {last}) FILTER (WHERE x{i} = 1) AS BLOB) AS ones{i}"
        )

    @cached_property
    def _types(self) -> dict[str, str]:
        """The types of the columns of the table."""
        return {row[0]: row[1] for row in self.source.ask("DESCRIBE r").fetchall()}

    def _check(self, table: Any, of: IntArray, chosen: Sequence[int]) -> None:
        """Refuse configurations that lack examples, or have one twice, or groups of their own."""
        m = self.n_examples
        row = self.source.ask(f"SELECT CAST(sum(w) AS VARCHAR) FROM {self.split}").fetchone()
        expected = int(row[0]) if row is not None and row[0] is not None else 0
        n = np.bincount(of, table["n"], len(chosen))
        weights = [0] * len(chosen)
        for place, weight in zip(of.tolist(), table["weight"].tolist(), strict=True):
            weights[place] += 0 if weight is None else int(weight)
        # An example that the split does not have weighs nothing, and is in the place of one that
        # does: other sets of examples weigh the same by a chance of 2**-31.
        whole = (n == m) & np.array([weight == expected for weight in weights])
        if not whole.all() or m == 0:
            raise self._not_whole(n.astype(int), int(np.argmin(whole)), chosen)
        for i, name in enumerate(self.wanted.beside):
            if np.any(table[f"differing{i}"]):
                raise self._differing(i, name)

    def _not_whole(self, n: IntArray, odd: int, chosen: Sequence[int]) -> TableError:
        """Say what is wrong with the examples of a configuration."""
        file, split, configs = self.source.name, self.split, self.configurations.configs
        rows = f"(SELECT * FROM r WHERE {rows_of_split(self.labels)})"
        if self.source.ask(
            f"SELECT 1 FROM {rows} WHERE coalesce(trim(CAST(e AS VARCHAR)), '') = '' LIMIT 1"
        ).fetchone():
            return no_id(file)
        usual = int(np.bincount(n).argmax())
        if (n != n[0]).any():
            odd = int(np.flatnonzero(n != usual)[0])
            return TableError(
                f"{file!r}: every configuration needs the same number of {split} examples, but "
                f"{configs[chosen[odd]]} has {n[odd]} and others have {usual}. Complete or remove "
                f"it; leave a loss empty where an example does not count."
            )
        mine = self.configurations.condition([chosen[odd]])
        twice = self.source.ask(
            f"SELECT CAST(e AS VARCHAR) AS t FROM {rows} WHERE {mine} GROUP BY t "
            f"HAVING count(*) > 1 ORDER BY t LIMIT 1"
        ).fetchone()
        if twice is not None:
            return two_rows(file, split, configs[chosen[odd]], twice[0])
        unknown = self.source.ask(
            f"SELECT CAST(e AS VARCHAR) AS t FROM {rows} WHERE {mine} AND CAST(e AS VARCHAR) NOT "
            f"IN (SELECT t FROM {self.split}) ORDER BY t LIMIT 1"
        ).fetchone()
        example = "" if unknown is None else f", as at example {unknown[0]!r}"
        return TableError(
            f"{file!r}: every configuration needs the same {split} examples, but "
            f"{configs[chosen[odd]]} and {configs[0]} differ{example}. Evaluate all of them on the "
            f"same examples."
        )

    def _differing(self, i: int, name: str) -> TableError:
        """Say which example has two groups, or two numbers, under one name."""
        row = self.source.ask(
            f"SELECT b{i}, y{i} FROM {self._rows(False)} WHERE b{i} IS DISTINCT FROM y{i} LIMIT 1"
        ).fetchone()
        one, other = (None, None) if row is None else row
        return TableError(
            f"{self.source.name!r}: {name!r} must be the same for every configuration, but one "
            f"example has {one!r} in one and {other!r} in another. Give every example one group "
            f"and one label; without a column of ids, list the examples of all configurations in "
            f"one order."
        )

    def _beside(self) -> dict[str, Array]:
        """Read what stands beside the losses, shape (m,) each; what is empty is not there."""
        found: dict[str, Array] = {}
        for i, name in enumerate(self.wanted.beside):
            column = self.source.ask(f"SELECT b{i} FROM {self.split} ORDER BY code").fetchnumpy()
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
                found[name] = text_array(listed, f"{self.source.name!r}: the values of {name!r}")
            except LossError as error:
                raise TableError(str(error)) from error
        return found

    def _numbers(self, places: Sequence[int], chosen: Sequence[int]) -> dict[str, Array]:
        """Read losses that are not 0 and 1, some configurations at a time."""
        if not places:
            return {}
        m = self.n_examples
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
        m = self.n_examples
        self._choose(block)
        columns = ", ".join(f"x{i}" for i in places)
        table = self.source.ask(
            f"SELECT place * {m} + code AS flat, {columns} FROM {self._rows(False)} JOIN chosen "
            f"ON {self._is_chosen}"
        ).fetchnumpy()
        found = {}
        for i in places:
            numbers = _filled(table[f"x{i}"])
            flat = np.empty(len(block) * m, dtype=numbers.dtype)
            flat[np.asarray(table["flat"])] = numbers
            found[i] = flat.reshape(len(block), m)
        return found


@dataclass(frozen=True)
class _Collected:
    """What DuckDB gathered of every configuration: the places of ones, and counts of losses.

    ``of``: the row of losses that each row of ``table`` belongs to.
    """

    table: Any
    of: IntArray
    n_configs: int
    n_examples: int

    def n_missing(self, place: int) -> int:
        """Count the losses of a column that are missing."""
        return int((self.table["n"] - self.table[f"there{place}"]).sum())

    def constants(self, place: int) -> Array | None:
        """Return the one number of every configuration; None where some have several."""
        least, most = (np.ma.getdata(self.table[f"{name}{place}"]) for name in ("least", "most"))
        if self.n_missing(place) or (least != most).any():
            return None
        values = np.empty(self.n_configs)
        values[self.of] = least
        return values if len(self.of) == self.n_configs else None

    def zeros_and_ones(self, place: int) -> PackedLosses | None:
        """Return losses that are all 0 or 1; None where some are missing, or are other numbers."""
        least, most = self.table[f"least{place}"], self.table[f"most{place}"]
        is_odd = (least < 0) | (most > 1) | (self.table[f"between{place}"] != 0)
        if self.n_missing(place) or np.any(is_odd):
            return None
        bits = np.zeros((self.n_configs, _bytes(self.n_examples)), dtype=np.uint8)
        ones = self.table[f"ones{place}"]
        for row, gone, packed in zip(
            self.of, np.ma.getmaskarray(ones), np.ma.getdata(ones), strict=True
        ):
            if not gone:  # of a configuration that has a loss of 1
                bits[row] |= np.frombuffer(packed, dtype=np.uint8)
        return PackedLosses(bits, self.n_examples)


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
