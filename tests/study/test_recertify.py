"""`recertify`: the candidates of a study again, on a fresh sample that has a ledger of its own."""

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli import app

RATES = (0.05, 0.1, 0.15, 0.2)


def losses(rate, seed, n=1_500):
    return {"error": np.random.default_rng(seed).random(n) < rate}


def make_study(storage=None):
    problem = rp.Problem([rp.Risk("error", 0.18)], "cost")
    study = rp.create_study(problem, storage=storage, study_name="income", seed=0)

    def evaluate(trial):
        rate = trial.suggest_categorical("rate", RATES)
        return rp.Evaluation(
            {**losses(rate, trial.number), "cost": -rate}, losses(rate, 100 + trial.number)
        )

    for rate in RATES:
        study.enqueue_trial({"rate": rate})
    study.optimize(rp.objective(study, evaluate), n_trials=len(RATES))
    return study


@pytest.fixture
def study():
    return make_study()


def worse(trial):
    """Errors are more frequent by half than they were."""
    return losses(1.5 * trial.params["rate"], 200 + trial.number)


def new_study(study):
    names = optuna.get_all_study_names(study._storage)
    (name,) = [name for name in names if name != study.study_name]
    return rp.load_study(storage=study._storage, study_name=name)


def test_a_safer_candidate_is_certified_on_the_fresh_sample(study):
    before = rp.select(study)
    after = rp.recertify(study, worse)
    assert before.config == {"rate": 0.15}
    assert after.config == {"rate": 0.1}
    assert after.problem == before.problem


def test_the_certificate_is_verified_against_the_new_study(study):
    rp.select(study)
    certificate = rp.recertify(study, worse).certificate
    again = new_study(study)
    assert rp.verify(certificate, study=again).ok
    assert not rp.verify(certificate, study=study).ok
    assert again.user_attrs["riskpilot:recertifies"] == {"study": "income", "questions": 1}


def test_the_ledger_knows_that_it_is_a_new_sample(study):
    rp.select(study)
    certificate = rp.recertify(study, worse).certificate
    assert certificate.use["number"] == 1
    assert certificate.use["elsewhere"] == []
    assert len(rp.ledger(study)) == 1
    assert len(rp.ledger(new_study(study))) == 1


def test_the_ledger_knows_that_it_is_not_a_new_sample(study):
    rp.select(study)
    old = rp.recertify(study, lambda t: losses(t.params["rate"], 100 + t.number)).certificate
    assert old.use["number"] == 2
    assert old.use["elsewhere"][0]["study"] == "income"
    assert "question 2 to the same calibration data" in old.promise


def test_the_same_configuration_may_be_promised_a_later_limit(study):
    chosen = rp.select(study).config
    strict = rp.recertify(study, worse, config=chosen)
    later = rp.Problem([rp.Risk("error", 0.26)], "cost")
    loose = rp.recertify(
        study,
        lambda trial: losses(1.5 * trial.params["rate"], 300 + trial.number),
        config=chosen,
        problem=later,
    )
    assert strict.config is None
    assert loose.config == chosen
    assert loose.candidates == (chosen,)
    assert "error <= 0.26" in loose.certificate.promise


def test_losses_may_be_given_by_trial_number(study):
    fresh = {trial.number: worse(trial) for trial in study.trials}
    assert rp.recertify(study, fresh).config == rp.recertify(study, worse).config


def test_fresh_validation_losses_order_the_candidates(study):
    def validation(trial):
        # What was safest has become the worst.
        rate = 0.25 - trial.params["rate"]
        return {**losses(rate, 400 + trial.number), "cost": trial.params["rate"]}

    def calibration(trial):
        return losses(0.25 - trial.params["rate"], 500 + trial.number)

    assert rp.recertify(study, calibration).config != {"rate": 0.1}
    assert rp.recertify(study, calibration, validation=validation).config == {"rate": 0.1}


def test_only_candidates_are_asked_for_their_losses(study):
    asked = []

    def fresh(trial):
        asked.append(trial.number)
        return worse(trial)

    selection = rp.recertify(study, fresh)
    assert len(asked) == len(selection.candidates)


def test_a_study_on_disk_is_certified_again_and_again(tmp_path):
    study = make_study(f"sqlite:///{tmp_path}/study.db")
    for _ in range(2):
        assert rp.recertify(study, worse).config == {"rate": 0.1}
    names = sorted(optuna.get_all_study_names(study._storage))
    assert names == ["income", "income, recertified 1", "income, recertified 2"]


def test_losses_that_cannot_be_used_leave_no_study_behind(study):
    with pytest.raises(rp.LossRangeError):
        rp.recertify(study, lambda trial: {"error": np.full(50, 2.0)})
    with pytest.raises(rp.LossError, match="trial"):
        rp.recertify(study, {0: worse(study.trials[0])})
    known = {trial.number: worse(trial) for trial in study.trials}
    last = len(known) - 1
    with pytest.raises(rp.LossError, match=f"0 to {last}, but one number is {last + 1}. Correct"):
        rp.recertify(study, {**known, last + 1: known[0]})
    assert optuna.get_all_study_names(study._storage) == ["income"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"calibration": 3}, rp.LossError, "calibration is a function"),
        ({"validation": 3}, rp.LossError, "validation is a function"),
        ({"config": {"rate": 0.3}}, rp.StudyError, "nothing to certify again"),
        ({"problem": 3}, rp.ProblemError, "not with other quantities"),
        (
            {"problem": rp.Problem([rp.Risk("misses", 0.1)], "cost")},
            rp.ProblemError,
            "not with other quantities",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(options, error, words, study):
    with pytest.raises(error, match=words):
        rp.recertify(study, **{"calibration": worse, **options})


def test_what_is_no_study_is_refused():
    with pytest.raises(rp.StudyError):
        rp.recertify("study", worse)


def real_study():
    """A study with losses of many values, whose examples have ids."""
    problem = rp.Problem([rp.Risk("error", 0.5)], "cost")
    study = rp.create_study(problem, study_name="income", seed=0)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation({**real(x, 1), "cost": x}, real(x, 2))

    known = {"validation_ids": range(200), "calibration_ids": [f"c{i}" for i in range(200)]}
    study.optimize(rp.objective(study, evaluate, **known), n_trials=3)
    return study


def real(x, seed, order=slice(None)):
    return {"error": (0.4 * np.random.default_rng(seed).random(200) ** (1 + x))[order]}


def test_examples_that_the_search_looked_at_are_refused_by_their_ids():
    study = real_study()
    with pytest.raises(rp.LeakageError, match="1 are validation examples of this search"):
        rp.recertify(study, lambda t: real(t.params["x"], 3), calibration_ids=range(199, 399))
    with pytest.raises(rp.LossError, match="one id for each of the 200 calibration examples"):
        rp.recertify(study, lambda t: real(t.params["x"], 3), calibration_ids=range(500, 600))
    fresh = rp.recertify(study, lambda t: real(t.params["x"], 3), calibration_ids=range(200, 400))
    assert fresh.certificate.use["number"] == 1


def test_validation_losses_in_another_order_are_refused():
    study, order = real_study(), np.random.default_rng(0).permutation(200)
    with pytest.raises(rp.LeakageError, match="in another order"):
        rp.recertify(study, lambda t: real(t.params["x"], 1, order))
    assert optuna.get_all_study_names(study._storage) == ["income"]


def test_used_calibration_losses_are_known_in_another_order():
    study, order = real_study(), np.random.default_rng(0).permutation(200)
    rp.select(study)
    again = rp.recertify(study, lambda t: real(t.params["x"], 2, order)).certificate
    assert again.use["number"] == 2


def test_used_0_1_losses_are_known_in_the_orders_of_their_ids(study):
    rp.select(study)
    names = [f"q{i}" for i in range(1_500)]
    as_texts = sorted(range(1_500), key=names.__getitem__)

    def moved(trial):
        return {"error": losses(trial.params["rate"], 100 + trial.number)["error"][as_texts]}

    ids = [names[i] for i in as_texts]
    assert rp.recertify(study, moved, calibration_ids=ids).certificate.use["number"] == 2


@pytest.mark.parametrize("ids", ["example", "trial"])
def test_the_command_compares_ids_and_keeps_the_order_of_the_file(tmp_path, monkeypatch, ids):
    monkeypatch.chdir(tmp_path)
    study = make_study("sqlite:///study.db")
    rp.select(study)
    rows = [
        f"{t.number},{number},{int(loss)}"
        for t in study.trials
        for number, loss in enumerate(losses(t.params["rate"], 100 + t.number)["error"])
    ]
    head = f"trial,{'example' if ids == 'example' else 'number'},error"
    (tmp_path / "used.csv").write_text("\n".join([head, *rows]))
    call = ["recertify", "sqlite:///study.db", "--losses", "used.csv", "--out", "new.json"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    assert rp.Certificate.load(tmp_path / "new.json").use["number"] == 2


def test_the_command_refuses_validation_examples_by_their_ids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problem = rp.Problem([rp.Risk("error", 0.18)], "cost")
    study = rp.create_study(problem, storage="sqlite:///study.db", study_name="income", seed=0)

    def evaluate(trial):
        return rp.Evaluation({**losses(0.1 * trial.suggest_float("x", 0, 1), 1), "cost": 1.0})

    study.optimize(rp.objective(study, evaluate, validation_ids=range(1_500)), n_trials=1)
    rows = [f"0,{i},{i % 20 == 0:d}" for i in range(1_499, 2_500)]
    (tmp_path / "ids.csv").write_text("\n".join(["trial,example,error", *rows]))
    call = ["recertify", "sqlite:///study.db", "--losses", "ids.csv"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 2
    assert "1 are validation examples of this search" in " ".join(result.output.split())
