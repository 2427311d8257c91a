"""A judge beside calibration losses: what it is worth, what is said of it, and what is refused."""

import numpy as np
import pytest

import riskpilot as rp

RISKS = np.array([[0.04], [0.07], [0.2]])
PROBLEM = rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost")
LABELS, FRESH = 300, 3000


def scored(u, rng, noise=0.01):
    """A judge that sees each loss but for some noise near the edge."""
    return u + noise * rng.standard_normal(u.shape) < RISKS


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    u, fresh = rng.random((1, LABELS)), rng.random((1, FRESH))
    return {
        "validation": {"error": rng.random((3, 1000)) < RISKS, "cost": np.array([3.0, 2, 1])},
        "calibration": {"error": u < RISKS},
        "seed": 1,
        "judge": {
            "labelled": {"error": scored(u, rng)},
            "unlabelled": {"error": scored(fresh, rng)},
        },
    }


@pytest.fixture(scope="module")
def judged(data):
    return rp.select_from_losses(PROBLEM, **data)


def test_a_good_judge_certifies_more_often():
    rng = np.random.default_rng(0)
    seen = {"error": rng.random((1, 1000)) < 0.06, "cost": np.ones(1)}
    passed = np.zeros(2)
    for run in range(60):
        u, fresh = rng.random((1, 200)), rng.random((1, 2000))
        brought = {"validation": seen, "calibration": {"error": u < 0.06}, "seed": run + 1}
        judge = {"labelled": {"error": u < 0.055}, "unlabelled": {"error": fresh < 0.055}}
        for i, helped in enumerate((None, judge)):
            selection = rp.select_from_losses(PROBLEM, **brought, judge=helped)
            passed[i] += selection.config is not None
    assert passed[1] >= passed[0] + 10
    assert selection.certificate.families == {"error": "judged"}


def test_the_promise_is_about_the_labels(judged):
    assert "The promise is about the losses of human labels" in judged.certificate.promise
    helped = judged.certificate.judge
    assert helped["unlabelled"] == {"error": FRESH}
    assert helped["correlation"][1]["error"] > 0.8
    assert helped["saved"][1]["error"] > LABELS
    assert f"saved about {helped['saved'][1]['error']:,} of them" in judged.certificate.promise


def test_the_report_has_the_judge_in_its_promise_and_no_bound(judged, tmp_path):
    page = judged.report(tmp_path / "report.html").read_text()
    assert "a judge&#x27;s scores of 3,000 further examples" in page
    assert "not known" in page


def test_one_row_of_scores_serves_all_configurations(data):
    one = {part: {"error": data["judge"][part]["error"][1]} for part in ("labelled", "unlabelled")}
    same = {part: {"error": np.tile(one[part]["error"], (3, 1))} for part in one}
    found = [
        rp.select_from_losses(PROBLEM, **{**data, "judge": judge}).p_values for judge in (one, same)
    ]
    assert found[0].tolist() == found[1].tolist()


def test_verify_computes_the_help_of_a_judge_again(data, judged):
    brought = {name: part for name, part in data.items() if name != "seed"}
    assert rp.verify(judged.certificate, **brought).ok
    other = {**data["judge"], "unlabelled": {"error": ~data["judge"]["unlabelled"]["error"]}}
    found = rp.verify(judged.certificate, **{**brought, "judge": other})
    assert not found.ok
    assert any("judge" in difference for difference in found.differences)
    with pytest.raises(rp.CertificateError, match="Give its scores"):
        rp.verify(
            judged.certificate, validation=data["validation"], calibration=data["calibration"]
        )


def alike(rng):
    """Two candidates with the same losses, the second of which is tested first; scores differ."""
    seen = {"error": rng.random((2, 500)) < [[0.05], [0.01]], "cost": np.array([1.0, 2.0])}
    judge = {
        "labelled": {"error": rng.random((2, 60))},
        "unlabelled": {"error": rng.random((2, 500))},
    }
    return seen, {"error": np.zeros((2, 60))}, judge


def test_candidates_with_the_same_losses_are_told_apart_by_their_scores():
    seen, losses, judge = alike(np.random.default_rng(0))
    whole = rp.select_from_losses(PROBLEM, validation=seen, calibration=losses, judge=judge)
    assert [one["row"] for one in whole.certificate.candidates] == [1, 0]
    found = rp.verify(whole.certificate, validation=seen, calibration=losses, judge=judge)
    assert found.ok, str(found)


def test_candidates_with_the_same_labels_are_told_apart_by_their_scores():
    seen, losses, judge = alike(np.random.default_rng(0))
    labels = rp.Calibration(
        rp.freeze(PROBLEM, validation=seen),
        horizon=60,
        judge={"unlabelled": {"error": judge["unlabelled"]["error"][[1, 0]]}},
    )
    labels.add(losses, judge={"labelled": {"error": judge["labelled"]["error"][[1, 0]]}})
    used = labels.n_labels
    certificate = labels.select().certificate
    for order in ([0, 1], [1, 0]):  # of the configurations, or of the tests
        again = {
            "labelled": {"error": judge["labelled"]["error"][order, :used]},
            "unlabelled": {"error": judge["unlabelled"]["error"][order]},
        }
        part = {"error": losses["error"][order, :used]}
        found = rp.verify(certificate, validation=seen, calibration=part, judge=again)
        assert found.ok, str(found)


def test_a_study_keeps_the_scores_of_its_judge(tmp_path):
    rng = np.random.default_rng(0)
    u, fresh = rng.random(LABELS), rng.random(FRESH)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        risk = 0.03 + 0.1 * x
        return rp.Evaluation(
            {"error": np.random.default_rng(int(1e6 * x)).random(500) < risk, "cost": 1 - x},
            {"error": u < risk},
            judge={
                "labelled": {"error": np.where(u < risk, 0.9, 0.1)},
                "unlabelled": {"error": np.where(fresh < risk, 0.9, 0.1)},
            },
        )

    study = rp.create_study(PROBLEM, storage=f"sqlite:///{tmp_path}/study.db", seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=6)
    sealed = rp.seal(study)
    selection = rp.select(study)
    assert selection.certificate.families == {"error": "judged"}
    assert rp.verify(selection.certificate, study=study, seal=sealed).ok
    assert rp.select(study).certificate == selection.certificate
    with pytest.raises(rp.ProblemError, match="labels arrive one after another"):
        rp.Calibration(study, horizon=100)


def test_a_judge_scores_every_trial_or_none():
    study = rp.create_study(PROBLEM, seed=0)
    rng = np.random.default_rng(0)
    losses = rng.random(200) < 0.05
    judge = {"labelled": {"error": losses}, "unlabelled": {"error": losses}}
    for scores in (judge, None):
        trial = study.ask()
        evaluation = rp.Evaluation(
            {"error": rng.random(200) < 0.05, "cost": 1.0}, {"error": losses}, judge=scores
        )
        rp.tell(study, trial, evaluation)
    with pytest.raises(rp.StudyError, match=r"trial 1 of study .* has no scores"):
        rp.select(study)


def test_an_evaluation_shows_no_scores():
    judge = {"labelled": {"error": [0.123]}, "unlabelled": {"error": [0.123]}}
    evaluation = rp.Evaluation({"error": [0, 1], "cost": 1.0}, {"error": [0, 1]}, judge=judge)
    assert "judge: scores, sealed" in repr(evaluation)
    assert "0.123" not in repr(evaluation)


@pytest.mark.parametrize(
    ("judge", "says"),
    [
        ([1, 2], "judge holds the scores"),
        ({"labelled": {"error": [0.5]}}, "judge holds the scores"),
        ({"labelled": {}, "unlabelled": {}}, "it scores none"),
        ({"labelled": {"cost": 1}, "unlabelled": {"cost": 1}}, "'cost' does not fit"),
        ({"labelled": {"error": 1}, "unlabelled": {}}, "'error' does not fit"),
        (
            {"labelled": {"error": np.zeros(5)}, "unlabelled": {"error": np.zeros(5)}},
            "are those of 300 examples",
        ),
        (
            {"labelled": {"error": np.zeros(300)}, "unlabelled": {"error": np.zeros((2, 5))}},
            "one row for all configurations or one for each of 3",
        ),
        (
            {"labelled": {"error": np.full(300, 2.0)}, "unlabelled": {"error": np.zeros(5)}},
            r"must lie in \[0, 1\]",
        ),
        (
            {"labelled": {"error": np.full(300, np.nan)}, "unlabelled": {"error": np.zeros(5)}},
            "is NaN",
        ),
    ],
)
def test_scores_that_cannot_be_used_are_refused(data, judge, says):
    with pytest.raises(rp.LossError, match=says):
        rp.select_from_losses(PROBLEM, **{**data, "judge": judge})


@pytest.mark.parametrize(
    "risk",
    [
        rp.Risk("error", 0.5, statistic=rp.Quantile(0.9)),
        rp.Risk("error", 0.1, p_value="hoeffding"),
        rp.Risk("error", 0.1, weights="w", largest_weight=2.0),
    ],
)
def test_a_judge_of_something_else_than_a_mean_is_refused(data, risk):
    extra = {} if risk.weights is None else {"w": np.ones(1000)}
    with pytest.raises(rp.ProblemError, match="a judge helps with the mean of losses"):
        rp.select_from_losses(
            rp.Problem([risk], "cost"),
            **{**data, "validation": {**data["validation"], **extra}},
        )
