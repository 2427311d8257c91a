"""Estimates that lean on neighbours do not put a configuration first that no test would pass."""

import numpy as np

import riskpilot as rp
from riskpilot.guarantee import freeze_plan
from riskpilot.losses import validation_losses


def test_a_configuration_of_which_few_examples_count_does_not_come_first():
    problem = rp.Problem([rp.Risk("error", 0.1, conditional=True)], minimize="left")
    rng = np.random.default_rng(0)
    many = np.where(rng.random(1000) < 0.05, 1.0, 0.0)
    few = np.full(1000, np.nan)
    few[:3] = 0.0  # three without a loss: (1 - 0.1)^3 is far above any delta
    seen = validation_losses(
        problem, {"error": np.array([few, many]), "left": np.array([0.1, 0.5])}
    )
    # Its neighbours make the first one seem to have a risk of nearly 0, without any doubt.
    plan = freeze_plan(seen, estimates=np.array([[0.001], [0.05]]))
    assert plan.order == (1, 0)
    assert plan.log_p_validation[1] >= 3 * np.log(0.9) - 1e-12
