"""Whoever reads a certificate, a table or a report sees which validation losses were foretold."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.study import export_losses
from riskpilot.study.kept.foretold import foretold_of
from riskpilot.study.questions.audit import audit
from riskpilot.tables import read_losses, save_losses

PROBLEM = rp.Problem([rp.Risk("error", 0.2)], minimize="cost")
K = 1000
LUCK = np.random.default_rng(100).random((2, K))


def errors(x):
    return 0.05 + 0.3 * x > LUCK


def race(trial):
    x = trial.suggest_float("x", 0, 1)
    for rows in np.split(np.arange(K), 20):
        if (yield {"error": errors(x)[0, rows], "cost": 1 - x}):
            break
    return {"error": errors(x)[1]}


def whole(trial):
    x = trial.suggest_float("x", 0, 1)
    return rp.Evaluation({"error": errors(x)[0], "cost": 1 - x}, {"error": errors(x)[1]})


def study_of(evaluate, **settings):
    study = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0}, **settings)
    study.optimize(rp.objective(study, evaluate), n_trials=10)
    return study


@pytest.fixture(scope="module")
def study():
    return study_of(race)


@pytest.fixture(scope="module")
def selection(study):
    return rp.select(study)


@pytest.fixture
def exported(study, selection, tmp_path):
    return export_losses(study, tmp_path / "losses.npz")


def ended(study, selection):
    """The numbers of evaluated examples by row, as the trials say."""
    numbers = selection.background.numbers
    notes = {row: foretold_of(study.trials[number]) for row, number in enumerate(numbers)}
    return {row: note.n_evaluated for row, note in notes.items() if note is not None}


def rows_of(selection):
    return selection.certificate.candidates


def arrays(path):
    table = read_losses(path)
    return {"validation": table.validation, "calibration": table.calibration}


def test_the_certificate_says_of_which_rows_how_many_examples_were_evaluated(
    study, selection, tmp_path
):
    expected = ended(study, selection)
    assert len(expected) >= 4
    certificate = selection.certificate
    assert certificate.evaluated == expected
    written = json.loads(certificate.save(tmp_path / "c.json").read_text("utf-8"))
    assert written["foretold"] == [{"row": row, "n_evaluated": n} for row, n in expected.items()]
    assert rp.Certificate.load(tmp_path / "c.json") == certificate


def test_a_certificate_without_races_has_the_fields_that_it_had(tmp_path):
    certificate = rp.select(study_of(whole)).certificate
    written = json.loads(certificate.save(tmp_path / "c.json").read_text("utf-8"))
    assert "foretold" not in written
    assert certificate.foretold is None
    assert rp.Certificate.load(tmp_path / "c.json").digest == written["digest"]


@pytest.mark.parametrize(
    "marks",
    [
        [],
        [{"row": 99, "n_evaluated": 250}],
        [{"row": -1, "n_evaluated": 250}],
        [{"row": 3, "n_evaluated": 250}, {"row": 1, "n_evaluated": 250}],
        [{"row": 1, "n_evaluated": 0}],
        [{"row": 1, "n_evaluated": K}],
        [{"row": 1}],
        {"1": 250},
    ],
)
def test_marks_that_cannot_be_are_refused(study, selection, marks):
    edited = replace(selection.certificate, foretold=marks)
    with pytest.raises(rp.CertificateError, match="malformed"):
        rp.Certificate.from_json(edited.to_json())
    with pytest.raises(rp.CertificateError, match="malformed"):
        rp.verify(edited, study=study)


def test_a_file_that_says_null_of_what_is_foretold_is_refused(selection):
    data = json.loads(selection.certificate.to_json()) | {"foretold": None}
    with pytest.raises(rp.CertificateError):
        rp.Certificate.from_json(json.dumps(data))


def test_a_certificate_that_hides_what_was_foretold_does_not_hold(study, selection, exported):
    certificate = selection.certificate
    row, n = next(iter(certificate.evaluated.items()))
    hidden = replace(certificate, foretold=None)
    other = [{**one, "n_evaluated": n + 1} for one in certificate.foretold]
    words = f"row {row} was evaluated on {n} validation examples, the certificate has "
    found = str(rp.verify(hidden, study=study))
    assert words + "all validation examples" in found
    assert "as the answer to this question" in found  # the ledger knows its digest
    assert words + f"{n + 1} validation" in str(
        rp.verify(replace(certificate, foretold=other), study=study)
    )
    file = hidden.save(exported.with_suffix(".json"))
    assert words in str(audit(file, str(exported)))


def test_a_ledger_from_before_certificates_said_it_takes_the_same_question_again(selection):
    earlier = replace(selection.certificate, foretold=None)
    assert selection.certificate.has_fingerprint(earlier.fingerprint)
    assert not earlier.has_fingerprint(selection.certificate.fingerprint)


def test_verify_takes_what_was_foretold_on_trust_and_says_so(study, selection, exported):
    for found in (
        rp.verify(selection.certificate, study=study),
        rp.verify(selection.certificate, **arrays(exported)),
    ):
        assert found.ok
        words = f"the validation losses of {len(ended(study, selection))} of 10 configurations"
        assert any(one.startswith(f"{words} after the first") for one in found.trusted)
        assert "a race foretold them" in str(found)
    plain = study_of(whole)
    assert "foretold" not in str(rp.verify(rp.select(plain).certificate, study=plain))


def test_verify_says_why_losses_of_all_examples_are_others(study, selection, exported):
    tables = arrays(exported)
    trials = [study.trials[number] for number in selection.background.numbers]
    real = np.array([errors(trial.params["x"])[0] for trial in trials])
    tables["validation"] = {**tables["validation"], "error": real}
    found = str(rp.verify(selection.certificate, **tables))
    assert "A race ended" in found
    assert "only the recorded losses, those of the study or of export_losses" in found
    n_whole = sum(one["row"] not in ended(study, selection) for one in rows_of(selection))
    assert f"were evaluated in full, {n_whole} of {len(rows_of(selection))} candidates" in found
    assert "the means are the same" in found
    real[0] = ~real[0]  # that of the safe configuration, which was evaluated in full
    assert "1 differs as well (row 0), which no race explains" in str(
        rp.verify(selection.certificate, **tables)
    )


def test_other_calibration_losses_are_told_as_before(selection, exported):
    tables = arrays(exported)
    tables["calibration"] = {"error": ~tables["calibration"]["error"].astype(bool)}
    found = rp.verify(selection.certificate, **tables)
    assert "the calibration losses are not the ones of the certificate" in found.differences
    assert "race ended" not in str(found)


def test_the_exported_table_marks_them_and_a_selection_from_it_carries_them_on(
    study, selection, exported, tmp_path
):
    expected = ended(study, selection)
    table = read_losses(exported)
    assert table.n_evaluated.tolist() == [expected.get(row, K) for row in range(10)]
    again = rp.select_from_losses(
        PROBLEM, **arrays(exported), configs=table.configs, n_evaluated=table.n_evaluated
    )
    assert again.certificate.evaluated == expected
    said = (
        f"Of 10 configurations that were considered, races ended the evaluation of {len(expected)}"
    )
    assert said in again.message
    file = again.certificate.save(tmp_path / "c.json")
    assert audit(file, str(exported)).ok
    plain = study_of(whole)
    rp.select(plain)
    assert "n_evaluated" not in np.load(export_losses(plain, tmp_path / "whole.npz")).files


@pytest.mark.parametrize(
    "wrong", [5, "12", [1, 2], [0] * 10, [K + 1] * 10, [1.5] * 10, [None] * 10]
)
def test_numbers_of_examples_that_cannot_be_are_refused(exported, wrong, tmp_path):
    with pytest.raises(rp.LossError, match="n_evaluated has a whole number from 1 to 1000"):
        rp.select_from_losses(PROBLEM, **arrays(exported), n_evaluated=wrong)


@pytest.mark.parametrize("wrong", [5, "12", [1.5, 2.5], [[1], [2, 3]]])
def test_a_table_takes_whole_numbers_of_examples_alone(exported, wrong, tmp_path):
    with pytest.raises(rp.errors.TableError, match="n_evaluated has one whole number"):
        save_losses(tmp_path / "t.npz", **arrays(exported), n_evaluated=wrong)


def test_the_selection_says_of_how_many_examples_the_chosen_one_was_evaluated(study, selection):
    row = selection.certificate.candidates[selection.certificate.chosen]["row"]
    n = ended(study, selection)[row]
    said = f"The chosen one was evaluated on {n} of 1,000 validation examples."
    assert said in selection.message
    assert said in selection._repr_html_()
    in_full = replace(
        selection.certificate,
        foretold=[one for one in selection.certificate.foretold if one["row"] != row],
    )
    said = "The chosen one was evaluated on all of them."
    assert said in replace(selection, certificate=in_full).message


def test_the_report_marks_what_was_ended(study, selection, tmp_path):
    page = selection.report(tmp_path / "report.html").read_text("utf-8")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    expected = ended(study, selection)
    assert "validation examples evaluated" in text
    assert len(re.findall(r"\d+ of 1,000, ended", text)) == len(expected)
    assert f"(of {len(expected)} of 10 configurations only the first" in text
    assert "a race foretold the losses of the others) before the 1,000 calibration" in text
    n = expected[rows_of(selection)[selection.certificate.chosen]["row"]]
    assert f"on validation data, of which {n} of 1,000 examples were evaluated" in text
    plain = rp.select(study_of(whole)).report(tmp_path / "plain.html").read_text("utf-8")
    assert "examples evaluated" not in plain
    assert ", ended" not in plain


def test_optimism_may_come_from_what_a_race_foretold(study, exported):
    tables = arrays(exported)
    rate = 0.05 + 0.3 * np.array([trial.params["x"] for trial in study.trials])[:, None]
    tables["calibration"] = {"error": np.random.default_rng(3).random((10, K)) < 1.8 * rate}
    plain = rp.select_from_losses(PROBLEM, **tables)
    assert "Validation was too optimistic" in plain.message
    assert "Another reason" not in plain.message
    counts = read_losses(exported).n_evaluated
    marked = rp.select_from_losses(PROBLEM, **tables, n_evaluated=counts)
    n = sum(counts[row] < K for row in marked.plan.order)
    said = f"a race foretold validation losses of {n} of {len(marked.plan.order)} tested candidates"
    assert said in marked.message
    assert "only from examples in a random order" in marked.message


def test_labels_that_arrive_carry_the_marks_on_through_a_file(tmp_path):
    def unlabelled(trial):
        x = trial.suggest_float("x", 0, 1)
        for rows in np.split(np.arange(K), 20):
            if (yield {"error": errors(x)[0, rows], "cost": 1 - x}):
                break

    study = study_of(unlabelled, n_calibration=400)
    calibration = rp.Calibration(study, horizon=400)
    copy = rp.Calibration.load(calibration.save(tmp_path / "labels.npz"))
    copy.add({"error": np.zeros((len(copy.needed), 400), dtype=bool)})
    certificate = copy.select().certificate
    assert len(certificate.evaluated) >= 4
