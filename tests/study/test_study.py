"""Studies: what they record, what they seal, and limits that are set late."""

import itertools

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import riskpilot as rp
from riskpilot.study.kept.loss_store import MemoryArtifactStore
from riskpilot.study.kept.records import record_of
from riskpilot.study.kept.trial_losses import read_calibration
from riskpilot.study.questions.audit import audit

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost")
OPEN = rp.Problem([rp.Risk("error", None)], "cost")


def draw(x, m, seed):
    return np.random.default_rng(seed).random(m) < 0.05 + 0.4 * x


def evaluate(trial):
    x = trial.suggest_float("x", 0, 1)
    return rp.Evaluation(
        validation={"error": draw(x, 300, trial.number), "cost": 1 - x},
        calibration={"error": draw(x, 300, 1000 + trial.number)},
    )


def without_calibration(trial):
    return rp.Evaluation(evaluate(trial).validation)


def run(study, function=evaluate, n_trials=8):
    study.optimize(rp.objective(study, function), n_trials=n_trials)
    return study


class CountingStore(MemoryArtifactStore):
    """Tells the reads that follow after an artifact was written and checked."""

    def __init__(self):
        super().__init__()
        self.reads = []
        self.fresh = set()

    def write(self, artifact_id, content_body):
        super().write(artifact_id, content_body)
        self.fresh.add(artifact_id)

    def open_reader(self, artifact_id):
        if artifact_id in self.fresh:
            self.fresh.remove(artifact_id)  # the check right after writing
        else:
            self.reads.append(artifact_id)
        return super().open_reader(artifact_id)


def test_calibration_losses_are_read_by_select_alone_and_of_the_candidates_alone():
    store = CountingStore()
    study = run(rp.create_study(PROBLEM, artifact_store=store, seed=0), n_trials=12)
    rp.suggest_limits(study)
    rp.ledger(study)
    assert store.reads == []
    selection = rp.select(study, smooth=False)
    artifacts = [record_of(trial).artifacts for trial in study.trials]
    order = selection.plan.order
    assert len(order) < 12
    # Validation losses are read after them, to see that the examples are others.
    splits = ("calibration", "validation")
    assert store.reads == [artifacts[row][split]["id"] for split in splits for row in order]
    store.reads.clear()
    selection.figure()
    selection.message  # noqa: B018
    assert store.reads == []


def test_optuna_sees_validation_means_and_nothing_of_calibration():
    study = run(rp.create_study(PROBLEM, seed=0), n_trials=3)
    assert study.metric_names == ["error", "cost"]
    for trial in study.trials:
        x = trial.params["x"]
        assert trial.values == [draw(x, 300, trial.number).mean(), 1 - x]
        text = repr(trial.user_attrs) + repr(trial.system_attrs)
        assert str(draw(x, 300, 1000 + trial.number).mean()) not in text


def test_calibrate_is_called_for_candidates_only():
    study = run(rp.create_study(PROBLEM, seed=0, n_calibration=300), without_calibration, 12)
    called = []

    def calibrate(trial):
        called.append(trial.number)
        return {"error": draw(trial.params["x"], 300, 1000 + trial.number)}

    selection = rp.select(study, calibrate=calibrate, smooth=False)
    assert called == list(selection.plan.order)
    assert 0 < len(called) < 12
    assert selection.config is not None
    together = rp.select(run(rp.create_study(PROBLEM, seed=0), n_trials=12), smooth=False)
    assert together.config == selection.config
    assert together.certificate.calibration_digest == selection.certificate.calibration_digest


def test_what_calibrate_returns_is_kept_with_its_digest_and_made_once(tmp_path):
    place = {"storage": f"sqlite:///{tmp_path}/study.db"}
    study = run(rp.create_study(PROBLEM, seed=0, n_calibration=300, **place), without_calibration)
    called = []

    def calibrate(trial):
        called.append(trial.number)
        return {"error": draw(trial.params["x"], 300, 1000 + trial.number)}

    first = rp.select(study, calibrate=calibrate)
    tested = list(first.plan.order)
    assert called == tested
    again = rp.load_study(**place)
    assert rp.select(again, calibrate=calibrate).certificate.digest == first.certificate.digest
    assert rp.select(again).certificate.digest == first.certificate.digest
    rp.select(again, calibrate=calibrate, problem=PROBLEM.with_limits(error=0.15))
    assert called == tested  # another question is put to the same losses
    stored = read_calibration(again, PROBLEM, again.trials[tested[0]])["error"][0]
    expected = draw(again.trials[tested[0]].params["x"], 300, 1000 + tested[0])
    np.testing.assert_array_equal(stored, expected)


def test_a_certificate_of_calibrated_candidates_is_checked_from_the_storage(tmp_path):
    address = f"sqlite:///{tmp_path}/study.db"
    study = rp.create_study(PROBLEM, seed=0, n_calibration=300, storage=address)
    run(study, without_calibration, 10)
    selection = rp.select(
        study,
        calibrate=lambda t: {"error": draw(t.params["x"], 300, 1000 + t.number)},
        smooth=False,  # with neighbours in a row every trial is a candidate
    )
    assert len(selection.candidates) < 10
    path = selection.certificate.save(tmp_path / "certificate.json")
    assert audit(path, address, None, None).ok
    entry = study.user_attrs[f"riskpilot:calibration:{selection.plan.order[0]}"]
    other = study.user_attrs[f"riskpilot:calibration:{selection.plan.order[1]}"]
    folder = tmp_path / "study.db.losses"
    (folder / entry["id"]).write_bytes((folder / other["id"]).read_bytes())
    with pytest.raises(rp.StudyError, match="calibration losses were changed"):
        rp.select(study, smooth=False)


def test_a_calibration_that_breaks_off_goes_on_where_it_stood():
    study = run(rp.create_study(PROBLEM, seed=0, n_calibration=300), without_calibration, 12)
    called = []

    def calibrate(trial):
        called.append(trial.number)
        if len(called) == 3:
            raise RuntimeError("out of memory")
        return {"error": draw(trial.params["x"], 300, 1000 + trial.number)}

    with pytest.raises(RuntimeError, match="out of memory"):
        rp.select(study, calibrate=calibrate)
    assert rp.ledger(study) == []
    order = list(rp.select(study, calibrate=calibrate).plan.order)
    assert called == [*order[:3], *order[2:]]


@pytest.mark.parametrize("asked_before", [False, True])
def test_a_calibration_whose_losses_do_not_go_together_can_be_corrected(asked_before):
    study = run(rp.create_study(PROBLEM, seed=0, n_calibration=300), without_calibration, 6)
    right = lambda trial: {"error": draw(trial.params["x"], 300, 1000 + trial.number)}  # noqa: E731
    if asked_before:
        first = rp.select(study, calibrate=right)
        run(study, without_calibration, 6)
    calls = itertools.count(400)
    for _ in range(2):
        with pytest.raises(rp.LossError, match="number of losses of 'error' differs"):
            rp.select(study, calibrate=lambda trial: {"error": draw(0.1, next(calls), 7)})
    assert len(rp.ledger(study)) == asked_before
    assert rp.select(study, calibrate=right).config is not None
    if asked_before:  # what the first question was answered with is still there
        tested = first.background.numbers[first.plan.order[0]]
        stored = read_calibration(study, PROBLEM, study.trials[tested])["error"][0]
        np.testing.assert_array_equal(stored, right(study.trials[tested])["error"])


@pytest.mark.parametrize("split", ["validation", "calibration"])
def test_every_trial_has_the_same_number_of_examples(split):
    """A trial of another number would make every selection impossible, and no trial can go."""
    study = rp.create_study(PROBLEM, seed=0)
    sizes = {"validation": 200, "calibration": 300}

    def evaluation(number):
        n = {**sizes, **({split: 301} if number == 2 else {})}
        calibration = {"error": draw(0.1, n["calibration"], 100 + number)}
        validation = {"error": draw(0.1, n["validation"], number), "cost": float(number)}
        return rp.Evaluation(validation, None if number == 0 else calibration)

    for number in (0, 1):
        rp.tell(study, study.ask(), evaluation(number))
    trial = study.ask()
    with pytest.raises(rp.LossError, match=rf"same {split} examples, but this one has 301"):
        rp.tell(study, trial, evaluation(2))
    rp.tell(study, trial, evaluation(3))  # the trial was left running, and is told again
    record = rp.objective(study, lambda trial: evaluation(2), on_error="record")
    study.optimize(record, n_trials=1)
    assert study.trials[-1].state.name == "FAIL"
    rp.select(study, calibrate=lambda trial: evaluation(4).calibration)


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_calibrate_may_not_hand_back_the_validation_losses(kind):
    stored = {}

    def remember(trial):
        x = trial.suggest_float("x", 0, 1)
        losses = draw(x, 300, trial.number)
        if kind == "real":
            losses = losses * np.random.default_rng(trial.number).random(300)
        stored[trial.number] = losses
        return rp.Evaluation({"error": losses, "cost": 1 - x})

    study = run(rp.create_study(PROBLEM, seed=0), remember, 4)
    with pytest.raises(rp.LeakageError, match="must not share examples"):
        rp.select(study, calibrate=lambda trial: {"error": stored[trial.number]})
    assert rp.ledger(study) == []


def test_an_evaluation_that_shares_its_splits_fails_its_trial():
    def shared(trial):
        x = trial.suggest_float("x", 0, 1)
        losses = draw(x + 0.2, 300, trial.number)
        return rp.Evaluation({"error": losses, "cost": 1 - x}, {"error": losses.copy()})

    study = rp.create_study(PROBLEM, seed=0)
    with pytest.raises(rp.LeakageError):
        run(study, shared, 1)
    assert study.trials[0].state == TrialState.FAIL
    assert "LeakageError" in study.trials[0].user_attrs["riskpilot:error"]


def test_validation_sets_of_unequal_size_fail_their_trial():
    def uneven(trial):
        x = trial.suggest_float("x", 0, 1)
        n = 250 if trial.number == 2 else 300
        return rp.Evaluation({"error": draw(x, n, trial.number), "cost": 1 - x})

    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, uneven, on_error="record"), n_trials=4)
    assert [trial.state.name for trial in study.trials] == [
        "COMPLETE",
        "COMPLETE",
        "FAIL",
        "COMPLETE",
    ]
    message = study.trials[2].user_attrs["riskpilot:error"]
    assert "same validation examples, but this one has 250 where the first had 300" in message


def test_workers_that_began_at_once_with_unequal_validation_sets_are_found_by_select():
    study = rp.create_study(PROBLEM, seed=0)
    trials = [study.ask(), study.ask()]
    for trial, n in zip(trials, (300, 250), strict=True):
        x = trial.suggest_float("x", 0, 1)
        losses = draw(x, n, trial.number), draw(x, 300, 9 + trial.number)
        evaluation = rp.Evaluation({"error": losses[0], "cost": 1 - x}, {"error": losses[1]})
        trial.values = rp.objective(study, lambda _, e=evaluation: e)(trial)
    for trial in trials:
        study.tell(trial, trial.values)
    with pytest.raises(rp.LossError, match="has 250 where the first had 300"):
        rp.select(study)


def test_selection_is_the_same_after_a_crash_and_a_resume(tmp_path):
    whole = run(rp.create_study(PROBLEM, seed=3), n_trials=9)
    url = f"sqlite:///{tmp_path}/study.db"
    rp.create_study(PROBLEM, storage=url, study_name="s", seed=3)
    run(rp.load_study(storage=url, study_name="s"), n_trials=4)
    run(rp.load_study(storage=url, study_name="s"), n_trials=5)
    one = rp.select(whole)
    two = rp.select(rp.load_study(storage=url, study_name="s"))
    assert one.config == two.config
    assert one.certificate.plan_digest == two.certificate.plan_digest
    assert one.certificate.calibration_digest == two.certificate.calibration_digest
    assert (tmp_path / "study.db.losses").is_dir()


def test_a_study_loaded_by_optuna_itself_can_be_selected_from(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    run(rp.create_study(PROBLEM, storage=url, study_name="s", seed=0))
    plain = optuna.load_study(storage=url, study_name="s")
    assert rp.select(plain).certificate.plan_digest


def test_a_journal_keeps_its_losses_beside_it(tmp_path):
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    path = tmp_path / "journal.log"
    storage = JournalStorage(JournalFileBackend(str(path)))
    run(rp.create_study(PROBLEM, storage=storage, study_name="s", seed=0), n_trials=6)
    again = JournalStorage(JournalFileBackend(str(path)))
    assert rp.select(rp.load_study(storage=again, study_name="s")).certificate.n_configs == 6
    assert (tmp_path / "journal.log.losses").is_dir()


def test_any_optuna_sampler_can_search():
    study = rp.create_study(PROBLEM, sampler=optuna.samplers.RandomSampler(seed=0))
    assert rp.select(run(study)).search is None


def test_an_existing_study_of_another_problem_is_not_taken_over(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    rp.create_study(PROBLEM, storage=url, study_name="s")
    other = PROBLEM.with_limits(error=0.1)
    with pytest.raises(rp.StudyError, match="another problem"):
        rp.create_study(other, storage=url, study_name="s", load_if_exists=True)


# --- limits --------------------------------------------------------------------------------------


def test_suggested_limits_are_the_range_of_the_pool_and_the_smallest_that_would_pass():
    study = run(rp.create_study(OPEN, seed=0), n_trials=6)
    (suggestion,) = rp.suggest_limits(study).values()
    means = [trial.values[0] for trial in study.trials]
    assert suggestion.lowest == pytest.approx(min(means))
    assert suggestion.highest == pytest.approx(max(means))
    safest = min(study.trials, key=lambda trial: trial.values[0])
    count = round(safest.values[0] * 300)
    calibration = {"error": np.roll(np.arange(300) < count, 7)}
    for limit, passes in (
        (suggestion.tightest_limit + 1e-6, True),
        (suggestion.tightest_limit - 1e-3, False),
    ):
        selection = rp.select_from_losses(
            OPEN.with_limits(error=limit),
            validation={"error": [np.arange(300) < count], "cost": [1.0]},
            calibration={"error": [calibration["error"]]},
        )
        assert (selection.config is not None) is passes
    assert "can be expected to pass" in str(suggestion)


def test_a_sampler_of_ones_own_knows_the_calibration_sample_that_the_study_was_told_of():
    """Without it a search aims at what passes with as few examples as validation has."""

    def proposed(**settings):
        sampler = rp.GuidedSampler(PROBLEM, seed=0, **settings)
        study = rp.create_study(PROBLEM, seed=0, sampler=sampler, n_calibration=30_000)
        return [trial.params for trial in run(study, without_calibration, 8).trials]

    assert proposed() == proposed(n_calibration=30_000) != proposed(n_calibration=300)


def test_suggestions_do_not_depend_on_calibration_losses():
    def other(trial):
        return rp.Evaluation(evaluate(trial).validation, {"error": np.ones(300, dtype=bool)})

    one = rp.suggest_limits(run(rp.create_study(OPEN, seed=0), n_trials=5))
    assert rp.suggest_limits(run(rp.create_study(OPEN, seed=0), other, 5)) == one


def test_limits_are_set_once_the_pool_is_there_and_not_after_a_selection():
    study = run(rp.create_study(OPEN, seed=0), n_trials=6)
    with pytest.raises(rp.ProblemError, match="still open"):
        rp.select(study)
    assert rp.set_limits(study, error=0.25).risks[0].limit == 0.25
    rp.set_limits(study, error=0.3)  # a change of mind before anything is opened
    rp.select(study)
    with pytest.raises(rp.StudyError, match="cannot change any more"):
        rp.set_limits(study, error=0.2)


def test_a_suggested_limit_is_rounded_to_the_side_that_can_pass():
    suggestion = rp.LimitSuggestion("error", "error", 0.05, 0.2, 0.087651)
    assert "limits from 0.08766 can" in str(suggestion)
    lower = rp.LimitSuggestion("precision", "precision", 0.8, 0.95, 0.912371, at_least=True)
    assert "limits up to 0.9123 can" in str(lower)
