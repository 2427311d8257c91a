"""A seal is made from validation alone, and shows later whether its question was the one asked."""

import json
from dataclasses import replace

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.common.strict_json import digest_of
from riskpilot.study.as_tables import study_losses
from riskpilot.study.questions import asking

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost")


def evaluate(trial):
    x = trial.suggest_float("x", 0, 1)
    draws = np.random.default_rng(trial.number).random((2, 400)) < 0.05 + 0.4 * x
    return rp.Evaluation({"error": draws[0], "cost": 1 - x}, {"error": draws[1]})


@pytest.fixture
def study():
    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=6)
    return study


def test_the_question_that_was_sealed_holds(study):
    sealed = rp.seal(study)
    certificate = rp.select(study).certificate
    found = rp.verify(certificate, study=study, seal=sealed)
    assert found.ok, str(found)
    assert "wrote the whole storage anew" not in str(found)
    assert "nobody looked at the calibration losses before the seal was made" in str(found)
    assert sealed.plan == certificate.plan_digest
    assert sealed.configs == certificate.configs
    assert str(PROBLEM) in str(sealed)
    assert sealed.digest in str(sealed)


def test_a_seal_reads_no_calibration_losses_and_leaves_the_ledger_empty(study, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("calibration was opened")

    monkeypatch.setattr("riskpilot.study.kept.trial_losses._read", refuse)
    monkeypatch.setattr("riskpilot.study.kept.loss_store.get", refuse)
    monkeypatch.setattr(asking, "read_calibration", refuse)
    rp.seal(study)
    assert rp.ledger(study) == []
    with pytest.raises(AssertionError, match="calibration was opened"):
        rp.select(study)


OTHERS = {
    "another limit": (lambda s: rp.select(s, problem=PROBLEM.with_limits(error=0.2)), "problem"),
    "another delta": (
        lambda s: rp.select(s, problem=rp.Problem(PROBLEM.risks, "cost", 0.05)),
        "problem",
    ),
    "another share": (lambda s: rp.select(s, spend=0.5), "share of delta"),
    "another procedure": (lambda s: rp.select(s, procedure=rp.holm), "procedure"),
    "another shuffle": (lambda s: rp.select(s, seed=7), "seeds"),
    "another order": (lambda s: rp.select(s, smooth=False), "plan"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_question_than_the_sealed_one_is_a_difference(study, other):
    ask, word = OTHERS[other]
    sealed = rp.seal(study)
    found = rp.verify(ask(study).certificate, study=study, seal=sealed)
    assert not found.ok
    start = f"the seal has the {word} "
    assert any(difference.startswith(start) for difference in found.differences), found


def test_more_trials_than_were_sealed_are_a_difference(study):
    sealed = rp.seal(study)
    study.optimize(rp.objective(study, evaluate), n_trials=1)
    found = rp.verify(rp.select(study).certificate, study=study, seal=sealed)
    assert "the seal has the trials [[0, 5]], the certificate has [[0, 6]]" in str(found)
    assert "6 configurations" in str(found)


def test_a_seal_is_made_before_its_question_is_asked(study):
    rp.select(study)
    with pytest.raises(rp.StudyError, match="before its question is asked"):
        rp.seal(study)
    later = rp.seal(study, spend=0.5)
    assert later.questions == 1
    certificate = rp.select(study, spend=0.5).certificate
    found = rp.verify(certificate, study=study, seal=later)
    assert found.ok
    assert "1 earlier question" in str(found)


def test_a_seal_says_what_its_ledger_knew_and_no_more(study):
    """Another study may have asked about the same losses: a seal, which reads none, cannot know."""
    first = str(rp.seal(study))
    assert f"The ledger of study {study.study_name!r} had no question yet." in first
    assert "No question has been put" not in first
    rp.select(study)
    second = str(rp.seal(study, spend=0.5))
    assert "had 1 question by then: calibration data was open already" in second
    assert "before calibration is opened" not in first + second


MADE_UP = {
    "study": ("another", "the seal is of the study 'another', this is"),
    "problem": ("Nothing is asked.", "the seal says 'Nothing is asked.' in words, but"),
    "questions": (7, "the ledger had 7 questions by then, but the ledger has 1 before"),
}


@pytest.mark.parametrize("field", MADE_UP)
def test_no_field_of_a_seal_goes_unchecked(study, field):
    rp.select(study)
    sealed = rp.seal(study, spend=0.5)
    certificate = rp.select(study, spend=0.5).certificate
    assert rp.verify(certificate, study=study, seal=sealed).ok
    value, words = MADE_UP[field]
    found = rp.verify(certificate, study=study, seal=replace(sealed, **{field: value}))
    assert len(found.differences) == 1
    assert words in found.differences[0]


def test_a_seal_that_hides_earlier_questions_is_a_difference(study):
    rp.select(study)
    later = "2999-01-01T00:00:00+00:00"
    sealed = replace(rp.seal(study, spend=0.5), questions=0, created=later)
    certificate = rp.select(study, spend=0.5).certificate
    found = rp.verify(certificate, study=study, seal=sealed)
    assert "had 0 questions by then, but the ledger has 1 before this one, 1 of them" in str(found)


def test_what_of_a_seal_cannot_be_compared_is_trusted(study):
    sealed = rp.seal(study)
    certificate = rp.select(study).certificate
    found = rp.verify(certificate, study=study, seal=sealed)
    assert "Taken on trust: the seal's date and versions: what counts is when" in str(found)
    table = study_losses(study)
    found = rp.verify(
        certificate, validation=table.validation, calibration=table.calibration, seal=sealed
    )
    assert found.ok, str(found)
    assert "date and versions, its study and how many questions" in str(found)


def test_a_seal_of_limits_on_groups_holds_after_a_file(tmp_path):
    worst = rp.Risk("error", 0.5, statistic=rp.WorstGroup(), groups="site")
    study = rp.create_study(rp.Problem([worst], "cost"), seed=0)

    def by_site(trial):
        x = trial.suggest_float("x", 0, 1)
        draws = np.random.default_rng(trial.number).random((2, 400)) < 0.1 + 0.2 * x
        sites = np.arange(400) % 3
        return rp.Evaluation(
            {"error": draws[0], "cost": 1 - x, "site": sites}, {"error": draws[1], "site": sites}
        )

    study.optimize(rp.objective(study, by_site), n_trials=4)
    sealed = rp.Seal.load(rp.seal(study, spend=0.7).save(tmp_path / "seal.json"))
    found = rp.verify(rp.select(study, spend=0.7).certificate, study=study, seal=sealed)
    assert found.ok, str(found)


def test_a_seal_that_is_younger_than_the_question_is_a_difference(study):
    sealed = replace(rp.seal(study), created="2999-01-01T00:00:00+00:00")
    found = rp.verify(rp.select(study).certificate, study=study, seal=sealed)
    assert "before it was sealed on 2999" in str(found)


def test_a_seal_shows_that_storage_and_ledger_were_written_anew(tmp_path):
    """The one who made up the storage made the whole of it: without the seal, all is in order."""
    made = []
    for name, limit in (("honest", 0.3), ("anew", 0.25)):
        problem = rp.Problem([rp.Risk("error", limit)], "cost")
        storage = f"sqlite:///{tmp_path}/{name}.db"
        study = rp.create_study(problem, storage=storage, study_name="mine", seed=0)
        study.optimize(rp.objective(study, evaluate), n_trials=6)
        made.append(study)
    sealed = rp.seal(made[0])
    certificate = rp.select(made[1]).certificate
    assert rp.verify(certificate, study=made[1]).ok
    assert not rp.verify(certificate, study=made[1], seal=sealed).ok


def test_a_seal_comes_back_from_its_file_if_nobody_touched_it(study, tmp_path):
    sealed = rp.seal(study)
    path = sealed.save(tmp_path / "seal.json")
    assert rp.Seal.load(path) == sealed
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "spend": 0.5}))
    with pytest.raises(rp.CertificateError, match="changed after it was written"):
        rp.Seal.load(path)


def test_nothing_is_saved_over_a_seal_but_itself(study, tmp_path):
    sealed = rp.seal(study)
    path = sealed.save(sealed.save(tmp_path / "seal.json"))
    certificate = rp.select(study).certificate
    for other in (replace(sealed, created="2020-01-01T00:00:00+00:00"), certificate):
        with pytest.raises(rp.CertificateError, match="never written over"):
            other.save(path)
    assert rp.Seal.load(path) == sealed


@pytest.mark.parametrize(
    ("field", "value"),
    [("created", "yesterday"), ("level", "0.1"), ("configs", {}), ("asked", {}), ("trials", [[3]])],
)
def test_a_malformed_seal_gets_one_sentence(study, tmp_path, field, value):
    sealed = rp.seal(study)
    certificate = rp.select(study).certificate
    with pytest.raises(rp.CertificateError, match=f"The seal is malformed: {field}"):
        rp.verify(certificate, study=study, seal=replace(sealed, **{field: value}))
    data = json.loads(sealed.to_json())
    del data["digest"]
    data[field] = value
    path = tmp_path / "seal.json"
    path.write_text(json.dumps({**data, "digest": digest_of(data)}))
    with pytest.raises(rp.CertificateError, match=f"The seal is malformed: {field}") as caught:
        rp.Seal.load(path)
    assert "\n" not in str(caught.value)


def test_a_seal_of_made_up_groups_and_level_is_a_difference(study):
    sealed = replace(rp.seal(study), groups={"error": [5, ["a"], ["a", 1]]}, level=1.0)
    found = rp.verify(rp.select(study).certificate, study=study, seal=sealed)
    assert "the seal has the groups" in str(found)
    assert "the seal has the level 1.0" in str(found)


def test_what_is_no_seal_is_refused(study, tmp_path):
    certificate = rp.select(study).certificate
    with pytest.raises(rp.CertificateError, match="seal is a Seal"):
        rp.verify(certificate, study=study, seal="seal.json")
    with pytest.raises(rp.CertificateError, match="cannot be read"):
        rp.Seal.load(tmp_path / "absent.json")
    with pytest.raises(rp.CertificateError, match="schema"):
        rp.Seal.load(certificate.save(tmp_path / "certificate.json"))
    with pytest.raises(rp.CertificateError, match="cannot be written"):
        rp.seal(study, spend=0.5).save(tmp_path / "no" / "folder.json")
    with pytest.raises(rp.StudyError, match="create_study is needed"):
        rp.seal("study.db")
