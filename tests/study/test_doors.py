"""Ask and tell, finished studies of plain Optuna, and the mistakes that are made at these doors."""

import logging
import warnings
from collections.abc import Callable, Generator
from pathlib import Path

import numpy as np
import optuna
import pytest

import riskpilot as rp
from tests.kits.bad_input import assert_rule_value_and_way_out

PROBLEM = rp.Problem([rp.Risk("error", 0.2)], minimize="cost")
SEALED = 0.123456  # a calibration loss that no log may show


def evaluation_at(x: float, seed: int = 0) -> rp.Evaluation:
    """Draw losses that grow with x, while the cost falls."""
    draws = np.random.default_rng([seed, round(1000 * x)]).random((2, 500)) < 0.3 * x
    return rp.Evaluation({"error": draws[0], "cost": 1 - x}, {"error": draws[1]})


def evaluate(trial: optuna.Trial) -> rp.Evaluation:
    return evaluation_at(trial.suggest_float("x", 0, 1))


# --- ask and tell --------------------------------------------------------------------------------


def test_ask_and_tell_finds_what_optimize_finds() -> None:
    loop, study = rp.create_study(PROBLEM, seed=3), rp.create_study(PROBLEM, seed=3)
    for _ in range(8):
        trial = loop.ask()
        rp.tell(loop, trial, evaluate(trial))
    study.optimize(rp.objective(study, evaluate), n_trials=8)
    assert [t.params for t in loop.trials] == [t.params for t in study.trials]
    assert [t.values for t in loop.trials] == [t.values for t in study.trials]
    assert rp.select(loop).config == rp.select(study).config is not None


@pytest.mark.filterwarnings("ignore:Heartbeat of storage is supposed to be used with")
def test_a_trial_is_told_by_its_number_in_another_process(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/study.db"
    first = rp.create_study(PROBLEM, storage=place, study_name="s", seed=0)
    x = first.ask().suggest_float("x", 0, 1)
    later = rp.load_study(storage=place, study_name="s")  # as a process that resumes does
    before = later.trials[0].system_attrs
    rp.tell(later, 0, evaluation_at(x))
    assert later.trials[0].state.name == "COMPLETE"
    assert later.trials[0].system_attrs == before  # no new proposal was made for it
    assert rp.select(later).certificate is not None


def test_losses_that_cannot_be_used_leave_the_trial_running() -> None:
    study = rp.create_study(PROBLEM)
    trial = study.ask()
    x = trial.suggest_float("x", 0, 1)
    with pytest.raises(rp.LossRangeError):
        rp.tell(study, trial, rp.Evaluation({"error": [2.0], "cost": 1.0}, {"error": [0.0]}))
    assert study.trials[0].state.name == "RUNNING"
    rp.tell(study, trial, evaluation_at(x))
    assert study.trials[0].state.name == "COMPLETE"


def test_tell_says_what_it_takes() -> None:
    study, other = rp.create_study(PROBLEM), rp.create_study(PROBLEM)
    trial = study.ask()
    with pytest.raises(rp.LossError, match="must be an Evaluation, but it is a float"):
        rp.tell(study, trial, 0.5)  # type: ignore[arg-type]
    with pytest.raises(rp.StudyError, match="is not among them"):
        rp.tell(other, trial, evaluation_at(0.1))
    with pytest.raises(rp.StudyError, match="7, is not among them"):
        rp.tell(study, 7, evaluation_at(0.1))
    with pytest.raises(rp.StudyError, match=r"or its number, but got 'first'"):
        rp.tell(study, "first", evaluation_at(0.1))  # type: ignore[arg-type]
    with pytest.raises(rp.LeakageError):
        rp.tell(study, trial, evaluation_at(0.1), validation_ids=[1], calibration_ids=[1])
    rp.tell(study, trial, evaluation_at(0.1))
    with pytest.raises(rp.StudyError, match="trial 0 is complete"):
        rp.tell(study, trial, evaluation_at(0.1))


def assert_not_told(study: optuna.Study, trial: optuna.Trial, words: str) -> None:
    """The trial is refused in these words, and can be ended as the message says."""
    with pytest.raises(rp.StudyError, match=words) as e:
        rp.tell(study, trial, evaluation_at(0.1))
    assert_rule_value_and_way_out(str(e.value))
    assert f"study.tell({trial.number}, state=optuna.trial.TrialState.FAIL)" in str(e.value)
    study.tell(trial.number, state=optuna.trial.TrialState.FAIL)


def test_a_trial_whose_suggestion_raised_is_not_told() -> None:
    study = rp.create_study(PROBLEM, seed=0)
    first = study.ask()
    rp.tell(study, first, evaluate(first))
    trial = study.ask()
    with pytest.raises(ValueError, match="from 0"):
        trial.suggest_float("x", 0, float("inf"))
    assert_not_told(study, trial, "trial 1 has none, while those of trial 0 are 'x'")
    again = study.ask()
    rp.tell(study, again, evaluate(again))
    assert study.trials[2].state.name == "COMPLETE"


def test_a_queued_trial_whose_suggestion_raised_is_not_told() -> None:
    study = rp.create_study(PROBLEM, safe={"x": "half"}, seed=0)
    trial = study.ask()
    with pytest.raises(ValueError, match="half"):
        trial.suggest_float("x", 0, 1)
    assert_not_told(study, trial, "trial 0 has none, while those queued for it are 'x'")


def test_trials_without_parameters_are_told_where_evaluations_may_have_none() -> None:
    study = rp.create_study(PROBLEM, seed=0)
    for _ in range(2):
        rp.tell(study, study.ask(), evaluation_at(0.1))
    trial = study.ask()
    rp.tell(study, trial, evaluate(trial))
    rp.tell(study, study.ask(), evaluation_at(0.1))
    assert [len(trial.params) for trial in study.trials] == [0, 0, 1, 0]


# --- trials of study.optimize that forget their parameters ---------------------------------------


def forgetful(trial: optuna.Trial) -> rp.Evaluation:
    """Evaluate a trial, the third of which suggests nothing."""
    return evaluation_at(0.1) if trial.number == 2 else evaluate(trial)


def raced(trial: optuna.Trial) -> Generator[dict[str, object], None, dict[str, object]]:
    """Evaluate a trial in a race, in the same way."""
    evaluation = forgetful(trial)
    errors, cost = (np.asarray(evaluation.validation[name]) for name in ("error", "cost"))
    yield {"error": errors[:250], "cost": cost}
    yield {"error": errors[250:], "cost": cost}
    assert evaluation.calibration is not None
    return dict(evaluation.calibration)


@pytest.mark.parametrize("forgets", [forgetful, raced])
def test_a_trial_of_optimize_without_parameters_fails_and_keeps_the_error(
    forgets: Callable[[optuna.Trial], rp.Evaluation],
) -> None:
    study = rp.create_study(PROBLEM, seed=0)
    with pytest.raises(
        rp.StudyError, match="trial 2 has none, while those of trial 1 are 'x'"
    ) as e:
        study.optimize(rp.objective(study, forgets), n_trials=5)
    assert_rule_value_and_way_out(str(e.value))
    assert study.trials[2].state.name == "FAIL"
    assert study.trials[2].user_attrs["riskpilot:error"] == f"StudyError: {e.value}"
    study.optimize(rp.objective(study, forgets), n_trials=2)
    assert [trial.state.name for trial in study.trials[3:]] == ["COMPLETE"] * 2


def test_on_error_says_what_follows_a_trial_without_parameters() -> None:
    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, forgetful, on_error="record"), n_trials=5)
    assert [trial.state.name == "FAIL" for trial in study.trials] == [n == 2 for n in range(5)]


def test_a_queued_configuration_that_is_not_suggested_fails() -> None:
    study = rp.create_study(PROBLEM, safe={"x": 0.1}, seed=0)
    with pytest.raises(rp.StudyError, match="trial 0 has none, while those queued for it are 'x'"):
        study.optimize(rp.objective(study, lambda trial: evaluation_at(0.1)), n_trials=1)


def test_optimize_takes_spaces_without_parameters_and_with_a_condition() -> None:
    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, lambda trial: evaluation_at(0.1)), n_trials=3)
    study.optimize(rp.objective(study, evaluate), n_trials=1)
    study.optimize(rp.objective(study, lambda trial: evaluation_at(0.1)), n_trials=1)
    assert [len(trial.params) for trial in study.trials] == [0, 0, 0, 1, 0]
    assert all(trial.state.name == "COMPLETE" for trial in study.trials)

    def under_a_condition(trial: optuna.Trial) -> rp.Evaluation:
        is_tuned = trial.suggest_categorical("tuned", [False, True])
        return evaluate(trial) if is_tuned else evaluation_at(0.1)

    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, under_a_condition), n_trials=8)
    assert {len(trial.params) for trial in study.trials} == {1, 2}
    assert all(trial.state.name == "COMPLETE" for trial in study.trials)


# --- evaluations given to Optuna -----------------------------------------------------------------


def sealed_evaluation(trial: optuna.Trial) -> rp.Evaluation:
    trial.suggest_float("x", 0, 1)
    return rp.Evaluation({"error": [0.5], "cost": 1.0}, {"error": [SEALED]})


def test_an_objective_that_riskpilot_did_not_make_ends_the_search_with_one_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = rp.create_study(PROBLEM)
    optuna.logging.enable_propagation()
    try:
        with (
            caplog.at_level(logging.DEBUG),
            pytest.raises(rp.StudyError, match=r"optimize\(riskpilot.objective\(study, evaluate\)"),
        ):
            study.optimize(sealed_evaluation)  # without a number of trials it would never end
    finally:
        optuna.logging.disable_propagation()
    assert len(study.trials) == 2
    assert all(trial.state.name == "FAIL" for trial in study.trials)
    assert str(SEALED) not in caplog.text
    study.optimize(rp.objective(study, evaluate), n_trials=2)  # the mistake is put right
    assert study.trials[-1].state.name == "COMPLETE"


def test_an_evaluation_told_to_optuna_is_one_clear_error() -> None:
    study = rp.create_study(PROBLEM)
    trial = study.ask()
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with pytest.raises(rp.StudyError, match=r"Use riskpilot.tell\(study, trial, evaluation\)"):
            study.tell(trial, sealed_evaluation(trial))
    assert str(SEALED) not in "".join(str(one.message) for one in shown)
    again = study.ask()
    study.tell(again, state=optuna.trial.TrialState.FAIL)  # giving up a trial is no mistake
    assert len(study.trials) == 2


def test_the_repr_of_an_evaluation_shows_names_alone() -> None:
    evaluation = rp.Evaluation({"error": [SEALED], "cost": 2.5}, {"error": [SEALED]})
    assert repr(evaluation) == "Evaluation(validation: error, cost; calibration: error, sealed)"
    assert repr(rp.Evaluation({"error": [0.5]})).endswith("calibration: none)")
    with pytest.raises(rp.LossError, match="is no number"):
        float(evaluation)


# --- studies of plain Optuna ---------------------------------------------------------------------


@pytest.fixture(params=["one objective", "two objectives", "sqlite", "journal"])
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> optuna.Study:
    """A finished study of plain Optuna, with one trial that failed and one that was pruned."""
    storage: object = None
    if request.param == "sqlite":
        storage = f"sqlite:///{tmp_path}/plain.db"
    elif request.param == "journal":
        file = optuna.storages.journal.JournalFileBackend(f"{tmp_path}/plain.log")
        storage = optuna.storages.JournalStorage(file)
    two = request.param == "two objectives"
    study = optuna.create_study(
        storage=storage,  # type: ignore[arg-type]
        directions=["minimize", "maximize"] if two else ["minimize"],
        sampler=optuna.samplers.RandomSampler(seed=0),
    )

    def objective(trial: optuna.Trial) -> float | tuple[float, float]:
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 3:
            raise RuntimeError("no luck")
        if trial.number == 5 and not two:
            raise optuna.TrialPruned
        return (x, x) if two else x

    study.optimize(objective, n_trials=12, catch=(RuntimeError,))
    return study


def losses_of(trial: optuna.trial.FrozenTrial) -> rp.Evaluation:
    return evaluation_at(trial.params["x"])


def test_a_finished_study_is_adopted_and_left_as_it_was(plain: optuna.Study) -> None:
    before = [(t.number, t.state, t.values, t.user_attrs) for t in plain.trials], plain.user_attrs
    study = rp.adopt(plain, PROBLEM, losses_of)
    after = [(t.number, t.state, t.values, t.user_attrs) for t in plain.trials], plain.user_attrs
    assert before == after
    complete = [t for t in plain.trials if t.state.name == "COMPLETE"]
    assert [t.params for t in study.trials] == [t.params for t in complete]
    selection = rp.select(study)
    assert selection.config is not None
    assert rp.verify(selection.certificate, study=study).ok
    study.optimize(rp.objective(study, evaluate), n_trials=2)  # and the search may go on
    assert len(study.trials) == len(complete) + 2


def test_an_adopted_study_is_chosen_from_as_a_table_of_the_same_losses_is() -> None:
    plain = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    plain.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=30)
    adopted = rp.select(rp.adopt(plain, PROBLEM, losses_of), smooth=False)
    evaluations = [losses_of(trial) for trial in plain.trials]
    table = rp.select_from_losses(
        PROBLEM,
        validation={
            "error": np.array([e.validation["error"] for e in evaluations]),
            "cost": np.array([e.validation["cost"] for e in evaluations]),
        },
        calibration={"error": np.array([e.calibration["error"] for e in evaluations])},  # type: ignore[index]
        configs=[trial.params for trial in plain.trials],
    )
    assert adopted.config == table.config is not None
    assert adopted.p_values.tolist() == table.p_values.tolist()


def test_an_interrupted_adoption_goes_on(plain: optuna.Study, tmp_path: Path) -> None:
    asked: list[int] = []

    def interrupted(trial: optuna.trial.FrozenTrial) -> rp.Evaluation:
        if len(asked) == 4:
            raise KeyboardInterrupt
        asked.append(trial.number)
        return losses_of(trial)

    place = {"storage": f"sqlite:///{tmp_path}/ours.db", "study_name": "adopted"}
    with pytest.raises(KeyboardInterrupt):
        rp.adopt(plain, PROBLEM, interrupted, **place)  # type: ignore[arg-type]
    later: list[int] = []
    study = rp.adopt(
        plain,
        PROBLEM,
        lambda trial: later.append(trial.number) or losses_of(trial),  # type: ignore[func-returns-value]
        **place,  # type: ignore[arg-type]
    )
    complete = [t.number for t in plain.trials if t.state.name == "COMPLETE"]
    assert sorted([*asked, *later]) == complete  # each was asked for once
    assert len(study.trials) == len(complete)


def finished_plain(xs: list[float], **options: object) -> optuna.Study:
    """A study of plain Optuna, named "tuned", that tried some configurations."""
    study = optuna.create_study(study_name="tuned", **options)  # type: ignore[arg-type]
    for x in xs:
        study.enqueue_trial({"x": x})
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=len(xs))
    return study


def with_values(values: list[float]) -> optuna.Study:
    """A study of the same name and configurations as another one, with values of its own."""
    study = optuna.create_study(study_name="tuned")
    for x, value in zip([0.1, 0.2, 0.3], values, strict=True):
        ranges = {"x": optuna.distributions.FloatDistribution(0, 1)}
        study.add_trial(
            optuna.trial.create_trial(params={"x": x}, distributions=ranges, value=value)
        )
    return study


@pytest.mark.parametrize("name", ["ours.db", "ours.log"])
@pytest.mark.parametrize("case", ["other parameters", "fewer trials", "other values"])
def test_another_study_of_the_same_name_is_not_mixed_in(
    name: str, case: str, tmp_path: Path
) -> None:
    others = {
        "other parameters": finished_plain([0.5, 0.6, 0.7, 0.8]),
        "fewer trials": finished_plain([0.1, 0.2]),
        "other values": with_values([0.1, 0.2, 9.0]),
    }
    place = tmp_path / name
    rp.adopt(finished_plain([0.1, 0.2, 0.3]), PROBLEM, losses_of, storage=place)
    with pytest.raises(rp.StudyError, match=r"adopted from another study .* study_name="):
        rp.adopt(others[case], PROBLEM, losses_of, storage=place)
    assert len(rp.load_study(storage=place, study_name="tuned").trials) == 3
    apart = rp.adopt(others[case], PROBLEM, losses_of, storage=place, study_name="apart")
    assert len(apart.trials) == len(others[case].trials)


def test_an_adopted_study_that_went_on_brings_its_new_trials(tmp_path: Path) -> None:
    given = finished_plain([0.1, 0.2, 0.3])
    study = rp.adopt(given, PROBLEM, losses_of, storage=tmp_path / "ours.db")
    study.optimize(rp.objective(study, evaluate), n_trials=1)  # a trial that was not adopted
    given.enqueue_trial({"x": 1})  # memory keeps the whole number, and a storage does not
    given.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    # The same study may have moved to another storage meanwhile.
    moved = f"sqlite:///{tmp_path}/plain.db"
    optuna.copy_study(from_study_name="tuned", from_storage=given._storage, to_storage=moved)
    for _ in range(2):
        again = optuna.load_study(study_name="tuned", storage=moved)
        study = rp.adopt(again, PROBLEM, losses_of, storage=tmp_path / "ours.db")
        assert [t.params["x"] for t in study.trials if t.number != 3] == [0.1, 0.2, 0.3, 1.0]


@pytest.mark.parametrize("mark", [3, {}, {"number": 0, "digest": "0" * 64}])
def test_trials_that_do_not_say_whence_they_came_are_not_adopted_anew(mark: object) -> None:
    given = finished_plain([0.1])
    study = rp.adopt(given, PROBLEM, losses_of)
    odd = study.trials[0]
    odd.user_attrs["riskpilot:adopted"] = mark
    study.add_trial(odd)
    with pytest.raises(rp.StudyError, match="study_name="):
        rp.adopt(given, PROBLEM, losses_of, storage=study._storage)


def test_adopt_says_what_it_takes(plain: optuna.Study) -> None:
    with pytest.raises(rp.StudyError, match=r"takes a study of Optuna's, but got 'study\.db'"):
        rp.adopt("study.db", PROBLEM, losses_of)  # type: ignore[arg-type]
    with pytest.raises(rp.StudyError, match="losses is a function"):
        rp.adopt(plain, PROBLEM, {})  # type: ignore[arg-type]
    with pytest.raises(rp.LossError, match="of trial 0 must be an Evaluation, but it is a dict"):
        rp.adopt(plain, PROBLEM, lambda trial: {})  # type: ignore[arg-type,return-value]
    with pytest.raises(rp.StudyError, match="has none"):
        rp.adopt(optuna.create_study(), PROBLEM, losses_of)
    with pytest.raises(rp.StudyError, match="riskpilot made the study"):
        rp.adopt(rp.create_study(PROBLEM), PROBLEM, losses_of)


# --- studies that are not there, or not ours -----------------------------------------------------


def test_a_foreign_study_is_not_written_into(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/study.db"
    foreign = optuna.create_study(storage=place, study_name="s", directions=["minimize"] * 2)
    foreign.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0.0), n_trials=1)
    with pytest.raises(rp.StudyError, match="is one of plain Optuna's; it was left as it is"):
        rp.create_study(PROBLEM, storage=place, study_name="s", load_if_exists=True)
    again = optuna.load_study(storage=place, study_name="s")
    assert again.user_attrs == {}
    assert again.metric_names is None


@pytest.mark.parametrize("name", ["sqlite:///{}/nope.db", "{}/nope.db", "{}/nope.log"])
def test_a_study_that_is_not_there_is_not_made(name: str, tmp_path: Path) -> None:
    with pytest.raises(rp.StudyError, match="does not exist"):
        rp.load_study(storage=name.format(tmp_path), study_name="s")
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_evaluation_itself_is_raised_as_it_is() -> None:
    def fail(trial: optuna.Trial) -> rp.Evaluation:
        trial.suggest_float("x", 0, 1)
        raise ValueError("of the model")

    study = rp.create_study(PROBLEM, safe={"x": 0.5})
    with pytest.raises(ValueError, match=r"^of the model$"):
        study.optimize(rp.objective(study, fail), n_trials=1)


def test_a_safe_configuration_with_a_slip_in_a_name_is_reported() -> None:
    study = rp.create_study(PROBLEM, safe={"y": 0.0})
    with pytest.warns(UserWarning, match=r"names 'y', but its evaluation, trial 0, suggests no"):
        study.optimize(rp.objective(study, evaluate), n_trials=1)
    told = rp.create_study(PROBLEM, safe={"y": 0.0, "x": 0.5})
    trial = told.ask()
    with pytest.warns(UserWarning, match=r"it suggests x"):
        rp.tell(told, trial, evaluate(trial))
    assert told.trials[0].params == {"x": 0.5}
