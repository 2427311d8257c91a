"""Searches among configurations of which some give no result: they fail, or are pruned by hand."""

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.search import Observations
from riskpilot.search.acquisition import chance_of_result, remoteness

PROBLEM = rp.Problem([rp.Risk("error", 0.1)], "cost")
DRAWS = np.random.default_rng(0).random((2, 2_000))


def evaluated(risk, cost):
    return rp.Evaluation({"error": DRAWS[0] < risk, "cost": cost}, {"error": DRAWS[1] < risk})


def searched(evaluate, n_trials, seed=0, **kwargs):
    study = rp.create_study(PROBLEM, seed=seed, safe=kwargs.pop("safe", None))
    run = rp.objective(study, evaluate)
    study.optimize(run, n_trials=n_trials, catch=(RuntimeError,), **kwargs)
    return study


@pytest.mark.parametrize("error", [optuna.TrialPruned, RuntimeError])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_gives_no_result_holds_up_no_search(error, seed):
    """All that is better than 0.3 and would pass gives no result, so that 0.3 is the best."""

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        if 0.3 < x < 0.9:
            raise error("no result")
        return evaluated(0.2 * x, 1 - x)

    study = searched(evaluate, 20, seed)
    assert rp.select(study).config["x"] > 0.27
    places = np.sort([trial.params["x"] for trial in study.trials])
    assert np.unique(places.round(3)).size == 20


@pytest.mark.parametrize("seed", range(4))
def test_a_part_of_the_space_that_fails_costs_few_evaluations(seed):
    """A square in the middle fails; the best that passes lies on a line that goes through it."""

    def evaluate(trial):
        x, y = (trial.suggest_float(name, 0, 1) for name in "xy")
        if 0.25 < x < 0.75 and 0.25 < y < 0.75:
            raise RuntimeError("out of memory")
        return evaluated(0.1 * (x + y) ** 2, 2 - x - y)

    study = searched(evaluate, 20, seed, safe={"x": 0.0, "y": 0.0})
    chosen = rp.select(study).config
    assert chosen["x"] + chosen["y"] > 0.85
    assert sum(trial.state == optuna.trial.TrialState.FAIL for trial in study.trials) < 10


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_penalty_that_is_returned_closes_off_no_more_than_where_it_is(seed):
    """The best that passes lies just behind it, at 0.6."""

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        return evaluated(0.16 * x, 1e3 if 0.45 < x < 0.55 else 1 - x)

    assert rp.select(searched(evaluate, 10, seed)).config["x"] > 0.55


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_evaluations_that_fail_by_accident_close_off_nothing(seed):
    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.number % 3 == 2:
            raise RuntimeError("no connection")
        return evaluated(0.2 * x, 1 - x)

    assert rp.select(searched(evaluate, 15, seed)).config["x"] > 0.38


def test_a_study_in_which_nothing_more_gives_a_result_is_settled():
    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        if x > 0.3:
            raise optuna.TrialPruned
        return evaluated(0.2 * x, 1 - x)

    study = searched(evaluate, 40, callbacks=[rp.StopWhenSettled(share=0.01)])
    assert len(study.trials) < 40


def observed(places, failed):
    x = np.array(places)[:, None]
    failed = None if failed is None else np.array(failed)[:, None]
    return Observations(x, np.zeros((len(x), 2)), np.zeros((len(x), 2)), x[:0], failed=failed)


def test_the_chance_of_a_result_falls_towards_what_failed_and_rises_towards_what_did_not():
    chance = chance_of_result(observed([0.0, 0.2], [0.6]))
    found = chance(np.linspace(0.2, 0.6, 9)[:, None])
    assert (np.diff(found) < 0).all()
    assert found[0] > 0.99
    assert found[-1] < 0.01
    twice = chance_of_result(observed([0.0, 0.2], [0.6, 0.62]))
    x = np.array([[0.45]])
    assert twice(x) < chance(x) < chance_of_result(observed([0.0, 0.2, 0.5], [0.6]))(x)


def test_without_failures_every_evaluation_gives_a_result():
    assert (chance_of_result(observed([0.0, 0.2], None))(np.linspace(0, 1, 5)[:, None]) == 1).all()


def test_a_place_that_failed_is_no_place_where_nothing_was_evaluated():
    x = np.array([[0.5], [0.9]])
    np.testing.assert_allclose(remoteness(observed([0.0, 0.2], [0.9]))(x), [0.3, 0.0])
