"""Free objectives that are penalties: which ones are, and that all others stay as they are."""

import math

import numpy as np
import pytest

from riskpilot.search.penalties import penalty_line, without_penalties


def with_risks(free):
    return np.column_stack([np.linspace(0, 1, len(free)), free])


@pytest.mark.parametrize("n_penalties", [1, 3])
@pytest.mark.parametrize("penalty", [1e8, 1e30, 1e99])
@pytest.mark.parametrize("add", [-5.0, 0.0, 100.0])
def test_a_penalty_counts_as_the_worst_of_the_others(n_penalties, penalty, add):
    usual = add + np.random.default_rng(0).random(8)
    values = with_risks(np.insert(usual, 2, [penalty] * n_penalties))
    found = without_penalties(values)
    assert (found[:, :-1] == values[:, :-1]).all()
    assert (found[:, -1] == np.insert(usual, 2, [usual.max()] * n_penalties)).all()


ORDINARY = {
    "two": [1.0, 1e30],
    "too few others": [1.0, 2.0, 1e30],
    "a wide range": np.geomspace(1e-3, 1e6, 20),
    "half at the optimum": [0.0] * 6 + [0.5, 1.0, 2.0],
    "half within rounding of each other": [0.1, 0.1 + 1e-17, 0.1 - 1e-17, 0.1 + 2e-17, 0.5],
    "more penalties than others": [1.0, 2.0, 3.0] + [1e30] * 4,
    "a large offset": 1e12 + np.arange(5.0),
    "one far better than all others": [-1e30, 1.0, 2.0, 3.0],
}


@pytest.mark.parametrize("free", ORDINARY.values(), ids=ORDINARY.keys())
def test_other_values_are_left_as_they_are(free):
    values = with_risks(np.array(free))
    assert without_penalties(values) is values


@pytest.mark.parametrize(("penalty", "line"), [(5e5, math.inf), (5e7, 4.0)])
def test_a_penalty_is_a_million_times_as_far_from_the_best_as_all_others(penalty, line):
    assert penalty_line(np.array([1.0, 3.0, penalty, 2.0, 4.0])) == line
