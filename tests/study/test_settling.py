"""When to stop: what one more evaluation may bring, and the callback that goes by it."""

import dataclasses

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.study import ahead_in_words, gain_in_words, study_status

PROBLEM = rp.Problem([rp.Risk("error", 0.2)], "cost")
DRAWS = np.random.default_rng(0).random((2, 2000))


def linear(x):
    return 1 - x


def evaluate(trial, floor=0.0, cost=linear):
    x = trial.suggest_float("x", 0, 1)
    errors = floor + 0.5 * x > DRAWS
    return rp.Evaluation({"error": errors[0], "cost": cost(x)}, {"error": errors[1]})


def search(stop, n_trials=40, floor=0.0, problem=PROBLEM, cost=linear, **settings):
    study = rp.create_study(problem, seed=0, safe={"x": 0.0}, **settings)
    run = rp.objective(study, lambda trial: evaluate(trial, floor, cost))
    study.optimize(run, n_trials=n_trials, callbacks=[stop])
    return study


def test_a_search_ends_when_little_can_be_gained_and_sooner_where_more_is_asked():
    modest, eager = (search(rp.StopWhenSettled(gain=gain)) for gain in (0.001, 0.02))
    assert len(eager.trials) < len(modest.trials) < 40
    best = rp.select(modest).plan.free[rp.select(modest).certificate.chosen]
    assert best < 1 - 0.36  # at x = 0.4 the risk is at its limit


def test_a_search_goes_on_as_long_as_nothing_is_likely_to_pass():
    study = search(rp.StopWhenSettled(gain=1e9), n_trials=12, floor=0.3)
    assert len(study.trials) == 12
    ahead = study.sampler.outlook(study)
    assert ahead.free is None
    assert ahead.chance < 0.5


def test_what_may_be_gained_falls_as_the_search_goes_on():
    gains = []

    def note(study, trial):
        if (ahead := study.sampler.outlook(study)) is not None:
            gains.append(ahead.gain)

    study = search(note, n_trials=15)
    assert gains[-1] < 0.1 * gains[0]
    assert study_status(study).outlook.gain == gains[-1]


@pytest.mark.parametrize("unit", [1e-90, 1e-13, 1e-6, 1e6, 1e90])
def test_what_may_be_gained_is_in_the_units_of_the_free_objective(unit):
    usual, other = (
        search(lambda *_: None, n_trials=8, cost=lambda x, scale=scale: scale * (1 - x))
        for scale in (1.0, unit)
    )
    one, another = (study.sampler.outlook(study) for study in (usual, other))
    assert another.gain == pytest.approx(unit * one.gain, rel=1e-3)
    assert another.spread == pytest.approx(unit * one.spread, rel=1e-3)
    assert gain_in_words(another) != "next to nothing"


SAME = {
    "zero": lambda x: 0.0,
    "tiny": lambda x: 1e-20,
    "five": lambda x: 5.0,
    "beside a large offset": lambda x: 1e12 + 1e-2 * x,
    "below what counts": lambda x: 1e-120 * (1 - x),
}


@pytest.mark.parametrize("cost", SAME.values(), ids=SAME.keys())
def test_where_nothing_differs_nothing_is_gained_and_the_study_ends(cost):
    study = search(rp.StopWhenSettled(gain=1e-130), n_trials=9, cost=cost)
    ahead = study.sampler.outlook(study)
    assert (ahead.gain, ahead.spread) == (0, 0)
    assert gain_in_words(ahead) == "next to nothing"
    assert len(study.trials) == 6  # five for the one parameter, and another look


def test_a_small_difference_beside_a_large_offset_counts_where_it_is_no_rounding_error():
    usual, shifted = (
        search(lambda *_: None, n_trials=8, cost=lambda x, add=add: add + 100 * (1 - x))
        for add in (0.0, 1e12)
    )
    one, another = (study.sampler.outlook(study) for study in (usual, shifted))
    assert another.gain == pytest.approx(one.gain, rel=0.05)
    assert another.spread == pytest.approx(one.spread)


@pytest.mark.parametrize("penalty", [1e7, 1e30, 1e99])
@pytest.mark.parametrize("is_penalised", [lambda x: x == 0, lambda x: 0.3 < x < 0.345])
def test_a_penalty_hides_no_difference_between_the_others(penalty, is_penalised):
    def cost(x):
        return penalty if is_penalised(x) else 1 - x

    study = search(rp.StopWhenSettled(gain=0.002), cost=cost, n_trials=25)
    assert len(study.trials) < 25
    ahead = study.sampler.outlook(study)
    assert ahead.free < 0.66  # at x = 0.4 the risk is at its limit
    assert ahead.spread <= 1
    assert ahead.gain < 0.002


@pytest.mark.parametrize("is_warm", [False, True])
@pytest.mark.parametrize("penalty", [10.0, 1e4, 1e5])
def test_what_may_be_gained_goes_by_what_is_no_penalty(penalty, is_warm):
    earlier = search(lambda study, trial: None, n_trials=8) if is_warm else None
    study = rp.create_study(PROBLEM, seed=1, safe={"x": 0.0}, warm_start=earlier)

    def run(trial):
        return evaluate(trial, cost=lambda x: penalty if trial.number == 4 else 1 - x)

    study.optimize(rp.objective(study, run), n_trials=12)
    ahead = study.sampler.outlook(study)
    assert ahead.gain < 0.05
    assert ahead.spread < 1
    assert ahead.free < 0.7


@pytest.mark.parametrize("is_named_safe", [True, False])
@pytest.mark.parametrize("up_to", [0.1, 0.25])
def test_a_penalty_at_safe_places_keeps_no_study_going(up_to, is_named_safe):
    """Nothing has risks as low, but other evaluations are likely to pass."""
    safe = {"x": 0.0} if is_named_safe else None
    study = rp.create_study(PROBLEM, seed=0, safe=safe)
    run = rp.objective(
        study, lambda trial: evaluate(trial, 0.02, lambda x: 1e3 if x < up_to else 1 - x)
    )
    study.optimize(run, n_trials=30, callbacks=[rp.StopWhenSettled(gain=0.002)])
    assert len(study.trials) < 20
    ahead = study.sampler.outlook(study)
    assert ahead.gain < 0.002
    assert ahead.spread < 1
    assert ahead.free < 0.75


def test_a_penalty_that_alone_is_likely_to_pass_is_told_as_it_is():
    study = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0})
    for x in (0.6, 0.7, 0.8, 0.9, 1.0):
        study.enqueue_trial({"x": x})
    run = rp.objective(study, lambda trial: evaluate(trial, cost=lambda x: 1 - x if x else 1e30))
    study.optimize(run, n_trials=6)
    ahead = study.sampler.outlook(study)
    assert (ahead.trial, ahead.free) == (0, 1e30)
    assert ahead.spread == pytest.approx(0.8)  # twice what the others differ by


@pytest.mark.parametrize("m", [11, 15])
def test_where_only_a_sample_without_loss_passes_its_chance_is_told(m):
    """Errors are nowhere below x = 0.3, so that a sample of them passes for sure."""

    def evaluate_few(trial):
        x = trial.suggest_float("x", 0, 1)
        errors = max(0.5 * (x - 0.3), 0) > DRAWS
        return rp.Evaluation({"error": errors[0], "cost": 1 - x}, {"error": errors[1, :m]})

    study = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0})
    study.enqueue_trial({"x": 0.9})
    study.optimize(rp.objective(study, evaluate_few), n_trials=2)
    ahead = study.sampler.outlook(study)
    assert (ahead.trial, ahead.free) == (0, 1.0)
    assert ahead.chance == ahead.free_chance > 0.95
    study.optimize(rp.objective(study, evaluate_few), n_trials=10)
    assert study.sampler.outlook(study).free < 0.75


def test_nothing_is_expected_of_too_few_calibration_examples():
    def evaluate_few(trial):
        found = evaluate(trial)
        return rp.Evaluation(found.validation, {"error": found.calibration["error"][:10]})

    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, evaluate_few), n_trials=5)
    ahead = study_status(study).outlook
    assert (ahead.free, ahead.gain, ahead.chance, ahead.needs) == (None, 0, 0, 11)
    words = ahead_in_words(ahead, PROBLEM)
    assert words == "nothing can pass with so few calibration examples; it takes at least 11"
    assert rp.select(study).config is None


def test_there_is_no_outlook_before_the_pool_is_there_or_while_limits_are_open():
    assert search(lambda *_: None, n_trials=1).sampler.outlook(search(lambda *_: None, 1)) is None
    unlimited = rp.Problem([rp.Risk("error")], "cost")
    study = search(rp.StopWhenSettled(gain=1.0), n_trials=6, problem=unlimited)
    assert len(study.trials) == 6


def test_another_sampler_cannot_tell():
    sampler = optuna.samplers.RandomSampler(seed=0)
    with pytest.raises(rp.StudyError, match=r"but this study has a RandomSampler"):
        search(rp.StopWhenSettled(gain=1.0), sampler=sampler)


def test_a_share_is_a_gain_in_units_of_the_best_that_is_likely_to_pass():
    ended = search(rp.StopWhenSettled(share=0.002))
    assert len(ended.trials) < 40
    free = ended.sampler.outlook(ended).free
    by_gain = search(rp.StopWhenSettled(gain=0.002 * free))
    assert abs(len(by_gain.trials) - len(ended.trials)) <= 1  # the best falls a little on the way
    assert len(search(rp.StopWhenSettled(share=0.01)).trials) < len(ended.trials)


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_where_the_best_is_zero_a_share_is_one_of_all_that_was_seen(unit):
    """A share of 0 is 0, below which no gain falls."""

    def cost(x):
        return unit * max(0.0, 0.3 - x)

    ended = search(rp.StopWhenSettled(share=0.01), cost=cost, n_trials=20)
    assert ended.sampler.outlook(ended).free == 0
    by_gain = search(rp.StopWhenSettled(gain=0.01 * 0.3 * unit), cost=cost, n_trials=20)
    assert len(ended.trials) == len(by_gain.trials) < 20  # the largest is that of the safe one


@pytest.mark.parametrize("floor", [1e-300, 1e-15, -1e-9, 0.0029])
def test_a_best_that_is_closer_to_zero_than_the_share_counts_as_zero(floor):
    at_zero, near_zero = (
        search(
            rp.StopWhenSettled(share=0.01), cost=lambda x, a=add: max(0, 0.3 - x) + a, n_trials=20
        )
        for add in (0.0, floor)
    )
    assert abs(near_zero.sampler.outlook(near_zero).free) == pytest.approx(abs(floor))
    assert len(near_zero.trials) == len(at_zero.trials) < 20


@pytest.mark.parametrize(("n_parameters", "fewest"), [(1, 5), (2, 10), (6, 20)])
def test_no_study_ends_before_there_are_enough_evaluations_for_its_parameters(n_parameters, fewest):
    def evaluate_many(trial):
        found = evaluate(trial)
        for i in range(1, n_parameters):
            trial.suggest_float(f"x{i}", 0, 1)
        return found

    study = rp.create_study(PROBLEM, seed=0)
    study.enqueue_trial({"x": 0.0} | {f"x{i}": 0.5 for i in range(1, n_parameters)})
    stop = rp.StopWhenSettled(gain=1e9)
    study.optimize(rp.objective(study, evaluate_many), n_trials=30, callbacks=[stop])
    assert len(study.trials) == fewest + 1  # both looks are at enough of them


def test_an_earlier_study_takes_the_place_of_the_fewest_evaluations():
    earlier = search(lambda *_: None, n_trials=10)
    study = rp.create_study(PROBLEM, seed=1, safe={"x": 0.0}, warm_start=earlier)
    other = np.random.default_rng(1).random((2, 2000))

    def evaluate_others(trial):
        x = trial.suggest_float("x", 0, 1)
        errors = 0.5 * x > other
        return rp.Evaluation({"error": errors[0], "cost": 1 - x}, {"error": errors[1]})

    stop = rp.StopWhenSettled(gain=1e9)
    study.optimize(rp.objective(study, evaluate_others), n_trials=9, callbacks=[stop])
    assert len(study.trials) < 5


def test_a_resumed_study_ends_where_it_would_have_ended(monkeypatch):
    whole = search(rp.StopWhenSettled(share=0.002))
    resumed = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0})
    ended = []
    monkeypatch.setattr(resumed, "stop", lambda: ended.append(True))
    while not ended:  # every trial has a callback of its own, as if a new process had run it
        stop = rp.StopWhenSettled(share=0.002)
        resumed.optimize(rp.objective(resumed, evaluate), n_trials=1, callbacks=[stop])
    assert [t.params for t in resumed.trials] == [t.params for t in whole.trials]


def test_the_outlook_before_a_trial_is_the_one_that_was_told_then():
    told = []
    study = search(lambda study, trial: told.append(study.sampler.outlook(study)), n_trials=8)
    assert study.sampler.outlook(study, without=[7]) == told[6]
    assert study.sampler.outlook(study, without=[6, 7]) == told[5]
    assert study.sampler.outlook(study, without=range(1, 8)) is None


def test_an_evaluation_that_would_repeat_another_gains_little():
    """All objectives change in steps: within a step of an evaluation another one shows the same."""

    def evaluate_steps(trial):
        step = np.floor(10 * trial.suggest_float("x", 0, 1)) / 10
        errors = 0.5 * step > DRAWS
        return rp.Evaluation({"error": errors[0], "cost": 1 - step}, {"error": errors[1]})

    study = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0})
    study.optimize(rp.objective(study, evaluate_steps), n_trials=8)
    believing = dataclasses.replace(rp.GUIDED, avoid_repeats=False)
    naive = rp.GuidedSampler(PROBLEM, seed=0, strategy=believing).outlook(study)
    assert study.sampler.outlook(study).gain < 0.5 * naive.gain


@pytest.mark.parametrize("given", [{"share": 1e-300}, {"gain": 1e-300}])
def test_a_rounding_error_is_worth_no_evaluation(given, monkeypatch):
    usual = rp.GuidedSampler.outlook

    def all_but_settled(sampler, study, **settings):
        ahead = usual(sampler, study, **settings)
        return ahead and dataclasses.replace(ahead, gain=1e-10 * ahead.spread)

    monkeypatch.setattr(rp.GuidedSampler, "outlook", all_but_settled)
    assert len(search(rp.StopWhenSettled(**given), n_trials=9).trials) < 9


def test_where_all_are_zero_nothing_is_left_to_gain():
    study = search(rp.StopWhenSettled(share=0.01), cost=lambda x: 0.0, n_trials=9)
    assert len(study.trials) < 9


@pytest.mark.parametrize("given", [{}, {"gain": 0.1, "share": 0.1}])
def test_a_gain_or_a_share_is_given(given):
    with pytest.raises(rp.ProblemError, match="got both or neither"):
        rp.StopWhenSettled(**given)


@pytest.mark.parametrize("share", [0, -0.1, 1.0, float("nan"), "1", True])
def test_a_share_lies_between_zero_and_one(share):
    with pytest.raises(rp.ProblemError, match="must lie between 0 and 1"):
        rp.StopWhenSettled(share=share)


@pytest.mark.parametrize("gain", [0, -1.0, float("nan"), "1", True])
def test_a_gain_is_a_number_above_zero(gain):
    with pytest.raises(rp.ProblemError, match="gain is the smallest gain"):
        rp.StopWhenSettled(gain=gain)


def test_what_is_expected_to_pass_is_a_trial_that_can_be_chosen():
    """A configuration that failed is believed to be good, but nothing of it can be selected."""
    study = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0})
    for x in (0.1, 0.2, 0.3, 0.9):
        study.enqueue_trial({"x": x})

    def fail_at_the_best(trial):
        evaluation = evaluate(trial)
        if trial.params["x"] == 0.3:
            raise RuntimeError("out of memory")
        return evaluation

    study.optimize(rp.objective(study, fail_at_the_best), n_trials=5, catch=RuntimeError)
    ahead = study.sampler.outlook(study)
    assert study.trials[ahead.trial].params == {"x": 0.2}
    assert ahead.free == study.trials[ahead.trial].values[-1]
    assert 0.5 <= ahead.free_chance <= ahead.chance <= 1


def test_a_trial_that_a_race_stopped_is_not_expected_to_pass():
    study = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0})
    for x in (0.2, 0.9, 0.1):
        study.enqueue_trial({"x": x})

    def race(trial):
        found = evaluate(trial)
        for rows in np.split(np.arange(2000), 20):
            cost = np.full(100, 1 - trial.params["x"])
            yield {"error": found.validation["error"][rows], "cost": cost}
        return {"error": found.calibration["error"]}

    study.optimize(rp.objective(study, race), n_trials=8)
    assert study_status(study).racing is not None
    ahead = study.sampler.outlook(study)
    assert study.trials[ahead.trial].state == optuna.trial.TrialState.COMPLETE


def test_a_penalty_is_never_what_is_expected_to_pass():
    u = np.random.default_rng(0).random((2, 800))

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        cost = 1e30 if trial.number < 3 else 1 - x
        return rp.Evaluation({"error": u[0] < 0.5 * x, "cost": cost}, {"error": u[1] < 0.5 * x})

    study = rp.create_study(rp.Problem([rp.Risk("error", 0.25)], "cost"), seed=0, safe={"x": 0.0})
    study.optimize(rp.objective(study, evaluate), n_trials=7)
    ahead = study.sampler.outlook(study)
    assert ahead.free < 1
    assert ahead.trial > 2


@pytest.mark.parametrize("outlier", [1e3, 1e4, 1e5])
def test_what_is_expected_to_pass_is_the_best_observed_beside_an_outlier(outlier):
    u = np.random.default_rng(0).random((2, 1000))

    def evaluate(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        errors = u < 0.03 + 0.15 * x + 0.08 * y
        cost = outlier if trial.number == 0 else 2 - x - y
        return rp.Evaluation({"error": errors[0], "cost": cost}, {"error": errors[1]})

    study = rp.create_study(rp.Problem([rp.Risk("error", 0.1)], "cost"), seed=1)
    for x, y in [(0.9, 0.9), (0, 0), (0.05, 0.3), (0.1, 0.4), (0.05, 0.1), (0, 0.1), (0.1, 0.2)]:
        study.enqueue_trial({"x": x, "y": y})
    study.optimize(rp.objective(study, evaluate), n_trials=7)
    ahead = study.sampler.outlook(study)
    assert ahead.trial == 3
    assert ahead.free == pytest.approx(1.5)
