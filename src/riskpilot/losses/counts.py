"""0/1 losses that were counted elsewhere: how many each configuration has, and their sum."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from riskpilot.common import Array, IntArray
from riskpilot.errors import LossError, shown, type_in_words
from riskpilot.losses.intake import number_array
from riskpilot.problem import Risk
from riskpilot.statistics import Mean, Summary, family_named

_MOST = 2**53  # larger numbers of losses have neighbours that look the same


@dataclass(frozen=True, eq=False)
class CountedLosses:
    """The 0/1 losses of n configurations as ``sums`` and ``numbers``, shape (n,) each."""

    sums: Any
    numbers: Any


def read_counts(risk: Risk, counted: CountedLosses, split: str) -> tuple[Summary, int]:
    """Check counts; return their summary, and the largest number of examples."""
    _check_countable(risk)
    what = f"{split}: the counts of {risk.name!r}"
    sums, numbers = (_whole(part, what) for part in (counted.sums, counted.numbers))
    if sums.shape != numbers.shape or sums.ndim != 1 or not sums.size:
        raise LossError(
            f"{what} are two arrays of one number per configuration, sums and numbers of losses, "
            f"but their shapes are {sums.shape} and {numbers.shape}. Write "
            f'{{"{risk.name}": (sums, numbers)}}.'
        )
    least = 0 if risk.conditional else 1
    bad = np.flatnonzero((sums < 0) | (sums > numbers) | (numbers < least))
    if bad.size:
        row = int(bad[0])
        raise LossError(
            f"{what} are sums of 0/1 losses, from 0 to the number of losses, but configuration "
            f"{row} has a sum of {sums[row]} of {numbers[row]} losses. Count the losses again; "
            f"other losses than 0 and 1 go to select_from_losses."
        )
    if not risk.conditional and (numbers != numbers[0]).any():
        row = int(np.flatnonzero(numbers != numbers[0])[0])
        raise LossError(
            f"{what}: every configuration needs the same examples, but configuration {row} has "
            f"{numbers[row]} and the first has {numbers[0]}. Complete it; where only some examples "
            f"count for the risk, declare it: Risk({risk.name!r}, ..., conditional=True)."
        )
    total = sums.astype(np.float64)
    return Summary(numbers, total, total, sums, binary=True), max(int(numbers.max()), 1)


def _whole(values: object, what: str) -> IntArray:
    """Read whole numbers, whatever type they have."""
    array: Array = number_array(values, what)
    if array.dtype.kind == "f" and not (np.isfinite(array) & (array == np.rint(array))).all():
        raise LossError(
            f"{what} must be whole numbers, but they are {shown(values)}. Counts are of 0/1 "
            f"losses; others go to select_from_losses."
        )
    if array.size and float(np.abs(array.astype(np.float64)).max()) >= _MOST:
        raise LossError(f"{what} must be below 2^53, but one is larger. Count fewer losses.")
    return np.asarray(array, dtype=np.int64)


def _check_countable(risk: Risk) -> None:
    """Refuse risks whose test needs the losses themselves."""
    reason = None
    if not isinstance(risk.statistic, Mean):
        reason = f"{type_in_words(risk.statistic)} is limited"
    elif risk.weights is not None:
        reason = "examples are weighted"
    elif risk.p_value != "auto" and family_named(risk.p_value).log_p_from_sums is None:
        reason = f"p_value is {risk.p_value!r}"
    elif risk.span != (0.0, 1.0):
        reason = f"the losses lie in [{risk.low:g}, {risk.high:g}]"
    if reason is not None:
        raise LossError(
            f"Counts are enough for the mean of 0/1 losses, but for {risk.name!r} {reason}, which "
            f"needs the losses themselves. Pass them to select_from_losses or select_from_frame."
        )
