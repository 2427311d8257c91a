"""Conditional risks with 0/1 losses: counted exactly, among the examples that count."""

import numpy as np
from scipy.stats import binom

import riskpilot as rp
from riskpilot.losses.reading import calibration_losses, validation_losses

PROBLEM = rp.Problem([rp.Risk("fdr", 0.2, conditional=True)], "cost")


def _losses(rng, n, m):
    wrong = (rng.random((n, m)) < 0.1).astype(float)
    return np.where(rng.random((n, m)) < 0.5, wrong, np.nan)


def test_conditional_zero_one_losses_get_the_exact_test_on_those_that_count():
    rng = np.random.default_rng(0)
    validation, calibration = _losses(rng, 4, 300), _losses(rng, 4, 200)
    selection = rp.select_from_losses(
        PROBLEM,
        validation={"fdr": validation, "cost": np.arange(4.0)},
        calibration={"fdr": calibration},
    )
    assert selection.plan.families == {"fdr": "binomial"}
    rows = list(selection.plan.order)
    count, n = np.nansum(calibration[rows], axis=1), (~np.isnan(calibration[rows])).sum(axis=1)
    np.testing.assert_allclose(selection.p_values, binom.cdf(count, n, 0.2), rtol=1e-9)


def test_one_loss_between_the_ends_makes_it_a_betting_test():
    rng = np.random.default_rng(1)
    validation = _losses(rng, 2, 100)
    validation[0, np.flatnonzero(~np.isnan(validation[0]))[0]] = 0.5
    read = validation_losses(PROBLEM, {"fdr": validation, "cost": np.zeros(2)})
    assert not read.risks["fdr"].summary.binary


def test_losses_with_gaps_come_back_as_they_were():
    losses = _losses(np.random.default_rng(2), 3, 50)
    read = calibration_losses(PROBLEM, {"fdr": losses})
    np.testing.assert_array_equal(read.risks["fdr"].unit_rows([2, 0]), losses[[2, 0]])


def test_a_mean_of_few_examples_does_not_push_a_well_supported_one_aside():
    rng = np.random.default_rng(3)

    def losses(m):
        few = np.full(m, np.nan)
        few[:3] = 0.0  # three examples, no loss: a mean of 0 that shows nothing
        return np.vstack([few, (rng.random(m) < 0.05).astype(float)])

    selection = rp.select_from_losses(
        PROBLEM,
        validation={"fdr": losses(1000), "cost": [1.0, 2.0]},
        calibration={"fdr": losses(1000)},
    )
    assert selection.config == {"index": 1}
