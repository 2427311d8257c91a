"""Evaluations that fail, in every way they can: recorded, not fatal, and out of the search."""

import threading
import time

import numpy as np
import optuna
import pytest
from cases import PROBLEM, evaluate, evaluation
from optuna.trial import TrialState

import riskpilot as rp

ERROR = "riskpilot:error"


def broken(change):
    def result(trial):
        good = evaluate(trial)
        return change(dict(good.validation), dict(good.calibration))

    return result


def raises(trial):
    trial.suggest_float("x", 0, 1)
    raise RuntimeError("the cluster is on fire")


FAILURES = {
    "raises": (raises, "RuntimeError: the cluster is on fire"),
    "returns a number": (lambda trial: 0.5, "must be an Evaluation"),
    "returns nothing": (lambda trial: None, "must be an Evaluation"),
    "NaN in a risk": (
        broken(lambda v, c: rp.Evaluation({**v, "error": np.full(300, np.nan)}, c)),
        "is NaN",
    ),
    "NaN objective": (broken(lambda v, c: rp.Evaluation({**v, "cost": np.nan}, c)), "finite"),
    "two dimensions": (
        broken(lambda v, c: rp.Evaluation({**v, "error": np.zeros((2, 300))}, c)),
        "shape",
    ),
    "unequal lengths": (
        broken(lambda v, c: rp.Evaluation({**v, "error": np.zeros(299)}, c)),
        "shapes differ",
    ),
    "NaN in calibration": (
        broken(lambda v, c: rp.Evaluation(v, {**c, "error": np.full(300, np.nan)})),
        "is NaN",
    ),
    "out of range": (broken(lambda v, c: rp.Evaluation(v, {**c, "harm": np.full(300, 2.0)})), "2"),
    "text": (broken(lambda v, c: rp.Evaluation({**v, "error": ["a"] * 300}, c)), "numbers"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_evaluation_is_recorded_and_the_study_goes_on(failure, tmp_path):
    function, message = FAILURES[failure]
    study = rp.create_study(PROBLEM, storage=tmp_path / "s.db", seed=0)
    study.optimize(
        rp.objective(
            study, lambda t: (function if t.number == 1 else evaluate)(t), on_error="record"
        ),
        n_trials=3,
    )
    states = [trial.state for trial in study.trials]
    assert states == [TrialState.COMPLETE, TrialState.FAIL, TrialState.COMPLETE]
    assert message in study.trials[1].user_attrs[ERROR]
    assert len(list((tmp_path / "s.db.losses").iterdir())) == 4  # nothing of the failed one
    assert rp.select(study).certificate.n_configs == 2


def test_by_default_an_error_is_recorded_and_raised():
    study = rp.create_study(PROBLEM, seed=0)
    with pytest.raises(RuntimeError, match="on fire"):
        study.optimize(rp.objective(study, raises), n_trials=3)
    assert "on fire" in study.trials[0].user_attrs[ERROR]
    assert len(study.trials) == 1


def test_failures_neither_enter_the_surrogate_nor_are_tried_again():
    """Where everything near the best configuration fails, the search goes elsewhere."""

    def fragile(trial):
        x = trial.suggest_float("x", 0, 1)
        if 0.45 < x < 0.7:
            raise RuntimeError("diverged")
        return evaluation(x)

    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, fragile, on_error="record"), n_trials=25)
    failed = [t.params["x"] for t in study.trials if t.state == TrialState.FAIL]
    done = [t.params["x"] for t in study.trials if t.state == TrialState.COMPLETE]
    assert failed
    assert len(done) >= 8
    assert min(np.diff(sorted(failed + done))) > 1e-4
    assert rp.select(study).config is not None


# --- time limits ---------------------------------------------------------------------------------


def test_an_evaluation_that_hangs_is_given_up_and_the_study_goes_on():
    release = threading.Event()

    def slow(trial):
        if trial.number == 1:
            release.wait(30)
        return evaluate(trial)

    study = rp.create_study(PROBLEM, seed=0)
    start = time.monotonic()
    study.optimize(rp.objective(study, slow, time_limit=0.3), n_trials=4)
    assert time.monotonic() - start < 10
    assert [t.state.name for t in study.trials] == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
    assert "0.3 seconds" in study.trials[1].user_attrs[ERROR]
    release.set()
    for thread in threading.enumerate():
        if thread.name == "riskpilot-evaluation":
            thread.join(5)
    assert study.trials[1].state == TrialState.FAIL  # what came too late changes nothing
    assert rp.select(study).certificate.n_configs == 3


def test_python_code_is_told_to_stop():
    stopped = threading.Event()

    def endless(trial):
        try:
            while True:
                time.sleep(0.01)
        finally:
            stopped.set()

    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, endless, time_limit=0.1), n_trials=1)
    assert stopped.wait(5)


def test_a_limit_that_is_kept_changes_nothing():
    one, two = (rp.create_study(PROBLEM, seed=0) for _ in range(2))
    one.optimize(rp.objective(one, evaluate), n_trials=8)
    two.optimize(rp.objective(two, evaluate, time_limit=60), n_trials=8)
    assert [t.params for t in one.trials] == [t.params for t in two.trials]
    with pytest.raises(RuntimeError, match="on fire"):
        two.optimize(rp.objective(two, raises, time_limit=60), n_trials=1)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_a_limit_that_cannot_be_meant_is_refused(limit):
    with pytest.raises(rp.StudyError, match="time_limit"):
        rp.objective(rp.create_study(PROBLEM), evaluate, time_limit=limit)


def test_an_unknown_way_to_take_errors_is_refused():
    with pytest.raises(rp.StudyError, match="on_error"):
        rp.objective(rp.create_study(PROBLEM), evaluate, on_error="ignore")


# --- callbacks -----------------------------------------------------------------------------------


def test_callbacks_of_optuna_work_and_see_no_calibration():
    seen = []

    def callback(study, trial):
        seen.append((trial.number, trial.values, dict(trial.user_attrs)))

    study = rp.create_study(PROBLEM, seed=0)
    complete = (TrialState.COMPLETE,)
    study.optimize(
        rp.objective(study, evaluate),
        n_trials=20,
        callbacks=[callback, optuna.study.MaxTrialsCallback(6, states=complete)],
    )
    assert [number for number, _, _ in seen] == list(range(6))
    for _, _, attributes in seen:
        assert attributes["riskpilot:record"]["n_calibration"] == 300


def test_a_pruned_evaluation_stays_pruned():
    def prune(trial):
        raise optuna.TrialPruned

    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, prune, on_error="record"), n_trials=1)
    assert study.trials[0].state == TrialState.PRUNED
