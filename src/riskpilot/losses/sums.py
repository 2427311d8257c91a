"""The sums of losses that groups, tails and weights need, gathered block by block."""

import numpy as np
import numpy.typing as npt

from riskpilot.losses.beside import Groups
from riskpilot.losses.summaries import AnySummary, GroupName, GroupSummary, Summary
from riskpilot.problem import Risk
from riskpilot.statistics import CVaR, Grouped, Tail

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class GroupSums:
    """Gathers the sums of each group, block of configurations by block."""

    def __init__(self, statistic: Grouped, groups: Groups, n_configs: int) -> None:
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
        # A product sums faster than a sum does, and without rounding up to 2^24.
        small = np.float32 if 64 * words.shape[1] < 2**24 else np.float64
        numbers, ones = np.empty(words.shape, dtype=small), np.ones(words.shape[1], dtype=small)
        for g, mask in enumerate(self._masks):
            np.bitwise_and(words, mask, out=inside)
            np.bitwise_count(inside, out=counted)
            numbers[...] = counted
            self._total[rows, g] = numbers @ ones
        self._n[rows] = self._sizes
        self._squares[rows] = self._above[rows] = self._total[rows]

    def add(self, rows: slice, filled: FloatArray, counts: npt.NDArray[np.bool_]) -> None:
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
        self, risk: Risk, groups: Groups | None, weights: FloatArray, n_configs: int
    ) -> None:
        self._statistic, self._m = risk.statistic, len(weights)
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

    def add(self, rows: slice, filled: FloatArray, counts: npt.NDArray[np.bool_]) -> None:
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
        if isinstance(self._statistic, Grouped):
            return GroupSummary(self._statistic, self._names, parts)
        return parts[0]


class TailSums:
    """Gathers what the estimate of a tail is made of, block of configurations by block."""

    def __init__(self, statistic: Tail, n_configs: int, m: int, weights: FloatArray | None) -> None:
        self._statistic, self._m, self._weights = statistic, m, weights
        self._sums = np.empty((3, n_configs))  # total, squares and threshold (see `Summary`)

    def add_bits(self, rows: slice, bits: npt.NDArray[np.uint8]) -> None:
        """0/1 losses of which every one counts, packed."""
        unit = np.unpackbits(bits, axis=1, count=self._m).astype(np.float64)
        self._sums[:, rows] = tail_sums(self._statistic, unit, self._weights)

    def add(self, rows: slice, filled: FloatArray, counts: npt.NDArray[np.bool_]) -> None:
        """Losses on the unit scale, 0 where they do not count, and which of them do."""
        unit = filled if counts.all() else np.where(counts, filled, np.nan)
        self._sums[:, rows] = tail_sums(self._statistic, unit, self._weights)

    def summary(self, plain: Summary) -> AnySummary:
        total, squares, threshold = self._sums
        return Summary(plain.n, total, squares, plain.above_zero, plain.binary, threshold)


def gatherer(
    risk: Risk, groups: Groups | None, weights: FloatArray | None, n_configs: int, m: int
) -> GroupSums | TailSums | WeightedSums | None:
    """What gathers more than the plain sums, where the statistic needs more."""
    statistic = risk.statistic
    if isinstance(statistic, Tail):
        return TailSums(statistic, n_configs, m, weights)
    if weights is not None:
        return WeightedSums(risk, groups, weights, n_configs)
    if isinstance(statistic, Grouped):
        assert groups is not None
        return GroupSums(statistic, groups, n_configs)
    return None


def _as_words(bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Packed bits as 64-bit words, filled up with zeros."""
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)


def tail_sums(
    statistic: Tail, unit: FloatArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Total, squares and threshold (see `Summary`) of losses of shape (n, m), NaN as ever.

    The threshold is the empirical quantile. The error of a quantile is half the distance between
    the quantiles one standard error of the level below and above it. ``weights``: shape (m,).
    """
    n = np.count_nonzero(~np.isnan(unit), axis=1)
    some = np.maximum(n, 1)
    if weights is None:
        ordered = np.sort(unit, axis=1)  # NaN last
        effective = some.astype(np.float64)

        def place(level: FloatArray) -> IntArray:
            return np.asarray(np.ceil(level * some - 1e-9).astype(np.int64) - 1)
    else:
        order = np.argsort(unit, axis=1)
        ordered = np.take_along_axis(unit, order, axis=1)
        w = np.where(np.isnan(ordered), 0.0, weights[order])
        total = np.maximum(w.sum(axis=1), 1e-300)
        reached = np.cumsum(w, axis=1) / total[:, None]
        shares = w / total[:, None]
        effective = 1 / np.clip((shares**2).sum(axis=1), 1e-300, 1.0)

        def place(level: FloatArray) -> IntArray:
            return np.asarray((reached < level[:, None] - 1e-9).sum(axis=1))

    def at(level: FloatArray) -> FloatArray:
        chosen = np.clip(place(level), 0, some - 1)[:, None]
        found = np.take_along_axis(ordered, chosen, axis=1)[:, 0]
        return np.nan_to_num(found, nan=1.0)

    level = np.full(len(unit), statistic.level)
    threshold = at(level)
    if isinstance(statistic, CVaR):
        excess = np.nan_to_num(np.maximum(unit - threshold[:, None], 0.0)) / (1 - statistic.level)
        tail = np.where(np.isnan(unit), 0.0, threshold[:, None] + excess)
        if weights is None:
            return tail.sum(axis=1), np.einsum("ij,ij->i", tail, tail), threshold
        counted = np.where(np.isnan(unit), 0.0, weights)
        mean = (counted * tail).sum(axis=1) / total
        shares = counted / total[:, None]
        squared_error = (shares**2 * (tail - mean[:, None]) ** 2).sum(axis=1)
        return n * mean, n * (mean**2 + n * squared_error), threshold
    width = np.sqrt(statistic.level * (1 - statistic.level) / effective)
    error = (at(level + width) - at(level - width)) / 2
    return n * threshold, n * (threshold**2 + n * error**2), threshold
