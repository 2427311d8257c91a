"""Values from outside as arrays of texts, without changing any of them."""

import contextlib
from typing import Any

import numpy as np

from riskpilot.common.arrays import Array
from riskpilot.errors import LossError
from riskpilot.losses.intake import (
    _NUMBERS,
    LARGEST_WHOLE,
    NumbersOfTexts,
    TextArray,
    is_missing,
    plain_array,
    refuse_masked,
)


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
