"""A judge beside labels that arrive: what it saves, what survives, and what is refused."""

import numpy as np
import pytest
from test_calibration import PROBLEM, RISKS, labels_of, reopened, searched, searched_again

import riskpilot as rp
from riskpilot.plots import label_paths

HORIZON, FRESH = 400, 4000


def scored(u, risks, rng, noise=0.01):
    """A judge that sees each loss but for some noise near the edge."""
    return u + noise * rng.standard_normal(u.shape) < risks


@pytest.fixture
def data():
    """Validation losses, labels with their scores, and scores of fresh examples."""
    rng = np.random.default_rng(0)
    u, fresh = rng.random((1, HORIZON)), rng.random((1, FRESH))
    return {
        "validation": {"error": rng.random((4, 1000)) < RISKS, "cost": np.arange(4, 0, -1.0)},
        "losses": u < RISKS,
        "scores": scored(u, RISKS, rng),
        "fresh": {"unlabelled": {"error": scored(fresh, RISKS, rng)}},
    }


def begun(data, judge="fresh"):
    plan = rp.freeze(PROBLEM, validation=data["validation"])
    return rp.Calibration(plan, horizon=HORIZON, judge=data[judge])


def give(calibration, data, start, stop, **more):
    labelled = {"labelled": {"error": data["scores"][:, start:stop]}}
    calibration.add({"error": data["losses"][:, start:stop]}, judge=labelled, **more)


def test_a_judge_saves_labels():
    rng = np.random.default_rng(1)
    seen = {"error": rng.random((1, 1000)) < 0.06, "cost": np.ones(1)}
    plan = rp.freeze(PROBLEM, validation=seen)
    needed = np.zeros(2)
    for _ in range(20):
        u, fresh = rng.random((1, 1000)), rng.random((1, 10_000))
        losses, scores = u < 0.06, u < 0.055
        for helped in (False, True):
            judge = {"unlabelled": {"error": fresh < 0.055}} if helped else None
            calibration = rp.Calibration(plan, horizon=1000, judge=judge)
            while not calibration.done:
                part = slice(calibration.n_labels, calibration.n_labels + 20)
                beside = {"labelled": {"error": scores[:, part]}} if helped else None
                calibration.add({"error": losses[:, part]}, judge=beside)
            needed[int(helped)] += calibration.n_labels
    assert needed[1] < 0.6 * needed[0]


@pytest.mark.parametrize("sizes", [[1] * 150, [7, 100, 43]])
def test_batches_do_not_matter(data, sizes):
    parts, whole = begun(data), begun(data)
    start = 0
    for size in sizes:
        give(parts, data, start, start + size)
        start += size
    give(whole, data, 0, 150)
    one, other = parts.select(), whole.select()
    assert one.valid == other.valid != ()
    # A candidate that is decided needs no further losses, which its p-value would follow.
    undecided = ~one.result.passed
    assert one.p_values[undecided].tolist() == other.p_values[undecided].tolist()


def test_a_late_candidate_gets_its_scores_with_its_losses(data):
    late, whole = begun(data), begun(data)
    give(whole, data, 0, 200)
    for rows in ([0], [1, 2, 3]):
        labelled = {"labelled": {"error": data["scores"][rows, :200]}}
        late.add({"error": data["losses"][rows, :200]}, candidates=rows, judge=labelled)
    assert late.select().p_values.tolist() == whole.select().p_values.tolist()


def test_one_row_of_scores_serves_all_candidates(data):
    row, fresh = data["scores"][0], data["fresh"]["unlabelled"]["error"][0]
    found = []
    for scores, pool in ((row, fresh), (np.tile(row, (4, 1)), np.tile(fresh, (4, 1)))):
        calibration = begun({**data, "fresh": {"unlabelled": {"error": pool}}})
        labelled = {"labelled": {"error": scores}}
        calibration.add({"error": data["losses"]}, judge=labelled)
        found.append(calibration.select())
    assert found[0].p_values.tolist() == found[1].p_values.tolist()
    assert found[0].certificate.plan_digest == found[1].certificate.plan_digest


def test_the_certificate_speaks_of_the_judge_and_is_computed_again(data, tmp_path):
    calibration = begun(data)
    assert calibration.judged == ("error",)
    for start in range(0, 200, 40):
        give(calibration, data, start, start + 40)
    selection = calibration.select()
    certificate = selection.certificate
    assert certificate.families == {"error": "sequential_judged"}
    assert certificate.judge["unlabelled"] == {"error": FRESH}
    assert certificate.judge["correlation"][1]["error"] > 0.5
    for words in ("The promise is about the losses of human labels", "whenever labelling stops"):
        assert words in certificate.promise
    certificate = rp.Certificate.load(certificate.save(tmp_path / "certificate.json"))
    brought = {
        "validation": data["validation"],
        "calibration": {"error": calibration.losses("error")},
        "judge": {"labelled": {"error": calibration.scores("error")}, **data["fresh"]},
    }
    verified = rp.verify(certificate, **brought)
    assert verified.ok, str(verified)
    for part in ("labelled", "unlabelled"):
        other = {**brought["judge"], part: {"error": 1 - brought["judge"][part]["error"]}}
        assert not rp.verify(certificate, **{**brought, "judge": other}).ok
    with pytest.raises(rp.CertificateError, match="Give its scores"):
        rp.verify(certificate, **{**brought, "judge": None})
    assert "sequential-judged" in selection.report(tmp_path / "report.html").read_text()


def test_a_saved_calibration_goes_on_with_its_judge(data, tmp_path):
    # Losses that never change say nothing by which scores could be shuffled: chance is drawn.
    data["validation"]["error"] = np.zeros((4, 1000), dtype=bool)
    pool = {"error": data["fresh"]["unlabelled"]["error"][1]}
    fresh = {"unlabelled": pool, "ids": [f"f{i}" for i in range(FRESH)]}
    whole = begun({**data, "fresh": fresh})
    assert len(whole.candidates) == 1
    rows = {name: data[name][1:2] for name in ("losses", "scores")}
    parts = rp.Calibration.load(whole.save(tmp_path / "labels.npz"))
    for start in range(0, 30, 10):
        ids = range(start, start + 10)
        give(whole, rows, start, start + 10, ids=ids)
        give(parts, rows, start, start + 10, ids=ids)
        parts = rp.Calibration.load(parts.save(tmp_path / "labels.npz"))
    one, other = parts.select().certificate, whole.select().certificate
    assert {**vars(one), "created": ""} == {**vars(other), "created": ""}
    assert one.seeds["entropy"] is not None
    with pytest.raises(rp.LossError, match="'3' has been labelled before"):
        give(parts, rows, 30, 31, ids=[3])


# A study.


def scores_for(calibration, m, seed):
    """Losses of a study's candidates, the judge's scores of them, and scores of fresh examples."""
    rng = np.random.default_rng(seed)
    x = np.array([config["x"] for config in calibration.candidates])[:, None]
    u, fresh = rng.random((1, m)), rng.random((1, 10 * m))
    risks = 0.03 + 0.1 * x
    return u < risks, scored(u, risks, rng), {"unlabelled": {"error": scored(fresh, risks, rng)}}


def test_a_study_keeps_the_judge_from_the_first_label_on(tmp_path):
    study = searched(tmp_path)
    losses, scores, fresh = scores_for(rp.Calibration(study, horizon=600), 600, 1)
    sealed = rp.seal(study, horizon=600, judge=fresh)
    calibration = rp.Calibration(study, horizon=600, judge=fresh)
    give(calibration, {"losses": losses, "scores": scores}, 0, 200)
    early = calibration.select().certificate
    again = rp.Calibration(reopened(tmp_path), horizon=600)  # the scores are in the storage
    assert again.judged == ("error",)
    assert again.labels == calibration.labels
    assert again.scores("error").tolist() == calibration.scores("error").tolist()
    give(again, {"losses": losses, "scores": scores}, 200, 600)
    certificate = again.select().certificate
    for made in (early, certificate):
        verified = rp.verify(made, study=reopened(tmp_path), seal=sealed)
        assert verified.ok, str(verified)
    assert rp.Calibration.load(again.save(tmp_path / "c.npz")).select().certificate == certificate
    assert rp.Calibration(study, horizon=600, judge=fresh).labels == again.labels
    other = {"unlabelled": {"error": ~fresh["unlabelled"]["error"]}}
    with pytest.raises(rp.StudyError, match="began with other scores of fresh examples"):
        rp.Calibration(study, horizon=600, judge=other)


def test_labels_that_began_without_a_judge_go_on_without(tmp_path):
    study = searched(tmp_path)
    calibration = rp.Calibration(study, horizon=600)
    losses, _, fresh = scores_for(calibration, 600, 1)
    calibration.add({"error": losses[:, :10]})
    with pytest.raises(rp.StudyError, match="began without a judge"):
        rp.Calibration(study, horizon=600, judge=fresh)


def test_scores_that_were_changed_in_the_storage_are_noticed(tmp_path):
    study = searched(tmp_path)
    losses, scores, fresh = scores_for(rp.Calibration(study, horizon=600), 600, 1)
    calibration = rp.Calibration(study, horizon=600, judge=fresh)
    give(calibration, {"losses": losses, "scores": scores}, 0, 100)
    certificate = calibration.select().certificate
    key = next(key for key in study.user_attrs if key.startswith("riskpilot:fresh:"))
    other = searched_again(tmp_path)
    changed = {"unlabelled": {"error": ~fresh["unlabelled"]["error"]}}
    one = rp.Calibration(other, horizon=600, judge=changed)
    give(one, {"losses": losses, "scores": scores}, 0, 100)
    foreign = next(key for key in other.user_attrs if key.startswith("riskpilot:fresh:"))
    study.set_user_attr(key, other.user_attrs[foreign])
    with pytest.raises(rp.StudyError):
        rp.Calibration(reopened(tmp_path), horizon=600)
    with pytest.raises(rp.StudyError):
        rp.verify(certificate, study=reopened(tmp_path))


def test_a_candidate_that_catches_up_has_an_answer_of_its_own(tmp_path):
    """The same number of labels, and more losses than before: another answer to the question."""
    study = searched(tmp_path)
    calibration = rp.Calibration(study, horizon=600)
    losses = labels_of(calibration)["error"]
    first, rest = [0], list(range(1, len(calibration.candidates)))
    for start in (0, 150):
        calibration.add({"error": losses[first, start : start + 150]}, candidates=first)
    early = calibration.select()
    if calibration.needed:
        calibration.add({"error": losses[rest, :300]}, candidates=rest)
    late = calibration.select()
    assert late.certificate != early.certificate
    again = rp.Calibration(reopened(tmp_path), horizon=600).select()
    assert again.certificate == late.certificate
    for selection in (early, late):
        verified = rp.verify(selection.certificate, study=reopened(tmp_path))
        assert verified.ok, str(verified)


# What is refused.


@pytest.mark.parametrize(
    ("judge", "says"),
    [
        ([1, 2], "judge holds the scores of fresh examples"),
        ({"labelled": {"error": [0.0]}}, "judge holds the scores of fresh examples"),
        ({"unlabelled": {}}, "judge holds the scores of fresh examples"),
        ({"unlabelled": {"eror": [0.0]}}, "'eror' is none"),
        ({"unlabelled": {"error": np.zeros((3, 5))}}, "one for each of 4"),
        ({"unlabelled": {"error": [0.5, np.nan]}}, "is NaN"),
        ({"unlabelled": {"error": [0.5, 1.5]}}, "must lie in"),
        ({"unlabelled": {"error": [0.5, 0.5]}, "ids": [1]}, "those of 1 example"),
        ({"unlabelled": {"error": [0.5, 0.5]}, "ids": [0, 0.0]}, "judge, ids tells every example"),
    ],
)
def test_fresh_scores_that_cannot_be_used_are_refused(data, judge, says):
    with pytest.raises(rp.LossError, match=says):
        begun({**data, "fresh": judge})


@pytest.mark.parametrize(
    ("judge", "says"),
    [
        (None, "come with every batch of losses"),
        ({"error": np.zeros((4, 10))}, "come with every batch of losses"),
        ({"labelled": {"error": np.zeros((4, 9))}}, "those of 10 examples"),
        ({"labelled": {"error": np.full((4, 10), np.nan)}}, "is NaN"),
    ],
)
def test_scores_of_labels_that_cannot_be_used_are_refused(data, judge, says):
    calibration = begun(data)
    with pytest.raises(rp.LossError, match=says):
        calibration.add({"error": data["losses"][:, :10]}, judge=judge)
    assert calibration.n_labels == 0


def test_scores_without_a_judge_are_refused(data):
    calibration = begun({**data, "fresh": None})
    with pytest.raises(rp.LossError, match="tested without a judge"):
        give(calibration, data, 0, 10)


def test_ids_tell_labelled_examples_from_fresh_ones(data):
    fresh = {**data["fresh"], "ids": range(1000, 1000 + FRESH)}
    calibration = begun({**data, "fresh": fresh})
    with pytest.raises(rp.LeakageError, match="are never labelled, but 1 of them are, such as"):
        give(calibration, data, 0, 2, ids=[7.0, 1003.0])
    with pytest.raises(rp.LossError, match="ids tells every example"):
        give(calibration, data, 0, 2, ids=[7, 7])
    with pytest.raises(rp.LossError, match="one id for each of the 2 labels"):
        give(calibration, data, 0, 2, ids=[7])
    give(calibration, data, 0, 2, ids=[7, 8])
    with pytest.raises(rp.LossError, match="this one has none"):
        give(calibration, data, 2, 4)
    with pytest.raises(rp.LossError, match="'7' has been labelled before"):
        give(calibration, data, 2, 4, ids=[9, 7.0])


def test_a_judge_helps_with_means_only():
    problem = rp.Problem([rp.Risk("late", 0.5, statistic=rp.Quantile(0.9))], "cost")
    rng = np.random.default_rng(0)
    plan = rp.freeze(problem, validation={"late": rng.random((1, 200)), "cost": [1.0]})
    with pytest.raises(rp.ProblemError, match="a judge helps with the mean of losses"):
        rp.Calibration(plan, horizon=100, judge={"unlabelled": {"late": rng.random(50)}})


def test_a_condition_holds_for_losses_and_scores_alike():
    rng = np.random.default_rng(0)
    problem = rp.Problem([rp.Risk("error", 0.2, conditional=True)], "cost")

    def draw(m):
        u = np.where(rng.random((1, m)) < 0.5, rng.random((1, m)), np.nan)
        return np.where(np.isnan(u), np.nan, u < 0.05)

    plan = rp.freeze(problem, validation={"error": draw(500), "cost": [1.0]})
    pool, losses = draw(3000), draw(300)
    calibration = rp.Calibration(plan, horizon=300, judge={"unlabelled": {"error": pool}})
    with pytest.raises(rp.LossError, match="NaN exactly where the loss is"):
        calibration.add({"error": losses}, judge={"labelled": {"error": losses[:, ::-1]}})
    calibration.add({"error": losses}, judge={"labelled": {"error": losses}})
    assert calibration.certified


def test_a_frozen_plan_may_have_a_known_order(tmp_path):
    rng = np.random.default_rng(0)
    problem = rp.Problem([rp.Risk("error", 0.1)], "cost")
    risks = np.array([[0.2], [0.06], [0.02]])
    plan = rp.freeze(problem, validation={"cost": [1.0, 2.0, 3.0]}, order=[2, 1, 0])
    assert [config["index"] for config in plan.candidates] == [2, 1, 0]
    calibration = rp.Calibration(plan, horizon=500)
    losses = rng.random((3, 500)) < risks[[2, 1, 0]]
    calibration.add({"error": losses})
    certificate = calibration.select().certificate
    assert certificate.known_order
    assert certificate.config == {"index": 1}
    again = rp.Calibration.load(calibration.save(tmp_path / "labels.npz"))
    assert {**vars(again.select().certificate), "created": ""} == {
        **vars(certificate),
        "created": "",
    }
    brought = {"validation": {"cost": [1.0, 2.0, 3.0]}, "calibration": {"error": losses}}
    verified = rp.verify(certificate, **brought)
    assert verified.ok, str(verified)
    with pytest.raises(rp.LossError, match="order names rows from 0 to 2"):
        rp.freeze(problem, validation={"cost": [1.0, 2.0, 3.0]}, order=[3])


def test_the_report_has_a_panel_for_every_risk(tmp_path):
    rng = np.random.default_rng(0)
    risks = [rp.Risk("error", 0.2), rp.Risk("harm", 0.3), rp.Risk("miss", 0.2)]

    def draw(m):
        return {
            "error": rng.random((2, m)) < 0.05,
            "harm": rng.beta(1, 9, (2, m)),
            "miss": rng.random((2, m)) < 0.05,
        }

    problem = rp.Problem(risks, "cost")
    plan = rp.freeze(problem, validation={**draw(300), "cost": [2.0, 1.0]})
    pool = {"unlabelled": {"miss": rng.random(1000) < 0.05}}
    calibration = rp.Calibration(plan, horizon=200, judge=pool)
    losses = draw(150)
    calibration.add(losses, judge={"labelled": {"miss": losses["miss"]}})
    selection = calibration.select()
    figure = label_paths(selection.plan, selection.result, selection.certificate.chosen)
    titles = [figure.layout[f"yaxis{i}"].title.text for i in ("", 2, 3)]
    evidence = "evidence, shown at 1"
    assert titles == ["error<br>share of losses", f"harm<br>{evidence}", f"miss<br>{evidence}"]
    assert [shape.y0 for shape in figure.layout.shapes] == [0.2, 1.0, 1.0]
    lines = [trace for trace in figure.data if trace.yaxis == "y3" and trace.x[0] is not None]
    # The path ends at the evidence that the certificate has.
    log_p = selection.certificate.log_p[0]["miss"]
    assert lines[0].y[-1] == pytest.approx(log_p / np.log(problem.delta))
    assert "Label by label" in selection.report(tmp_path / "report.html").read_text()
