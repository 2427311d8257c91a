"""Risks and problems: what they hold, and that they come back from JSON."""

import dataclasses
import html
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


SHOWN = {
    "error <= 0.1": rp.Risk("error", 0.1),
    "precision >= 0.9": rp.Risk("precision", at_least=0.9),
    "precision >= (open)": rp.Risk("precision"),
    "b <= (open)": rp.Risk("b"),
    "latency <= 50 (95% quantile)": rp.Risk("latency", 50, high=90, statistic=rp.Quantile(0.95)),
    "harm <= 0.3 (mean of the worst 5%)": rp.Risk("harm", 0.3, statistic=rp.CVaR(0.95)),
    "worst_group_error <= 0.2 (worst group's mean)": rp.Risk("worst_group_error", 0.2),
    "error <= 0.2 (worst group's mean by sex among 'f', 'm')": rp.Risk(
        "error", 0.2, statistic=rp.WorstGroup(("f", "m")), groups="sex"
    ),
    "gap of recall <= 0.2 (largest gap between groups)": rp.Risk(
        "recall", 0.2, statistic=rp.GroupGap()
    ),
    "fpr_gap <= 0.2 (largest gap between groups)": rp.Risk("fpr_gap", 0.2),
    "flagged <= 0.2 (mean of f minus mean of m)": rp.Risk(
        "flagged", 0.2, statistic=rp.GroupGap(("f", "m"), directed=True)
    ),
    "demographic_parity_ratio >= 0.8 (smallest ratio of groups)": rp.Risk(
        "demographic_parity_ratio", at_least=0.8
    ),
    "ratio of rate >= 0.8 (smallest ratio of groups)": rp.Risk(
        "rate", at_least=0.8, statistic=rp.Ratio()
    ),
    "rate <= 0.2 (one minus the smallest ratio of groups)": rp.Risk(
        "rate", 0.2, statistic=rp.Ratio()
    ),
    "drop of accuracy <= 0.02 (mean loss minus that of dense)": rp.Risk(
        "accuracy", at_most=0.02, statistic=rp.Difference("dense")
    ),
    "error <= 0.1 (mean, weighted by w)": rp.Risk("error", 0.1, weights="w", largest_weight=4),
}


@pytest.mark.parametrize("says", SHOWN)
def test_a_risk_says_what_is_limited_and_which_way_wherever_it_is_shown(says):
    risk = SHOWN[says]
    problem = rp.Problem([risk], "cost")
    assert str(risk) == says
    assert f"Keep {says} with" in str(problem)
    assert html.escape(says) in problem._repr_html_()
    assert rp.Risk.from_dict(json.loads(json.dumps(risk.to_dict()))) == risk
    assert risk.to_dict()["statistic"]["kind"]
    assert eval(repr(risk), vars(rp)) == risk


def test_limits_are_set_in_the_words_of_the_risk():
    problem = rp.Problem([rp.Risk("precision", at_least=0.9), rp.Risk("error", 0.2)], "cost")
    stricter = problem.with_limits(precision=0.95)
    assert [str(risk) for risk in stricter.risks] == ["precision >= 0.95", "error <= 0.2"]
    assert [risk.bound for risk in stricter.risks] == [0.95, 0.2]
    assert [risk.limit for risk in stricter.risks] == [0.05, 0.2]
    reopened = stricter.with_limits(precision=None)
    assert str(reopened.risks[0]) == "precision >= (open)"
    assert reopened.with_limits(precision=0.9) == problem
    with pytest.raises(rp.ProblemError, match=r"between 0 and 1, but it is 1\.0"):
        problem.with_limits(precision=1)


def test_an_explicit_statistic_may_say_more_than_the_name_but_not_something_else():
    named = rp.Risk("worst_group_error", 0.2, statistic=rp.WorstGroup(("a", "b")))
    assert named.statistic.groups == ("a", "b")
    for name, statistic in (
        ("worst_group_error", rp.Mean()),
        ("error_gap", rp.WorstGroup()),
        ("equalized_odds_gap", rp.GroupGap()),
        ("demographic_parity_gap", rp.GroupGap(within="label")),
        ("accuracy_drop", rp.Mean()),
    ):
        with pytest.raises(rp.ProblemError, match="says that a"):
            rp.Risk(name, 0.2, statistic=statistic)


def test_a_share_of_delta_leaves_everything_else_as_it_is():
    problem = rp.Problem([rp.Risk("error", 0.1)], "cost", delta=0.2)
    assert problem.spending(0.5) == rp.Problem([rp.Risk("error", 0.1)], "cost", delta=0.1)
    assert (problem.confidence, problem.limits_in_words) == ("80%", "error <= 0.1")


@pytest.mark.parametrize(
    ("risks", "minimize", "same"),
    [
        ([rp.Risk("error", 0.3, p_value="hoeffding"), rp.Risk("harm", 0.2)], "cost", True),
        ([rp.Risk("error", 0.1), rp.Risk("harm", 0.2)], "time", False),
        ([rp.Risk("error", 0.1)], "cost", False),
        ([rp.Risk("harm", 0.2), rp.Risk("error", 0.1)], "cost", False),
        ([rp.Risk("error", 0.1), rp.Risk("harm", 0.2, high=2.0)], "cost", False),
    ],
)
def test_problems_are_about_the_same_numbers_whatever_their_limits_tests_and_delta(
    risks, minimize, same
):
    problem = rp.Problem([rp.Risk("error", 0.1), rp.Risk("harm", 0.2)], "cost", delta=0.1)
    assert rp.Problem(risks, minimize, delta=0.2).has_quantities_of(problem) is same


def test_the_width_of_a_range_is_that_of_the_statistic():
    assert rp.Risk("drop", 0.1, low=-1, high=1).width == 2
    assert rp.Risk("drop", 0.1, statistic=rp.Difference()).width == 2


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (0, "It may be kept, but no number of examples can show that"),
        (1, "Everything in that range keeps it"),
        (1.1, "Everything in that range keeps it"),
        (-0.1, "Nothing in that range keeps it"),
        (1e-13, "Nearer to an end than 1e-12 of the range"),
    ],
)
def test_a_limit_outside_the_range_is_refused_with_the_reason(limit, reason):
    with pytest.raises(rp.ProblemError, match=reason):
        rp.Risk("error", limit)


def test_a_lower_limit_of_everything_is_refused_with_the_reason():
    with pytest.raises(rp.ProblemError, match="It may be kept, but no number of examples"):
        rp.Risk("accuracy", at_least=1)
