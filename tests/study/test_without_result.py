"""Searches among configurations of which some give no result: they fail, or are pruned by hand."""

from dataclasses import replace
from functools import partial

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.search import Observations
from riskpilot.search.prospects import chance_of_result, remoteness
from riskpilot.study.kept.earlier import earlier_of
from riskpilot.study.kept.trials import ended_before

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

    assert rp.select(searched(evaluate, 12, seed)).config["x"] > 0.55


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


def test_the_chance_of_a_result_follows_a_pattern_along_one_parameter():
    """All fails where the first coordinate is large, also far from everything evaluated."""
    places = np.random.default_rng(0).random((30, 3))
    fails = places[:, 0] > 0.5
    x, nothing = places[~fails], np.zeros((np.sum(~fails), 2))
    seen = Observations(x, nothing, nothing, x[:0], failed=places[fails])
    there = np.column_stack([np.tile([0.2, 0.8], 9), np.random.default_rng(1).random((18, 2))])
    chance = chance_of_result(seen)(there)
    assert chance[::2].min() > 0.8
    assert chance[1::2].max() < 0.4


def test_the_chance_of_a_result_is_alike_everywhere_where_failures_are_accidents():
    draws = np.random.default_rng(0)
    places, fails = draws.random((60, 2)), draws.random(60) < 0.3
    x, nothing = places[~fails], np.zeros((np.sum(~fails), 2))
    seen = Observations(x, nothing, nothing, x[:0], failed=places[fails])
    chance = chance_of_result(seen)(draws.random((200, 2)))
    assert np.quantile(chance, 0.1) > 0.6


def test_without_failures_every_evaluation_gives_a_result():
    assert (chance_of_result(observed([0.0, 0.2], None))(np.linspace(0, 1, 5)[:, None]) == 1).all()


def test_a_place_that_failed_is_no_place_where_nothing_was_evaluated():
    x = np.array([[0.5], [0.9]])
    np.testing.assert_allclose(remoteness(observed([0.0, 0.2], [0.9]))(x), [0.3, 0.0])


CHOICES = ("abcde", "vwxyz")


def with_choices(trial):
    """Half of 25 configurations fail, as on the squares of a chessboard."""
    places = [
        values.index(trial.suggest_categorical(name, list(values)))
        for name, values in zip("pq", CHOICES, strict=True)
    ]
    if sum(places) % 2:
        raise RuntimeError("no such pair")
    return evaluated(0.02 * sum(places), 10 - sum(places))


@pytest.mark.parametrize("seed", range(6))
def test_no_choice_that_failed_is_tried_again_before_all_were(seed):
    study = searched(with_choices, 25, seed)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 25


def test_once_all_choices_were_tried_those_that_work_come_again_as_well():
    study = searched(with_choices, 45)
    later = [trial.state for trial in study.trials[25:]]
    assert 4 <= later.count(optuna.trial.TrialState.COMPLETE) <= 16


def test_a_pool_of_which_some_failed_is_no_reason_to_foretell_nothing():
    def evaluate(trial):
        evaluation = with_choices(trial)
        if trial.params["p"] == "a":
            raise RuntimeError("no memory")
        return evaluation

    study = searched(evaluate, 8)
    assert sum(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials) < 7
    assert study.sampler.outlook(study) is not None


def a_third_fails(trial, draws, *, penalty=None):
    """What lies between 0.35 and 0.65 fails, or gives a penalty."""
    x, y = (trial.suggest_float(name, 0, 1) for name in "xy")
    is_within = 0.35 < x < 0.65
    if is_within and penalty is None:
        raise RuntimeError("out of memory")
    losses = [np.array(part) < 0.1 * (x + y) ** 2 for part in draws]
    cost = penalty if is_within else 2 - x - 0.6 * y
    return rp.Evaluation({"error": losses[0], "cost": cost}, {"error": losses[1]})


@pytest.mark.parametrize("penalty", [None, 1e4])
def test_a_study_knows_where_an_earlier_one_had_no_result(penalty):
    safe = {"x": 0.0, "y": 0.0}
    n_failed = []
    for seed in range(4):
        first, second = np.random.default_rng(seed).random((2, 2, 2_000))
        earlier = rp.create_study(PROBLEM, seed=seed, safe=safe)
        run = rp.objective(earlier, partial(a_third_fails, draws=first, penalty=penalty))
        earlier.optimize(run, n_trials=24, catch=(RuntimeError,))
        study = rp.create_study(PROBLEM, seed=50 + seed, safe=safe, warm_start=earlier)
        known, places = earlier_of(study), [trial.params["x"] for trial in earlier.trials]
        np.testing.assert_allclose(
            np.sort(known.failed_points[:, 0]), sorted(x for x in places if 0.35 < x < 0.65)
        )
        assert len(known.failed_points) + len(known.points_with_results) == 24

        run = rp.objective(study, partial(a_third_fails, draws=second, penalty=penalty))
        study.optimize(run, n_trials=12, catch=(RuntimeError,))
        n_failed.append(sum(0.35 < trial.params["x"] < 0.65 for trial in study.trials))
    assert sum(n_failed) <= 2


def test_what_failed_in_an_earlier_study_halves_the_chance_until_it_proves_wrong():
    told = {"failed_before": np.array([[0.7], [0.9]]), "gave_before": np.array([[0.1], [0.5]])}
    seen = replace(observed([0.0, 0.2], None), **told)
    np.testing.assert_allclose(chance_of_result(seen)(np.array([[0.7], [0.9]])), 0.5, atol=0.01)
    assert chance_of_result(seen)(np.array([[0.2]])) > 0.8
    mended = replace(observed([0.0, 0.2, 0.75], None), **told)
    assert (chance_of_result(mended)(np.array([[0.7], [0.9]])) == 1).all()
    as_before = replace(observed([0.0, 0.2, 0.75], [0.9, 0.7]), **told)
    assert (chance_of_result(as_before)(np.array([[0.7], [0.9]])) < 0.1).all()


def test_what_is_mended_since_an_earlier_study_holds_up_no_search():
    def evaluate(trial, mended):
        x, y = (trial.suggest_float(name, 0, 1) for name in "xy")
        if x > 0.3 and y > 0.2 and not mended:
            raise RuntimeError("no such pair")
        return evaluated(0.1 * (x + y) ** 2, 2 - x - y)

    for seed in range(4):
        earlier = searched(partial(evaluate, mended=False), 16, seed)
        study = rp.create_study(PROBLEM, seed=seed, warm_start=earlier)
        study.optimize(rp.objective(study, partial(evaluate, mended=True)), n_trials=12)
        assert (
            sum(trial.params["x"] > 0.3 and trial.params["y"] > 0.2 for trial in study.trials) > 1
        )


def test_penalties_of_an_earlier_study_are_no_values_of_its_free_objective():
    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        return evaluated(0.2 * x, 1e4 if 0.4 < x < 0.6 else 1 - x)

    earlier = searched(evaluate, 16)
    study = rp.create_study(PROBLEM, warm_start=earlier)
    free = earlier_of(study).surrogates[-1]
    np.testing.assert_allclose(
        free.mean(np.array([[0.35], [0.5], [0.65]])), [0.65, 0.5, 0.35], atol=0.1
    )


def test_a_configuration_that_says_nothing_of_its_parameters_is_not_kept_as_failed():
    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 3:
            raise RuntimeError("no connection")
        return evaluated(0.2 * x, 1 - x - trial.suggest_float("y", 0, 1))

    study = rp.create_study(PROBLEM, warm_start=searched(evaluate, 8))
    assert not earlier_of(study).failed


def test_a_search_beside_a_penalty_stays_on_no_edge():
    """The middle gives a penalty, so that nothing shows at first what two of three do."""
    on_edge = 0
    for seed in range(6):
        draws = np.random.default_rng(seed).random((2, 1_000))

        def evaluate(trial, draws=draws):
            x, y, z = (trial.suggest_float(name, 0, 1) for name in "xyz")
            cost = 1e4 if min(x, z) > 0.4 else 2 - 0.44 * x - 0.33 * y - 0.22 * z - 0.3 * x * z
            wrong = draws < 0.4 * ((x + y + z) / 3) ** 2
            return rp.Evaluation({"error": wrong[0], "cost": cost}, {"error": wrong[1]})

        study = searched(evaluate, 16, seed, safe={"x": 0.0, "y": 0.0, "z": 0.0})
        on_edge += sum(max(t.params["x"], t.params["z"]) < 0.1 for t in study.trials[6:])
    assert on_edge <= 4


def test_what_failed_is_not_tried_again_before_anything_gave_a_result():
    def evaluate(trial):
        with_choices(trial)
        raise RuntimeError("nothing works")

    study = searched(evaluate, 25)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 25


@pytest.mark.parametrize("seed", range(4))
def test_a_number_with_steps_that_fails_everywhere_is_tried_at_every_value(seed):
    def evaluate(trial):
        trial.suggest_float("x", 0, 1, step=0.125)
        raise RuntimeError("nothing works")

    study = searched(evaluate, 9, seed)
    assert len({trial.params["x"] for trial in study.trials}) == 9


@pytest.mark.parametrize("seed", range(4))
def test_a_branch_without_parameters_that_failed_is_left(seed):
    def evaluate(trial):
        branch = trial.suggest_categorical("branch", ["a", "b", "off"])
        if branch == "off":
            raise RuntimeError("off")
        if branch == "a":
            x = trial.suggest_float("x", 0, 1)
            return evaluated(0.15 * x, 1 - x)
        y, n = trial.suggest_float("y", 0, 1), trial.suggest_int("n", 1, 5)
        return evaluated(0.1 * y, 1 - 0.5 * y + 0.01 * n)

    study = searched(evaluate, 16, seed)
    assert sum(trial.params["branch"] == "off" for trial in study.trials) <= 2


def test_an_evaluation_that_fails_before_it_has_asked_for_all_changes_no_proposal():
    def evaluate(trial, fails):
        x = trial.suggest_float("x", 0, 1)
        if trial.number == fails:
            raise RuntimeError("no connection")
        return evaluated(0.2 * x, 1 - x - 0.5 * trial.suggest_float("y", 0, 1))

    study = searched(partial(evaluate, fails=3), 5)
    kept, place = study.trials, study.trials[3].params["x"]
    assert set(kept[3].params) == {"x"}
    assert ended_before(kept) == []
    without = searched(partial(evaluate, fails=-1), 4)
    assert [trial.params for trial in kept[:3]] == [trial.params for trial in without.trials[:3]]
    assert place == without.trials[3].params["x"]
