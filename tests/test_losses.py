"""Losses on their way in: counted exactly, digested by value, and refused where they leak."""

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.losses import (
    CalibrationLosses,
    ValidationLosses,
    calibration_losses,
    check_disjoint,
    validation_losses,
)
from riskpilot.plan import freeze_plan

UNIT = rp.Problem([rp.Risk("error", 0.2)], "cost")
SIGNED = rp.Problem([rp.Risk("error", 0.2, low=-1)], "cost")
CONDITIONAL = rp.Problem([rp.Risk("error", 0.2, conditional=True)], "cost")

DTYPES = [bool, np.uint8, np.int8, np.int64, np.float16, np.float32, np.float64]


def read(problem, values):
    table = np.asarray(values)
    return validation_losses(problem, {"error": table, "cost": np.zeros(len(table))})


def summary(problem, values):
    return read(problem, values).risks["error"].summary


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 7, 5001, 70_000])
def test_zero_one_losses_are_counted_whatever_their_type(dtype, m):
    rng = np.random.default_rng(m)
    table = rng.random((3, m)) < 0.9
    found = summary(UNIT, table.astype(dtype))
    assert found.binary
    for counted in (found.total, found.squares, found.above_zero):
        np.testing.assert_array_equal(counted, table.sum(axis=1))
    assert found.n.tolist() == [m] * 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_digests_depend_on_values_not_on_types_or_layout(dtype):
    rng = np.random.default_rng(0)
    table = rng.random((4, 100)) < 0.5
    reference = read(UNIT, table).digest()
    assert read(UNIT, table.astype(dtype)).digest() == reference
    assert read(UNIT, np.asfortranarray(table.astype(dtype))).digest() == reference
    assert read(UNIT, np.repeat(table.astype(dtype), 2, axis=1)[:, ::2]).digest() == reference


@pytest.mark.parametrize("value", [0.999, 0.5, 1e-3, 1e-8])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_one_loss_between_the_ends_is_not_binary(value, dtype):
    table = np.ones((1, 5000), dtype=dtype)
    table[0, 17] = value
    if table[0, 17] in (0.0, 1.0):
        table[0, 17] = 0.5  # half precision has no 1e-8
    found = summary(UNIT, table)
    assert not found.binary
    assert found.total[0] == pytest.approx(4999 + float(table[0, 17]), rel=1e-12)


def test_some_binary_and_some_real_rows_are_each_counted():
    rng = np.random.default_rng(1)
    table = np.vstack([rng.random((2, 300)) < 0.5, rng.random((2, 300))])
    found = summary(UNIT, table)
    assert not found.binary
    np.testing.assert_allclose(found.total, table.sum(axis=1))
    np.testing.assert_allclose(found.squares, (table**2).sum(axis=1))
    np.testing.assert_array_equal(found.above_zero, (table > 0).sum(axis=1))


def test_losses_at_both_ends_of_a_signed_range_are_binary():
    found = summary(SIGNED, [[-1, 1, 1, -1, 1]])
    assert found.binary
    assert found.total.tolist() == [3.0]
    zeros = summary(SIGNED, [[0, 1, 0, -1, 1]])
    assert not zeros.binary
    assert zeros.total.tolist() == [0.5 + 1 + 0.5 + 0 + 1]


def test_examples_that_do_not_count_are_left_out_of_every_sum():
    nan = np.nan
    found = summary(CONDITIONAL, [[nan, 1.0, 0.0, nan], [nan] * 4, [0.5] * 4])
    assert found.n.tolist() == [2, 0, 4]
    assert found.total.tolist() == [1.0, 0.0, 2.0]
    assert found.mean.tolist() == [0.5, 1.0, 0.5]


def test_standard_errors_are_those_of_the_mean():
    rng = np.random.default_rng(2)
    table = rng.random((3, 400))
    found = summary(UNIT, table)
    np.testing.assert_allclose(found.standard_error, table.std(axis=1) / 20)
    assert summary(UNIT, np.zeros((1, 50))).standard_error.tolist() == [1 / 50]


def test_the_free_objective_is_a_number_or_a_mean_with_its_error():
    table = np.zeros((2, 4), bool)
    numbers = validation_losses(UNIT, {"error": table, "cost": [3, 4]})
    assert numbers.free.tolist() == [3.0, 4.0]
    assert numbers.free_error is None
    rows = validation_losses(UNIT, {"error": table, "cost": [[1, 3, 1, 3], [2, 2, 2, 2]]})
    assert rows.free.tolist() == [2.0, 2.0]
    assert rows.free_error.tolist() == [0.5, 0.0]


def test_the_kinds_of_losses_are_types_of_their_own():
    table = np.zeros((1, 4), bool)
    sealed = calibration_losses(UNIT, {"error": table})
    assert not isinstance(sealed, ValidationLosses)
    assert not isinstance(read(UNIT, table), CalibrationLosses)
    with pytest.raises(TypeError):  # a plan needs the free objective, which sealed losses lack
        freeze_plan(sealed)


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_calibration_losses_that_are_the_validation_losses_are_refused(kind):
    rng = np.random.default_rng(3)
    table = rng.random((2, 200))
    table = table < 0.4 if kind == "binary" else table
    with pytest.raises(rp.LeakageError, match="same 200 numbers"):
        check_disjoint(read(UNIT, table), calibration_losses(UNIT, {"error": table.copy()}))
    check_disjoint(read(UNIT, table), calibration_losses(UNIT, {"error": table[:, ::-1]}))


def test_equal_losses_that_may_be_chance_are_allowed():
    zeros = np.zeros((3, 500), bool)
    check_disjoint(read(UNIT, zeros), calibration_losses(UNIT, {"error": zeros.copy()}))
    few = np.zeros((1, 500), bool)
    few[0, 3] = True
    check_disjoint(read(UNIT, few), calibration_losses(UNIT, {"error": few.copy()}))
    constant = np.full((1, 500), 0.25)
    check_disjoint(read(UNIT, constant), calibration_losses(UNIT, {"error": constant.copy()}))
