"""What codes of classes mean: which is positive, and which says that an example is handed over."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import Array, IntArray
from riskpilot.errors import LossError, shown
from riskpilot.losses.intake import is_missing
from riskpilot.losses.values import plain_array
from riskpilot.problem import Codes, Metric

_ABSTAIN_BY_HABIT = -1  # what many take for "handed over": refused until it is declared
_TWO_CLASSES = ({0, 1}, {-1, 1})  # codes of which 1 is the positive one
LARGEST_CODE = 2**53  # a float does not tell larger whole numbers apart


def meaning_of_codes(
    metrics: Iterable[Metric],
    truth: IntArray,
    predictions: Iterable[IntArray],
    positive: int | None,
    abstain: int | None,
) -> Codes:
    """What the codes of classes mean: as declared, and refused where that leaves it open."""
    code = _declared_abstain(abstain, truth)
    known = set(np.unique(truth).tolist())
    seen: set[int] = set()
    for predicted in predictions:
        seen |= set(np.unique(predicted).tolist())
    if code is None and _ABSTAIN_BY_HABIT in seen - known:
        raise LossError(
            f"A prediction is {_ABSTAIN_BY_HABIT}, which no label is, and it is not declared "
            f"whether that hands the example over. Write abstain={_ABSTAIN_BY_HABIT} if it does; "
            f"if it is a class, count classes from 0 on."
        )
    needs = [metric for metric in metrics if metric.abstains]
    if needs and code is None:
        raise LossError(
            f"{needs[0].name!r} speaks of examples that are handed over, but it is not declared "
            f"which prediction does that. Write abstain={_ABSTAIN_BY_HABIT}, or whatever code it "
            f"is."
        )
    needs = [metric for metric in metrics if metric.needs_positive]
    if not needs:
        return Codes(abstain=code)
    return Codes(_declared_positive(positive, (known | seen) - {code}, needs[0].name), code)


def _declared_abstain(abstain: int | None, truth: IntArray) -> int | None:
    if abstain is None:
        return None
    if isinstance(abstain, bool | np.timedelta64) or not isinstance(abstain, int | np.integer):
        raise LossError(
            f"abstain is the code, a whole number, of predictions that hand an example over, but "
            f"it is {shown(abstain)}. Write abstain=-1, or leave it out where none does."
        )
    if bool((truth == abstain).any()):
        raise LossError(
            f"The code that hands an example over must not be a class, but abstain={abstain} "
            f"occurs among the labels. Choose another code, such as abstain=-99."
        )
    return int(abstain)


def _declared_positive(positive: int | None, classes: set[int | None], metric: str) -> int:
    """The positive class; a code that nothing has would make false alarms impossible."""
    if positive is None:
        if any(classes <= two for two in _TWO_CLASSES):
            return 1
        raise LossError(
            f"{metric!r} speaks of one positive class, and it is not declared which of the classes "
            f"{shown(sorted(map(str, classes)))} that is. Name it: positive=1."
        )
    whole = isinstance(positive, int | np.integer | np.bool_)
    if not whole or isinstance(positive, np.timedelta64):
        raise LossError(
            f"positive is the code of a class, a whole number, but it is {shown(positive)}. "
            f"Write positive=1."
        )
    code = int(positive)
    if code not in classes and not any(classes | {code} <= two for two in _TWO_CLASSES):
        raise LossError(
            f"The positive class must occur among labels or predictions, but {shown(code)} does "
            f"not; there are {shown(sorted(map(str, classes)))}. Name one of them."
        )
    return code


def class_codes(what: str, values: npt.ArrayLike) -> IntArray:
    array = plain_array(what, values)
    missing = _missing_among(array)
    if missing:
        raise LossError(
            f"{what} are the class of every example, but {len(missing):,} of them are missing, "
            f"such as {shown(missing[0])}. Leave those examples out of labels and predictions."
        )
    whole = array.dtype.kind == "f" and bool((np.isfinite(array) & (array == np.rint(array))).all())
    if array.dtype.kind not in "biu" and not whole:
        raise LossError(
            f"{what} are classes as whole numbers or booleans, but their type is {array.dtype}. "
            f"Compare scores with a threshold first: scores >= 0.5; code names as numbers."
        )
    if array.size:
        smallest, largest = int(array.min()), int(array.max())
        if max(-smallest, largest) >= LARGEST_CODE:
            raise LossError(
                f"{what} are codes of classes below 2^53, but they reach from {smallest} to "
                f"{largest}. Count classes from 0 on."
            )
    return np.asarray(array, dtype=np.int64)


def _missing_among(array: Array) -> list[Any]:
    """The values that say that there is none, such as NaN and None."""
    if array.dtype.kind == "f":
        return list(array[np.isnan(array)].tolist())
    if array.dtype.kind != "O":
        return []
    return [value for value in array.ravel().tolist() if is_missing(value)]
