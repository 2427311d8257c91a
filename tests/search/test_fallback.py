"""Without a safe configuration, a search sees to it that something is certified at all."""

from dataclasses import replace

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.guarantee import interval
from riskpilot.search import GUIDED, Observations, fit_model
from riskpilot.search.acquisition import score, worth_of_anything

COVER = np.linspace(0, 1, 201)[:, None]
REGION = [
    interval(
        rp.Risk("error", 0.1),
        "binomial",
        n_validation=1000,
        n_calibration=1000,
        delta=0.1,
        trust=0.7,
        doubt=0.2,
    )
]


def model(values, has_safe=False):
    x = np.linspace(0, 0.5, len(values))[:, None]
    values = np.array(values, dtype=float)
    variances = np.full(values.shape, 1e-6)
    return fit_model(Observations(x, values, variances, np.empty((0, 1)), has_safe))


# From risky and cheap to a mean that passes, with luck: what follows is safer and dearer.
HARDLY = [[0.15, 0.0], [0.13, 0.05], [0.11, 0.1], [0.09, 0.15], [0.07, 0.2]]


def test_a_safer_place_is_worth_an_evaluation_where_nothing_was_named_as_safe():
    seen = model(HARDLY)
    values, _ = score(seen, REGION, COVER, GUIDED)
    plain, _ = score(seen, REGION, COVER, replace(GUIDED, fallback=0.0))
    assert 0.5 < COVER[values.argmax(), 0] < 0.8
    assert not np.array_equal(values, plain)
    named, _ = score(model(HARDLY, has_safe=True), REGION, COVER, GUIDED)
    assert np.array_equal(named, plain)


def test_nothing_certified_is_as_much_worse_as_free_objectives_differ():
    assert worth_of_anything(model(HARDLY), REGION, GUIDED) == pytest.approx(0.2)
    assert worth_of_anything(model(HARDLY), REGION, replace(GUIDED, fallback=3.0)) == pytest.approx(
        0.6
    )
    assert worth_of_anything(model(HARDLY, has_safe=True), REGION, GUIDED) == 0
    risky = [[risk + 0.1, cost] for risk, cost in HARDLY]
    assert worth_of_anything(model(risky), REGION, GUIDED) == 0  # look for low risks first


@pytest.mark.parametrize("fallback", [-1, 101, float("nan"), "1", True])
def test_a_fallback_is_a_multiple(fallback):
    with pytest.raises(rp.RiskpilotError, match="fallback"):
        replace(GUIDED, fallback=fallback)


def nothing_certified(fallback, runs=24):
    """Search a threshold whose far end is safe, with optimistic validation; count empty runs."""
    problem = rp.Problem([rp.Risk("error", 0.1)], minimize="cost")
    empty = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        kept = rng.random(1000) > 0.15  # so many of its losses validation lacks
        draws = rng.random((2, 1000))

        def evaluate(trial, kept=kept, draws=draws):
            t = trial.suggest_float("t", 0, 1)
            wrong = draws < 0.16 * (1 - t) ** 0.75
            cost = t**1.5
            return rp.Evaluation({"error": wrong[0] & kept, "cost": cost}, {"error": wrong[1]})

        sampler = rp.GuidedSampler(problem, seed=seed, strategy=replace(GUIDED, fallback=fallback))
        study = rp.create_study(problem, sampler=sampler, n_calibration=1000)
        study.optimize(rp.objective(study, evaluate), n_trials=6)
        empty += rp.select(study).config is None
    return empty


def test_fewer_searches_end_with_nothing():
    assert nothing_certified(1.0) < nothing_certified(0.0)
