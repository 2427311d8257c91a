"""Groups of examples, and the sums of losses that tails and groups need."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.errors import LossError
from riskpilot.measures import Contrast, CVaR, Grouped, Tail
from riskpilot.problem import Risk
from riskpilot.statistics import AnySummary, GroupSummary, Summary

FloatArray = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Groups:
    """``names`` of the groups, and for each example the position of its group among them, or -1
    where it belongs to none of them; shape (m,)."""

    names: tuple[str, ...]
    codes: npt.NDArray[np.int64]

    @property
    def digest(self) -> bytes:
        told = "\0".join(self.names).encode() + b"\0\0" + self.codes.astype("<i8").tobytes()
        return hashlib.sha256(told).digest()

    def members(self, position: int) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self.codes == position)


def group_names(values: npt.ArrayLike, where: str) -> npt.NDArray[np.str_]:
    """The group of every example as a text; whole numbers and truth values read alike anywhere.

    >>> group_names([1, 0], "validation").tolist(), group_names([True, False], "v").tolist()
    (['1', '0'], ['1', '0'])
    """
    array = np.asarray(values)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise LossError(
                f"{where}: every example needs a group, but one is NaN or infinite. "
                f"Name a group for those whose group is not known."
            )
        if (array == np.rint(array)).all():
            array = array.astype(np.int64)
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind == "O" and any(value is None or value != value for value in array.flat):
        raise LossError(
            f"{where}: every example needs a group, but one is missing. "
            f"Name a group for those whose group is not known."
        )
    return array.astype(np.str_)


def read_groups(risk: Risk, values: npt.ArrayLike | None, m: int, split: str) -> Groups:
    """The groups of one split, checked. ``values``: shape (m,), or a table of equal rows."""
    assert isinstance(risk.statistic, Grouped)
    where = f"{split}: the groups {risk.groups!r} of {risk.name!r}"
    if values is None:
        raise LossError(
            f"{where} are missing. Pass the group of every example beside the losses: "
            f'{split}={{"{risk.name}": losses, "{risk.groups}": array}}.'
        )
    names = group_names(values, where)
    if names.ndim == 2 and (names == names[:1]).all():
        names = names[0]
    if names.shape != (m,):
        raise LossError(
            f"{where} must name one group per example, shape ({m},), but their shape is "
            f"{names.shape}. They are the same for every configuration."
        )
    found, codes = np.unique(names, return_inverse=True)
    known = tuple(map(str, found))
    wanted = risk.statistic.groups or known
    for name in wanted:
        if name not in known:
            raise LossError(
                f"{where}: group {name!r} has no example; there are {', '.join(known)}. "
                f"A group without examples cannot be judged: bring some, or leave it out."
            )
    if isinstance(risk.statistic, Contrast) and len(wanted) < 2:
        raise LossError(
            f"{where}: a comparison needs two groups, but all examples are of {known[0]!r}. "
            f"Check the column that the groups were taken from."
        )
    place = np.array([wanted.index(name) if name in wanted else -1 for name in known])
    return Groups(wanted, place[codes.reshape(-1)].astype(np.int64))


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
        self._n[rows] = self._sizes
        for g, mask in enumerate(self._masks):
            count = np.bitwise_count(words & mask).sum(axis=1, dtype=np.int64)
            for sums in (self._total, self._squares, self._above):
                sums[rows, g] = count

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


class TailSums:
    """Gathers what the estimate of a tail is made of, block of configurations by block."""

    def __init__(self, statistic: Tail, n_configs: int, m: int) -> None:
        self._statistic, self._m = statistic, m
        self._sums = np.empty((3, n_configs))  # total, squares and threshold (see `Summary`)

    def add_bits(self, rows: slice, bits: npt.NDArray[np.uint8]) -> None:
        """0/1 losses of which every one counts, packed."""
        unit = np.unpackbits(bits, axis=1, count=self._m).astype(np.float64)
        self._sums[:, rows] = tail_sums(self._statistic, unit)

    def add(self, rows: slice, filled: FloatArray, counts: npt.NDArray[np.bool_]) -> None:
        """Losses on the unit scale, 0 where they do not count, and which of them do."""
        unit = filled if counts.all() else np.where(counts, filled, np.nan)
        self._sums[:, rows] = tail_sums(self._statistic, unit)

    def summary(self, plain: Summary) -> AnySummary:
        total, squares, threshold = self._sums
        return Summary(plain.n, total, squares, plain.above_zero, plain.binary, threshold)


def gatherer(
    risk: Risk, groups: Groups | None, n_configs: int, m: int
) -> GroupSums | TailSums | None:
    """What gathers more than the plain sums, where the statistic needs more."""
    statistic = risk.statistic
    if isinstance(statistic, Grouped):
        assert groups is not None
        return GroupSums(statistic, groups, n_configs)
    return TailSums(statistic, n_configs, m) if isinstance(statistic, Tail) else None


def _as_words(bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Packed bits as 64-bit words, filled up with zeros."""
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)


def tail_sums(statistic: Tail, unit: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Total, squares and threshold (see `Summary`) of losses of shape (n, m), NaN as ever.

    The threshold is the empirical quantile. The error of a quantile is half the distance between
    the quantiles one standard error of the level below and above it.
    """
    ordered = np.sort(unit, axis=1)  # NaN last
    n = np.count_nonzero(~np.isnan(unit), axis=1)
    some = np.maximum(n, 1)

    def at(level: FloatArray) -> FloatArray:
        place = np.clip(np.ceil(level * some - 1e-9).astype(np.int64) - 1, 0, some - 1)
        return np.nan_to_num(np.take_along_axis(ordered, place[:, None], axis=1)[:, 0], nan=1.0)

    level = np.full(len(unit), statistic.level)
    threshold = at(level)
    if isinstance(statistic, CVaR):
        excess = np.nan_to_num(np.maximum(unit - threshold[:, None], 0.0)) / (1 - statistic.level)
        tail = np.where(np.isnan(unit), 0.0, threshold[:, None] + excess)
        return tail.sum(axis=1), np.einsum("ij,ij->i", tail, tail), threshold
    width = np.sqrt(statistic.level * (1 - statistic.level) / some)
    error = (at(level + width) - at(level - width)) / 2
    return n * threshold, n * (threshold**2 + n * error**2), threshold
