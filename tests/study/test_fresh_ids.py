"""`recertify` takes fresh examples of one model: by their ids, and by the number of its trial."""

import numpy as np
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli import app

PROBLEM = rp.Problem([rp.Risk("error", limit=0.12)], minimize="cost")
K = 400


def ids(start, n=K):
    return [f"q{i}" for i in range(start, start + n)]


def errors(seed, n=K, rate=0.05):
    return {"error": (np.random.default_rng(seed).random(n) < rate).astype(int)}


def make_study(params=(0, 1), storage=None):
    study = rp.create_study(PROBLEM, storage=storage, study_name="income", seed=0)
    for i in params:
        study.enqueue_trial({"i": i})

    def evaluate(trial):
        trial.suggest_int("i", 0, 3)
        n = trial.number
        return rp.Evaluation({**errors(n), "cost": -float(n)}, errors(100 + n))

    known = {"validation_ids": ids(0), "calibration_ids": ids(K)}
    study.optimize(rp.objective(study, evaluate, **known), n_trials=len(params))
    return study


def number_of(study, seed, names):
    def fresh(trial):
        return errors(seed + trial.number, len(names))

    return rp.recertify(study, fresh, calibration_ids=names).certificate.use["number"]


def test_ids_that_were_asked_about_make_a_further_question():
    study = make_study()
    fresh = ids(5 * K)
    assert number_of(study, 200, fresh) == 1
    assert number_of(study, 300, fresh[1:]) == 2
    assert number_of(study, 400, [*fresh[-1:], *ids(6 * K, 50)]) == 3
    assert number_of(study, 500, ids(7 * K)) == 1
    assert number_of(study, 600, ids(K)) == 1  # sealed until they are asked about
    rp.select(study)
    assert number_of(study, 700, ids(K + 1)) == 3  # with the question before that of `select`


def test_ids_of_other_searches_are_other_examples(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    assert number_of(make_study(storage=storage), 200, ids(5 * K)) == 1
    other = rp.create_study(PROBLEM, storage=storage, study_name="other", seed=0)
    other.optimize(
        rp.objective(other, lambda trial: rp.Evaluation({**errors(9), "cost": 1.0})), n_trials=1
    )
    assert number_of(other, 300, ids(5 * K)) == 1


def test_labels_that_the_watch_counted_are_not_fresh():
    study = make_study()
    counted = ids(5 * K, 50)
    with rp.Watch.open(study, rp.select(study).certificate) as watch:
        watch.update(errors(0, 50, rate=0.5), ids=counted)
    assert watch.alarm
    with pytest.raises(rp.LeakageError, match="1 were counted by the watch in the study 'income'"):
        number_of(study, 200, [*ids(6 * K), counted[-1]])
    assert number_of(study, 200, ids(6 * K)) == 1


def test_one_of_two_trials_with_the_same_parameters_is_named_by_its_number():
    study = make_study(params=(2, 2, 3))
    certificate = rp.select(study).certificate
    assert (certificate.trial, study.trials[certificate.trial].params) == (2, {"i": 3})
    asked = []

    def fresh(trial):
        asked.append(trial.number)
        return errors(200 + trial.number)

    with pytest.raises(rp.StudyError, match=r"have the configuration {'i': 2}: \[0, 1\]"):
        rp.recertify(study, fresh, config={"i": 2})
    assert rp.recertify(study, fresh, config={"i": 2}, trial=1).config == {"i": 2}
    assert rp.recertify(study, fresh, trial=certificate.trial).config == {"i": 3}
    assert rp.recertify(study, fresh, config={"i": 3}).config == {"i": 3}
    assert asked == [1, 2, 2]
    for options in ({"trial": 7}, {"trial": 2, "config": {"i": 2}}):
        with pytest.raises(rp.StudyError, match="nothing to certify again"):
            rp.recertify(study, fresh, **options)
    for trial in ("1", -1, True, 1.0):
        with pytest.raises(rp.StudyError, match="trial is the number of one trial"):
            rp.recertify(study, fresh, trial=trial)


def test_a_table_or_an_empty_choice_has_no_trial():
    given = {"validation": {**errors(0), "cost": 1.0}, "calibration": errors(1)}
    tables = {split: {n: np.atleast_2d(v) for n, v in t.items()} for split, t in given.items()}
    tables["validation"]["cost"] = np.ones(1)
    assert rp.select_from_losses(PROBLEM, **tables).certificate.trial is None


@pytest.mark.parametrize("name", ["Example", "id"])
def test_the_command_names_columns_that_it_did_not_use(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    make_study(params=(2, 2), storage="sqlite:///study.db")
    for first, file in ((K - 1, "seen.csv"), (5 * K, "fresh.csv")):
        rows = [
            f"{trial},{example},{loss}"
            for trial in (0, 1)
            for example, loss in zip(ids(first), errors(200 + trial)["error"], strict=True)
        ]
        (tmp_path / file).write_text("\n".join([f"trial,{name},error", *rows]))

    def run(*more):
        call = ["recertify", "sqlite:///study.db", "--study-name", "income", "--losses", *more]
        result = CliRunner().invoke(app, call)
        return result.exit_code, " ".join(result.output.split())

    code, said = run("fresh.csv")
    assert code == 0
    assert f"Not used: the columns {name}." in said
    assert f"--example {name}" in said
    code, said = run("fresh.csv", "--example", name, "--trial", "1")
    assert (code, "Not used" in said) == (0, False)
    code, said = run("seen.csv", "--example", name)
    assert (code, "1 are validation examples of this search" in said) == (2, True)
    for wrong in ("trial", "error", "nowhere"):
        assert run("fresh.csv", "--example", wrong)[0] == 2
    code, said = run("fresh.csv", "--config", '{"i": 2}')
    assert (code, "Say which: trial=0" in said) == (2, True)
