"""Values from outside: what NumPy would drop on the way is kept, or refused in words."""

import datetime
from decimal import Decimal
from enum import Enum

import numpy as np
import pytest
import scipy.sparse

import riskpilot as rp
from riskpilot.common import exact
from riskpilot.losses.intake import (
    NumbersOfTexts,
    in_double,
    is_missing,
    number_array,
    outside,
    plain_array,
    refuse_masked,
)
from riskpilot.losses.texts import text_array


class NA:
    """Behaves as the NA of pandas does: it is neither equal nor unequal to itself."""

    def __eq__(self, other):
        return self

    def __ne__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = object.__hash__


class Column:
    """Behaves as a Series or a DataFrame does: NumPy reads it through ``__array__``."""

    def __init__(self, values, dtype=None):
        self._array = np.array(values, dtype=dtype)

    def __array__(self, dtype=None, copy=None):
        return self._array


class Broken:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("on another device")


class Side(str, Enum):  # noqa: UP042  (it prints as Side.LEFT)
    LEFT = "left"


NUMBERS = {
    "booleans": ([[True, False]], bool),
    "integers": ([[1, 0]], np.int64),
    "floats": ([[0.5, 0.25]], np.float64),
    "tuples": (((1, 0),), np.int64),
    "objects that are truths": (np.array([[True, np.False_]], dtype=object), bool),
    "objects that are numbers": (np.array([[True, 0.5]], dtype=object), np.float64),
    "a column of another library": (Column([[1.0, 0.5]]), np.float64),
    "mixed columns of another library": (Column([[True, 0.5]], dtype=object), np.float64),
    "single precision": (np.ones((1, 2), np.float32), np.float32),
    "an unmasked masked array": (np.ma.array([[1.0, 0.0]], mask=False), np.float64),
    "long doubles that are doubles": (np.ones((1, 2), np.longdouble), np.float64),
    "big-endian": (np.ones((1, 2), ">f4"), ">f4"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_come_in_as_what_they_are(name):
    given, dtype = NUMBERS[name]
    found = number_array(given, "losses")
    assert type(found) is np.ndarray
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.asarray(given))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_becomes_an_array():
    assert type(plain_array(np.matrix([[1, 2]]), "losses")) is np.ndarray


NO_NUMBERS = {
    "texts": (["a", "b"], "<U1"),
    "numbers among texts": ([1, "2"], "<U"),
    "bytes": ([b"1"], "S1"),
    "complex numbers": ([1j], "complex128"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
    "records": (np.zeros(2, [("a", int)]), "i8"),
    "decimals": ([Decimal("0.1")], "Decimal"),
    "a mapping": ({"a": 1}, "dict"),
    "a set": ({1, 2}, "set"),
    "a generator": ((x for x in [1, 2]), "generator"),
    "nothing": (None, "NoneType"),
    "a function": (len, "builtin_function"),
    "rows of different lengths": ([[1, 2], [3]], "rectangle"),
    "rows of different kinds": ([1, [2]], "rectangle"),
    "a sparse matrix": (scipy.sparse.csr_array(np.eye(2)), r"toarray\(\)"),
    "what cannot be read": (Broken(), "on another device"),
    "numbers beyond doubles": ([10**400], "1.8e308"),
    "digits beyond doubles": (np.ones(2, np.longdouble) + np.longdouble(2) ** -60, "more digits"),
    "a missing value": ([0.5, None], "missing: None"),
    "a missing value of another library": ([0.5, NA()], "missing"),
    "a masked value": (np.ma.array([1.0, 2.0], mask=[False, True]), "1 of them are masked"),
    "a masked value in a list": ([1.0, np.ma.masked], "masked"),
    "a masked row in a list": ([np.ma.array([1, 2], mask=[True, False]), [1, 2]], "masked"),
}


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_what_is_no_number_is_refused(name):
    values, pattern = NO_NUMBERS[name]
    with pytest.raises(rp.LossError, match=pattern):
        number_array(values, "losses")


def test_a_list_that_holds_itself_is_refused():
    endless: list[object] = []
    endless.append(endless)
    for read in (number_array, text_array):
        with pytest.raises(rp.LossError):
            read(endless, "losses")


@pytest.mark.parametrize(
    "values",
    [
        [[1.0, None, 0.5]],
        [[1.0, NA(), 0.5]],
        [[1.0, np.nan, 0.5]],
        [[1.0, np.ma.masked, 0.5]],
        [np.ma.array([1.0, 7.0, 0.5], mask=[False, True, False])],
        np.ma.array([[1.0, 7.0, 0.5]], mask=[[False, True, False]]),
        np.ma.array([[1.0, 7.0, 0.5]], mask=[[False, True, False]], dtype=np.float16),
        Column([[1.0, None, 0.5]], dtype=object),
    ],
)
def test_a_missing_value_is_nan_where_that_is_allowed(values):
    found = number_array(values, "losses", missing_as_nan=True)
    np.testing.assert_array_equal(found, [[1.0, np.nan, 0.5]])


def test_masked_whole_numbers_and_truths_become_floats_with_nan():
    for dtype in (bool, np.int8, np.int64, np.uint64):
        values = np.ma.array([1, 0, 1], mask=[False, True, False], dtype=dtype)
        np.testing.assert_array_equal(
            number_array(values, "losses", missing_as_nan=True), [1, np.nan, 1]
        )


TEXTS = {
    "texts": (["1", "01", "1.0", "true", " a", ""], ["1", "01", "1.0", "true", " a", ""]),
    "an array of texts": (np.array(["1", "01"]), ["1", "01"]),
    "objects": (np.array(["1", "01"], dtype=object), ["1", "01"]),
    "variable length": (np.array(["a", "bc"], dtype=np.dtypes.StringDType()), ["a", "bc"]),
    "bytes": (np.array([b"a", "é".encode()]), ["a", "é"]),
    "bytes in a list": ([b"a", "é".encode()], ["a", "é"]),
    "whole numbers": ([1, -2, 2**70], ["1", "-2", str(2**70)]),
    "unsigned": (np.array([2**64 - 1, 2**53 + 1], np.uint64), [str(2**64 - 1), str(2**53 + 1)]),
    "truths": ([True, False], ["1", "0"]),
    "an array of truths": (np.array([True, False]), ["1", "0"]),
    "truths and numbers": ([True, 2, 3.0], ["1", "2", "3"]),
    "floats": (np.array([1.0, -0.0, 1.5, 2.0**53 - 1]), ["1", "0", "1.5", str(2**53 - 1)]),
    "single floats": (np.array([1.0, 0.1], np.float32), ["1", "0.1"]),
    "floats in a list": ([1.0, 0.1, np.float32(0.1)], ["1", "0.1", "0.1"]),
    "members of an enumeration": ([Side.LEFT], ["left"]),
    "a column of another library": (Column(["a", "b"], dtype=object), ["a", "b"]),
    "a table of equal rows": ([["a", "b"], ["a", "b"]], [["a", "b"], ["a", "b"]]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_names_are_kept_as_they_were_given(name):
    given, expected = TEXTS[name]
    found = text_array(given, "groups")
    assert found.dtype.kind == "U"
    assert found.tolist() == expected


NO_TEXTS = {
    "None": (["a", None], "missing: None"),
    "NaN": ([1.0, np.nan], "missing: nan"),
    "NaN among texts": (np.array(["a", np.nan], dtype=object), "missing"),
    "NA": (np.array(["a", NA()], dtype=object), "missing"),
    "not a time": ([np.datetime64("NaT")], "missing"),
    "NaN in an array": (np.array([1.0, np.nan]), "NaN or infinite"),
    "an infinite float": (np.array([1.0, np.inf]), "NaN or infinite"),
    "texts and numbers": (["1", 1], "some are numbers and some are texts"),
    "texts and bytes": (["1", b"1"], "some are bytes and some are texts"),
    "large floats": (np.array([1e19, 2e19]), r"1e\+19"),
    "a large float in a list": ([2.0**53], "9,007,199,254,740,992"),
    "large single floats": (np.array([2.0**24], np.float32), "16,777,216"),
    "large half floats": (np.array([2048], np.float16), "2,048"),
    "a zero at the end": (["a\0"], "NUL"),
    "bytes of another encoding": ([b"\xff"], "not UTF-8"),
    "an array of other bytes": (np.array([b"\xff"]), "not UTF-8"),
    "dates": ([datetime.date(2020, 1, 1)], "date"),
    "an array of dates": (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
    "decimals": ([Decimal("1.0")], "Decimal"),
    "complex numbers": (np.array([1j]), "complex"),
    "more digits than can be written": ([10**5000], "bits"),
    "rows of different lengths": ([[1, 2], [3]], "list"),
    "a mapping": ({"a": 1}, "dict"),
    "masked": (np.ma.array(["a", "b"], mask=[False, True]), "masked"),
    "numbers that were texts": (np.ones(3).view(NumbersOfTexts), r"groups=\[\.\.\.\]"),
}


@pytest.mark.parametrize("name", NO_TEXTS)
def test_what_names_nothing_is_refused(name):
    values, pattern = NO_TEXTS[name]
    with pytest.raises(rp.LossError, match=pattern):
        text_array(values, "groups")


def test_masks_are_found_in_lists_and_only_where_they_mask():
    refuse_masked([1, 2], "predictions")
    refuse_masked(np.ma.array([1, 2], mask=False), "predictions")
    refuse_masked("text", "predictions")
    for values in (
        np.ma.array([1, 2], mask=[0, 1]),
        [[np.ma.masked]],
        [[[np.ma.masked]]],
        (1, np.ma.masked),
    ):
        with pytest.raises(rp.LossError, match="predictions must all be there"):
            refuse_masked(values, "predictions")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_declared_numbers_are_read_in_the_precision_of_the_values(dtype):
    for low, high in ((0.1, 0.3), (-0.7, 0.7), (-1e6, 1e6)):
        ends = np.array([low, high]).clip(np.finfo(dtype).min, np.finfo(dtype).max).astype(dtype)
        assert not outside(ends, low, high).any()
        if np.abs(ends).max() < np.finfo(dtype).max:
            assert in_double(ends, low, high).tolist() == [low, high]
            beyond = np.nextafter(ends, dtype([-np.inf, np.inf]))
            assert outside(beyond, low, high).all()
        assert outside(dtype([-np.inf, np.inf]), low, high).all()
        assert not outside(dtype([np.nan]), low, high).any()


@pytest.mark.parametrize(("number", "limit"), [(2052, 2051), (100.0625, 100.04)])
def test_a_number_that_rounding_changes_is_compared_as_it_is(number, limit):
    values = np.full((1, 500), number, np.float16)
    assert values.dtype.type(limit) == number
    assert outside(values, 0, limit).all()
    assert in_double(values, limit).tolist() == values.tolist()
    problem = rp.Problem([rp.Risk("seconds", limit, high=1e4, statistic=rp.Quantile(0.9))], "cost")
    selection = rp.select_from_losses(
        problem,
        validation={"seconds": values, "cost": [1.0]},
        calibration={"seconds": values[:, :400].copy()},
    )
    assert selection.config is None


def test_double_precision_is_taken_as_it_is():
    values = np.array([0.1, 0.3, np.nextafter(0.3, 1)])
    assert in_double(values, 0.1, 0.3) is values
    assert outside(values, 0.1, 0.3).tolist() == [False, False, True]


def test_numbers_are_shown_with_the_digits_that_matter():
    assert exact(1.5) == "1.5"
    assert exact(float(np.nextafter(0.3, 1))) == "0.30000000000000004"
    assert exact(float("nan")) == "nan"
    assert exact(float("-inf")) == "-inf"


def test_missing_is_what_says_that_there_is_nothing():
    assert all(map(is_missing, (None, float("nan"), np.datetime64("NaT"), NA())))
    assert not any(map(is_missing, (0, "", "nan", False, np.zeros(2), [])))
