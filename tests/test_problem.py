"""Risks and problems: what they hold, and that they come back from JSON."""

import dataclasses
import json

import numpy as np
import pytest

import riskpilot as rp


def test_values_are_frozen():
    risk = rp.Risk("error", 0.1)
    problem = rp.Problem([risk], "cost")
    with pytest.raises(dataclasses.FrozenInstanceError):
        risk.limit = 0.9
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.delta = 0.9
    with pytest.raises(TypeError):
        problem.risks[0] = risk


def test_numbers_of_any_kind_become_floats():
    risk = rp.Risk("stars", np.int64(2), low=np.float32(1), high=5)
    assert [type(value) for value in (risk.limit, risk.low, risk.high)] == [float] * 3
    assert type(rp.Problem([risk], "cost", np.float64(0.1)).delta) is float


def test_a_single_risk_needs_no_list():
    assert rp.Problem(rp.Risk("error", 0.1), "cost") == rp.Problem([rp.Risk("error", 0.1)], "cost")


@pytest.mark.parametrize(("low", "high", "limit", "unit"), [(-1, 1, 0.1, 0.55), (0, 5, 1, 0.2)])
def test_the_unit_scale_and_back(low, high, limit, unit):
    risk = rp.Risk("a", limit, low=low, high=high)
    assert risk.unit_limit == pytest.approx(unit)
    assert risk.from_unit(risk.unit_limit) == pytest.approx(limit)
    np.testing.assert_allclose(risk.from_unit(np.array([0.0, 1.0])), [low, high])


def test_a_problem_comes_back_from_json():
    problem = rp.Problem(
        [rp.Risk("a", 0.1, -1, 1, True, "betting"), rp.Risk("b", None, p_value="hoeffding")],
        "cost",
        0.05,
    )
    assert rp.Problem.from_dict(json.loads(json.dumps(problem.to_dict()))) == problem


def test_limits_are_set_by_name_and_the_rest_stays():
    problem = rp.Problem([rp.Risk("a", None, high=2), rp.Risk("b", 0.2)], "cost", 0.05)
    assert problem.has_open_limits
    closed = problem.with_limits(a=1.5)
    assert not closed.has_open_limits
    assert closed == rp.Problem([rp.Risk("a", 1.5, high=2), rp.Risk("b", 0.2)], "cost", 0.05)
    assert problem.risks[0].limit is None


def test_a_problem_reads_as_a_sentence():
    problem = rp.Problem([rp.Risk("a", 0.1), rp.Risk("b", None)], "cost", 0.05)
    assert str(problem) == (
        "Keep a <= 0.1 and b <= (open) with probability at least 95%; minimise cost."
    )
