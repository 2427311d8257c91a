"""The sums of losses that groups and weights need, gathered block by block."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from riskpilot.common import BoolArray, FloatArray
from riskpilot.statistics.samples import Groups
from riskpilot.statistics.summaries import (
    AnySummary,
    GroupName,
    GroupStatistic,
    GroupSummary,
    Summary,
)


class Gatherer(Protocol):
    """Gathers sums of losses, block of configurations by block."""

    def add_bits(self, rows: slice, bits: npt.NDArray[np.uint8]) -> None:
        """Add 0/1 losses of which every one counts, packed."""

    def add(self, rows: slice, filled: FloatArray, counts: BoolArray) -> None:
        """Add losses on the unit scale, 0 where they do not count, and which of them do."""

    def summary(self, plain: Summary) -> AnySummary:
        """Make the summary, given the plain sums of all examples."""


class GroupSums:
    """Gathers the sums of each group, block of configurations by block."""

    def __init__(self, statistic: GroupStatistic, groups: Groups, n_configs: int) -> None:
        self._statistic, self._names = statistic, groups.names
        shape = (n_configs, len(groups.names))
        self._n, self._total, self._squares, self._above = (np.zeros(shape) for _ in range(4))
        members = np.array([groups.codes == g for g in range(len(groups.names))])
        self._one_hot = members.T.astype(np.float64)
        self._masks = _as_words(np.packbits(members, axis=1))
        self._sizes = members.sum(axis=1)

    def add_bits(self, rows: slice, bits: npt.NDArray[np.uint8]) -> None:
        """0/1 losses of which every one counts, packed."""
        words = _as_words(bits)
        inside, counted = np.empty_like(words), np.empty(words.shape, dtype=np.uint8)
        # A product with ones is a sum that the linear algebra library does fast; in single
        # precision it is exact up to 2^24.
        small = np.float32 if 64 * words.shape[1] < 2**24 else np.float64
        numbers, ones = np.empty(words.shape, dtype=small), np.ones(words.shape[1], dtype=small)
        for g, mask in enumerate(self._masks):
            np.bitwise_and(words, mask, out=inside)
            np.bitwise_count(inside, out=counted)
            numbers[...] = counted
            self._total[rows, g] = numbers @ ones
        self._n[rows] = self._sizes
        self._squares[rows] = self._above[rows] = self._total[rows]

    def add(self, rows: slice, filled: FloatArray, counts: BoolArray) -> None:
        """Losses on the unit scale, 0 where they do not count, and which of them do."""
        # Products with 0/1 columns sum within groups; of whole numbers, without rounding.
        self._n[rows] = self._sizes if counts.all() else counts @ self._one_hot
        self._total[rows] = filled @ self._one_hot
        self._squares[rows] = (filled * filled) @ self._one_hot
        self._above[rows] = (filled > 0) @ self._one_hot

    def summary(self, plain: Summary) -> AnySummary:
        columns = (self._n, self._total, self._squares, self._above)
        sums = []
        for g in range(len(self._names)):
            n, total, squares, above = (column[:, g].copy() for column in columns)
            counted, above_zero = n.astype(np.int64), above.astype(np.int64)
            sums.append(Summary(counted, total, squares, above_zero, plain.binary))
        return GroupSummary(self._statistic, self._names, tuple(sums))


class WeightedSums:
    """Gathers what weighted means, and their errors, are made of, of all examples or by group."""

    def __init__(
        self,
        weights: FloatArray,
        n_configs: int,
        statistic: GroupStatistic | None = None,
        groups: Groups | None = None,
    ) -> None:
        self._statistic, self._m = statistic, len(weights)
        self._names: tuple[GroupName, ...] = ("all",) if groups is None else groups.names
        codes = np.zeros(self._m) if groups is None else groups.codes
        members = (codes[:, None] == np.arange(len(self._names))).astype(np.float64)
        self._powers = [members * weights[:, None] ** power for power in range(3)]
        # Examples that count, and sums of w, w L, w^2, w^2 L and w^2 L^2.
        self._sums = np.zeros((6, n_configs, len(self._names)))

    def add_bits(self, rows: slice, bits: npt.NDArray[np.uint8]) -> None:
        """0/1 losses of which every one counts, packed."""
        unit = np.unpackbits(bits, axis=1, count=self._m).astype(np.float64)
        self.add(rows, unit, np.ones(unit.shape, dtype=bool))

    def add(self, rows: slice, filled: FloatArray, counts: BoolArray) -> None:
        """Losses on the unit scale, 0 where they do not count, and which of them do."""
        one, w, w2 = self._powers
        parts = (counts @ one, counts @ w, filled @ w, counts @ w2, filled @ w2, filled**2 @ w2)
        for i, part in enumerate(parts):
            self._sums[i, rows] = part

    def summary(self, plain: Summary) -> AnySummary:
        n, w, wl, w2, w2l, w2l2 = self._sums
        some = np.maximum(w, 1e-300)
        mean = np.where(w > 0, np.minimum(wl / some, 1.0), 1.0)
        # Divided twice: the square of a small sum of weights is 0.
        squared_error = np.maximum(w2l2 - 2 * mean * w2l + mean**2 * w2, 0.0) / some / some
        squares = n * (mean**2 + n * squared_error)
        parts = tuple(
            Summary(
                np.rint(n[:, g]).astype(np.int64),
                (n * mean)[:, g],
                squares[:, g],
                plain.above_zero,
                binary=False,
            )
            for g in range(len(self._names))
        )
        if self._statistic is None:
            return parts[0]
        return GroupSummary(self._statistic, self._names, parts)


def _as_words(bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Packed bits as 64-bit words, filled up with zeros."""
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)
