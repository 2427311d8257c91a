"""``riskpilot calibrate`` and ``plan --sequential``: verdicts, exit codes and pictures."""

import json

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app

runner = CliRunner()
PROBLEM = rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost")


def run(*arguments, code=0):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result.output


@pytest.fixture
def study(tmp_path):
    """The storage of a study with three trials of error 0.03, 0.06 and 0.3, cheapest last."""
    made = rp.create_study(PROBLEM, storage=f"sqlite:///{tmp_path}/study.db", seed=0)
    rng = np.random.default_rng(0)

    def evaluate(trial):
        risk = trial.suggest_float("risk", 0, 1)
        return rp.Evaluation({"error": rng.random(800) < risk, "cost": 1 - risk})

    for risk in (0.03, 0.06, 0.3):
        made.enqueue_trial({"risk": risk})
    made.optimize(rp.objective(made, evaluate), n_trials=3)
    return tmp_path / "study.db"


def write(path, losses, examples=None, trials=(0, 1, 2)):
    """One row per example and trial, as somebody who labels would write them."""
    lines = ["example,trial,error"]
    for label in range(losses.shape[1]):
        name = f"q{label}" if examples is None else examples[label]
        lines += [f"{name},{t},{int(losses[t, label])}" for t in trials]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def losses():
    risks = np.array([[0.03], [0.06], [0.3]])
    return np.random.default_rng(1).random((1, 600)) < risks


def test_labels_are_taken_until_something_is_certified(study, losses, tmp_path):
    labels = tmp_path / "labels.csv"
    asked = ("calibrate", study, "--horizon", 600)
    assert "go on" in run(*asked, code=4)
    write(labels, losses[:, :20])
    assert "go on" in run(*asked, "--labels", labels, code=4)
    write(labels, losses[:, :300])
    out, report = tmp_path / "certificate.json", tmp_path / "report.html"
    text = run(*asked, "--labels", labels, "--out", out, "--report", report)
    assert "certified: stop" in text
    assert "With probability at least 90%" in text
    assert "Label by label" in report.read_text()
    assert rp.Certificate.load(out).n_calibration <= 300
    assert "holds" in run("verify", out, "--losses", study)
    again = json.loads(run(*asked, "--labels", labels, "--json"))
    assert again["new_labels"] == 0
    assert again["certified"]
    assert again["needed"] == [] or again["done"] is False


def test_nothing_can_be_certified_any_more(study, tmp_path):
    labels = write(tmp_path / "labels.csv", np.ones((3, 100)))
    text = run("calibrate", study, "--horizon", 200, "--labels", labels, code=3)
    assert "nothing can be certified: stop" in text


def test_a_horizon_with_which_nothing_can_pass_is_bad_input(study, tmp_path):
    labels, out = write(tmp_path / "labels.csv", np.zeros((3, 30))), tmp_path / "c.json"
    asked = ("calibrate", study, "--horizon", 10, "--labels", labels, "--out", out)
    text = " ".join(run(*asked, code=2).split())
    assert "with at most 10 labels nothing can" in text
    assert "would do" in text
    assert not out.exists()


def test_a_trial_may_get_its_losses_later(study, losses, tmp_path):
    labels = tmp_path / "labels.csv"
    asked = ("calibrate", study, "--horizon", 600, "--labels", labels, "--json")
    write(labels, losses[:, :200], trials=(0,))
    first = json.loads(run(*asked))
    assert first["certified"] == [{"risk": 0.03}]
    assert 0 not in first["needed"]
    write(labels, losses[:, :400], trials=(0, 1))
    second = json.loads(run(*asked))
    assert second["certified"] == [{"risk": 0.03}, {"risk": 0.06}]


def test_labels_that_were_added_do_not_change(study, losses, tmp_path):
    labels = write(tmp_path / "labels.csv", losses[:, :50])
    asked = ("calibrate", study, "--horizon", 600, "--labels", labels)
    run(*asked, code=4)
    write(labels, ~losses[:, :60])
    assert "were added before and stay as they were" in run(*asked, code=2).replace("\n", " ")
    write(labels, losses[:, :50], examples=["q0"] * 50)
    assert "has two for example" in run(*asked, code=2).replace("\n", " ")
    labels.write_text("example,trial\nq0,0\n")
    assert "error" in run(*asked, code=2)


@pytest.mark.parametrize("number", ["3", "7.5", "b", ""])
def test_labels_of_a_trial_that_the_study_does_not_have_are_refused(
    study, losses, tmp_path, number
):
    labels = write(tmp_path / "labels.csv", losses[:, :50])
    with labels.open("a") as file:
        file.write(f"q0,{number},0\n")
    asked = ("calibrate", study, "--horizon", 600, "--labels", labels)
    said = " ".join(run(*asked, code=2).split())
    named = f"{number!r}" if number else "none"
    assert f"a trial of the study, 0 to 2, but row 151 names {named}." in said
    judge = write_judge(tmp_path / "scores.csv", np.zeros(50), np.zeros(9))
    with judge.open("a") as file:
        file.write(f"q0,{number},false,0\n")
    write(labels, losses[:, :50])
    said = " ".join(run(*asked, "--judge", judge, code=2).split())
    assert f"row 178 names {named}." in said
    assert rp.ledger(rp.load_study(storage=f"sqlite:///{study}", study_name=None)) == []


def test_labels_of_a_trial_that_is_no_candidate_are_passed_over(study, losses, tmp_path):
    opened = rp.load_study(storage=f"sqlite:///{study}", study_name=None)
    opened.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL))
    labels = write(tmp_path / "labels.csv", losses[:, :50])
    with labels.open("a") as file:
        file.write("q0,3,0\n")
    asked = ("calibrate", study, "--horizon", 600, "--labels", labels, "--json")
    found = json.loads(run(*asked, code=4))
    assert (found["new_labels"], found["needed"]) == (50, [0, 1, 2])


def write_judge(path, u, fresh, trials=(0, 1, 2), head="example,trial,fresh,error"):
    """Scores of examples that may be labelled, and of fresh ones, by a judge that is often right.

    ``u``, ``fresh``: by example, how hard it is.
    """
    lines = [head]
    for mark, prefix, values in (("false", "q", u), ("true", "f", fresh)):
        for i, hard in enumerate(values):
            for trial in trials:
                score = int(hard < 0.9 * (0.03, 0.06, 0.3)[trial])
                lines.append(f"{prefix}{i},{trial},{mark},{score}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_judge_helps_with_labels_of_a_file(study, tmp_path):
    rng = np.random.default_rng(1)
    u, fresh = rng.random(600), rng.random(3000)
    losses = u < np.array([[0.03], [0.06], [0.3]])
    judge = write_judge(tmp_path / "scores.csv", u, fresh)
    labels = write(tmp_path / "labels.csv", losses[:, :50])
    asked = ("calibrate", study, "--horizon", 600, "--labels", labels)
    assert "go on" in run(*asked, "--judge", judge, code=4)
    write(labels, losses[:, :140])
    assert "Give it: --judge" in run(*asked, code=2).replace("\n", " ")
    out = tmp_path / "certificate.json"
    assert "certified" in run(*asked, "--judge", judge, "--out", out)
    certificate = rp.Certificate.load(out)
    assert certificate.families == {"error": "sequential_judged"}
    assert certificate.judge["unlabelled"] == {"error": 3000}
    assert "holds" in run("verify", out, "--losses", study)
    assert json.loads(run(*asked, "--judge", judge, "--json"))["new_labels"] == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("f2,1,true,", "f2,1,true,#"), "example 'f2' has no score for trial 1"),
        (("f2,1,true,", "x,1,true,"), "has no score for trial"),
        (("q2,1,false,", "x,1,false,"), "example 'q2' has no score for trial 1"),
        (("f2,1,true,", "f2,1,maybe,"), "'fresh' differs between the trials"),
        ((",true,", ",,"), "says true of examples that are never labelled"),
        ((",true,", ",false,"), "are never labelled, but no example"),
        (("fresh,error", "fresh,eror"), "stand in a column of its name"),
        (("example,trial,fresh", "example,trial,flesh"), "no column 'fresh'"),
        (("example,trial,fresh", "id,trial,fresh"), "--trial and --example"),
        (("f2,", "7.0,"), "are never labelled, but 1 of them are, such as '7'"),
    ],
)
def test_a_judge_s_table_that_cannot_be_used_is_refused(study, tmp_path, change, says):
    rng = np.random.default_rng(1)
    judge = write_judge(tmp_path / "scores.csv", rng.random(10), rng.random(20))
    text = judge.read_text().replace(*change)
    text = "\n".join(line.split("#")[0] for line in text.splitlines())  # an empty score
    # The labels know the examples by their numbers, of which 7 is a fresh one in the last case.
    text = text.replace("q", "")
    if change[1] == "7.0,":
        text = "\n".join(line for line in text.splitlines() if not line.startswith("7,"))
    judge.write_text(text + "\n")
    labels = write(tmp_path / "labels.csv", np.zeros((3, 10)), examples=range(10))
    asked = ("calibrate", study, "--horizon", 600, "--labels", labels, "--judge", judge)
    found = run(*asked, code=2).replace("\n", " ")
    assert says.replace("'q2'", "'2'") in " ".join(found.split())
    assert rp.ledger(rp.load_study(storage=f"sqlite:///{study}", study_name=None)) == []


def test_fresh_scores_are_given_once(study, tmp_path):
    rng = np.random.default_rng(1)
    judge = write_judge(tmp_path / "scores.csv", rng.random(10), rng.random(20))
    text = judge.read_text().replace("f", "").replace("alse", "false").replace("resh", "fresh")
    judge.write_text(text.replace("q", "1000") + "0.0,0,true,1\n")
    asked = ("calibrate", study, "--horizon", 600, "--judge", judge)
    assert "trial 0 has two for example '0'" in " ".join(run(*asked, code=2).split())


def test_the_plan_of_labels_says_chance_and_labels(tmp_path):
    asked = ("plan", "-r", "error<=0.1", "-n", 1000, "--true-risk", "error=0.07", "--sequential")
    figure = tmp_path / "plan.html"
    text = run(*asked, "--figure", figure)
    assert "0.977" in text
    assert "473" in text
    assert "chance to have crossed" in figure.read_text()
    (plan,) = json.loads(run(*asked, "--json"))["plans"]
    assert plan["fixed_power"] == pytest.approx(0.983, abs=0.001)
    text = run("plan", "-r", "error<=0.1", "-n", 10, "--sequential", code=2)
    assert "true_risks" in text


def test_the_plan_says_what_a_judge_is_worth():
    asked = ("plan", "-r", "error<=0.1", "-n", 500, "--judge", "error=0.8", "--unlabelled", 5000)
    assert "makes 500 labels worth about 1,195" in run(*asked)
    assert json.loads(run(*asked, "--json"))["judges"][0]["worth"] == 1195


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: rp.plan_labels(PROBLEM, 0, true_risks={"error": 0.05}), "horizon is"),
        (lambda: rp.plan_labels(PROBLEM, 10, true_risks={}), "numbers by the names"),
        (lambda: rp.plan_labels(PROBLEM, 10, true_risks={"miss": 0.05}), "names of risks"),
        (lambda: rp.plan_judge(PROBLEM, 0, unlabelled=5, correlations={"error": 1}), "labels is"),
        (
            lambda: rp.plan_judge(PROBLEM, 5, unlabelled=5, correlations={"error": 2}),
            "A correlation lies in",
        ),
        (
            lambda: rp.plan_labels(
                rp.Problem([rp.Risk("error", 0.1, conditional=True)], "cost"),
                10,
                true_risks={"error": 0.05},
            ),
            "exactly for means of 0/1 losses",
        ),
    ],
)
def test_a_plan_that_cannot_be_made_says_why(call, says):
    with pytest.raises(rp.ProblemError, match=says):
        call()
