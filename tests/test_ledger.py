"""Calibration data is spent: every question to it is numbered, and the same one is the same."""

import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.ledger import outcomes

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost")


@pytest.fixture
def study():
    study = rp.create_study(PROBLEM, seed=0)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        draws = np.random.default_rng(trial.number).random((2, 400)) < 0.05 + 0.4 * x
        return rp.Evaluation({"error": draws[0], "cost": 1 - x}, {"error": draws[1]})

    study.evaluate = rp.objective(study, evaluate)
    study.optimize(study.evaluate, n_trials=8)
    return study


def test_the_same_question_gives_the_same_certificate(study):
    first, second = rp.select(study), rp.select(study)
    assert first.certificate == second.certificate
    assert first.certificate.digest == second.certificate.digest
    assert len(rp.ledger(study)) == 1


QUESTIONS = {
    "another limit": lambda s: rp.select(s, problem=PROBLEM.with_limits(error=0.2)),
    "another delta": lambda s: rp.select(s, problem=rp.Problem(PROBLEM.risks, "cost", 0.05)),
    "another test": lambda s: rp.select(
        s, problem=rp.Problem([rp.Risk("error", 0.3, p_value="betting")], "cost")
    ),
    "another procedure": lambda s: rp.select(s, procedure=rp.holm),
    "another share": lambda s: rp.select(s, spend=0.5),
    "another shuffle": lambda s: rp.select(s, seed=1),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_another_question_is_numbered_and_says_so(study, question):
    rp.select(study)
    second = QUESTIONS[question](study)
    assert second.certificate.use["number"] == 2
    assert [entry["use"] for entry in rp.ledger(study)] == [1, 2]
    assert "question 2 to the same calibration data" in second.certificate.promise
    assert QUESTIONS[question](study).certificate == second.certificate


def test_more_trials_are_another_question(study):
    rp.select(study)
    study.optimize(study.evaluate, n_trials=1)
    assert rp.select(study).certificate.use["number"] == 2


def test_a_share_of_delta_is_the_level_of_the_test(study):
    half = rp.select(study, spend=0.5).certificate
    assert half.level == 0.05
    assert half.problem["delta"] == 0.1
    digest = rp.ledger(study)[0]["digest"]
    assert half.use == {"number": 1, "spend": 0.5, "ledger": digest, "elsewhere": []}
    assert "at least 95%" in half.promise


def test_a_certificate_of_a_share_verifies(study):
    from riskpilot.store import read_calibration, read_validation

    half = rp.select(study, spend=0.5).certificate
    trials = study.trials
    validation = [read_validation(study, PROBLEM, trial) for trial in trials]
    calibration = [read_calibration(study, PROBLEM, trial) for trial in trials]
    found = rp.verify(
        half,
        validation={
            name: np.concatenate([t[name] for t in validation]) for name in ("error", "cost")
        },
        calibration={"error": np.concatenate([t["error"] for t in calibration])},
    )
    assert found.ok, str(found)


def test_the_ledger_survives_the_storage(tmp_path, study):
    url = f"sqlite:///{tmp_path}/s.db"
    stored = rp.create_study(PROBLEM, storage=url, study_name="s", seed=0)

    def evaluate(trial):
        draws = np.random.default_rng(trial.number).random((2, 400)) < 0.1
        return rp.Evaluation({"error": draws[0], "cost": 1.0}, {"error": draws[1]})

    stored.optimize(rp.objective(stored, evaluate), n_trials=3)
    first = rp.select(stored)
    again = rp.load_study(storage=url, study_name="s")
    assert rp.select(again).certificate == first.certificate
    assert rp.ledger(again) == rp.ledger(stored)


def test_what_the_ledger_hands_out_changes_nothing(study):
    rp.select(study)
    rp.ledger(study)[0]["use"] = 99
    assert rp.ledger(study)[0]["use"] == 1


def test_a_question_about_other_quantities_is_refused(study):
    for other in (
        rp.Problem([rp.Risk("harm", 0.3)], "cost"),
        rp.Problem([rp.Risk("error", 0.3)], "time"),
        rp.Problem([rp.Risk("error", 0.3, high=2)], "cost"),
        rp.Problem([rp.Risk("error", 0.3, conditional=True)], "cost"),
    ):
        with pytest.raises(rp.ProblemError, match="not the quantities"):
            rp.select(study, problem=other)
    assert rp.ledger(study) == []


# --- a ledger that somebody touched --------------------------------------------------------------

LEDGER = "riskpilot:ledger"


def two_questions(study):
    rp.select(study)
    rp.select(study, problem=PROBLEM.with_limits(error=0.2))
    return study.user_attrs[LEDGER]


TAMPERED = {
    "all gone": lambda entries: [],
    "the last gone": lambda entries: entries[:1],
    "the first gone": lambda entries: entries[1:],
    "renumbered": lambda entries: [{**entries[1], "use": 1}],
    "another share": lambda entries: [{**entries[0], "spend": 0.1}, entries[1]],
    "exchanged": lambda entries: entries[::-1],
}


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_a_ledger_that_lost_or_changed_entries_is_not_silent(study, tamper):
    study.set_user_attr(LEDGER, tamper(two_questions(study)))
    for ask in (rp.ledger, rp.select):
        with pytest.raises(rp.StudyError, match=r"lost entries|was changed"):
            ask(study)


def test_a_writer_that_died_between_entry_and_head_leaves_a_ledger_that_goes_on(study):
    entries = two_questions(study)
    study.set_user_attr(f"{LEDGER}:head", {"count": 1, "digest": entries[0]["digest"]})
    assert len(rp.ledger(study)) == 2
    assert rp.select(study, spend=0.5).certificate.use["number"] == 3


def test_each_certificate_carries_the_digest_of_its_entry(study):
    first, second = rp.select(study), rp.select(study, spend=0.5)
    digests = [entry["digest"] for entry in rp.ledger(study)]
    assert [one.certificate.use["ledger"] for one in (first, second)] == digests


def test_outcomes_say_what_each_question_led_to(study):
    first = rp.select(study)
    rp.select(study, problem=PROBLEM.with_limits(error=0.01))
    assert outcomes(study)[1]["config"] == first.config
    assert outcomes(study)[1]["certificate"] == first.certificate.digest
    assert outcomes(study)[2]["config"] is None


def test_questions_asked_at_the_same_time_get_numbers_of_their_own(tmp_path, study):
    url = f"sqlite:///{tmp_path}/s.db"
    stored = rp.create_study(PROBLEM, storage=url, study_name="s", seed=0)

    def evaluate(trial):
        draws = np.random.default_rng(trial.number).random((2, 400)) < 0.1
        return rp.Evaluation({"error": draws[0], "cost": 1.0}, {"error": draws[1]})

    stored.optimize(rp.objective(stored, evaluate), n_trials=3)

    def ask(i):
        loaded = rp.load_study(storage=url, study_name="s")
        return rp.select(loaded, seed=i % 4).certificate.use["number"]

    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(ask, range(8)))
    assert sorted(numbers) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [entry["use"] for entry in rp.ledger(stored)] == [1, 2, 3, 4]


# --- procedures of one.s own ----------------------------------------------------------------------


def below(threshold):
    def procedure(log_p, delta):
        return log_p < threshold

    return procedure


def at(threshold, log_p, delta):
    return log_p < threshold


@dataclass(frozen=True)
class Threshold:
    threshold: float

    def __call__(self, log_p, delta):
        return log_p < self.threshold

    def method(self, log_p, delta):
        return log_p < self.threshold


def calls_itself():
    def procedure(log_p, delta):
        return procedure(log_p, delta) if delta < 0 else log_p < -5

    return procedure


PAIRS = {
    "closures": (below, -5.0, -6.0),
    "partials": (lambda t: functools.partial(at, t), -5.0, -6.0),
    "objects": (Threshold, -5.0, -6.0),
    "methods": (lambda t: Threshold(t).method, -5.0, -6.0),
    "arrays": (lambda t: functools.partial(at, np.full(1, t)), -5.0, -6.0),
    "lambdas": (lambda t: [lambda p, d: p < -5, lambda p, d: p < -6][t], 0, 1),
}


@pytest.mark.parametrize(("make", "one", "other"), PAIRS.values(), ids=PAIRS)
def test_procedures_of_one_name_that_differ_are_two_questions(study, make, one, other):
    first = rp.select(study, procedure=make(one))
    again = rp.select(study, procedure=make(one))
    assert first.certificate.digest == again.certificate.digest
    assert len(rp.ledger(study)) == 1
    second = rp.select(study, procedure=make(other))
    assert second.certificate.use["number"] == 2
    assert first.certificate.procedure["name"] == second.certificate.procedure["name"]
    assert first.certificate.procedure["digest"] != second.certificate.procedure["digest"]


def test_a_procedure_tells_where_it_comes_from_and_may_call_itself(study):
    certificate = rp.select(study, procedure=calls_itself()).certificate
    assert certificate.procedure["name"] == "custom: procedure"
    assert certificate.procedure["origin"].endswith("test_ledger.calls_itself.<locals>.procedure")
    assert rp.select(study, procedure=calls_itself()).certificate.digest == certificate.digest
