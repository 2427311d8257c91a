"""A study that is started from an earlier one: what it takes from it, and what it refuses."""

import re
import shutil

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.study.kept.earlier import EARLIER_KEY, earlier_of
from riskpilot.study.survey import unless_misled

PROBLEM = rp.Problem([rp.Risk("error", 0.2)], minimize="cost")
K = 2_000


def evaluate_by(seed, risk, *, suggest=lambda trial: trial.suggest_float("x", 0, 1), calibrated=1):
    luck = np.random.default_rng(seed).random((2, K))

    def evaluate(trial):
        x = suggest(trial)
        lost = luck < risk(x)
        calibration = {"error": lost[1]} if calibrated else None
        return rp.Evaluation({"error": lost[0], "cost": 1 - x}, calibration)

    return evaluate


def usual(x):
    return 0.02 + 0.5 * x**2


def searched(evaluate, n_trials, **settings):
    study = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0}, **settings)
    study.optimize(rp.objective(study, evaluate), n_trials=n_trials)
    return study


@pytest.fixture(scope="module")
def earlier():
    # It has no calibration losses, so that nobody can have read them.
    return searched(evaluate_by(0, usual, calibrated=0), 10, n_calibration=K)


def tried(study):
    return [trial.params["x"] for trial in study.trials]


def test_what_was_best_is_tried_after_what_is_safe(earlier):
    study = searched(evaluate_by(1, usual), 3, warm_start=earlier)
    assert tried(study)[0] == 0.0
    assert tried(study)[1] in tried(earlier)
    assert tried(study)[1] > 0.5  # the risk is 0.2 at x = 0.6


@pytest.mark.parametrize("risk", [usual, lambda x: 0.03 + 0.6 * x**2], ids=["same", "drifted"])
def test_half_of_the_budget_is_enough_where_the_earlier_study_is_about_the_same(earlier, risk):
    warm = rp.select(searched(evaluate_by(2, risk), 5, warm_start=earlier)).config["x"]
    cold = rp.select(searched(evaluate_by(2, risk), 10)).config["x"]
    assert warm > cold - 0.03


def test_no_evaluation_goes_far_beyond_a_limit_that_the_earlier_study_has_shown(earlier):
    """All that is evaluated at first would pass, but where the limit lies is known already."""
    study = searched(evaluate_by(2, usual), 5, warm_start=earlier)
    assert max(tried(study)) < 0.7  # the risk is 0.2 at x = 0.6


def test_steps_of_the_earlier_study_do_not_make_it_forget_what_it_knows():
    """Known exactly, risks rise in steps where evaluations are close; far from there, two agree."""
    risks = {0.0: 8.3, 0.5: 9.3, 0.65: 14.3, 0.725: 23.1, 0.731: 25.7, 0.737: 25.7, 0.749: 28.8}
    risks |= {0.751: 28.8, 0.771: 35.5, 1.0: 68.8}
    luck = np.random.default_rng(0).normal(scale=0.004, size=K)

    def evaluate(trial):
        risk = risks[trial.suggest_float("x", 0, 1)] / 1000
        return rp.Evaluation({"error": risk + luck - luck.mean(), "cost": 1 - trial.params["x"]})

    problem = rp.Problem([rp.Risk("error", 0.03, low=-1)], minimize="cost")
    before = rp.create_study(problem, seed=0, n_calibration=K)
    for x in risks:
        before.enqueue_trial({"x": x})
    before.optimize(rp.objective(before, evaluate), n_trials=len(risks))
    known = earlier_of(rp.create_study(problem, seed=0, warm_start=before))
    between = known.surrogates[0].mean(np.array([[0.2], [0.25], [0.3]]))
    assert (between < 0.0125).all(), between


def test_a_study_that_is_misled_finds_its_way(earlier):
    misled = searched(evaluate_by(1, lambda x: 0.02 + 0.5 * np.sqrt(x)), 6, warm_start=earlier)
    cold = searched(evaluate_by(1, lambda x: 0.02 + 0.5 * np.sqrt(x)), 6)
    assert rp.select(misled).config["x"] > rp.select(cold).config["x"] - 0.03


def test_a_study_whose_first_evaluation_is_nothing_like_the_earlier_one_is_a_cold_one(earlier):
    evaluate = evaluate_by(1, lambda x: usual(1 - x))
    misled, cold = searched(evaluate, 6, warm_start=earlier), searched(evaluate, 6)
    assert tried(misled) == tried(cold)


def test_the_same_value_at_the_safe_configuration_is_enough_where_the_surrogate_is_wrong_there():
    """The earlier surrogate takes a free objective for noise that falls at once beside x = 0."""

    def evaluate_with(seed):
        luck = np.random.default_rng(seed).random(K)

        def evaluate(trial):
            x = trial.suggest_float("x", 0, 1)
            cost = 0.9 if x == 0 else 0.45 - 0.6 * x
            return rp.Evaluation({"error": luck < 0.02 + 0.5 * x, "cost": cost})

        return evaluate

    before = rp.create_study(PROBLEM, seed=0, n_calibration=K)
    places = (0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.4)
    for x in places:
        before.enqueue_trial({"x": x})
    before.optimize(rp.objective(before, evaluate_with(0)), len(places))
    study = searched(evaluate_with(1), 2, n_calibration=K, warm_start=before)
    known = earlier_of(study)
    foretold = known.surrogates[1].mean(np.zeros((1, 1)))[0]
    assert abs(foretold - study.trials[0].values[1]) > 0.3 * np.ptp(known.values[:, 1])
    assert tried(study)[1] == known.first[0]["x"]


def test_a_value_is_alike_that_differs_by_less_than_a_third_of_the_spread(earlier):
    known = earlier_of(rp.create_study(PROBLEM, warm_start=earlier))
    there = known.values[known.points[:, 0] == 0.0]
    assert len(there) == 1
    spread = np.ptp(known.values, axis=0)
    for column in range(2):
        for share, alike in ((0.25, True), (0.5, False)):
            moved = there.copy()
            moved[0, column] += share * spread[column]
            assert known.agrees_with(np.zeros((1, 1)), moved) == alike


@pytest.mark.parametrize(
    ("rise", "is_contradicted"),
    [(0.5, False), (0.6, False), (0.35, False), (0.2, True), (1.2, True)],
)
def test_risks_that_rise_half_or_twice_as_fast_contradict_an_earlier_study(
    earlier, rise, is_contradicted
):
    """They agree at the safe configuration, and are 0.02 + 0.5 x^2 in the earlier study."""
    known = earlier_of(searched(evaluate_by(2, usual), 1, warm_start=earlier))
    x = np.array([[0.0], [0.4], [0.8]])
    values = np.column_stack([0.02 + rise * x[:, 0] ** 2, 1 - x[:, 0]])
    assert known.agrees_with(x[:1], values[:1])
    assert known.is_contradicted_by(x, values) == is_contradicted


def test_an_earlier_study_that_is_contradicted_counts_for_nothing_from_then_on(earlier):
    def steep(x):
        return 0.02 + 2 * x**2

    misled = searched(evaluate_by(1, steep), 5, warm_start=earlier)
    known = earlier_of(misled)
    left = [unless_misled(known, misled.trials[:n]) is None for n in range(6)]
    assert left == [False, False, True, True, True, True]
    assert rp.select(misled).config["x"] > 0.2  # the risk is 0.2 at x = 0.3


def test_a_search_goes_on_as_it_would_have_without_the_earlier_study_at_hand(tmp_path, earlier):
    place = {"storage": tmp_path / "study.log", "study_name": "next"}
    evaluate = evaluate_by(1, usual)
    searched(evaluate, 3, warm_start=earlier, **place)
    study = rp.load_study(**place)
    study.optimize(rp.objective(study, evaluate), n_trials=3)
    assert tried(study) == tried(searched(evaluate, 6, warm_start=earlier))


def test_parameters_under_a_condition_are_taken_over():
    def suggest(trial):
        if trial.suggest_categorical("model", ["linear", "trees"]) == "linear":
            return trial.suggest_float("penalty", 0, 1)
        return 1 - trial.suggest_float("shrinkage", 0, 1)

    def search(seed, n_trials, **settings):
        study = rp.create_study(PROBLEM, seed=seed, **settings)
        evaluate = evaluate_by(seed, usual, suggest=suggest)
        study.optimize(rp.objective(study, evaluate), n_trials=n_trials)
        return study

    study = search(1, 12, warm_start=search(0, 20))
    assert rp.select(study).config is not None
    assert {"penalty", "shrinkage"} <= earlier_of(study).space.keys()


def test_open_limits_take_the_results_over_and_nothing_is_put_in_line(earlier):
    study = rp.create_study(rp.Problem([rp.Risk("error")], "cost"), seed=0, warm_start=earlier)
    assert not study.trials
    study.optimize(rp.objective(study, evaluate_by(1, usual)), n_trials=4)
    assert len(study.trials) == 4


def test_no_more_of_a_large_study_is_kept_than_a_storage_holds():
    study = rp.create_study(
        PROBLEM, seed=0, sampler=rp.GuidedSampler(PROBLEM, n_startup_trials=130)
    )
    study.optimize(rp.objective(study, evaluate_by(0, usual)), n_trials=120)
    following = rp.create_study(PROBLEM, warm_start=study)
    assert len(earlier_of(following).configs) == 100


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (rp.Problem([rp.Risk("harm", 0.2)], "cost"), "same risks"),
        (rp.Problem([rp.Risk("error", 0.2)], "delay"), "same risks"),
        (rp.Problem([rp.Risk("error", 0.2, high=2.0)], "cost"), "high of 'error' was 1.0 and is 2"),
    ],
)
def test_another_problem_is_refused(earlier, problem, said):
    with pytest.raises(rp.StudyError, match=said):
        rp.create_study(problem, warm_start=earlier)


@pytest.mark.parametrize("odd", ["study.db", 3, {"x": 1}])
def test_what_is_no_study_is_refused(odd):
    with pytest.raises(rp.StudyError, match="load_study"):
        rp.create_study(PROBLEM, warm_start=odd)


def test_a_sampler_that_would_leave_the_earlier_study_aside_is_refused(earlier, tmp_path):
    other = optuna.samplers.RandomSampler(seed=0)
    with pytest.raises(rp.StudyError, match=r"sampler is .*RandomSampler\..* leave warm_start out"):
        rp.create_study(PROBLEM, sampler=other, warm_start=earlier)

    class Own(rp.GuidedSampler):
        pass

    place = {"storage": tmp_path / "study.db", "study_name": "own"}
    study = rp.create_study(PROBLEM, sampler=Own(PROBLEM), warm_start=earlier, **place)
    assert earlier_of(study) is not None
    assert rp.load_study(**place, sampler=other).sampler is other


def test_a_study_without_results_is_refused():
    with pytest.raises(rp.StudyError, match="Leave warm_start out"):
        rp.create_study(PROBLEM, warm_start=rp.create_study(PROBLEM))


@pytest.mark.parametrize(
    "suggest",
    [lambda trial: trial.suggest_float("x", 0, 2), lambda trial: trial.suggest_float("y", 0, 1)],
)
def test_other_parameters_are_refused_with_the_way_out(earlier, suggest):
    study = rp.create_study(PROBLEM, seed=0, warm_start=earlier)
    evaluate = evaluate_by(1, usual, suggest=suggest)
    with pytest.raises(rp.StudyError, match="Make a study without warm_start"):
        study.optimize(rp.objective(study, evaluate), n_trials=3)


OTHER_RANGES = {
    "numbers from 0.0 to 2.0": lambda trial: trial.suggest_float("x", 0, 2),
    "numbers from 0.0 to 1.000000001": lambda trial: trial.suggest_float("x", 0, 1 + 1e-9),
    "numbers from 0.0 to 1.0 in steps of 0.5": lambda t: t.suggest_float("x", 0, 1, step=0.5),
    "numbers from 0.1 to 1.0 on a logarithmic scale": lambda t: t.suggest_float(
        "x", 0.1, 1, log=True
    ),
    "whole numbers from 0 to 1": lambda trial: trial.suggest_int("x", 0, 1),
    "the choices 0.25, 0.5": lambda trial: trial.suggest_categorical("x", [0.25, 0.5]),
}


@pytest.mark.parametrize("words", OTHER_RANGES)
def test_a_parameter_with_another_range_is_named_with_both_ranges(earlier, words):
    study = rp.create_study(PROBLEM, seed=0, warm_start=earlier)
    evaluate = evaluate_by(1, usual, suggest=OTHER_RANGES[words])
    said = f"'x' takes {words} here and numbers from 0.0 to 1.0 in '{earlier.study_name}'"
    with pytest.raises(rp.StudyError, match=re.escape(said)):
        study.optimize(rp.objective(study, evaluate), n_trials=3)


def test_an_earlier_study_whose_ranges_changed_is_refused_with_the_ranges():
    study = rp.create_study(PROBLEM, seed=0)
    for high in (1, 2):
        evaluate = evaluate_by(1, usual, suggest=lambda trial, h=high: trial.suggest_int("k", 0, h))
        study.optimize(rp.objective(study, evaluate), n_trials=2)
    said = r"'k' took whole numbers from 0 to 1 in some .* and whole numbers from 0 to 2 in others"
    with pytest.raises(rp.StudyError, match=said):
        rp.create_study(PROBLEM, warm_start=study)


def test_a_parameter_that_is_gone_is_named():
    def without(trial):
        return rp.Evaluation({"error": np.zeros(9), "cost": trial.suggest_int("k", 0, 9)})

    def with_both(trial):
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation({"error": np.zeros(9), "cost": trial.suggest_int("k", 0, 9) + x})

    first = rp.create_study(PROBLEM, seed=0, n_calibration=9)
    first.optimize(rp.objective(first, with_both), n_trials=3)
    study = rp.create_study(PROBLEM, seed=0, n_calibration=9, warm_start=first)
    with pytest.warns(UserWarning, match="no finished trial has 'x'"):
        study.optimize(rp.objective(study, without), n_trials=3)


def test_calibration_on_what_the_earlier_study_searched_by_is_refused(earlier):
    seen = np.random.default_rng(0).random((2, K))[0]

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        lost = np.random.default_rng(1).random(K) < usual(x)
        return rp.Evaluation({"error": lost, "cost": 1 - x}, {"error": seen < usual(x)})

    study = rp.create_study(PROBLEM, seed=0, warm_start=earlier)
    with pytest.raises(rp.LeakageError, match="Calibrate on other examples"):
        study.optimize(rp.objective(study, evaluate), n_trials=1)


def test_calibration_made_at_the_end_on_what_was_searched_by_is_refused(earlier):
    seen = np.random.default_rng(0).random((2, K))[0]
    study = searched(evaluate_by(1, usual, calibrated=0), 2, warm_start=earlier)
    with pytest.raises(rp.LeakageError, match="Calibrate on other examples"):
        rp.select(study, calibrate=lambda trial: {"error": seen < usual(trial.params["x"])})


def test_ids_of_what_the_earlier_study_searched_by_are_refused_for_calibration():
    first = rp.create_study(PROBLEM, seed=0)
    run = rp.objective(first, evaluate_by(0, usual), validation_ids=range(K))
    first.optimize(run, n_trials=3)
    study = rp.create_study(PROBLEM, warm_start=first)
    with pytest.raises(rp.LeakageError, match="2,000 are validation examples"):
        rp.objective(study, evaluate_by(1, usual), calibration_ids=range(K))
    run = rp.objective(study, evaluate_by(1, usual), calibration_ids=range(K, 2 * K))
    study.optimize(run, n_trials=3)
    third = rp.create_study(PROBLEM, warm_start=study)
    with pytest.raises(rp.LeakageError, match="or of a study before it"):
        rp.objective(third, evaluate_by(2, usual), calibration_ids=range(K))


def test_a_study_that_is_certified_again_knows_what_was_searched_by(earlier):
    seen = np.random.default_rng(0).random((2, K))[0]
    study = searched(evaluate_by(1, usual), 3, warm_start=earlier)
    with pytest.raises(rp.LeakageError, match="Calibrate on other examples"):
        rp.recertify(study, lambda trial: {"error": seen < usual(trial.params["x"])})


def test_results_that_were_changed_from_outside_are_refused(earlier):
    study = rp.create_study(PROBLEM, warm_start=earlier)
    stored = dict(study.user_attrs[EARLIER_KEY])
    stored["values"] = [[0.0, 0.0], *stored["values"][1:]]
    other = rp.create_study(PROBLEM)
    other.set_user_attr(EARLIER_KEY, stored)
    with pytest.raises(rp.StudyError, match="restore it from a copy"):
        rp.objective(other, evaluate_by(1, usual))


def timed(seed, order=slice(None), calibrated=None):
    """Losses that are no 0/1: how long each example takes. ``order``: of the validation examples;
    ``calibrated``: the part of the data that calibration losses come from, and their order."""
    parts = np.random.default_rng(0).random((3, 200))

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        sealed = None
        if calibrated is not None:
            part, own = calibrated
            sealed = {"error": 0.2 * x * parts[part][own]}
        return rp.Evaluation({"error": 0.2 * x * parts[seed][order], "cost": 1 - x}, sealed)

    return evaluate


@pytest.mark.parametrize("links", [1, 2])
def test_losses_that_were_searched_by_are_refused_in_another_order(links, tmp_path):
    shuffled = np.random.default_rng(1).permutation(200)
    study = searched(timed(0), 4, storage=str(tmp_path / "study.log"), study_name="first")
    if links == 2:
        study = searched(timed(2), 3, warm_start=study)
    following = rp.create_study(PROBLEM, warm_start=study)
    following.enqueue_trial({"x": 0.5})
    for x in [trial.params["x"] for trial in study.trials]:
        following.enqueue_trial({"x": x})
    run = rp.objective(following, timed(1, calibrated=(0, shuffled)))
    with pytest.raises(rp.LeakageError, match="Calibrate on other examples"):
        following.optimize(run, n_trials=5)
    other = rp.create_study(PROBLEM, warm_start=study)
    other.optimize(rp.objective(other, timed(0, shuffled, (1, slice(None)))), n_trials=3)
    assert len(other.trials) == 3


def test_a_warm_start_needs_no_losses_of_the_earlier_study(tmp_path):
    searched(timed(0), 3, storage=str(tmp_path / "study.log"), study_name="first")
    shutil.rmtree(tmp_path / "study.log.losses")
    opened = rp.load_study(study_name="first", storage=str(tmp_path / "study.log"))
    following = rp.create_study(PROBLEM, warm_start=opened)
    assert len(earlier_of(following).digests["error"]) == 3
