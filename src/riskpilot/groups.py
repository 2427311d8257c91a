"""What stands beside losses, one for each example: groups, labels, weights, a reference."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.errors import LossError
from riskpilot.measures import Contrast, Grouped, GroupGap
from riskpilot.problem import Risk
from riskpilot.statistics import within_label

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


def read_groups(risk: Risk, beside: Mapping[str, npt.ArrayLike], m: int, split: str) -> Groups:
    """The groups of one split, checked. ``beside``: by name, shape (m,), or equal rows of it."""
    statistic = risk.statistic
    assert isinstance(statistic, Grouped)
    where = f"{split}: the groups {risk.groups!r} of {risk.name!r}"
    known, codes = _read_labels(risk, beside, risk.groups, "groups", m, split)
    wanted = statistic.groups or known
    for name in wanted:
        if name not in known:
            raise LossError(
                f"{where}: group {name!r} has no example; there are {', '.join(known)}. "
                f"A group without examples cannot be judged: bring some, or leave it out."
            )
    if isinstance(statistic, Contrast) and len(wanted) < 2:
        raise LossError(
            f"{where}: a comparison needs two groups, but all examples are of {known[0]!r}. "
            f"Check the column that the groups were taken from."
        )
    place = np.array([wanted.index(name) if name in wanted else -1 for name in known])
    groups = Groups(wanted, place[codes])
    if isinstance(statistic, GroupGap) and statistic.within is not None:
        labels = _read_labels(risk, beside, statistic.within, "labels", m, split)
        return _parted(groups, *labels, where)
    return groups


def _read_labels(
    risk: Risk, beside: Mapping[str, npt.ArrayLike], name: str, what: str, m: int, split: str
) -> tuple[tuple[str, ...], npt.NDArray[np.intp]]:
    """The different texts of an array beside the losses, and which of them each example has."""
    where = f"{split}: the {what} {name!r} of {risk.name!r}"
    values = beside.get(name)
    if values is None:
        raise LossError(
            f"{where} are missing. Pass the {what[:-1]} of every example beside the losses: "
            f'{split}={{"{risk.name}": losses, "{name}": array}}.'
        )
    texts = group_names(values, where)
    if texts.ndim == 2 and (texts == texts[:1]).all():
        texts = texts[0]
    if texts.shape != (m,):
        raise LossError(
            f"{where} must name one {what[:-1]} per example, shape ({m},), but their shape is "
            f"{texts.shape}. They are the same for every configuration."
        )
    found, codes = np.unique(texts, return_inverse=True)
    return tuple(map(str, found)), codes.reshape(-1)


def _parted(
    groups: Groups, labels: tuple[str, ...], codes: npt.NDArray[np.intp], where: str
) -> Groups:
    """Every group parted by label: each part is a group of its own, and all must have examples."""
    unsorted = [within_label(group, label) for group in groups.names for label in labels]
    names = tuple(sorted(unsorted))  # as they come back from a record
    place = np.array([names.index(name) for name in unsorted])
    joint = np.where(groups.codes < 0, -1, place[groups.codes * len(labels) + codes])
    sizes = np.bincount(joint[joint >= 0], minlength=len(names))
    if (sizes == 0).any():
        empty = names[int(np.argmin(sizes))]
        raise LossError(
            f"{where}: {empty!r} (group | label) has no example. Groups are compared within each "
            f"label: bring some examples, or leave the group out."
        )
    return Groups(names, joint.astype(np.int64))


def read_numbers(
    risk: Risk, beside: Mapping[str, npt.ArrayLike], name: str, what: str, m: int, split: str
) -> FloatArray:
    """Numbers that stand beside the losses: shape (m,), or a table of equal rows."""
    where = f"{split}: the {what} {name!r} of {risk.name!r}"
    values = beside.get(name)
    if values is None:
        raise LossError(
            f"{where} are missing. Pass one number per example beside the losses: "
            f'{split}={{"{risk.name}": losses, "{name}": array}}.'
        )
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise LossError(
            f"{where} must be numbers or booleans, but their type is {array.dtype}. "
            f"Convert them to float."
        )
    numbers = array.astype(np.float64)
    if numbers.ndim == 2 and np.array_equal(
        numbers, np.broadcast_to(numbers[:1], numbers.shape), equal_nan=True
    ):
        numbers = numbers[0]
    if numbers.shape != (m,):
        raise LossError(
            f"{where} must be one number per example, shape ({m},), but their shape is "
            f"{numbers.shape}. They are the same for every configuration."
        )
    return numbers


def read_weights(
    risk: Risk, beside: Mapping[str, npt.ArrayLike], m: int, split: str
) -> FloatArray | None:
    """The weights of the examples as shares of the largest that there can be; shape (m,)."""
    if risk.weights is None or risk.largest_weight is None:
        return None
    weights = read_numbers(risk, beside, risk.weights, "weights", m, split)
    bad = weights[~((weights >= 0) & (weights <= risk.largest_weight))]
    if bad.size:
        raise LossError(
            f"{split}: the weights {risk.weights!r} of {risk.name!r} must lie in "
            f"[0, {risk.largest_weight:g}], the bound that was declared, but one is {bad[0]:g}. "
            f"Declare a bound that holds for all examples there can be: a bound read off the "
            f"sample proves nothing."
        )
    return np.asarray(weights / risk.largest_weight)
