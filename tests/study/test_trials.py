"""Finished trials with their records, what proposals know of the others, and formats."""

import math
from types import SimpleNamespace

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.errors import StudyError
from riskpilot.losses import validation_losses
from riskpilot.study import study_status
from riskpilot.study.kept.attributes import (
    PROBLEM_KEY,
    SETTINGS_KEY,
    problem_of,
    write_problem,
)
from riskpilot.study.kept.stopped import Stopped, keep_stopped
from riskpilot.study.kept.trials import finished, finished_among, n_calibration_of, split_trials
from riskpilot.study.storages.retries import queue_again

PROBLEM = rp.Problem([rp.Risk("error", 0.3), rp.Risk("late", 2.0, high=4.0)], "cost")


def evaluate(trial):
    x = trial.suggest_float("x", 0, 1)
    rng = np.random.default_rng(trial.number)
    losses = {"error": rng.random(40) < 0.2, "late": 4 * rng.random(40), "cost": 1 - x}
    return rp.Evaluation(losses, {"error": rng.random(30) < 0.2, "late": 4 * rng.random(30)})


@pytest.fixture
def study():
    made = rp.create_study(PROBLEM, seed=0)
    made.optimize(rp.objective(made, evaluate), n_trials=3)
    return made


def test_a_problem_is_read_once_and_again_where_it_was_changed(study):
    first = problem_of(study)
    assert first == PROBLEM
    assert problem_of(study) is first
    stricter = rp.Problem([rp.Risk("error", 0.2), rp.Risk("late", 2.0, high=4.0)], "cost")
    write_problem(study, stricter)
    assert problem_of(study) == stricter
    study.set_user_attr(PROBLEM_KEY, {**study.user_attrs[PROBLEM_KEY], "delta": 0.5})
    with pytest.raises(StudyError, match="digest"):
        problem_of(study)


def test_finished_trials_come_with_their_records_and_others_are_named(study):
    study.tell(study.ask(), [0.1, 1.0, 1.0])  # plain Optuna records no losses
    study.tell(study.ask(), state=optuna.trial.TrialState.FAIL)
    study.ask()
    done = finished(study)
    assert [trial.number for trial in done.trials] == [0, 1, 2]
    assert [record.free for record in done.records] == [t.values[-1] for t in done.trials]
    assert done.without_losses == (3,)
    assert finished_among(study.trials) == done


def test_a_proposal_knows_the_results_of_others_and_stays_away_from_what_runs_or_failed(study):
    space = {"x": optuna.distributions.FloatDistribution(0, 1)}
    running, failed = study.ask(space), study.ask(space)
    study.tell(failed, state=optuna.trial.TrialState.FAIL)
    done, pending = split_trials(study, None, space)
    assert [trial.number for trial in done.trials] == [0, 1, 2]
    assert pending == [running.params, failed.params]
    assert split_trials(study, running.number, space)[1] == [failed.params]


def test_a_proposal_stays_away_from_what_waits_because_a_worker_died(study):
    space = {"x": optuna.distributions.FloatDistribution(0, 1)}
    dead = study.ask(space)
    study.tell(dead, state=optuna.trial.TrialState.FAIL)
    queue_again()(study, study.trials[dead.number])
    assert split_trials(study, None, space)[1] == [dead.params]  # once: the retry stands for it


def test_the_latest_evaluation_says_how_many_calibration_examples_there_are(study):
    records = finished(study).records
    assert n_calibration_of(records, 7) == 30
    assert n_calibration_of([], 7) == 7
    without = SimpleNamespace(n_calibration=None)
    assert n_calibration_of([*records, without], None) == 30
    assert n_calibration_of([without], None) is None


def test_optuna_sees_the_values_of_validation_losses(study):
    trial = study.trials[0]
    losses = evaluate(SimpleNamespace(number=0, suggest_float=lambda *_: trial.params["x"]))
    table = {name: np.asarray(values)[None] for name, values in losses.validation.items()}
    values = validation_losses(PROBLEM, table).values
    assert values.shape == (1, 2)
    assert trial.values[:2] == values[0].tolist()
    assert math.isclose(values[0, 1], losses.validation["late"].mean())


@pytest.mark.parametrize("settings", [{}, {"format": 99, "seed": 0, "n_calibration": None}, 7])
def test_a_study_in_another_format_is_refused_in_one_sentence(study, settings):
    study.set_user_attr(SETTINGS_KEY, settings)
    with pytest.raises(rp.StudyError, match=r"must be in format 2, but the study .* is in format"):
        rp.select(study)


# --- a free objective that no search could go by --------------------------------------------------


def told(study, cost):
    """Tell one more trial of a study its losses, with this free objective."""
    trial = study.ask()
    found = evaluate(trial)
    rp.tell(study, trial, rp.Evaluation({**found.validation, "cost": cost}, found.calibration))


@pytest.mark.parametrize("cost", [1e101, -1e300, math.inf, math.nan, [1e200, *[-1e200] * 39]])
def test_a_free_objective_that_no_search_could_go_by_is_refused_when_it_is_told(study, cost):
    with pytest.raises(rp.LossError, match=r"between -1e\+100 and 1e\+100.*above the worst"):
        told(study, cost)


def test_a_block_of_a_race_with_such_a_free_objective_is_refused(study):
    def blocks(trial):
        found = evaluate(trial).validation
        for half, cost in ((slice(0, 20), 1e150), (slice(20, 40), 1.0)):
            yield {"error": found["error"][half], "late": found["late"][half], "cost": cost}

    fresh = rp.create_study(PROBLEM, seed=0)
    with pytest.raises(rp.LossError, match=r"must be finite, between -1e\+100 and 1e\+100"):
        fresh.optimize(rp.objective(fresh, blocks), n_trials=1)


@pytest.mark.parametrize("cost", [1e100, -1e100])
def test_the_largest_free_objective_that_is_accepted_can_be_searched_and_shown(
    study, cost, tmp_path
):
    told(study, cost)
    study.optimize(rp.objective(study, evaluate), n_trials=9)
    assert study_status(study).states["complete"] == 13
    assert rp.select(study).report(tmp_path / "page.html").exists()


@pytest.mark.parametrize("cost", [1e300, 1e160])
def test_a_study_that_holds_a_larger_one_goes_on_without_that_trial(study, cost, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr("riskpilot.losses.splits.LARGEST_FREE", math.inf, raising=False)
        told(study, cost)
    study.optimize(rp.objective(study, evaluate), n_trials=9)
    selection = rp.select(study)
    assert selection.left_out == study_status(study).left_out == (3,)
    assert "Left out: 1 finished trial (3)" in selection.message
    assert rp.verify(selection.certificate, study=study).ok


@pytest.mark.parametrize("cost", [1e101, -1e200, 1e290])
def test_a_certificate_from_before_larger_ones_were_refused_still_holds(
    cost, tmp_path, monkeypatch
):
    asked = {"storage": str(tmp_path / "study.log"), "study_name": "old"}
    losses = np.random.default_rng(0).random((2, 2, 60))
    table = {"error": losses[0] < 0.1, "late": losses[0], "cost": np.array([1.0, cost])}
    sealed = {"error": losses[1] < 0.1, "late": losses[1]}

    def evaluate_last(trial):
        found = evaluate(trial)
        own = {"cost": cost} if trial.number == 3 else {}
        return rp.Evaluation({**found.validation, **own}, found.calibration)

    with monkeypatch.context() as before:
        before.setattr("riskpilot.losses.splits.LARGEST_FREE", math.inf)
        old = rp.create_study(PROBLEM, sampler=optuna.samplers.RandomSampler(0), **asked)
        old.optimize(rp.objective(old, evaluate_last), n_trials=4)
        by_study = rp.select(old).certificate
        by_table = rp.select_from_losses(PROBLEM, validation=table, calibration=sealed).certificate
    assert by_study.n_configs == 4
    study = rp.load_study(**asked)
    found = rp.verify(by_study, study=study)
    assert found.ok, found
    found = rp.verify(by_table, validation=table, calibration=sealed)
    assert found.ok, found
    table["cost"] = np.array([1.0, cost / 2])
    assert not rp.verify(by_table, validation=table, calibration=sealed).ok


def test_a_trial_that_a_race_stopped_with_a_larger_one_is_no_result(study):
    trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
    shown = Stopped([0.2, 2.0, 1e200], [0.1, 0.1, 1e199], 20, 40)
    keep_stopped(study, trial, shown)
    study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    study.optimize(rp.objective(study, evaluate), n_trials=9)
    assert study_status(study).racing is None
