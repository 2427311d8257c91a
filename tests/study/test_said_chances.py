"""The chance that status names is the chance that a selection certifies the trial it names."""

import numpy as np
import pytest
from scipy.stats import binom

import riskpilot as rp
from riskpilot.search import Observations, Whole, fit_model
from riskpilot.search.outlook import certified_chances, has_unusual_doubt
from riskpilot.study import study_status

PROBLEM = rp.Problem([rp.Risk("error", 0.12)], "cost")
K = 600


def risk_of(config):
    return 0.03 + 0.2 * config["x"] ** 2 + 0.05 * config["y"]


def searched(seed, is_race):
    luck = np.random.default_rng([seed, 1]).random((2, K))

    def asked(trial):
        config = {name: trial.suggest_float(name, 0, 1) for name in "xy"}
        return luck < risk_of(config), 1 - 0.7 * config["x"] - 0.3 * config["y"]

    def whole(trial):
        wrong, cost = asked(trial)
        return rp.Evaluation({"error": wrong[0], "cost": cost}, {"error": wrong[1]})

    def race(trial):
        wrong, cost = asked(trial)
        for block in np.array_split(wrong[0], 15):
            if (yield {"error": block, "cost": cost}):
                break
        return {"error": wrong[1]}

    study = rp.create_study(PROBLEM, seed=seed, safe={"x": 0.0, "y": 0.0})
    study.optimize(rp.objective(study, race if is_race else whole), n_trials=12)
    return study


def chance_of(candidates, named):
    """The chance that a named candidate and all before it pass: the draws are those of all."""
    first = candidates[: candidates.index(named) + 1]
    risk = max(risk_of(config) for config in first)
    passing = [s for s in range(K) if binom.cdf(s, K, 0.12) <= PROBLEM.delta]
    return binom.cdf(max(passing), K, risk)


@pytest.mark.parametrize("is_race", [True, False])
def test_about_as_many_selections_certify_the_named_trial_as_is_said(is_race):
    said, comes = [], []
    for seed in range(16, 32):
        study = searched(seed, is_race)
        ahead, candidates = study_status(study).outlook, list(rp.select(study).candidates)
        named = study.trials[ahead.trial].params
        assert named in candidates  # a selection tests none that is dominated
        said.append(ahead.free_chance)
        comes.append(chance_of(candidates, named))
    assert np.mean(comes) == pytest.approx(np.mean(said), abs=0.12)


# --- what a chance counts -------------------------------------------------------------------------

X = np.linspace(0, 1, 6)[:, None]
FREE = 1 - X[:, 0]
REGION = [rp.guarantee.Interval(0.1, 0.08, 0.12, 22, True, noise=0.01, trust=0.7, doubt=0.02)]


def chances(risks, errors=0.0, own_noise=0.15, region=REGION, free=FREE):
    values = np.column_stack([risks, free])
    variances = np.column_stack([np.full(6, 1e-6) + np.square(errors), np.full(6, np.nan)])
    model = fit_model(Observations(X, values, variances, X[:0]))
    return certified_chances(model, region, Whole(range(6), values, variances), own_noise)


RISKS = np.linspace(0.05, 0.11, 6)


def test_a_chance_falls_along_the_testing_order():
    found = chances(RISKS)
    assert (np.diff(found) < 0).all()
    assert found[0] > 0.99
    assert found[5] < 0.2


def test_what_another_one_dominates_is_not_tested():
    free = FREE.copy()
    free[2] = 0.9
    found = chances(RISKS, free=free)
    assert found[2] == 0
    assert (found[[0, 1, 3]] > 0.5).all()


def test_all_that_come_before_have_to_pass():
    """They do together where all noise is in common, and seldom where each has its own."""
    near = 0.1 + 1e-4 * np.arange(6)
    in_common, of_each = (chances(near, own_noise=share) for share in (0.0, 1.0))
    assert in_common[5] == pytest.approx(0.5, abs=0.05)
    assert of_each[5] < 0.05
    assert in_common[0] == pytest.approx(of_each[0], abs=0.01)


def test_what_is_foretold_counts_with_its_error():
    sure, unsure = chances(RISKS), chances(RISKS, errors=0.02)
    assert (unsure[1:4] < sure[1:4]).all()


def test_doubt_counts_where_there_is_more_of_it_than_by_default():
    region = [rp.guarantee.Interval(0.1, 0.08, 0.12, 22, True, noise=0.01, trust=0.0, doubt=0.05)]
    assert not has_unusual_doubt(REGION)
    assert has_unusual_doubt(region)
    assert (chances(RISKS, region=region) < chances(RISKS))[1:].all()


def test_a_sample_without_any_loss_leaves_no_doubt_where_the_limit_is_far():
    region = [rp.guarantee.Interval(0.0435, 0.035, 0.05, 22, True, noise=0.0, trust=1.0, doubt=0.0)]
    values, variances = np.column_stack([np.zeros(6), FREE]), np.full((6, 2), 2.5e-7)
    variances[:, 1] = np.nan
    model = fit_model(Observations(X, values, variances, X[:0]))
    found = certified_chances(model, region, Whole(range(6), values, variances), 0.15)
    assert found.max() > 0.99
