"""The initial pool of a study: workers that begin together, and configurations that are queued."""

from dataclasses import replace

import numpy as np
import optuna
import pytest

import riskpilot as rp

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost")
KINDS = list("abcdef")
NUMBERS = ("x", "y", "z")


def begun(study: optuna.Study, n: int) -> list[optuna.Trial]:
    """Trials that all begin before any of them has asked for a parameter."""
    return [study.ask() for _ in range(n)]


def config_of(trial: optuna.Trial) -> dict:
    for name in NUMBERS:
        trial.suggest_float(name, 0.0, 1.0)
    trial.suggest_categorical("kind", KINDS)
    return trial.params


def evaluate(trial: optuna.Trial) -> rp.Evaluation:
    config = config_of(trial)
    rng = np.random.default_rng(trial.number)
    validation, calibration = ({"error": rng.random(200) < 0.3 * config["x"]} for _ in range(2))
    return rp.Evaluation({**validation, "cost": 1 - config["x"]}, calibration)


def test_workers_that_begin_together_share_the_pool_that_one_alone_goes_through():
    alone = rp.create_study(PROBLEM, seed=0)
    alone.optimize(rp.objective(alone, evaluate), n_trials=8)
    together = [config_of(trial) for trial in begun(rp.create_study(PROBLEM, seed=0), 8)]
    assert together == [trial.params for trial in alone.trials]
    assert {config["kind"] for config in together} == set(KINDS)
    for name in NUMBERS:
        places = sorted(config[name] for config in together)
        np.testing.assert_allclose(places, np.linspace(0, 1, 8))


def test_workers_that_ask_at_the_same_moment_begin_with_different_choices():
    """None of them knows yet what the others will ask for after their first parameter."""
    trials = begun(rp.create_study(PROBLEM, seed=0), 7)
    kinds = [trial.suggest_categorical("kind", KINDS) for trial in trials]
    assert set(kinds) == set(KINDS)
    places = np.array([[t.suggest_float(name, 0.0, 1.0) for t in trials] for name in NUMBERS])
    assert (np.diff(np.sort(places), axis=1) > 0.05).all()


def test_two_workers_that_begin_together_among_few_numbers_try_the_lowest_values_and_the_middle():
    trials = begun(rp.create_study(PROBLEM, seed=0), 2)
    places = [[trial.suggest_float(name, 0.0, 1.0) for name in NUMBERS] for trial in trials]
    assert places == [[0.0] * 3, [0.5] * 3]


@pytest.mark.parametrize("n_queued", [3, 8])
def test_what_is_queued_counts_as_the_first_of_the_pool(n_queued):
    study = rp.create_study(PROBLEM, seed=0)
    for i in range(n_queued):
        study.enqueue_trial({"x": 0.1, "y": 0.1 * i, "z": 0.5, "kind": "a"})
    study.optimize(rp.objective(study, evaluate), n_trials=10)
    by_search = ["riskpilot:proposal" in trial.system_attrs for trial in study.trials]
    assert by_search == [False] * 8 + [True] * 2


@pytest.fixture(scope="module")
def many_values():
    """A study of 12 trials, gone on to 25, whose choice has more values than the pool has places.

    All values but the safe one look alike.
    """

    def run(strategy: rp.Strategy, **kwargs) -> optuna.Study:
        sampler = rp.GuidedSampler(PROBLEM, seed=0, strategy=strategy)
        study = rp.create_study(PROBLEM, sampler=sampler, safe={"kind": 3, "x": 0.0}, **kwargs)

        def evaluate_kind(trial: optuna.Trial) -> rp.Evaluation:
            kind = trial.suggest_categorical("kind", range(10))
            x = trial.suggest_float("x", 0.0, 1.0)
            rng = np.random.default_rng(trial.number)
            validation, calibration = ({"error": rng.random(500) < 0.9 * x} for _ in range(2))
            return rp.Evaluation({**validation, "cost": 1.1 - x - 0.1 * (kind == 3)}, calibration)

        study.optimize(rp.objective(study, evaluate_kind), n_trials=25)
        return study

    return run


def kinds_of(study: optuna.Study, n: int | None = None) -> set[int]:
    return {trial.params["kind"] for trial in study.trials[:n]}


def test_every_value_of_a_choice_is_tried_although_the_pool_has_fewer_places(many_values):
    study = many_values(rp.GUIDED)
    assert len(kinds_of(study, 12)) < 10
    assert kinds_of(study) == set(range(10))


def test_values_that_nobody_tried_are_left_to_the_surrogates_by_the_paper(many_values):
    """The paper knows no such turns, and neither do its ablations."""
    turns = many_values(replace(rp.PAPER, exploration=4.0))
    assert kinds_of(turns) == set(range(10))
    assert len(kinds_of(many_values(rp.PAPER))) < 10


def test_a_value_that_an_earlier_study_left_out_is_left_to_the_surrogates(many_values):
    earlier = many_values(replace(rp.GUIDED, exploration=0.0))
    assert len(kinds_of(earlier)) < 10
    assert kinds_of(many_values(rp.GUIDED, warm_start=earlier)) <= kinds_of(earlier)


@pytest.mark.parametrize(("risk_now", "first_by_search"), [(0.05, 5), (0.6, 8)])
def test_the_whole_pool_begins_a_study_whose_earlier_one_misleads(risk_now, first_by_search):
    """One that is right has shown what four configurations are tried first, and no pool follows."""

    def study_of(risk: float, n_trials: int, **kwargs: optuna.Study) -> optuna.Study:
        def evaluate_many(trial: optuna.Trial) -> rp.Evaluation:
            place = [trial.suggest_float(name, 0, 1) for name in "uvwxyz"]
            draws = np.random.default_rng(0).random(1_000)
            losses = {"error": draws < risk + 0.05 * sum(place)}
            return rp.Evaluation({**losses, "cost": 6 - sum(place)}, {"error": draws[::2] < risk})

        sampler = rp.GuidedSampler(PROBLEM, seed=0)
        safe = dict.fromkeys("uvwxyz", 0.0)
        study = rp.create_study(PROBLEM, sampler=sampler, safe=safe, **kwargs)
        study.optimize(rp.objective(study, evaluate_many), n_trials=n_trials)
        return study

    study = study_of(risk_now, 9, warm_start=study_of(0.05, 15))
    by_search = ["riskpilot:proposal" in trial.system_attrs for trial in study.trials]
    assert by_search.index(True) == first_by_search
