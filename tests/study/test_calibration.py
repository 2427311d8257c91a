"""Labels that arrive: batches, what is still needed, what survives, and what is refused."""

import copy
import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.common import digest_of
from riskpilot.guarantee import promise_words
from riskpilot.study import smoothed_risks, study_status

RISKS = np.array([[0.03], [0.05], [0.07], [0.2]])
PROBLEM = rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost")


def validation(rng, n=4, k=1000):
    return {"error": rng.random((n, k)) < RISKS[:n], "cost": np.arange(n, 0, -1.0)}


@pytest.fixture
def table():
    """Validation losses of four configurations, and the losses of 1,000 labels."""
    rng = np.random.default_rng(0)
    return validation(rng), {"error": rng.random((4, 1000)) < RISKS}


def part(losses, start, stop):
    return {name: values[..., start:stop] for name, values in losses.items()}


def evaluate(trial):
    x = trial.suggest_float("x", 0, 1)
    rng = np.random.default_rng(int(1e6 * x))
    return rp.Evaluation({"error": rng.random(800) < 0.03 + 0.1 * x, "cost": 1 - x})


def searched(folder, n_trials=6, **options):
    study = rp.create_study(
        PROBLEM, storage=f"sqlite:///{folder}/study.db", study_name="s", seed=0, **options
    )
    study.optimize(rp.objective(study, evaluate), n_trials=n_trials)
    return study


def reopened(folder):
    return rp.load_study(storage=f"sqlite:///{folder}/study.db", study_name="s")


def labels_of(calibration, m=600, seed=1):
    """Losses of the candidates of a study, on examples that are hard or easy for all of them."""
    x = np.array([config["x"] for config in calibration.candidates])[:, None]
    return {"error": np.random.default_rng(seed).random((1, m)) < 0.03 + 0.1 * x}


def test_labels_are_saved_where_the_margin_is_wide(table):
    seen, losses = table
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=1000)
    for start in range(0, 1000, 10):
        calibration.add(part(losses, start, start + 10))
        if calibration.certified:
            break
    assert calibration.certified == [{"index": 0}]
    assert calibration.n_labels < 300
    selection = calibration.select()
    assert selection.config == {"index": 0}
    assert "whenever labelling stops" in selection.certificate.promise
    assert f"{calibration.n_labels} labels of at most 1,000" in selection.certificate.promise


@pytest.mark.parametrize("sizes", [[1] * 300, [300], [7, 100, 0, 193]])
def test_batches_do_not_matter(table, sizes):
    seen, losses = table
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=300)
    start = 0
    for size in sizes:
        if size:
            calibration.add(part(losses, start, start + size))
        start += size
    whole = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=300)
    whole.add(losses)  # of 1,000 labels the 300 of the horizon are looked at
    assert calibration.certified == whole.certified != []
    assert calibration.select().p_values.tolist() == whole.select().p_values.tolist()


def test_a_decided_candidate_needs_no_more_losses(table):
    seen, losses = table
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=1000)
    assert calibration.needed == [0, 1, 2, 3]
    calibration.add(part(losses, 0, 150))
    assert 0 not in calibration.needed
    before = calibration.select().p_values[0]
    later = losses["error"].astype(float)
    later[0] = np.nan  # nobody evaluates the first one any more
    calibration.add({"error": later[:, 150:700]})
    assert calibration.labels[0] == 150
    assert calibration.select().p_values[0] == before


def test_losses_of_a_bad_candidate_end_what_stands_behind_it(table):
    seen, _ = table
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=100)
    losses = np.zeros((4, 60))
    losses[1] = 1
    calibration.add({"error": losses})
    assert calibration.certified == [{"index": 0}]
    assert calibration.done
    assert "no further label can change that" in calibration.message
    calibration.add({"error": np.zeros((4, 10))})  # too late to matter
    assert calibration.n_labels == 60


def test_a_candidate_can_be_evaluated_later_on_the_same_labels(table):
    seen, losses = table
    whole = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=500)
    whole.add(part(losses, 0, 400))
    late = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=500)
    for start in range(0, 400, 50):
        late.add({"error": losses["error"][:1, start : start + 50]}, candidates=[0])
    late.add({"error": losses["error"][1:, :400]}, candidates=[1, 2, 3])
    assert late.certified == whole.certified
    assert late.select().p_values.tolist() == whole.select().p_values.tolist()


def test_candidates_with_different_labels_get_their_losses_apart(table):
    seen, losses = table
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=500)
    calibration.add({"error": losses["error"][:1, :10]}, candidates=[0])
    with pytest.raises(rp.LossError, match="some have 0 and others 10"):
        calibration.add(part(losses, 10, 20))


def test_groups_of_a_late_candidate_are_those_of_the_labels():
    rng = np.random.default_rng(0)
    problem = rp.Problem([rp.Risk("error", 0.2, statistic=rp.WorstGroup())], "cost")
    groups = rng.choice(["a", "b"], 400)
    seen = validation(rng, 2, 400) | {"groups": groups}
    calibration = rp.Calibration(rp.freeze(problem, validation=seen), horizon=300)
    losses = rng.random((2, 50)) < 0.05
    calibration.add({"error": losses[:1], "groups": groups[:50]}, candidates=[0])
    with pytest.raises(rp.LossError, match="'groups' is not what it was"):
        calibration.add({"error": losses[1:], "groups": groups[50:100]}, candidates=[1])
    calibration.add({"error": losses[1:], "groups": groups[:50]}, candidates=[1])
    assert calibration.labels == (50, 50)


# What survives.


def test_a_saved_calibration_goes_on(table, tmp_path):
    seen, losses = table
    configs = [{"size": size} for size in "dcba"]
    plan = rp.freeze(PROBLEM, validation=seen, configs=configs)
    whole, parts = rp.Calibration(plan, horizon=1000), rp.Calibration(plan, horizon=1000)
    for start in range(0, 400, 50):
        whole.add(part(losses, start, start + 50))
        parts.add(part(losses, start, start + 50))
        path = parts.save(tmp_path / "labels.npz")
        parts = rp.Calibration.load(path)
    assert parts.labels == whole.labels
    one, other = parts.select().certificate, whole.select().certificate
    assert {**vars(one), "created": ""} == {**vars(other), "created": ""}


def pickled(calibration):
    return pickle.loads(pickle.dumps(calibration))


COPIES = [pickled, copy.deepcopy, copy.copy]


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_a_plans_calibration_goes_on(table, copied):
    seen, losses = table
    ids = [f"v{i}" for i in range(1000)]
    plan = rp.freeze(PROBLEM, validation=seen, validation_ids=ids)
    whole, parts = rp.Calibration(plan, horizon=1000), rp.Calibration(plan, horizon=1000)
    for start in range(0, 400, 50):
        for one in (whole, parts):
            one.add(part(losses, start, start + 50), ids=range(start, start + 50))
        before, parts = parts, copied(parts)
    assert parts.labels == before.labels == whole.labels
    one, other = parts.select().certificate, whole.select().certificate
    assert {**vars(one), "created": ""} == {**vars(other), "created": ""}
    parts.add({"error": np.zeros((4, 1))}, ids=["new"])
    assert before.labels == whole.labels != parts.labels
    with pytest.raises(rp.LossError, match="labelled once"):
        parts.add({"error": np.zeros((4, 1))}, ids=["7"])
    with pytest.raises(rp.LeakageError):
        parts.add({"error": np.zeros((4, 1))}, ids=["v7"])


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("begun", [False, True])
def test_no_two_copies_of_a_studys_calibration_take_different_labels(tmp_path, copied, begun):
    calibration = rp.Calibration(searched(tmp_path), horizon=600)
    losses = labels_of(calibration)
    if begun:
        calibration.add(part(losses, 0, 30))
    other = copied(calibration)
    assert other.labels == calibration.labels
    assert other.candidates == calibration.candidates
    start = calibration.n_labels
    calibration.add(part(losses, start, start + 50))
    with pytest.raises(rp.StudyError, match="one process at a time"):
        other.add(part(losses, start, start + 50))  # the same labels, a second time
    with pytest.raises(rp.StudyError, match="one process at a time"):
        other.add(labels_of(calibration, 50, seed=2))


def test_a_copy_has_the_labels_and_the_candidates_of_the_original(tmp_path):
    study = searched(tmp_path)
    calibration = rp.Calibration(study, horizon=600)
    before = pickle.dumps(calibration)
    study.optimize(rp.objective(study, evaluate), n_trials=3)
    losses = labels_of(calibration)
    assert pickle.loads(before).candidates == calibration.candidates
    calibration.add(part(losses, 0, 300))
    later = pickle.loads(before)
    assert later.labels == calibration.labels
    assert later.select().certificate.digest == calibration.select().certificate.digest
    later.add(part(losses, 300, 400))
    assert rp.Calibration(study, horizon=600).labels == later.labels


def test_a_judge_comes_with_a_copy(tmp_path):
    study = searched(tmp_path)
    scores = np.random.default_rng(3).random(400) < 0.05
    judge = {"unlabelled": {"error": scores}, "ids": [f"f{i}" for i in range(400)]}
    calibration = rp.Calibration(study, horizon=600, judge=judge)
    labels = labels_of(calibration, 20)
    other = pickled(calibration)
    shown = {"labelled": {"error": labels["error"]}}
    with pytest.raises(rp.LeakageError, match="Fresh examples of a judge are never labelled"):
        other.add(labels, judge=shown, ids=[f"f{i}" for i in range(5, 25)])
    other.add(labels, judge=shown, ids=range(20))
    again = pickled(calibration)
    assert again.labels == other.labels
    assert again.judged == ("error",)


@pytest.mark.parametrize("copied", [pickled, copy.deepcopy])
def test_the_calibration_of_a_study_in_memory_is_not_copied(copied):
    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=3)
    calibration = rp.Calibration(study, horizon=600)
    with pytest.raises(rp.StudyError, match=r"lives in memory .* Calibration.load"):
        copied(calibration)


def test_a_copy_of_a_study_whose_limits_were_changed_is_refused(tmp_path):
    study = searched(tmp_path)
    before = pickle.dumps(rp.Calibration(study, horizon=600))
    rp.set_limits(study, error=0.12)
    with pytest.raises(rp.StudyError, match="leads to others now"):
        pickle.loads(before)


def test_a_changed_file_is_refused(table, tmp_path):
    seen, losses = table
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=1000)
    calibration.add(part(losses, 0, 50))
    path = calibration.save(tmp_path / "labels.npz")
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["labels.error"] = np.zeros_like(arrays["labels.error"])
    np.savez(path, **arrays)
    with pytest.raises(rp.CertificateError, match="was changed after it was written"):
        rp.Calibration.load(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(rp.CertificateError, match="cannot be read"):
        rp.Calibration.load(path)
    with pytest.raises(rp.CertificateError, match="cannot be read"):
        rp.Calibration.load(tmp_path / "nowhere.npz")


def test_the_ledger_has_the_question_from_its_first_label_on(tmp_path):
    study = searched(tmp_path)
    calibration = rp.Calibration(study, horizon=600)
    assert rp.ledger(study) == []
    calibration.add(part(labels_of(calibration), 0, 1))
    (entry,) = rp.ledger(study)
    assert entry["horizon"] == 600
    assert "Labels arrive one after another, at most 600." in entry["problem"]
    assert study_status(study).questions[0].answered is False


def test_a_study_goes_on_with_the_labels_and_candidates_that_it_has(tmp_path):
    study = searched(tmp_path)
    calibration = rp.Calibration(study, horizon=600)
    losses = labels_of(calibration)
    calibration.add(part(losses, 0, 300))
    early = calibration.select().certificate
    study.optimize(rp.objective(study, evaluate), n_trials=2)  # too late for this question
    again = rp.Calibration(reopened(tmp_path), horizon=600)
    assert again.candidates == calibration.candidates
    assert again.labels == calibration.labels
    again.add(part(losses, 300, 600))
    selection = again.select()
    assert len(rp.ledger(study)) == 1
    for certificate in (early, selection.certificate):
        verified = rp.verify(certificate, study=reopened(tmp_path))
        assert verified.ok, str(verified)
        assert "the order in which labels came" in str(verified)
    assert study_status(study).questions[0].config == selection.config
    copied = rp.Calibration.load(again.save(tmp_path / "copy.npz"))
    assert copied.select().certificate == selection.certificate


def test_labels_are_not_gone_on_with_under_another_plan(tmp_path, monkeypatch):
    """Another version may smooth risks to other estimates, by which the order goes."""
    study = searched(tmp_path, 8)
    begun = rp.Calibration(study, horizon=1000)
    begun.add(part(labels_of(begun), 0, 50))
    entries = rp.ledger(study)
    monkeypatch.setattr(
        "riskpilot.study.questions.asking.smoothed_risks",
        lambda *given, **more: smoothed_risks(*given, **more) * (1 + 1e-4),
    )
    said = r"begun on 20.* with another plan .* Go on with the versions .*: riskpilot \d"
    with pytest.raises(rp.StudyError, match=said):
        rp.Calibration(reopened(tmp_path), horizon=1000)
    assert rp.ledger(study) == entries
    monkeypatch.undo()
    assert rp.Calibration(reopened(tmp_path), horizon=1000).n_labels == 50


def test_two_processes_do_not_add_labels_past_each_other(tmp_path):
    study = searched(tmp_path)
    one, other = (rp.Calibration(reopened(tmp_path), horizon=600) for _ in range(2))
    losses = labels_of(one)
    one.add(part(losses, 0, 10))
    with pytest.raises(rp.StudyError, match="has 1 batches and this Calibration knows 0"):
        other.add(part(losses, 0, 10))
    assert rp.Calibration(study, horizon=600).n_labels == 10


def test_labels_that_were_changed_in_the_storage_are_refused(tmp_path):
    study = searched(tmp_path)
    calibration = rp.Calibration(study, horizon=600)
    losses = labels_of(calibration)
    for start in (0, 10):
        calibration.add(part(losses, start, start + 10))
    key = next(key for key in study.user_attrs if key.startswith("riskpilot:labels:"))
    study.set_user_attr(key, {**study.user_attrs[key], "start": 1})
    with pytest.raises(rp.StudyError, match="batch 1 is not the one that was written"):
        rp.Calibration(reopened(tmp_path), horizon=600)


def test_labels_survive_a_killed_process(tmp_path):
    searched(tmp_path)
    script = textwrap.dedent(f"""
        import sys, numpy as np, riskpilot as rp
        study = rp.load_study(storage="sqlite:///{tmp_path}/study.db", study_name="s")
        calibration = rp.Calibration(study, horizon=600)
        x = np.array([config["x"] for config in calibration.candidates])[:, None]
        losses = np.random.default_rng(1).random((1, 600)) < 0.03 + 0.1 * x
        while not calibration.done:
            start = calibration.n_labels
            calibration.add({{"error": losses[:, start : start + 20]}})
            print(calibration.n_labels, flush=True)
    """)
    seen = 0
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            seen = int(line)
            if seen >= 60:
                os.kill(process.pid, signal.SIGKILL)
                break
    resumed = rp.Calibration(reopened(tmp_path), horizon=600)
    assert resumed.n_labels >= seen  # the process may have added a batch that it did not print
    losses = labels_of(resumed)
    resumed.add(part(losses, resumed.n_labels, 600))
    whole = rp.Calibration(searched_again(tmp_path), horizon=600)
    whole.add(losses)
    assert resumed.certified == whole.certified
    assert rp.verify(resumed.select().certificate, study=reopened(tmp_path)).ok


def searched_again(folder):
    other = folder / "again"
    other.mkdir()
    return searched(other)


def test_a_seal_may_come_before_the_first_label(tmp_path):
    study = searched(tmp_path)
    sealed = rp.seal(study, horizon=600)
    calibration = rp.Calibration(study, horizon=600)
    calibration.add(labels_of(calibration))
    certificate = calibration.select().certificate
    assert rp.verify(certificate, study=study, seal=sealed).ok
    other = rp.Calibration(searched_again(tmp_path), horizon=601)
    other.add(labels_of(other))
    found = rp.verify(other.select().certificate, study=other._study, seal=sealed)
    assert "the seal has the horizon 600, the certificate has 601" in str(found)


# The certificate.


def test_verify_computes_the_certificate_again(table, tmp_path):
    seen, losses = table
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=400)
    for start in range(0, 400, 40):
        calibration.add(part(losses, start, start + 40))
    path = calibration.select().certificate.save(tmp_path / "certificate.json")
    certificate = rp.Certificate.load(path)
    assert certificate.sequential["looks"][0] == [40, 40]
    assert len(certificate.sequential["boundary"]["error"]) > 20
    assert rp.verify(certificate, validation=seen, calibration=losses).ok
    shuffled = {"error": losses["error"][:, ::-1]}
    found = rp.verify(certificate, validation=seen, calibration=shuffled)
    assert "the calibration losses are not the ones of the certificate" in found.differences
    text = json.loads(path.read_text())
    text["sequential"]["boundary"]["error"][0] = 1
    edited = rp.Certificate(**{k: v for k, v in text.items() if k != "digest"})
    found = rp.verify(edited, validation=seen, calibration=losses)
    assert any("sequential: computed" in difference for difference in found.differences)


def in_words_before(certificate, *changes):
    """The certificate as it was stored when its promise had other words."""
    words = certificate.promise
    for now, before in changes:
        assert now in words
        words = words.replace(now, before)
    return rp.Certificate.from_json(dataclasses.replace(certificate, promise=words).to_json())


ONE_LABEL = ("It took 1 label of", "It took 1 labels of")
CHOICE = (("that is chosen, here ", ""), ("}, has ", "} has "))  # of the first certificates


def test_one_label_is_no_labels_and_certificates_that_said_so_still_hold():
    problem = rp.Problem([rp.Risk("error", limit=0.95)], minimize="cost")
    seen = {"error": np.zeros((1, 50)), "cost": np.ones(1)}
    losses = {"error": np.zeros((1, 1))}
    calibration = rp.Calibration(rp.freeze(problem, validation=seen), horizon=1)
    calibration.add(losses)
    certificate = calibration.select().certificate
    assert " It took 1 label of at most 1; the promise holds whenever" in certificate.promise
    assert rp.verify(certificate, validation=seen, calibration=losses).ok
    plural = in_words_before(certificate, ONE_LABEL)
    first = in_words_before(certificate, ONE_LABEL, *CHOICE)
    for earlier in (plural, first):
        assert rp.verify(earlier, validation=seen, calibration=losses).ok
        assert certificate.has_fingerprint(earlier.fingerprint)
    other = in_words_before(plural, ("It took 1 labels of", "It took 2 labels of"))
    assert not rp.verify(other, validation=seen, calibration=losses).ok
    assert not certificate.has_fingerprint(other.fingerprint)


def test_a_study_whose_ledger_says_1_labels_gives_the_same_answer(tmp_path, monkeypatch):
    problem = rp.Problem([rp.Risk("error", limit=0.95)], minimize="cost")
    place = {"storage": f"sqlite:///{tmp_path}/study.db", "study_name": "s"}
    study = rp.create_study(problem, seed=0, **place)
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    calibration = rp.Calibration(study, horizon=1)
    calibration.add({"error": np.zeros((len(calibration.candidates), 1))})
    with monkeypatch.context() as before:
        before.setattr(promise_words, "how_many", lambda n, _: f"{n:,} labels", raising=False)
        earlier = calibration.select().certificate
    assert "It took 1 labels of at most 1;" in earlier.promise
    again = rp.Calibration(rp.load_study(**place), horizon=1)
    certificate = again.select().certificate  # the ledger has the answer in the words of before
    assert "It took 1 label of at most 1;" in certificate.promise
    for one in (earlier, certificate):
        verified = rp.verify(one, study=rp.load_study(**place))
        assert verified.ok, str(verified)


def test_the_report_shows_the_path(table, tmp_path):
    seen, losses = table
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=400)
    calibration.add(part(losses, 0, 300))
    page = calibration.select().report(tmp_path / "report.html").read_text()
    assert "Label by label" in page
    assert "sequential-boundary" in page


def test_nothing_certified_says_what_is_left(table):
    seen, losses = table
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=seen), horizon=400)
    calibration.add(part(losses, 0, 20))
    selection = calibration.select()
    assert selection.config is None
    assert "not decided by 20 of at most 400 labels" in selection.message
    calibration.add({"error": np.ones((4, 380))})
    assert "nothing is certified; no further label" in calibration.message


# What can be limited, and what is refused.


def test_a_problem_with_several_risks_and_groups_is_certified():
    rng = np.random.default_rng(0)
    risks = [
        rp.Risk("error", 0.2, statistic=rp.WorstGroup()),
        rp.Risk("latency", 50.0, high=1000.0, statistic=rp.Quantile(0.9)),
        rp.Risk("drop", 0.1, statistic=rp.Difference("old")),
        rp.Risk("miss", 0.3, conditional=True),
    ]

    def draw(m):
        return {
            "error": rng.random((2, m)) < 0.05,
            "latency": rng.exponential(10.0, (2, m)).clip(0, 1000),
            "drop": np.zeros((2, m), dtype=bool),
            "miss": np.where(rng.random((2, m)) < 0.5, rng.random((2, m)) < 0.1, np.nan),
            "groups": rng.choice(["a", "b"], m),
            "old": rng.random(m) < 0.1,
        }

    problem = rp.Problem(risks, "cost")
    seen = {**draw(500), "cost": np.array([2.0, 1.0])}
    calibration = rp.Calibration(rp.freeze(problem, validation=seen), horizon=600)
    kept = draw(600)
    for start in range(0, 600, 20):
        calibration.add(part(kept, start, start + 20))
    selection = calibration.select()
    assert selection.config is not None
    assert rp.verify(selection.certificate, validation=seen, calibration=kept).ok
    assert selection.certificate.families == {
        "error": "sequential_boundary",
        "latency": "sequential_boundary",
        "drop": "sequential_betting",
        "miss": "sequential_boundary",
    }


@pytest.mark.parametrize(
    ("risk", "says"),
    [
        (rp.Risk("error", 0.1, statistic=rp.GroupGap()), "Limit the WorstGroup"),
        (rp.Risk("error", 0.1, statistic=rp.Ratio()), "Limit the WorstGroup"),
        (rp.Risk("error", 0.1, p_value="hoeffding"), "which is for one look at the end"),
    ],
)
def test_what_cannot_be_followed_label_by_label_is_refused(risk, says):
    rng = np.random.default_rng(0)
    seen = validation(rng)
    if risk.needs_groups:
        seen["groups"] = rng.choice(["a", "b"], 1000)
    plan = rp.freeze(rp.Problem([risk], "cost"), validation=seen)
    with pytest.raises(rp.ProblemError, match=says):
        rp.Calibration(plan, horizon=100)


@pytest.mark.parametrize(
    ("losses", "says"),
    [
        ([[0, 1]], "must map names to losses"),
        ({}, "the losses of 'error' are missing"),
        ({"error": np.zeros((3, 5))}, "one row for each of the 4 candidates"),
        ({"error": np.zeros((4, 0))}, "Give at least one label"),
        ({"error": np.full((4, 5), 2.0)}, r"must lie in \[0, 1\]"),
        ({"error": np.full((4, 5), np.nan)}, "is NaN"),
        ({"error": np.ma.masked_equal(np.zeros((4, 5)), 0)}, "is NaN"),
        ({"error": np.zeros((4, 5)), "eror": 1}, "'eror' is neither a risk"),
        ({"error": [["a"] * 5] * 4}, "must be numbers or booleans"),
    ],
)
def test_losses_that_cannot_be_used_are_refused_and_leave_no_trace(table, losses, says):
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=table[0]), horizon=100)
    with pytest.raises(rp.LossError, match=says):
        calibration.add(losses)
    assert calibration.n_labels == 0


@pytest.mark.parametrize("horizon", [0, -1, 2.5, True, "1000", None, 10**9])
def test_a_horizon_is_a_number_of_labels(table, horizon):
    with pytest.raises(rp.ProblemError, match="horizon is the largest number of labels"):
        rp.Calibration(rp.freeze(PROBLEM, validation=table[0]), horizon=horizon)


def test_a_source_is_a_study_or_a_plan():
    with pytest.raises(rp.ProblemError, match="made of a study or of a frozen plan"):
        rp.Calibration(PROBLEM, horizon=100)
    with pytest.raises(rp.ProblemError, match="freeze takes a Problem first"):
        rp.freeze("error", validation={})


@pytest.mark.parametrize("candidates", [[4], [-1], [0, 0], [0.5], "0", []])
def test_candidates_are_named_by_their_positions(table, candidates):
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=table[0]), horizon=100)
    with pytest.raises(rp.LossError, match="positions from 0 to 3"):
        calibration.add({"error": np.zeros((1, 5))}, candidates=candidates)


def test_a_selection_needs_a_label(table):
    calibration = rp.Calibration(rp.freeze(PROBLEM, validation=table[0]), horizon=100)
    with pytest.raises(rp.LossError, match="at least one label"):
        calibration.select()


def test_a_group_that_validation_does_not_have_is_refused():
    rng = np.random.default_rng(0)
    problem = rp.Problem([rp.Risk("error", 0.2, statistic=rp.WorstGroup())], "cost")
    seen = validation(rng, 2, 400) | {"groups": rng.choice(["a", "b"], 400)}
    calibration = rp.Calibration(rp.freeze(problem, validation=seen), horizon=300)
    with pytest.raises(
        rp.LossError, match="must be those that validation data has, but one is 'c'"
    ):
        calibration.add({"error": np.zeros((2, 2)), "groups": ["a", "c"]})


def test_a_certificate_holds_where_every_configuration_is_a_candidate_and_some_were_decided_early():
    rng = np.random.default_rng(0)
    risks = np.array([[0.085], [0.01], [0.05]])  # the testing order is 1, 2, 0
    validation = {"error": rng.random((3, 2000)) < risks, "cost": np.array([1.0, 3.0, 2.0])}
    plan = rp.freeze(PROBLEM, validation=validation)
    calibration = rp.Calibration(plan, horizon=400)
    losses = rng.random((3, 400)) < risks[[1, 2, 0]]
    for start in range(0, 400, 100):
        calibration.add({"error": losses[:, start : start + 100]})
    assert [config["index"] for config in calibration.candidates] == [1, 2, 0]
    assert len(set(calibration.labels)) > 1
    certificate = calibration.select().certificate
    kept = np.where(np.arange(400) < np.array(calibration.labels)[:, None], losses, np.nan)
    verified = rp.verify(certificate, validation=validation, calibration={"error": kept})
    assert verified.ok, str(verified)


STRICT = rp.Problem([rp.Risk("error", limit=0.05)], minimize="cost")
CLEAN = {"error": np.zeros((1, 100)), "cost": [1.0]}


def test_a_horizon_with_which_nothing_can_pass_is_refused_with_one_that_would_do():
    plan = rp.freeze(STRICT, validation=CLEAN)
    for horizon in (1, 30, 44):
        with pytest.raises(rp.ProblemError, match=r"nothing can, .* 45 would do: horizon=45"):
            rp.Calibration(plan, horizon=horizon)
    calibration = rp.Calibration(plan, horizon=45)
    calibration.add({"error": np.zeros((1, 45))})
    assert calibration.select().config == {"index": 0}


def test_a_study_refuses_a_horizon_with_which_nothing_can_pass(tmp_path):
    study = searched(tmp_path, n_trials=2)
    with pytest.raises(rp.ProblemError, match=r"22 would do"):
        rp.Calibration(study, horizon=21)
    assert rp.Calibration(study, horizon=22).needed


def test_a_tail_that_leaves_no_room_is_refused_at_every_horizon():
    problem = rp.Problem([rp.Risk("error", 0.5, statistic=rp.CVaR(0.9))], minimize="cost")
    seen = {"error": np.repeat([[0.4, 0.9]], 100, axis=1), "cost": [1.0]}
    plan = rp.freeze(problem, validation=seen)
    with pytest.raises(rp.ProblemError, match="cannot pass label by label at any horizon"):
        rp.Calibration(plan, horizon=1000)


def test_the_calibration_and_its_selection_agree_that_it_is_over():
    calibration = rp.Calibration(rp.freeze(STRICT, validation=CLEAN), horizon=100)
    calibration.add({"error": np.zeros((1, 5))})
    assert "not decided by 5 of at most 100 labels" in str(calibration.select())
    while not calibration.done:
        calibration.add({"error": np.ones((1, 5))})
    assert "no further label can change that" in calibration.message
    text = str(calibration.select())
    assert "after 10 of at most 100 labels no further one can change that" in text
    assert "not decided" not in text


def two(limits, horizon):
    names = [f"error_{i}" for i in range(len(limits))]
    risks = [rp.Risk(name, limit) for name, limit in zip(names, limits, strict=True)]
    seen = dict.fromkeys(names, CLEAN["error"]) | {"cost": [1.0]}
    plan = rp.freeze(rp.Problem(risks, "cost"), validation=seen)
    return rp.Calibration(plan, horizon=horizon)


def test_the_horizons_of_exact_boundaries_are_bounded_together():
    with pytest.raises(rp.ProblemError, match="from 1 to 2,000,000, but it is 2000001"):
        two([0.1], 2_000_001)
    with pytest.raises(rp.ProblemError, match=r"2 different limits .* from 1 to 1,000,000"):
        two([0.1, 0.2], 1_000_001)
    grouped = rp.Risk("error", 0.1, statistic=rp.WorstGroup())
    seen = {**CLEAN, "groups": ["a", "b"] * 50}
    plan = rp.freeze(rp.Problem([grouped], "cost"), validation=seen)
    with pytest.raises(rp.ProblemError, match="from 1 to 2,000,000"):
        rp.Calibration(plan, horizon=2_000_001)
    assert rp.Calibration(plan, horizon=2_000_000).needed


def test_graded_losses_have_no_boundary_and_longer_horizons():
    seen = {"error": np.random.default_rng(0).random((1, 100)) / 100, "cost": [1.0]}
    plan = rp.freeze(STRICT, validation=seen)
    assert rp.Calibration(plan, horizon=5_000_000).needed


def test_a_limit_for_which_no_horizon_is_long_enough_is_refused_at_once():
    problem = rp.Problem([rp.Risk("error", 1e-7)], "cost")
    plan = rp.freeze(problem, validation=CLEAN)
    with pytest.raises(rp.ProblemError, match=r"It would take 23,025,850, .* at most 2,000,000"):
        rp.Calibration(plan, horizon=100)


def test_too_short_a_horizon_for_labels_of_which_some_count_is_refused():
    some = rp.Problem([rp.Risk("error", 0.1, conditional=True)], "cost")
    with pytest.raises(rp.ProblemError, match="22 would do"):
        rp.Calibration(rp.freeze(some, validation=CLEAN), horizon=21)
    groups = rp.Problem([rp.Risk("error", 0.1, statistic=rp.WorstGroup())], "cost")
    seen = {**CLEAN, "groups": ["a", "b"] * 50}
    with pytest.raises(rp.ProblemError, match="44 would do"):
        rp.Calibration(rp.freeze(groups, validation=seen), horizon=21)


def test_labels_that_do_not_count_end_a_calibration_that_they_leave_hopeless():
    problem = rp.Problem([rp.Risk("error", 0.1, conditional=True)], "cost")
    calibration = rp.Calibration(rp.freeze(problem, validation=CLEAN), horizon=30)
    calibration.add({"error": np.full((1, 8), np.nan)})
    assert not calibration.done
    calibration.add({"error": [[np.nan]]})
    assert calibration.done
    assert not calibration.certified


def with_horizon(path, horizon):
    """Write the horizon of a saved calibration anew, with all digests."""
    with np.load(path) as archive:
        arrays = dict(archive)
    head = json.loads(str(arrays.pop("head")))
    del head["digest"]
    head["horizon"] = horizon
    np.savez(path, head=json.dumps({**head, "digest": digest_of(head)}), **arrays)


@pytest.mark.parametrize("horizon", [2_000_001, 5_000_000, 10**12])
def test_a_saved_calibration_with_a_horizon_that_none_can_have_is_refused_at_once(
    tmp_path, monkeypatch, horizon
):
    calibration = rp.Calibration(rp.freeze(STRICT, validation=CLEAN), horizon=100)
    calibration.add({"error": np.zeros((1, 5))})
    path = calibration.save(tmp_path / "labels.npz")
    with_horizon(path, horizon)
    monkeypatch.setattr("riskpilot.statistics.sequential.boundary.advance", None)
    with pytest.raises(rp.CertificateError, match=f"no Calibration can be made of.*{horizon}"):
        rp.Calibration.load(path)


def test_verify_does_not_compute_a_boundary_that_no_calibration_can_have(monkeypatch):
    calibration = rp.Calibration(rp.freeze(STRICT, validation=CLEAN), horizon=100)
    losses = {"error": np.zeros((1, 60))}
    calibration.add(losses)
    certificate = calibration.select().certificate
    monkeypatch.setattr("riskpilot.statistics.sequential.boundary.advance", None)
    forged = dataclasses.replace(
        certificate, sequential={**certificate.sequential, "horizon": 5_000_000}
    )
    found = rp.verify(forged, validation=CLEAN, calibration=losses)
    assert "no labels can have begun with the horizon" in found.differences[-1]
    beyond = dataclasses.replace(
        certificate, sequential={**certificate.sequential, "horizon": 5_000_001}
    )
    with pytest.raises(rp.CertificateError, match="at most 5,000,000 labels"):
        rp.Certificate.from_json(beyond.to_json())
