"""Values from outside as plain arrays. What NumPy would drop on the way is kept or refused: masks,
missing values, zeros at the end of texts, digits of large whole numbers."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import Array, BoolArray, FloatArray
from riskpilot.errors import LossError, type_in_words

TextArray = npt.NDArray[np.str_]

# Whole numbers from here on have neighbours that double precision cannot tell from them.
LARGEST_WHOLE = 2**53
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


class NumbersOfTexts(np.ndarray[Any, np.dtype[np.float64]]):
    """Numbers that a file wrote as texts. They serve as losses and never as names: "1" and "01" are
    different groups and the same number."""


def plain_array(values: object, what: str, *, missing_as_nan: bool = False) -> Array:
    """Read values as an ordinary array, and refuse what such an array cannot hold.

    Parameters
    ----------
    values : array_like
        An array, a list, a Series, a DataFrame, or anything else that NumPy reads.
    what : str
        What the values are, in the plural: the subject of a message such as "validation: the
        losses of 'error'".
    missing_as_nan : bool, default False
        Whether masked values become NaN. They are refused otherwise.

    Returns
    -------
    array
        In the shape and the type that the values have; never a masked array or a matrix.

    Raises
    ------
    LossError
        Where values are masked, sparse, or do not form an array.
    """
    if hasattr(values, "nnz") and hasattr(values, "toarray"):
        raise LossError(
            f"{what} must form an ordinary array, but they are a sparse {type(values).__name__}. "
            f"Write values.toarray()."
        )
    values = _without_mask(values, what, missing_as_nan)
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise LossError(
            f"{what} must form a rectangle (configurations x examples) of numbers, but they cannot "
            f"be read as one: {error}. Give every configuration the same examples, in one array."
        ) from error


def refuse_masked(values: object, what: str) -> None:
    """Refuse a masked array, or a list that holds one, where some value of it is masked.

    Parameters
    ----------
    values : object
        Anything; what is not masked passes.
    what : str
        What the values are, in the plural: the subject of the message.

    Raises
    ------
    LossError
        Where a value is masked.
    """
    _without_mask(values, what, missing_as_nan=False)


def number_array(values: object, what: str, *, missing_as_nan: bool = False) -> Array:
    """Read values as an array of booleans, whole numbers or floats of at most double precision.

    Parameters
    ----------
    values : array_like
        Numbers or booleans; objects count as what they are.
    what : str
        What the values are, in the plural: the subject of messages.
    missing_as_nan : bool, default False
        Whether masked values, None and NA become NaN. They are refused otherwise.

    Returns
    -------
    array
        Of a boolean, integer or floating type.

    Raises
    ------
    LossError
        Where a value is no number, is missing, or has more digits than double precision holds.
    """
    array = plain_array(values, what, missing_as_nan=missing_as_nan)
    if array.dtype.kind == "O":
        return _from_objects(array, values, what, missing_as_nan)
    if array.dtype.kind not in "biuf":
        raise LossError(
            f"{what} must be numbers or booleans, but their type is {array.dtype}. "
            f"Convert them to float."
        )
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return _halved(array, what)
    return array


def as_read(number: float, dtype: np.dtype[Any]) -> np.floating[Any]:
    """A declared number in the precision of the values that are compared with it.

    0.3 is 0.30000001192... in single precision, so that losses of that type which sit at a limit of
    0.3 are a little above it. They are meant to be at it, and are, in their own precision. This
    holds for numbers that are written alike in both precisions; 2051 becomes 2052 in half
    precision, which is another number, and is compared as it is.
    """
    if dtype.kind == "f" and dtype.itemsize < 8:
        with np.errstate(over="ignore"):  # a range may be wider than all numbers of the type
            own: np.floating[Any] = dtype.type(number)
        if float(str(own)) == number and np.isfinite(own):
            return own
    return np.float64(number)


def same_number(low: float, high: float, dtype: np.dtype[Any]) -> bool:
    """Whether values of a type cannot tell two declared numbers apart."""
    if dtype.kind != "f" or dtype.itemsize >= 8:
        return low == high
    with np.errstate(over="ignore"):
        one, other = dtype.type(low), dtype.type(high)
    return bool(one == other and np.isfinite(one))


def outside(array: Array, low: float, high: float) -> BoolArray:
    """Which values lie outside of [low, high], whose ends are read in the precision of the values;
    NaN does not."""
    below, above = array < as_read(low, array.dtype), array > as_read(high, array.dtype)
    return np.asarray(below | above)


def in_double(array: Array, *marks: float) -> FloatArray:
    """Values in double precision; one that is at a mark in its own precision is the mark itself.

    Later marks count where two are the same number in the precision of the values.
    """
    double = np.asarray(array, dtype=np.float64)
    for mark in marks:
        own = as_read(mark, array.dtype)
        if float(own) != mark:
            double[array == own] = mark
    return double


def _without_mask(values: Any, what: str, missing_as_nan: bool, depth: int = 3) -> Any:
    """The values with NaN where they are masked, or a refusal. Lists may hold masked arrays."""
    if isinstance(values, np.ma.MaskedArray):
        if not np.ma.is_masked(values):
            return values.data
        if missing_as_nan and values.dtype.kind in "biuf":
            wide_enough = np.result_type(values.dtype, np.float16)
            return np.where(values.mask, np.nan, values.data).astype(wide_enough)
        raise LossError(
            f"{what} must all be there, but {np.count_nonzero(values.mask):,} of them are masked. "
            f"Leave those examples out everywhere; a loss that does not count may be masked, or "
            f"NaN, where the risk says so: Risk(..., conditional=True)."
        )
    if isinstance(values, list | tuple) and depth and _holds_mask(values, depth):
        return [_without_mask(value, what, missing_as_nan, depth - 1) for value in values]
    return values


def _holds_mask(values: Iterable[object], depth: int) -> bool:
    return any(
        isinstance(value, np.ma.MaskedArray)
        or (isinstance(value, list | tuple) and depth > 1 and _holds_mask(value, depth - 1))
        for value in values
    )


def _from_objects(array: Array, given: object, what: str, missing_as_nan: bool) -> Array:
    """Numbers that came as Python objects, as from lists with None and tables of mixed columns."""
    if array.ndim == 0:
        raise LossError(
            f"{what} must be an array of numbers or booleans, but they are "
            f"{type_in_words(given)}. Convert it to an array."
        )
    missing = np.zeros(array.shape, dtype=bool)
    if not all(issubclass(kind, _NUMBERS) for kind in set(map(type, array.flat))):
        missing[...] = np.reshape([is_missing(value) for value in array.flat], array.shape)
        odd = next((v for v in array[~missing] if not isinstance(v, _NUMBERS)), None)
        if odd is not None:
            raise LossError(
                f"{what} must be numbers or booleans, but their type is object and one is of type "
                f"{type(odd).__name__}. Convert them to float."
            )
        if missing.any() and not missing_as_nan:
            raise LossError(
                f"{what} must all be there, but one is missing: {array[missing][0]!r}. Leave that "
                f"example out everywhere; where a missing loss means that the example does not "
                f"count for the risk, declare it: Risk(..., conditional=True)."
            )
    if not missing.any() and all(
        issubclass(k, bool | np.bool_) for k in set(map(type, array.flat))
    ):
        return array.astype(np.bool_)
    try:
        return np.where(missing, np.nan, array).astype(np.float64)
    except OverflowError:
        raise LossError(
            f"{what} must be numbers of double precision, but one is larger than any of them "
            f"(1.8e308). Remove it, or clip the losses at a value that was fixed beforehand."
        ) from None


def is_missing(value: object) -> bool:
    """Whether a value says that there is none: None, NaN, NaT, or the NA of pandas."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # NA is neither equal nor unequal to itself
        return True
    except (ValueError, ArithmeticError):  # an array within an array; a signalling NaN
        return isinstance(value, Decimal)


def _halved(array: Array, what: str) -> Array:
    """Floats of more than eight bytes in double precision, where that changes none of them."""
    with np.errstate(over="ignore"):  # what becomes infinite is found to be changed
        double = array.astype(np.float64)
    if not ((double == array) | np.isnan(array)).all():
        raise LossError(
            f"{what} must be numbers of double precision, but their type is {array.dtype} and some "
            f"have more digits. Write values.astype(float) where they are made."
        )
    return double
