"""What the planner promises about power, against simulation."""

import math
import time

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.guarantee import passing
from riskpilot.guarantee.passing import passing_probability, samples_for_power, samples_to_pass
from riskpilot.plots import power_curves
from riskpilot.statistics import families
from riskpilot.statistics.families import log_betting

PROBLEM = rp.Problem([rp.Risk("error", 0.1)], "cost")


def simulated_power(family, limit, risk, n, delta, draw, repetitions=4000):
    losses = draw(np.random.default_rng(0), (repetitions, n))
    if family == "betting":
        log_p = families.log_betting(losses, limit, delta)
    else:
        test = getattr(families, f"log_{family}")
        log_p = test(losses.sum(axis=1), n, limit)
    return (log_p < math.log(delta)).mean()


@pytest.mark.parametrize("family", ["binomial", "hoeffding_bentkus", "hoeffding"])
@pytest.mark.parametrize(("risk", "n"), [(0.05, 150), (0.07, 500), (0.02, 60)])
def test_the_power_for_zero_one_losses_is_what_simulation_shows(family, risk, n):
    told = passing_probability(family, 0.1, risk, n, 0.1)
    seen = simulated_power(family, 0.1, risk, n, 0.1, lambda rng, shape: rng.random(shape) < risk)
    assert told == pytest.approx(seen, abs=0.03)


@pytest.mark.parametrize(("risk", "n"), [(0.095, 1500), (0.096, 2500), (0.097, 5000)])
def test_the_power_of_betting_on_large_samples_is_near_what_simulation_shows(risk, n):
    size = risk * (1 - risk) / 0.1**2 - 1
    told = passing_probability("betting", 0.1, risk, n, 0.1, std=0.1)
    seen = simulated_power(
        "betting",
        0.1,
        risk,
        n,
        0.1,
        lambda rng, shape: rng.beta(risk * size, (1 - risk) * size, shape),
        1500,
    )
    assert told == pytest.approx(seen, abs=0.12)


@pytest.mark.parametrize("family", ["binomial", "hoeffding_bentkus", "hoeffding", "betting"])
def test_the_number_of_samples_for_a_power_reaches_it(family):
    n = samples_for_power(family, 0.1, 0.06, 0.1, 0.9)
    assert passing_probability(family, 0.1, 0.06, n, 0.1) >= 0.9
    assert passing_probability(family, 0.1, 0.06, n // 2, 0.1) < 0.9


@pytest.mark.parametrize("family", ["binomial", "hoeffding_bentkus", "hoeffding"])
def test_samples_to_pass_is_enough_for_that_mean_and_half_of_it_is_not(family):
    n = samples_to_pass(family, 0.1, 0.08, 0.1)
    for count, passes in ((n, True), (n // 2, False)):
        largest = families.largest_passing_mean(family, 0.1, count, 0.1)
        assert (largest is not None and largest >= 0.08) is passes


def test_a_plan_says_what_passes_and_with_what_power():
    (plan,) = rp.plan_calibration(PROBLEM, 1000, true_risks={"error": 0.07})
    assert plan.family == "binomial"
    assert plan.just_passes == families.largest_passing_mean("binomial", 0.1, 1000, 0.1)
    assert plan.power == passing_probability("binomial", 0.1, 0.07, 1000, 0.1)
    assert plan.power > 0.9 > 0.5 * plan.power
    text = str(plan)
    assert "1,000 calibration examples" in text
    assert f"{plan.power:.2f}" in text
    assert f"{plan.needed:,}" in text


def test_losses_that_are_not_binary_are_planned_with_the_betting_test_in_their_units():
    problem = rp.Problem([rp.Risk("gap", 1.0, low=-2, high=8)], "cost")
    (plan,) = rp.plan_calibration(problem, 2000, binary=False, deviations={"gap": 0.5})
    assert plan.family == "betting"
    unit = families.largest_passing_mean("betting", 0.3, 2000, 0.1, 0.05)
    assert plan.just_passes == pytest.approx(-2 + 10 * unit)


def test_a_plan_speaks_in_the_words_of_a_risk_that_is_better_when_larger():
    precise = rp.Problem([rp.Risk("precision", at_least=0.9)], "cost")
    (plan,) = rp.plan_calibration(precise, 1000, true_risks={"precision": 0.93})
    (wrong,) = rp.plan_calibration(PROBLEM, 1000, true_risks={"error": 0.07})
    assert plan.true_risk == 0.93
    assert plan.just_passes == pytest.approx(1 - wrong.just_passes)
    assert (plan.power, plan.needed) == (wrong.power, wrong.needed)
    assert f"a mean of precision of at least {plan.just_passes:.4g} passes" in str(plan)
    assert f"A true precision of 0.93 passes with probability {plan.power:.2f}" in str(plan)


@pytest.mark.parametrize("value", [0.05, 0.9, 1.01, -0.1])
def test_a_true_precision_that_cannot_be_certified_is_refused(value):
    problem = rp.Problem([rp.Risk("precision", at_least=0.9)], "cost")
    with pytest.raises(rp.ProblemError, match=r"lies in \(0\.9, 1\], but it is"):
        rp.plan_calibration(problem, 1000, true_risks={"precision": value})


@pytest.mark.parametrize("value", [0.2, 0.1, 1.01, -0.1])
def test_a_true_risk_that_cannot_be_certified_is_refused(value):
    with pytest.raises(rp.ProblemError, match=r"lies in \[0, 0\.1\), but it is"):
        rp.plan_calibration(PROBLEM, 1000, true_risks={"error": value})


def test_every_risk_gets_its_plan():
    problem = rp.Problem([rp.Risk("a", 0.1), rp.Risk("b", 0.001)], "cost")
    a, b = rp.plan_calibration(problem, 100)
    assert a.just_passes is not None
    assert b.just_passes is None
    assert b.fewest == 2302


@pytest.mark.parametrize(
    ("limit", "std", "n", "risk"),
    [
        (0.1, 0.1, 200, 0.085),
        (0.3, 0.2, 300, 0.27),
        (0.05, 0.05, 500, 0.044),
        (0.5, 0.1, 100, 0.48),
    ],
)
def test_planned_power_of_the_betting_test_is_near_the_simulated_one_for_few_examples(
    limit, std, n, risk
):
    rng = np.random.default_rng(0)
    k = risk * (1 - risk) / std**2 - 1
    losses = rng.beta(risk * k, (1 - risk) * k, size=(1000, n))
    simulated = float((log_betting(losses, limit, 0.1) < math.log(0.1)).mean())
    assert passing_probability("betting", limit, risk, n, 0.1, std) == pytest.approx(
        simulated, abs=0.12
    )


@pytest.mark.parametrize(("n", "split"), [(2, (1, 1)), (100, (33, 67)), (7_500, (2_500, 5_000))])
def test_labelled_examples_are_shared_out(n, split):
    assert rp.split_labelled(n) == split
    validation, calibration = rp.split_labelled(n).indices(seed=0)
    assert (len(validation), len(calibration)) == split
    assert sorted([*validation, *calibration]) == list(range(n))


@pytest.mark.parametrize("n", [1, 0, -5, 10.0, True, "100", 10**12 + 1, np.timedelta64(9, "s")])
def test_what_cannot_be_shared_out_is_refused(n):
    with pytest.raises(rp.ProblemError, match="at least 2"):
        rp.split_labelled(n)


@pytest.mark.parametrize("deviation", [0.0, -0.1, 0.51, math.inf, math.nan, True, "0.1", 10**400])
def test_a_deviation_that_no_losses_of_the_range_have_is_refused(deviation):
    with pytest.raises(rp.ProblemError, match=r"'error'"):
        rp.plan_calibration(PROBLEM, 1000, binary=False, deviations={"error": deviation})


def test_the_largest_deviation_is_that_of_losses_at_both_ends():
    problem = rp.Problem([rp.Risk("gap", 1.0, low=-2, high=8)], "cost")
    assert rp.plan_calibration(problem, 1000, binary=False, deviations={"gap": 5.0})
    with pytest.raises(rp.ProblemError, match="at most 5,"):
        rp.plan_calibration(problem, 1000, binary=False, deviations={"gap": 5.1})


@pytest.mark.parametrize("true_risk", [math.nan, math.inf, "0.05", True, 10**400, [0.05]])
def test_a_true_risk_that_is_no_finite_number_is_refused(true_risk):
    with pytest.raises(rp.ProblemError, match="finite numbers"):
        rp.plan_calibration(PROBLEM, 1000, true_risks={"error": true_risk})


@pytest.mark.parametrize("family", ["binomial", "hoeffding_bentkus"])
@pytest.mark.parametrize("delta", [0.01, 0.1, 0.4])
def test_very_large_samples_are_planned_as_large_ones_are(family, delta):
    """On either side of the number from which on the normal distribution foretells exact tests."""
    n = round(1.1 * passing._LARGE_VARIANCE / (0.1 * 0.9))
    exact = families.largest_passing_mean(family, 0.1, n, delta)
    assert passing.largest_mean(family, 0.1, n, delta, None) == pytest.approx(exact, abs=4 / n)


@pytest.mark.parametrize(
    ("true_risk", "needed"), [(0.0999, 59_096_406), (0.099999, 591_253_000_000), (0.0999999, None)]
)
def test_a_margin_next_to_nothing_is_planned_at_once(true_risk, needed):
    began = time.perf_counter()
    (plan,) = rp.plan_calibration(PROBLEM, 10**12, true_risks={"error": true_risk})
    assert time.perf_counter() - began < 5
    assert plan.needed == (None if needed is None else pytest.approx(needed, rel=1e-3))
    if needed is None:
        assert "more than 1,000,000,000,000 examples" in str(plan)


def plan_of(statistic, n, *, limit=0.1, **settings):
    risk = rp.Risk("y", limit, statistic=statistic, high=settings.pop("high", 1.0))
    return rp.plan_calibration(rp.Problem([risk], "cost"), n, **settings)[0]


def passes_at_best(statistic, n, limit):
    """Whether anything passes where every loss of both groups is the best there can be."""
    risk = rp.Risk("y", limit, statistic=statistic)
    alike = np.full((1, 2 * n), float(isinstance(statistic, rp.Ratio)))
    table = {"y": alike, "groups": np.repeat(["a", "b"], n)}
    problem = rp.Problem([risk], "cost")
    validation = {**table, "cost": [1.0]}
    calibration = {name: values.copy() for name, values in table.items()}
    found = rp.select_from_losses(problem, validation=validation, calibration=calibration)
    return found.config is not None


@pytest.mark.parametrize("statistic", [rp.GroupGap(), rp.Ratio()])
@pytest.mark.parametrize("limit", [0.1, 0.2])
def test_with_fewer_examples_than_the_fewest_no_comparison_of_groups_passes(statistic, limit):
    fewest = plan_of(statistic, 1, limit=limit).fewest
    assert fewest > 9
    assert not passes_at_best(statistic, fewest - 1, limit)
    assert passes_at_best(statistic, round(1.5 * fewest) + 3, limit)


def test_a_plan_for_a_gap_does_not_call_impossible_what_can_pass():
    assert passes_at_best(rp.GroupGap(), 40, 0.1)
    text = str(plan_of(rp.GroupGap(), 40))
    assert "nothing can pass" not in text
    assert "if the losses are spread as widely as they can be" in text
    assert "nothing can pass with 9" in str(plan_of(rp.GroupGap(), 9))
    assert "if the losses are spread" in str(plan_of(rp.GroupGap(), 1000))
    close = plan_of(rp.GroupGap(), 1000, deviations={"y": 0.2})
    assert close.assumes is None
    assert close.just_passes > plan_of(rp.GroupGap(), 1000).just_passes


@pytest.mark.parametrize(
    ("statistic", "says"),
    [
        (rp.Ratio(), "how large the groups' means are"),
        (rp.Quantile(0.95), "which share of the losses lies above the limit"),
        (rp.CVaR(0.95), "how widely the losses of the tail are spread"),
    ],
)
def test_no_power_is_told_that_hangs_on_what_is_not_known(statistic, says):
    risk = {"at_least": 0.8} if isinstance(statistic, rp.Ratio) else {"limit": 0.2}
    problem = rp.Problem([rp.Risk("y", statistic=statistic, **risk)], "cost")
    true_risks = {"y": 0.9 if isinstance(statistic, rp.Ratio) else 0.1}
    (plan,) = rp.plan_calibration(problem, 1000, true_risks=true_risks)
    assert (plan.power, plan.needed) == (None, None)
    assert says in str(plan)
    assert "passes with probability" not in str(plan)
    with pytest.raises(rp.ProblemError, match=says):
        power_curves(problem)
    if not isinstance(statistic, rp.Quantile):
        (plan,) = rp.plan_calibration(problem, 1000, true_risks=true_risks, deviations={"y": 1.3})
        assert 0 < plan.power < 1
        assert plan.assumes is None


def test_a_plan_for_a_quantile_says_how_many_losses_may_lie_above_the_limit():
    text = str(plan_of(rp.Quantile(0.95), 1000, limit=3, high=10))
    assert "of up to 3 passes (binomial test), if at most 40 of the losses lie above 3" in text
    rng = np.random.default_rng(0)
    for above, passes in ((40, True), (41, False)):
        losses = {"y": np.where(np.arange(1000) < above, 10.0, 2.5)[None]}
        problem = rp.Problem([rp.Risk("y", 3, high=10, statistic=rp.Quantile(0.95))], "cost")
        validation = {"y": rng.permutation(losses["y"][0])[None], "cost": [1.0]}
        found = rp.select_from_losses(problem, validation=validation, calibration=losses)
        assert (found.config is not None) is passes


def test_what_just_passes_is_not_rounded_to_what_fails():
    for risk, is_safe in (
        (rp.Risk("error", 0.1), lambda told, exact: told <= exact),
        (rp.Risk("accuracy", at_least=0.9), lambda told, exact: told >= exact),
    ):
        for m in (777, 1001, 4321, 7919):
            (plan,) = rp.plan_calibration(rp.Problem([risk], "cost"), m)
            told = float(str(plan).split(" passes")[0].split()[-1])
            assert is_safe(told, plan.just_passes)
            assert told == pytest.approx(plan.just_passes, rel=1e-3)
