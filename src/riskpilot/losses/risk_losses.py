"""The losses of one risk: read, counted and digested."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from riskpilot.common import Array, FloatArray, Places
from riskpilot.errors import LossError
from riskpilot.losses.beside import (
    digest_of_bytes,
    digest_of_groups,
    read_groups,
    read_numbers,
    read_weights,
)
from riskpilot.losses.counts import CountedLosses, read_counts
from riskpilot.losses.evaluation import LossMapping
from riskpilot.losses.intake import number_array
from riskpilot.losses.packed import PackedLosses
from riskpilot.losses.ranges import as_given, at_top, in_range, to_unit
from riskpilot.problem import Risk, check_scale
from riskpilot.statistics import AnySummary, Groups, Recorded, Summary

_BLOCK_BYTES = 1 << 20  # rows are read in blocks that stay in the cache


_ROWS_LOOKED_AT = 16


@dataclass(frozen=True)
class RiskLosses:
    """One risk's losses of n configurations on m examples.

    ``values``: 0/1 losses as packed bits, shape (n, ceil(m / 8)); others, and those with NaN, as
    given, shape (n, m), of differences less those of the reference; None where the sums are all
    that is needed and all that was kept. ``groups`` and ``weights`` (as shares of the largest) of
    the examples, where the risk has some and the losses are at hand; ``packed``: whether the values
    are bits; ``known_changes``: see `most_changes`, where there are no values.
    """

    risk: Risk
    values: Array | None
    n_examples: int
    summary: AnySummary
    row_digests: tuple[bytes, ...]
    groups: Groups | None = None
    weights: FloatArray | None = None
    packed: bool = False
    known_changes: int = 0

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest loss, or difference, that there can be."""
        return self.risk.span

    @property
    def may_be_nan(self) -> bool:
        """Whether some losses may not count."""
        return self.risk.conditional and not self.packed

    def most_changes(self) -> int:
        """Count how often a loss differs from the one before it, in the row with most changes.

        The first rows are looked at. Where the losses are not at hand, what was counted when they
        were is the answer.
        """
        if self.values is None:
            return self.known_changes
        some = self.unit_rows(range(min(len(self.row_digests), _ROWS_LOOKED_AT)))
        before, after = some[:, :-1], some[:, 1:]
        changes = (before != after) & ~(np.isnan(before) & np.isnan(after))
        return int(changes.sum(axis=1).max(initial=0))

    def rows(self, rows: Sequence[int]) -> FloatArray:
        """The losses, or differences, of some configurations in their own units, shape
        (len(rows), m)."""
        assert self.values is not None
        chosen = self.values[list(rows)]
        if self.packed:
            bits = np.unpackbits(chosen, axis=1, count=self.n_examples)
            return np.asarray(np.array(self.risk.span)[bits])
        return as_given(self.risk, chosen)

    def unit_rows(self, rows: Sequence[int]) -> FloatArray:
        """The losses of some configurations on the unit scale, shape (len(rows), m)."""
        if self.packed:
            assert self.values is not None
            bits = np.unpackbits(self.values[list(rows)], axis=1, count=self.n_examples)
            return bits.astype(np.float64)
        return to_unit(self.rows(rows), self.risk)

    def unit_part(self, rows: Places, columns: Places) -> FloatArray:
        """Losses on the unit scale, shape (len(rows), len(columns)), without unpacking all of a
        row."""
        values = self.values
        assert values is not None
        if self.packed:
            bits = values[np.ix_(rows, columns >> 3)] >> (7 - (columns & 7)).astype(np.uint8)
            return np.asarray(bits & 1, dtype=np.float64)
        chosen = replace(self, values=values[np.ix_(rows, columns)], n_examples=len(columns))
        return chosen.unit_rows(range(len(rows)))

    def drawn(self, row: int, examples: Places) -> "RiskLosses":
        """The losses of one configuration on some of the examples, in that order; an example may
        be drawn several times."""
        groups, weights = self.groups, self.weights
        return _read_table(
            self.risk,
            self.rows([row])[:, examples],
            "calibration",
            None if groups is None else Groups(groups.names, groups.codes[examples]),
            None if weights is None else weights[examples],
        )


def summary_of(risk: Risk, records: Sequence[Recorded]) -> AnySummary:
    """The summary of many configurations from what each of them recorded."""
    return risk.statistic.summary_of(records)


def read_risk(risk: Risk, losses: npt.ArrayLike, beside: LossMapping, split: str) -> RiskLosses:
    """Check the losses of one risk, shape (configurations, examples), and take their sums."""
    check_scale(risk)
    if isinstance(losses, CountedLosses):
        counts, m = read_counts(risk, losses, split)
        digests = map(_digest_count, counts.n.tolist(), counts.above_zero.tolist())
        return RiskLosses(risk, None, m, counts, tuple(digests))
    what = f"{split}: the losses of {risk.name!r}"
    if isinstance(losses, PackedLosses) and _stays_packed(risk) and 0 not in losses.shape:
        m = losses.n_examples
        groups = read_groups(risk, beside, m, split) if risk.needs_groups else None
        return _read_packed(risk, losses, groups, read_weights(risk, beside, m, split))
    array = number_array(losses, what, missing_as_nan=risk.conditional)
    if array.ndim != 2:
        raise LossError(
            f"{what} must have shape (configurations, examples), "
            f"but it is {array.shape}. For one configuration use losses[None, :]."
        )
    if 0 in array.shape:
        raise LossError(
            f"{what} are empty, shape {array.shape}. "
            f"A certificate needs at least one configuration and one example."
        )
    m = array.shape[1]
    groups = read_groups(risk, beside, m, split) if risk.needs_groups else None
    weights = read_weights(risk, beside, m, split)
    name = risk.statistic.reference_name
    if name is not None:
        reference = read_numbers(risk, beside, name, "losses of the reference", m, split)
        array = differences(risk, array, reference, split)
    return _read_table(risk, array, split, groups, weights)


def differences(risk: Risk, array: Array, reference: Array, split: str) -> Array:
    """Losses less those of the reference, both in range; NaN where an example does not count."""
    base = in_range(risk, reference, split)
    in_unit = risk.low <= 0 and risk.high >= 1 and bool(((base == 0) | (base == 1)).all())
    truths = array.dtype == np.bool_ and in_unit
    differences = np.empty(array.shape, dtype=np.int8 if truths else np.float64)
    counts = ~np.isnan(base)
    for rows in _blocks(len(array), array.shape[1] * array.itemsize):
        block = array[rows]
        if truths:
            np.subtract(block, base.astype(np.int8), out=differences[rows], dtype=np.int8)
            continue
        losses = in_range(risk, block, split)
        if risk.conditional and (np.isnan(losses) == counts).any():
            raise LossError(
                f"{split}: the losses of {risk.name!r} and those of the reference must count for "
                f"the same examples, but for some only one of the two is NaN. No test is known "
                f"here for the difference of two rates that are taken over different examples: "
                f"limit each of them on its own."
            )
        np.subtract(losses, base, out=differences[rows])
    return differences


def _stays_packed(risk: Risk) -> bool:
    """Say whether a bit is the loss itself: 0 or 1, and no difference from a reference."""
    return risk.span == (0.0, 1.0) and risk.statistic.reference_name is None


def _read_packed(
    risk: Risk, losses: PackedLosses, groups: Groups | None, weights: FloatArray | None
) -> RiskLosses:
    """Take the sums of losses that come as bits."""
    n_configs, m = losses.shape
    more = risk.statistic.gatherer(groups, weights, n_configs, m)
    count = np.empty(n_configs, dtype=np.int64)
    digests: list[bytes] = []
    for rows in _blocks(n_configs, m):
        bits = losses.bits[rows]
        count[rows] = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
        if more is not None:
            more.add_bits(rows, bits)
        digests.extend(_digest_bits(m, row) for row in bits)
    total = count.astype(np.float64)
    plain = Summary(np.full(n_configs, m, dtype=np.int64), total, total, count, binary=True)
    summary = plain if more is None else more.summary(plain)
    beside = _with_beside(digests, groups, weights)
    return RiskLosses(risk, losses.bits, m, summary, beside, groups, weights, packed=True)


def _with_beside(
    digests: Sequence[bytes], groups: Groups | None, weights: FloatArray | None
) -> tuple[bytes, ...]:
    """Join the digest of each row with those of what stands beside the losses, if anything does."""
    if groups is None and weights is None:
        return tuple(digests)
    own = b"" if groups is None else digest_of_groups(groups)
    shares = b"" if weights is None else weights.astype("<f8").tobytes()
    return tuple(digest_of_bytes(own, shares, digest) for digest in digests)


def _read_table(
    risk: Risk, array: Array, split: str, groups: Groups | None, weights: FloatArray | None
) -> RiskLosses:
    n_configs, m = array.shape
    # What a loss at an end of the range, or of differences two of them, can be on the unit scale.
    ends = risk.statistic.ends
    packed = np.empty((n_configs, (m + 7) // 8), dtype=np.uint8)
    n = np.full(n_configs, m, dtype=np.int64)
    total = np.empty(n_configs)
    squares = np.empty(n_configs)
    above_zero = np.empty(n_configs, dtype=np.int64)
    more = risk.statistic.gatherer(groups, weights, n_configs, m)
    digests: list[bytes] = []
    binary = packable = True
    for rows in _blocks(n_configs, m * array.itemsize):
        block = array[rows]
        bits_at_top = at_top(risk, block)
        if bits_at_top is not None:
            bits = np.packbits(bits_at_top, axis=1)
            count = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
            packed[rows] = bits
            total[rows] = squares[rows] = above_zero[rows] = count
            if more is not None:
                more.add_bits(rows, bits)
            digests.extend(_digest_bits(m, row) for row in bits)
            continue
        packable = False
        if risk.statistic.reference_name is not None:  # those were checked one by one
            losses = as_given(risk, block)
        else:
            losses = in_range(risk, block, split)
        unit = to_unit(losses, risk)
        counts = ~np.isnan(unit)
        n[rows] = counts.sum(axis=1)
        filled = np.where(counts, unit, 0.0)
        # Losses that count may all be 0/1 although others do not count.
        n_at_ends = sum(np.count_nonzero(filled == end) for end in ends)
        binary = binary and bool(n_at_ends == filled.size)
        total[rows] = filled.sum(axis=1)
        squares[rows] = np.einsum("ij,ij->i", filled, filled)
        above_zero[rows] = np.count_nonzero(filled, axis=1)
        if more is not None:
            more.add(rows, filled, counts)
        digests.extend(_digest_row(risk, row) for row in losses)
    plain = Summary(n, total, squares, above_zero, binary)
    summary = plain if more is None else more.summary(plain)
    values = packed if packable else array
    beside = _with_beside(digests, groups, weights)
    return RiskLosses(risk, values, m, summary, beside, groups, weights, packable)


def _blocks(n_rows: int, row_bytes: int) -> Iterator[slice]:
    step = max(1, _BLOCK_BYTES // max(row_bytes, 1))
    for start in range(0, n_rows, step):
        yield slice(start, start + step)


def _digest_row(risk: Risk, row: Array) -> bytes:
    bits = at_top(risk, row[None])
    if bits is not None:
        return _digest_bits(row.size, np.packbits(bits[0]))
    values = np.array(row, dtype="<f8") + 0.0  # the zero below zero is zero
    values[np.isnan(values)] = np.nan  # one bit pattern for every NaN
    return hashlib.sha256(b"float64:%d:" % row.size + values.tobytes()).digest()


def _digest_count(n: int, count: int) -> bytes:
    return hashlib.sha256(b"count:%d:%d" % (n, count)).digest()


def _digest_bits(m: int, bits: Array) -> bytes:
    return hashlib.sha256(b"bits:%d:" % m + bits.tobytes()).digest()
