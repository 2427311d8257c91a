"""What a search looked at is never calibrated on: labels, fresh examples and chains of studies."""

import numpy as np
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app

PROBLEM = rp.Problem([rp.Risk("error", limit=0.2)], minimize="cost")
K = 300
LUCK = np.random.default_rng(0).random((5, K))


def names(part):
    return [f"{part}-{i}" for i in range(K)]


def losses_at(x, part):
    return LUCK[part] < 0.02 + 0.2 * x


def evaluate_on(validation, calibration=None):
    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        sealed = None if calibration is None else {"error": losses_at(x, calibration)}
        return rp.Evaluation({"error": losses_at(x, validation), "cost": 1 - x}, sealed)

    return evaluate


def searched(validation=0, *, ids=True, n_trials=3, **settings):
    study = rp.create_study(PROBLEM, seed=0, n_calibration=K, **settings)
    known = {"validation_ids": names(validation)} if ids else {}
    study.optimize(rp.objective(study, evaluate_on(validation), **known), n_trials=n_trials)
    return study


def labels(calibration, part, n=K):
    rows = [losses_at(config["x"], part)[:n] for config in calibration.candidates]
    return {"error": np.array(rows)}


def refused(calibration, part, n=K, **more):
    before = calibration.n_labels
    with pytest.raises(rp.LeakageError, match=r"seen by the search|must not share") as error:
        calibration.add(labels(calibration, part, n), **more)
    assert calibration.n_labels == before
    return str(error.value)


def test_validation_examples_are_not_labelled():
    study = searched()
    said = refused(rp.Calibration(study, horizon=K), 0, 20, ids=names(0)[50:70])
    assert "20 are validation examples" in said
    assert "'0-50'" in said
    refused(rp.Calibration(study, horizon=K), 1, 20, ids=[*names(1)[:19], "0-7"])
    calibration = rp.Calibration(study, horizon=K)
    calibration.add(labels(calibration, 1), ids=names(1))
    assert rp.Calibration(study, horizon=K).n_labels == calibration.n_labels > 0


def test_losses_that_are_the_validation_losses_are_no_labels():
    refused(rp.Calibration(searched(ids=False), horizon=K), 0)
    calibration = rp.Calibration(searched(ids=False), horizon=K)
    calibration.add(labels(calibration, 0, 5))
    needed = calibration.needed
    rest = {"error": labels(calibration, 0)["error"][needed, 5:]}
    with pytest.raises(rp.LeakageError, match="must not share examples"):
        calibration.add(rest, candidates=needed)


def frozen():
    x = np.array([0.1, 0.5])
    given = {"error": np.array([losses_at(one, 0) for one in x]), "cost": 1 - x}
    configs = [{"x": float(one)} for one in x]
    return rp.freeze(PROBLEM, validation=given, configs=configs, validation_ids=names(0))


def test_a_frozen_plan_knows_its_validation_examples(tmp_path):
    calibration = rp.Calibration(frozen(), horizon=K)
    refused(calibration, 0, 20, ids=names(0)[:20])
    refused(calibration, 0)
    calibration.add(labels(calibration, 1, 10), ids=names(1)[:10])
    again = rp.Calibration.load(calibration.save(tmp_path / "labels.npz"))
    refused(again, 0, 20, ids=names(0)[:20])
    with pytest.raises(rp.LossError, match="validation_ids holds one id"):
        rp.freeze(PROBLEM, validation=frozen().given, validation_ids=names(0)[1:])


def test_a_copy_of_a_study_knows_them_too(tmp_path):
    copy = rp.Calibration(searched(), horizon=K).save(tmp_path / "labels.npz")
    refused(rp.Calibration.load(copy), 0, 20, ids=names(0)[:20])


@pytest.mark.parametrize("ids", [True, False])
def test_labels_are_not_what_an_earlier_study_searched_by(ids):
    study = searched(1, ids=ids, warm_start=searched(0, ids=ids))
    calibration = rp.Calibration(study, horizon=K)
    if ids:
        refused(calibration, 0, 20, ids=names(0)[:20])
        return
    calibration.add(labels(calibration, 0))
    with pytest.raises(rp.LeakageError, match="seen by the search"):
        calibration.select()


@pytest.mark.parametrize("source", ["study", "plan"])
def test_fresh_examples_of_a_judge_are_no_validation_examples(source):
    plan = searched() if source == "study" else frozen()
    scores = {"error": np.full(K, 0.1)}
    with pytest.raises(rp.LeakageError, match="Fresh examples of a judge must not have been seen"):
        rp.Calibration(plan, horizon=K, judge={"unlabelled": scores, "ids": [*names(1)[1:], "0-3"]})
    rp.Calibration(plan, horizon=K, judge={"unlabelled": scores, "ids": names(1)})


@pytest.mark.parametrize("judged", [False, True])
def test_the_command_refuses_validation_examples(tmp_path, judged):
    place = tmp_path / "s.db"
    study = searched(storage=f"sqlite:///{place}", study_name="s")
    trials = rp.Calibration(study, horizon=K).trials
    own, other = names(0)[:20], names(1)[:20]
    rows = [f"{i},{t},0" for i in (other if judged else own) for t in trials]
    (tmp_path / "l.csv").write_text("\n".join(["example,trial,error", *rows]))
    rows = [f"{i},{t},{i in own},0.1" for i in (*own, *other) for t in trials]
    (tmp_path / "s.csv").write_text("\n".join(["example,trial,fresh,error", *rows]))
    options = ["--horizon", str(K), "--labels", str(tmp_path / "l.csv")]
    options += ["--judge", str(tmp_path / "s.csv")] if judged else []
    found = CliRunner().invoke(app, ["calibrate", str(place), *options])
    assert found.exit_code != 0
    assert "20 are validation examples" in " ".join(found.output.split())


@pytest.mark.parametrize("shared", ["permuted", "half", "one"])
@pytest.mark.parametrize("links", [1, 2])
def test_calibration_ids_are_compared_one_by_one_with_those_of_earlier_studies(shared, links):
    study = searched(0)
    for part in range(1, links + 1):
        study = searched(part, warm_start=study)
    number = {"permuted": K, "half": K // 2, "one": 1}[shared]
    ids = [*names(0)[::-1][:number], *names(4)[number:]]
    evaluate = evaluate_on(3, 4)
    said = f"but {number} are validation examples"
    next_study = rp.create_study(PROBLEM, warm_start=study)
    with pytest.raises(rp.LeakageError, match=said):
        rp.objective(next_study, evaluate, validation_ids=names(3), calibration_ids=ids)
    run = rp.objective(next_study, evaluate, validation_ids=names(3), calibration_ids=names(4))
    next_study.optimize(run, n_trials=2)


def test_losses_are_compared_with_those_of_all_earlier_studies():
    study = searched(1, ids=False, warm_start=searched(0, ids=False))
    study = rp.create_study(PROBLEM, warm_start=study)
    study.enqueue_trial({"x": 0.0})
    run = rp.objective(study, evaluate_on(2, 0))
    with pytest.raises(rp.LeakageError, match="or of a study before it"):
        study.optimize(run, n_trials=3)


def test_ids_of_two_tells_are_compared():
    study = searched()
    with pytest.raises(rp.LeakageError, match="but 300 are validation examples"):
        rp.objective(study, evaluate_on(0, 1), calibration_ids=names(0)[::-1])


def judged_table(fresh, fresh_ids=None, **ids):
    x = np.array([0.1, 0.5])
    parts = [np.array([losses_at(one, part) for one in x]) for part in (0, 1)]
    judge = {"labelled": {"error": parts[1]}, "unlabelled": {"error": fresh}}
    judge |= {} if fresh_ids is None else {"ids": fresh_ids}
    known = {"validation_ids": names(0), "calibration_ids": names(1)}
    given = {"validation": {"error": parts[0], "cost": 1 - x}, "calibration": {"error": parts[1]}}
    return rp.select_from_losses(PROBLEM, **given, judge=judge, **(known if ids else {}))


def test_fresh_examples_of_a_table_are_neither_labelled_nor_searched_by():
    other = np.array([losses_at(one, 2) for one in (0.1, 0.5)])
    assert judged_table(other, names(2), ids=True).config is not None
    with pytest.raises(rp.LeakageError, match="but 1 are validation examples"):
        judged_table(other, [*names(2)[1:], "0-3"], ids=True)
    with pytest.raises(rp.LeakageError, match="but 1 of them are calibration examples"):
        judged_table(other, [*names(2)[1:], "1-3"], ids=True)
    with pytest.raises(rp.LeakageError, match="its scores of 'error' are the validation losses"):
        judged_table(np.array([losses_at(one, 0) for one in (0.1, 0.5)]))
    with pytest.raises(rp.LossError, match="those of 299 examples"):
        judged_table(other, names(2)[1:])


@pytest.mark.parametrize("shared", ["0-3", "1-3", "4-3"])
def test_fresh_examples_of_a_study_are_neither_labelled_nor_searched_by(shared):
    study = rp.create_study(PROBLEM, seed=0, warm_start=searched(4))

    def evaluate(trial):
        found = evaluate_on(0, 1)(trial)
        score = {"error": np.full(K, 0.1)}
        judge = {"labelled": score, "unlabelled": score, "ids": [*names(2)[1:], shared]}
        return rp.Evaluation(found.validation, found.calibration, judge)

    run = rp.objective(study, evaluate, validation_ids=names(0), calibration_ids=names(1))
    with pytest.raises(rp.LeakageError, match=r"Fresh examples of a judge .* but 1 "):
        study.optimize(run, n_trials=1)
