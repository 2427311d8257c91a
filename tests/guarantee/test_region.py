"""The region of interest against the paper's example, its closed form, and simulation."""

import math

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.guarantee import fewest_examples
from riskpilot.guarantee.region import interval, region_of
from riskpilot.losses import validation_losses
from riskpilot.statistics import families

ERROR = rp.Risk("error", 0.05)
SIZES = {"n_validation": 5000, "n_calibration": 5000, "delta": 0.1}


@pytest.mark.parametrize(
    ("family", "alpha_max"),
    [("hoeffding", 0.0348), ("hoeffding_bentkus", 0.0444), ("binomial", 0.0458)],
)
def test_the_largest_passing_mean_of_the_papers_example(family, alpha_max):
    assert interval(ERROR, family, **SIZES).alpha_max == pytest.approx(alpha_max, abs=1e-4)


@pytest.mark.parametrize("delta", [0.01, 0.1])
@pytest.mark.parametrize("delta_prime", [1e-4, 0.05])
@pytest.mark.parametrize(("k", "m"), [(500, 5000), (5000, 500), (2000, 2000)])
def test_hoeffding_edges_are_the_papers_closed_form(delta, delta_prime, k, m):
    risk = rp.Risk("error", 0.3)
    part = interval(
        risk, "hoeffding", n_validation=k, n_calibration=m, delta=delta, delta_prime=delta_prime
    )
    alpha_max = 0.3 - math.sqrt(math.log(1 / delta) / (2 * m))
    width = math.sqrt(math.log(1 / delta_prime) / (2 * k))
    assert part.alpha_max == pytest.approx(alpha_max, abs=1e-12)
    assert part.low == pytest.approx(alpha_max - width, abs=1e-12)
    assert part.high == pytest.approx(alpha_max + width, abs=1e-12)


@pytest.mark.parametrize("family", ["hoeffding", "hoeffding_bentkus", "binomial", "betting"])
def test_the_edges_hold_what_a_risk_of_alpha_max_shows_on_validation(family):
    part = interval(
        rp.Risk("error", 0.2),
        family,
        n_validation=800,
        n_calibration=1000,
        delta=0.1,
        delta_prime=0.05,
    )
    assert part.low < part.alpha_max < part.high < 1
    rng = np.random.default_rng(0)
    means = rng.binomial(800, part.alpha_max, 20_000) / 800
    # Each side is left with probability delta' at most; the betting edge is approximate.
    slack = 0.02 if family == "betting" else 0.005
    assert (means < part.low).mean() <= 0.05 + slack
    assert (means > part.high).mean() <= 0.05 + slack


@pytest.mark.parametrize("family", ["hoeffding", "hoeffding_bentkus", "binomial", "betting"])
def test_more_data_raises_alpha_max_and_narrows_the_region(family):
    risk = rp.Risk("error", 0.2)
    small, large = (
        interval(risk, family, n_validation=n, n_calibration=n, delta=0.1) for n in (300, 30_000)
    )
    assert small.alpha_max < large.alpha_max < 0.2
    assert large.high - large.low < small.high - small.low


def test_a_smaller_delta_prime_widens_the_region():
    narrow, wide = (
        interval(ERROR, "binomial", **SIZES, delta_prime=delta_prime)
        for delta_prime in (0.05, 1e-4)
    )
    assert wide.low < narrow.low
    assert wide.high > narrow.high
    assert wide.alpha_max == narrow.alpha_max


def test_a_range_other_than_the_unit_interval_moves_and_stretches_the_region():
    unit = interval(rp.Risk("a", 0.3), "binomial", n_validation=500, n_calibration=700, delta=0.1)
    wide = interval(
        rp.Risk("a", -2 + 10 * 0.3, low=-2, high=8),
        "binomial",
        n_validation=500,
        n_calibration=700,
        delta=0.1,
    )
    for field in ("alpha_max", "low", "high"):
        assert getattr(wide, field) == pytest.approx(-2 + 10 * getattr(unit, field))


@pytest.mark.parametrize("family", ["hoeffding", "hoeffding_bentkus", "binomial"])
def test_too_few_examples_are_infeasible_and_one_more_than_that_is_not(family):
    needs = families.smallest_n(family, 0.05, 0.1)
    for n, feasible in ((needs - 1, False), (needs, True)):
        part = interval(ERROR, family, n_validation=100, n_calibration=n, delta=0.1)
        assert part.feasible is feasible
        assert part.needs == needs


@pytest.mark.parametrize("statistic", [rp.Quantile(0.95), rp.CVaR(0.9)])
def test_what_a_tail_needs_is_what_its_test_needs(statistic):
    risk = rp.Risk("slow", 0.2, statistic=statistic)
    needs = fewest_examples(risk, "binomial", 0.1)
    for n, feasible in ((needs - 1, False), (needs, True)):
        part = interval(risk, "binomial", n_validation=100, n_calibration=n, delta=0.1, std=0.1)
        assert part.feasible is feasible


def test_a_conditional_risk_needs_as_many_of_all_examples():
    problem = rp.Problem([rp.Risk("miss", 0.2, conditional=True)], "cost")
    half = np.where(np.arange(100) % 2, 0.0, np.nan)
    losses = validation_losses(problem, {"miss": half[None], "cost": [1.0]})
    (part,) = region_of(losses, 20)
    assert part.needs == 2 * 11
    assert not part.feasible


def test_several_risks_each_bring_their_interval():
    problem = rp.Problem([rp.Risk("a", 0.3), rp.Risk("b", 0.001)], "cost")
    losses = validation_losses(
        problem, {"a": np.zeros((1, 100), bool), "b": np.ones((1, 100), bool), "cost": [1.0]}
    )
    a, b = region_of(losses, 200)
    assert a.feasible
    assert not b.feasible
    assert b.needs == families.smallest_n("binomial", 0.001, 0.1)


@pytest.mark.parametrize("low", [0.5, 99.0])
def test_losses_that_are_moved_are_hedged_as_they_were(low):
    """A doubt is a share of what lies above the smallest loss there can be."""
    hedge = {"std": 0.2, "trust": 0.7, "doubt": 0.2, **SIZES}
    near = interval(rp.Risk("x", 0.3), "betting", **hedge)
    far = interval(rp.Risk("x", low + 0.3, low=low, high=low + 1), "betting", **hedge)
    assert far.doubt == pytest.approx(near.doubt) == pytest.approx(0.2 * near.alpha_max)
    assert far.noise == pytest.approx(near.noise)


def test_a_doubt_about_losses_that_may_be_negative_is_a_share_of_their_distance_from_zero():
    part = interval(rp.Risk("x", -0.3, low=-1), "betting", std=0.2, trust=0.7, doubt=0.2, **SIZES)
    assert part.doubt == pytest.approx(0.2 * abs(part.alpha_max))
