"""Values from outside as plain arrays. What NumPy would drop on the way is kept or refused: masks,
missing values, zeros at the end of texts, digits of large whole numbers."""

import contextlib
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import Array, BoolArray, FloatArray
from riskpilot.errors import LossError

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


def text_array(values: object, what: str) -> TextArray:
    """Read names of groups, labels or ids as texts that are different where the names are.

    Texts stay as they are: "1", "01" and "1.0" are three names. Whole numbers and truth values read
    alike whatever their type: 1, 1.0, True and the text "1" are one name.

    Parameters
    ----------
    values : array_like
        Texts, whole numbers, truth values or floats; not texts and numbers at once.
    what : str
        What the values are, in the plural: the subject of messages.

    Returns
    -------
    array of str
        In the shape that the values have.

    Raises
    ------
    LossError
        Where a name is missing or masked, where texts and numbers are mixed, where numbers are too
        large to be told apart, or where a text cannot be kept as it is.

    Examples
    --------
    >>> text_array([1, 0], "groups").tolist(), text_array([True, 0.0], "groups").tolist()
    (['1', '0'], ['1', '0'])
    >>> text_array(["1", "01", "1.0"], "groups").tolist()
    ['1', '01', '1.0']
    """
    if isinstance(values, NumbersOfTexts):
        raise LossError(
            f"{what} must be names as they were written, but they were read from a file as "
            f"numbers, in which 1 and 01 are the same. Name the column when the file is read: "
            f"read_losses(path, groups=[...])."
        )
    if isinstance(values, list | tuple):
        # NumPy makes texts of a list of numbers and texts, and drops zeros at the end of texts.
        refuse_masked(values, what)
        with contextlib.suppress(ValueError):  # rows of different lengths are refused below
            values = np.array(values, dtype=np.object_)
    array: Array = plain_array(values, what)
    match array.dtype.kind:
        case "U":
            return np.asarray(array, dtype=np.str_)
        case "b":
            return array.astype(np.int8).astype(np.str_)
        case "i" | "u":
            return array.astype(np.str_)
        case "f":
            return _texts_of_floats(array, what)
        case "S":
            return _decoded(array, what)
        case "O" | "T":
            return _texts_of_objects(array.astype(np.object_), what)
    raise LossError(
        f"{what} must be texts or whole numbers, but their type is {array.dtype}. "
        f"Write each as a text."
    )


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
            f"{what} must be an array of numbers or booleans, but they are a "
            f"{type(given).__name__}. Convert it to an array."
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


def _texts_of_floats(array: Array, what: str) -> TextArray:
    if not np.isfinite(array).all():
        raise LossError(
            f"{what} must name one for every example, but one is NaN or infinite. "
            f"Name a group for those whose group is not known."
        )
    # From here on a whole number and its neighbour are the same float.
    first = min(2 ** (np.finfo(array.dtype).nmant + 1), LARGEST_WHOLE)
    large = np.abs(array) >= first
    if large.any():
        raise LossError(
            f"{what} must be names that can be told apart, but one is {array[large].flat[0]:g}, "
            f"and floats of {first:,} and above are not: neighbouring whole numbers look the same. "
            f"Give whole numbers as integers, or names as texts."
        )
    whole = array == np.rint(array)
    numbers = np.where(whole, array, 0).astype(np.int64).astype(np.str_)
    return np.where(whole, numbers, array.astype(np.str_))


def _decoded(array: Array, what: str) -> TextArray:
    values = array.ravel().tolist()
    texts = {value: _decode(value, what) for value in set(values)}
    return np.array([texts[value] for value in values], dtype=np.str_).reshape(array.shape)


def _decode(value: bytes, what: str) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LossError(
            f"{what} must be texts, but one is the bytes {value[:60]!r}, which are not UTF-8. "
            f"Decode them with the encoding that they were written in: value.decode(...)."
        ) from error


def _texts_of_objects(array: Array, what: str) -> TextArray:
    values = array.ravel().tolist()
    for value in values:
        if not isinstance(value, str | bytes | int) and is_missing(value):
            raise LossError(
                f"{what} must name one for every example, but one is missing: {value!r}. "
                f"Name a group for those whose group is not known."
            )
    kinds = sorted({_kind(kind, what) for kind in set(map(type, values))})
    if len(kinds) > 1:
        raise LossError(
            f"{what} must be of one kind, but some are {kinds[0]} and some are {kinds[1]}: whether "
            f"1 and '1' are the same group nobody can tell. Make all of them texts, or all of them "
            f"numbers."
        )
    if kinds == ["numbers"]:
        texts = [_text_of_number(value, what) for value in values]
    else:
        known = {value: _text(value, what) for value in set(values)}
        texts = [known[value] for value in values]
    return np.array(texts, dtype=np.str_).reshape(array.shape)


def _kind(kind: type, what: str) -> str:
    if issubclass(kind, _NUMBERS):
        return "numbers"
    if issubclass(kind, str):
        return "texts"
    if issubclass(kind, bytes):
        return "bytes"
    raise LossError(
        f"{what} must be texts or whole numbers, but one is of type {kind.__name__}. "
        f"Write each as a text."
    )


def _text(value: str | bytes, what: str) -> str:
    # Of a subclass of str, such as an Enum, the text that it holds and not what it prints.
    text = str.__str__(value) if isinstance(value, str) else _decode(value, what)
    if text.endswith("\0"):
        raise LossError(
            f"{what} must be texts that arrays can hold, but {text[:60]!r} ends in NUL, which "
            f"arrays drop. Remove it."
        )
    return text


def _text_of_number(value: Any, what: str) -> str:
    if isinstance(value, float | np.floating):
        return str(_texts_of_floats(np.atleast_1d(value), what)[0])
    if isinstance(value, np.timedelta64):  # numpy counts spans of time among its integers
        raise LossError(
            f"{what} must be texts or whole numbers, but one is a span of time. "
            f"Write each as a text."
        )
    try:
        return str(int(value))
    except ValueError as error:  # Python writes no number of more than 4,300 digits
        raise LossError(
            f"{what} must be names that can be written, but one is a number of "
            f"{int(value).bit_length():,} bits. Give it a short name."
        ) from error
