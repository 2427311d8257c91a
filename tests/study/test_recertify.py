"""`recertify`: the candidates of a study again, on a fresh sample that has a ledger of its own."""

import numpy as np
import optuna
import pytest

import riskpilot as rp

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
