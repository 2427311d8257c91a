"""Hyper-parameters of many observations are learned at checkpoints, from those up to there."""

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.search import surrogate
from riskpilot.study.kept.trials import trials_of

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost")


@pytest.fixture(autouse=True)
def nothing_learned():
    """As in a new process."""
    surrogate._learned.cache_clear()


@pytest.fixture
def searches(monkeypatch):
    """How many observations each search for hyper-parameters has had."""
    sizes = []
    maximum = surrogate._maximum

    def noting(posterior):
        sizes.append(len(posterior._y))
        return maximum(posterior)

    monkeypatch.setattr(surrogate, "_maximum", noting)
    return sizes


def observed(n):
    rng = np.random.default_rng(0)
    x = rng.random((n, 2))
    return x, np.sin(5 * x[:, 0]) + 0.05 * rng.standard_normal(n), np.full(n, 0.05**2)


def fit(n, **named):
    x, y, noise = (part[:n] for part in observed(200))
    return surrogate.fit(x, y, noise, **named)


@pytest.mark.parametrize("n", [2, 30, 71])
def test_few_observations_are_fitted_as_without_checkpoints(n):
    x = observed(50)[0]
    kept, whole = fit(n, at_checkpoints=True), fit(n)
    assert (kept.mean(x) == whole.mean(x)).all()


def test_many_observations_have_the_hyper_parameters_of_their_checkpoint():
    first = fit(64)
    for n in (72, 79):
        kept = fit(n, at_checkpoints=True)
        assert (kept.lengths == first.lengths).all()
        assert kept.output_scale == first.output_scale
        assert len(kept.x) == len(kept.weights) == n  # it still knows all observations
    assert (fit(80, at_checkpoints=True).lengths == fit(72).lengths).all()


def test_predictions_are_as_good_as_with_hyper_parameters_of_all_observations():
    places = np.random.default_rng(1).random((200, 2))
    truth = np.sin(5 * places[:, 0])
    for n in (79, 150):
        errors = [
            np.sqrt(np.mean((fit(n, at_checkpoints=kept).mean(places) - truth) ** 2))
            for kept in (True, False)
        ]
        assert errors[0] < 1.1 * errors[1] < 0.03


def test_hyper_parameters_are_learned_once_for_every_checkpoint(searches):
    for n in range(72, 88):
        fit(n, at_checkpoints=True)
    assert searches == [64, 72]


def test_another_caution_or_another_observation_is_learned_anew(searches):
    x, y, noise = observed(75)
    surrogate.fit(x, y, noise, at_checkpoints=True)
    surrogate.fit(x, y, noise, at_checkpoints=True, caution=2.0)
    surrogate.fit(x, y, None, at_checkpoints=True)
    surrogate.fit(x, np.append(y[0] + 1, y[1:]), noise, at_checkpoints=True)
    surrogate.fit(x, np.append(y[:-1], y[-1] + 1), noise, at_checkpoints=True)  # a later one
    assert searches == [64] * 4


def evaluate(trial):
    x = np.array([trial.suggest_float(name, 0, 1) for name in ("x", "y")])
    error = np.random.default_rng(trial.number).random((2, 50)) < 0.05 + 0.4 * x.mean()
    return rp.Evaluation({"error": error[0], "cost": float(1 - x @ x / 2)}, {"error": error[1]})


def test_a_search_goes_on_as_if_it_had_not_been_interrupted_after_a_checkpoint(searches):
    found = []
    for parts in ([86], [77, 9]):
        study = rp.create_study(PROBLEM, seed=1)
        for n_trials in parts:
            surrogate._learned.cache_clear()
            study.optimize(rp.objective(study, evaluate), n_trials=n_trials)
        found.append([trial.params for trial in trials_of(study)])
    assert max(searches) == 72  # the checkpoints were passed
    assert found[0] == found[1]


def test_a_selection_smooths_with_hyper_parameters_of_all_observations():
    x, y, noise = observed(90)
    smooth = surrogate.smoothed(x, y, noise, 400)
    assert (smooth == surrogate.fit(x, y, noise).mean(x)).all()
    assert (smooth != surrogate.fit(x, y, noise, at_checkpoints=True).mean(x)).any()
