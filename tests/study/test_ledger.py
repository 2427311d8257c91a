"""Calibration data is spent: every question to it is numbered, and the same one is the same."""

import contextlib
import functools
import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.guarantee.procedure_names import describe
from riskpilot.study.questions.question_ledger import outcomes
from riskpilot.study.status import study_status

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
    from riskpilot.study.kept.trial_losses import read_calibration, read_validation

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


def die_at_write(study, n, monkeypatch):
    """Let a select end at its n-th write to the study, as one that was killed."""
    write, left = study.set_user_attr, [n]

    def killed(key, value):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        write(key, value)

    with monkeypatch.context() as patched:
        patched.setattr(study, "set_user_attr", killed)
        with pytest.raises(KeyboardInterrupt):
            rp.select(study, spend=0.5)


@pytest.mark.parametrize("asked", [0, 1, 2])
@pytest.mark.parametrize("write", [1, 2, 3, 4])
def test_a_writer_that_died_at_any_write_leaves_a_ledger_that_goes_on(
    study, asked, write, monkeypatch
):
    for seed in range(asked):
        rp.select(study, seed=seed)
    die_at_write(study, write, monkeypatch)
    entered = asked + (write > 2)
    assert len(rp.ledger(study)) == entered
    other = rp.select(study, seed=9).certificate
    assert other.use["number"] == entered + 1
    again = rp.select(study, spend=0.5).certificate
    assert again.use["number"] == (asked + 1 if write > 2 else asked + 2)
    assert rp.verify(other, study=study).ok
    assert rp.verify(again, study=study).ok


@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_ledger_without_its_head_is_an_error_whatever_is_left_of_it(tmp_path, left):
    place = {"storage": tmp_path / "s.db", "study_name": "s"}
    study = rp.create_study(PROBLEM, seed=0, **place)

    def evaluate(trial):
        draws = np.random.default_rng(trial.number).random((2, 400)) < 0.1
        return rp.Evaluation({"error": draws[0], "cost": 1.0}, {"error": draws[1]})

    study.optimize(rp.objective(study, evaluate), n_trials=3)
    certificate, *_ = [rp.select(study, seed=seed).certificate for seed in range(3)]
    entries = study.user_attrs[LEDGER]
    with contextlib.closing(sqlite3.connect(place["storage"])) as file, file:
        gone = [f"{LEDGER}:head", *(f"{LEDGER}:outcome:{use}" for use in range(left + 1, 4))]
        for key in gone:
            file.execute("DELETE FROM study_user_attributes WHERE key = ?", [key])
        edit = "UPDATE study_user_attributes SET value_json = ? WHERE key = ?"
        file.execute(edit, [json.dumps(entries[:left]), LEDGER])
    study = rp.load_study(**place)
    for ask in (rp.ledger, rp.select, rp.seal):
        with pytest.raises(rp.StudyError, match="its head"):
            ask(study)
    assert not rp.verify(certificate, study=study).ok


def test_a_head_counts_entries_only_as_it_announced_them(study):
    entries = two_questions(study)
    first, second = (entry["digest"] for entry in entries)
    heads = {
        True: [
            {"count": 1, "digest": first, "next": second},
            {"count": 2, "digest": second, "next": first},
        ],
        False: [
            {"count": 1, "digest": first},
            {"count": 1, "digest": first, "next": first},
            {"count": 0, "digest": "", "next": first},
            {"count": 3, "digest": second, "next": first},
            {"count": 3, "digest": "", "next": first},
        ],
    }
    for holds, cases in heads.items():
        for head in cases:
            study.set_user_attr(f"{LEDGER}:head", head)
            if holds:
                assert len(rp.ledger(study)) == 2
            else:
                with pytest.raises(rp.StudyError, match="lost entries"):
                    rp.ledger(study)


def test_each_certificate_carries_the_digest_of_its_entry(study):
    first, second = rp.select(study), rp.select(study, spend=0.5)
    digests = [entry["digest"] for entry in rp.ledger(study)]
    assert [one.certificate.use["ledger"] for one in (first, second)] == digests


def test_outcomes_say_what_each_question_led_to(study):
    first = rp.select(study)
    rp.select(study, problem=PROBLEM.with_limits(error=0.01))
    assert outcomes(study)[1][0]["config"] == first.config
    assert outcomes(study)[1][0]["certificate"] == first.certificate.digest
    assert outcomes(study)[2][0]["config"] is None


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


# --- other studies on the same losses ------------------------------------------------------------


def stored_study(storage, name, seed=0, risk=0.1):
    study = rp.create_study(PROBLEM, storage=storage, study_name=name, seed=0)

    def evaluate(trial):
        draws = np.random.default_rng([seed, trial.number]).random((2, 400)) < risk
        return rp.Evaluation({"error": draws[0], "cost": 1.0}, {"error": draws[1]})

    study.optimize(rp.objective(study, evaluate), n_trials=3)
    return study


@pytest.fixture(params=["sqlite", "journal", "memory"])
def storage(request, tmp_path):
    if request.param == "memory":
        return optuna.storages.InMemoryStorage()
    suffix = "db" if request.param == "sqlite" else "log"
    return str(tmp_path / f"s.{suffix}")


def test_a_question_of_another_study_to_the_same_losses_counts(storage):
    one, same = (stored_study(storage, name) for name in ("one", "same"))
    first = rp.select(one).certificate
    second = rp.select(same).certificate
    third = rp.select(one, spend=0.5).certificate
    assert [c.use["number"] for c in (first, second, third)] == [1, 2, 3]
    (other,) = second.use["elsewhere"]
    assert other == {"study": "one", "use": 1, "digest": first.use["ledger"]}
    assert "question 2 to the same calibration data" in second.promise
    assert "question 1 of study 'one'" in second.promise
    assert "question 1 of study 'same'" in third.promise
    assert rp.select(same).certificate == second
    for study, certificate in ((one, first), (same, second), (one, third)):
        assert rp.verify(certificate, study=study).ok
    assert [entry["use"] for entry in rp.ledger(one)] == [1, 2]


def test_a_question_of_another_study_to_other_losses_does_not_count(storage):
    one, other = stored_study(storage, "one"), stored_study(storage, "other", seed=1)
    for study in (one, other):
        assert rp.select(study).certificate.use["number"] == 1


HALVES = {"halves": np.array(["a", "b"] * 200)}
DRESSES = {
    "another name": (rp.Risk("harm", 0.3), {}, 1),
    "another range": (rp.Risk("error", 0.3, high=2), {}, 1),
    "another unit": (rp.Risk("error", 30, high=100), {}, 100),
    "single precision": (rp.Risk("error", 0.3), {}, np.float32(1)),
    "weights": (
        rp.Risk("error", 0.3, weights="w", largest_weight=2),
        {"w": np.linspace(0.5, 1.5, 400)},
        1,
    ),
    "groups": (rp.Risk("error", 0.5, statistic=rp.WorstGroup(), groups="halves"), HALVES, 1),
    "a reference of zeros": (
        rp.Risk("error", 0.3, statistic=rp.Difference("zeros")),
        {"zeros": np.zeros(400)},
        1,
    ),
    "an upper tail": (rp.Risk("error", 0.99, statistic=rp.Quantile(0.9)), {}, 1),
}


@pytest.mark.parametrize("kind", ["0/1", "graded"])
@pytest.mark.parametrize("dress", DRESSES)
def test_the_same_losses_in_another_dress_count(dress, kind):
    """Whatever a risk makes of the losses: it is the same sample, and was looked at."""
    storage = optuna.storages.InMemoryStorage()

    def certificate(name, risk, beside, unit):
        study = rp.create_study(rp.Problem([risk], "cost"), storage=storage, study_name=name)

        def evaluate(trial):
            draws = 0.5 * np.random.default_rng(trial.number).random((2, 400))
            draws = draws < 0.05 if kind == "0/1" else draws
            losses = [{risk.name: (unit * row).astype(type(unit)), **beside} for row in draws]
            return rp.Evaluation({**losses[0], "cost": 1.0}, losses[1])

        study.optimize(rp.objective(study, evaluate), n_trials=1)
        return rp.select(study).certificate

    first = certificate("plain", rp.Risk("error", 0.3), {}, 1.0)
    risk, beside, unit = DRESSES[dress]
    unit = unit if isinstance(unit, np.float32) else float(unit)
    second = certificate("dressed", risk, beside, unit)
    assert first.use["number"] == 1
    assert second.use["number"] == 2
    assert "question 1 of study 'plain'" in second.promise


def test_losses_that_any_sample_could_show_do_not_count_as_the_same(storage):
    one, other = (stored_study(storage, name, risk=0.0) for name in ("one", "other"))
    for study in (one, other):
        assert rp.select(study).certificate.use["number"] == 1


def test_studies_that_ask_at_the_same_time_get_numbers_of_their_own(tmp_path):
    storage = str(tmp_path / "s.db")
    names = [f"study {i}" for i in range(4)]
    for name in names:
        stored_study(storage, name)

    def ask(name):
        return rp.select(rp.load_study(storage=storage, study_name=name)).certificate.use["number"]

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(ask, names)) == [1, 2, 3, 4]


# --- what an entry says --------------------------------------------------------------------------


def test_an_entry_carries_the_statistic_and_the_groups():
    risk = rp.Risk("error", 0.4, statistic=rp.WorstGroup(), groups="sex")
    study = rp.create_study(rp.Problem([risk], "cost"), seed=0)
    sex = np.array(["f", "m"] * 200)

    def evaluate(trial):
        draws = np.random.default_rng(trial.number).random((2, 400)) < 0.1
        return rp.Evaluation(
            {"error": draws[0], "sex": sex, "cost": 1.0}, {"error": draws[1], "sex": sex}
        )

    study.optimize(rp.objective(study, evaluate), n_trials=1)
    certificate = rp.select(study).certificate
    (entry,) = rp.ledger(study)
    assert entry["asked"] == certificate.problem
    assert entry["asked"]["risks"][0]["statistic"]["kind"] == "worst_group"
    assert entry["groups"] == certificate.groups == {"error": ["f", "m"]}
    assert "these groups: f, m" in entry["problem"]
    assert "these groups: f, m; it says nothing of any other group" in certificate.promise


def test_calibration_losses_that_were_exchanged_after_a_question_are_refused(study, monkeypatch):
    rp.select(study)
    other = np.random.default_rng(9).random((1, 400)) < 0.01
    monkeypatch.setattr(
        "riskpilot.study.questions.asking.read_calibration", lambda *args: {"error": other}
    )
    with pytest.raises(rp.StudyError, match="are not those that question 1 was put to"):
        rp.select(study)


def test_a_procedure_that_is_none_costs_no_question(study):
    for garbage in (5, "holm", None):
        with pytest.raises(rp.ProblemError, match="A procedure is a function"):
            rp.select(study, procedure=garbage)
    assert rp.ledger(study) == []


@pytest.mark.parametrize("spend", [0, -1, 1.1, float("nan"), True, "half", None, [0.5], 1j])
def test_a_share_that_is_none_is_refused(study, spend):
    with pytest.raises(rp.ProblemError, match="spend is the share of delta"):
        rp.select(study, spend=spend)
    assert rp.ledger(study) == []


@pytest.mark.parametrize("spend", [np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_a_share_may_be_any_number(study, spend):
    assert rp.select(study, spend=spend).certificate.use["spend"] == 0.5


@pytest.mark.parametrize(
    ("keyword", "garbage", "error"),
    [
        ("problem", "error <= 0.1", rp.ProblemError),
        ("smooth", "no", rp.ProblemError),
        ("calibrate", 5, rp.StudyError),
    ],
)
def test_what_cannot_be_asked_is_refused(study, keyword, garbage, error):
    with pytest.raises(error, match=keyword):
        rp.select(study, **{keyword: garbage})
    with pytest.raises(rp.StudyError, match="create_study is needed"):
        rp.ledger("study.db")


# --- trials without losses -----------------------------------------------------------------------


def test_trials_that_plain_optuna_finished_are_counted_and_named(study):
    for _ in range(2):
        study.tell(study.ask({"x": optuna.distributions.FloatDistribution(0, 1)}), [0.1, 0.2])
    selection = rp.select(study)
    assert selection.left_out == (8, 9)
    assert "Left out: 2 finished trials (8, 9) without losses" in selection.message
    assert study_status(study).left_out == (8, 9)
    assert rp.verify(selection.certificate, study=study).ok


def test_nothing_but_trials_without_losses_is_nothing_to_select_from():
    study = rp.create_study(PROBLEM, seed=0)
    study.tell(study.ask(), [0.1, 0.2])
    with pytest.raises(rp.StudyError, match=r"Left out: 1 finished trial \(0\) without losses"):
        rp.select(study)


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


@pytest.mark.parametrize("kind", [set, frozenset, lambda items: frozenset([frozenset(items)])])
def test_a_procedure_with_a_set_is_known_again_in_whatever_order_the_set_is_kept(kind):
    one, other = below(kind([0, 8])), below(kind([8, 0]))
    assert repr(kind([0, 8])) != repr(kind([8, 0]))
    assert describe(one) == describe(other)
    assert describe(one) != describe(below(kind([0, 9])))


def test_a_procedure_with_a_set_literal_is_known_again_by_another_process():
    """Each process keeps texts in an order of its own."""
    code = (
        "from riskpilot.guarantee.procedure_names import describe\n"
        "def mine(log_p, delta): return log_p < (-5 if delta in {'a', 'b', 'c', 'd'} else -6)\n"
        "print(describe(mine)['digest'])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_an_answer_in_the_earlier_words_of_a_promise_is_the_same_answer(study, monkeypatch):
    words = "riskpilot.guarantee.promise_words._THE_CHOICE"
    with monkeypatch.context() as earlier:
        earlier.setattr(words, "the configuration {} has")
        before = rp.select(study).certificate
    again = rp.select(study).certificate
    assert "the configuration {" in before.promise
    assert "that is chosen, here {" in again.promise
    assert len(rp.ledger(study)) == 1
    assert rp.verify(before, study=study).ok
    assert rp.verify(again, study=study).ok


def test_all_of_delta_is_said_in_words(study):
    rp.select(study, spend=0.5)
    assert study_status(study).spent_in_words == "0.5 of delta"
    rp.select(study, problem=PROBLEM.with_limits(error=0.2), spend=0.5)
    assert study_status(study).spent_in_words == "all of delta"
    rp.select(study)
    assert study_status(study).spent_in_words == "2 times delta"
