"""Finished trials with their records, what proposals know of the others, and formats."""

import math
from types import SimpleNamespace

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.losses import validation_losses
from riskpilot.study.kept.attributes import SETTINGS_KEY
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
