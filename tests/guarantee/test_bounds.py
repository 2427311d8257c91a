"""Upper bounds: the smallest limit that a candidate would have passed."""

import numpy as np
import pytest
from scipy.stats import beta

import riskpilot as rp
from riskpilot.guarantee.bounds import upper_bounds


def one(losses, **risk):
    rng = np.random.default_rng(5)
    seen = rng.permutation(losses)[: len(losses) // 2]
    return rp.select_from_losses(
        rp.Problem([rp.Risk("r", **risk)], minimize="cost", delta=0.1),
        validation={"r": seen[None], "cost": [1.0]},
        calibration={"r": losses[None]},
    )


def bound(selection):
    return float(upper_bounds(selection.plan, selection.result, [0])[0, 0])


def test_bound_of_binary_losses_is_clopper_pearson():
    losses = np.arange(1000) < 70
    exact = beta.ppf(0.9, 71, 930)  # one-sided, 90 %
    assert exact <= bound(one(losses, limit=0.2)) <= exact * 1.003


@pytest.mark.parametrize("family", ["binomial", "betting", "hoeffding_bentkus", "hoeffding"])
def test_limits_above_the_bound_pass_and_limits_below_do_not(family):
    losses = np.random.default_rng(1).random(800) < 0.1
    upper = bound(one(losses, limit=0.5, p_value=family))
    for factor, passes in ((1.02, True), (0.98, False)):
        selection = one(losses, limit=upper * factor, p_value=family)
        assert (selection.config is not None) is passes


def test_bound_is_in_units_of_the_losses():
    losses = 10 + 4 * (np.arange(1000) < 70)
    upper = bound(one(losses, limit=11.0, low=10.0, high=14.0))
    assert upper == pytest.approx(10 + 4 * beta.ppf(0.9, 71, 930), rel=3e-3)


def test_bound_is_the_top_of_the_range_where_nothing_is_known():
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk("r", 0.5, conditional=True)], minimize="cost"),
        validation={"r": np.array([[0.0, 1.0, np.nan]]), "cost": [1.0]},
        calibration={"r": np.full((1, 3), np.nan)},
    )
    assert bound(selection) == 1.0
