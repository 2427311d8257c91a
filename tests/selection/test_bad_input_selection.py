"""Tables of losses that cannot be selected from are refused."""

from fractions import Fraction

import numpy as np
import pytest

import riskpilot as rp
from tests.kits.bad_input import INF, NAN, OPEN, TWO, C, V, assert_refused, table


def changed(table, name, index, value):
    array = np.array(table[name], float)
    array[index] = value
    return {**table, name: array}


# name: (error class, what the message must say, the call)
CASES = {
    "no problem": (rp.ProblemError, r"dict", lambda: table(problem={"error": 0.1})),
    "validation that is a list": (rp.LossError, r"list", lambda: table(validation=[1, 2])),
    "calibration that is missing": (rp.LossError, r"NoneType", lambda: table(calibration=None)),
    "a risk without losses": (
        rp.LossError,
        r"'harm'.*missing",
        lambda: table(TWO),
    ),
    "a risk without calibration losses": (
        rp.LossError,
        r"calibration.*'error'.*missing",
        lambda: table(calibration={}),
    ),
    "a misspelt risk": (
        rp.LossError,
        r"'eror'",
        lambda: table(validation={**V, "eror": V["error"]}),
    ),
    "no free objective given": (
        rp.LossError,
        r"'cost' is missing",
        lambda: table(validation={"error": V["error"]}),
    ),
    "losses of one dimension": (
        rp.LossError,
        r"\(50,\)",
        lambda: table(validation={**V, "error": V["error"][0]}),
    ),
    "losses of three dimensions": (
        rp.LossError,
        r"\(1, 3, 50\)",
        lambda: table(validation={**V, "error": V["error"][None]}),
    ),
    "rows of different length": (
        rp.LossError,
        r"rectangle",
        lambda: table(validation={**V, "error": [[1, 0], [1], [0]]}),
    ),
    "no examples": (
        rp.LossError,
        r"\(3, 0\)",
        lambda: table(calibration={"error": np.zeros((3, 0))}),
    ),
    "no configurations": (
        rp.LossError,
        r"\(0, 50\)",
        lambda: table(validation={**V, "error": np.zeros((0, 50))}),
    ),
    "losses that are words": (
        rp.LossError,
        r"<U3",
        lambda: table(calibration={"error": [["yes", "no"]] * 3}),
    ),
    "losses that are missing": (
        rp.LossError,
        r"missing: None.*conditional=True",
        lambda: table(calibration={"error": [[None, 1]] * 3}),
    ),
    "losses that are objects": (
        rp.LossError,
        r"object.*Fraction",
        lambda: table(calibration={"error": [[Fraction(1, 2), 1]] * 3}),
    ),
    "losses that are complex": (
        rp.LossError,
        r"complex",
        lambda: table(calibration={"error": np.zeros((3, 9), complex)}),
    ),
    "a NaN": (
        rp.LossError,
        r"NaN.*conditional=True",
        lambda: table(calibration=changed(C, "error", (1, 2), NAN)),
    ),
    "an infinite loss": (
        rp.LossRangeError,
        r"inf",
        lambda: table(calibration=changed(C, "error", (1, 2), INF)),
    ),
    "a loss above the range": (
        rp.LossRangeError,
        r"1\.5.*proves nothing.*high=\.\.\..*clip the losses",
        lambda: table(validation=changed(V, "error", (0, 0), 1.5)),
    ),
    "a loss below the range": (
        rp.LossRangeError,
        r"-0\.25.*proves nothing.*low=\.\.\..*clip the losses",
        lambda: table(calibration=changed(C, "error", (0, 0), -0.25)),
    ),
    "per cent instead of shares": (
        rp.LossRangeError,
        r"100",
        lambda: table(calibration={"error": C["error"] * 100}),
    ),
    "a free objective of the wrong length": (
        rp.LossError,
        r"\(2,\)",
        lambda: table(validation={**V, "cost": [1.0, 2.0]}),
    ),
    "a free objective that is NaN": (
        rp.LossError,
        r"nan",
        lambda: table(validation={**V, "cost": [1.0, NAN, 2.0]}),
    ),
    "risks of unequal shape": (
        rp.LossError,
        r"\(3, 50\).*\(3, 40\)",
        lambda: table(TWO, validation={**V, "harm": V["error"][:, :40]}),
    ),
    "more calibration rows than validation rows": (
        rp.LossError,
        r"3 configurations and calibration 4",
        lambda: table(calibration={"error": np.zeros((4, 60), bool)}),
    ),
    "the same losses twice": (
        rp.LeakageError,
        r"'error'.*same 50 numbers",
        lambda: table(calibration={"error": V["error"].copy()}),
    ),
    "overlapping slices": (
        rp.LeakageError,
        r"overlap in memory",
        lambda: table(
            validation={**V, "error": (a := np.arange(180).reshape(3, 60) % 2)[:, :40]},
            calibration={"error": a[:, 30:]},
        ),
    ),
    "shared ids": (
        rp.LeakageError,
        r"2 ids.*7",
        lambda: table(validation_ids=[1, 7, 8], calibration_ids=[7, 8, 9]),
    ),
    "an open limit": (rp.ProblemError, r"'error'.*still open", lambda: table(OPEN)),
    "too few configs": (rp.LossError, r"3 rows.*2 configs", lambda: table(configs=[{}, {}])),
    "two equal configs": (
        rp.LossError,
        r"rows 0 and 2.*'a': 1.*tells them apart",
        lambda: table(configs=[{"a": 1, "b": 2}, {"a": 2}, {"b": 2, "a": 1}]),
    ),
    "configs that are numbers": (rp.LossError, r"0\.5", lambda: table(configs=[0.5, 0.6, 0.7])),
    "configs that are one mapping": (rp.LossError, r"dict", lambda: table(configs={"a": 1})),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_in_its_own_words(name):
    assert_refused(CASES[name])
