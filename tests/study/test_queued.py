"""Queued configurations: no evaluation gets a value that its parameter cannot take."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import riskpilot as rp
from tests.kits.bad_input import assert_rule_value_and_way_out

PROBLEM = rp.Problem([rp.Risk("error", 0.8)], minimize="cost")
Suggest = Callable[[optuna.Trial], Any]


def number(trial: optuna.Trial) -> Any:
    return trial.suggest_float("x", 0, 1)


def whole(trial: optuna.Trial) -> Any:
    return trial.suggest_int("x", 0, 6, step=2)


def small(trial: optuna.Trial) -> Any:
    return trial.suggest_float("x", 0.001, 1, log=True)


def tenth(trial: optuna.Trial) -> Any:
    return trial.suggest_float("x", 0, 0.1)


def stepped(trial: optuna.Trial) -> Any:
    return trial.suggest_float("x", 0, 1, step=0.1)


def size(trial: optuna.Trial) -> Any:
    return trial.suggest_categorical("x", [1, 2])


def flag(trial: optuna.Trial) -> Any:
    return trial.suggest_categorical("x", [True, False])


def layers(trial: optuna.Trial) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna's, of choices that are tuples
        return trial.suggest_categorical("x", [(1, 2), (3,), None])


EVALUATION = rp.Evaluation({"error": [0, 1, 0, 0], "cost": 0.1}, {"error": [0, 0, 1]})

# What is not of the kind of its parameter: refused in every queued configuration.
OTHER_KINDS = [
    *((number, value) for value in ("0.3", "half", True, None, [1, 2], (1, 2), {"a": 1})),
    *((whole, value) for value in ("2", True, 2.5, None)),
    *((small, value) for value in (0, -1.0)),
    *((size, value) for value in ("1", True, 3, 1.5, None)),
    *((flag, value) for value in (1, 0.0, "True")),
    (layers, (1, 3)),
]
# Numbers outside the range: refused in the safe configuration alone.
OUTSIDE = [
    *((number, value) for value in (5, -0.1, -1e-7)),
    *((whole, value) for value in (8, 3)),
    *((small, value) for value in (1e-4, 0.00099)),
    (stepped, 0.25),
]
# What is the same as what the parameter has: the evaluation gets what the parameter has.
SAME = [
    (number, 0, 0.0),
    (number, np.float64(0.5), 0.5),
    (number, np.float32(0.5), 0.5),
    (tenth, np.float32(0.1), 0.1),  # beyond the end by rounding alone
    (number, np.int64(1), 1.0),
    (whole, 2.0, 2),
    (whole, np.int8(4), 4),
    (stepped, 0.3, 0.3),
    (size, 2.0, 2),
    (size, np.int64(2), 2),
    (flag, np.False_, False),
    (layers, (1, 2), (1, 2)),
    (layers, (np.int64(1), 2), (1, 2)),
    (layers, [3], (3,)),
    (layers, None, None),
]


def searched(
    study: optuna.Study,
    suggest: Suggest,
    given: list[Any] | None = None,
    n_trials: int = 1,
    **settings: Any,
) -> list[Any]:
    """What the evaluations of a study are given, in a list that is filled."""
    given = [] if given is None else given

    def evaluate(trial: optuna.Trial) -> rp.Evaluation:
        given.append(suggest(trial))
        return EVALUATION

    study.optimize(rp.objective(study, evaluate, **settings), n_trials=n_trials)
    return given


@pytest.mark.parametrize(("suggest", "value"), OTHER_KINDS + OUTSIDE)
def test_a_safe_value_that_its_parameter_cannot_take_never_reaches_the_evaluation(
    suggest: Suggest, value: object
) -> None:
    study = rp.create_study(PROBLEM, safe={"x": value}, seed=0)
    given: list[Any] = []
    with pytest.raises(
        rp.StudyError, match=r"^The safe configuration .* 'x' is .* 0 suggests"
    ) as e:
        searched(study, suggest, given)
    assert_rule_value_and_way_out(str(e.value))
    assert given == []


@pytest.mark.parametrize("name", ["study.db", "study.log", None])
def test_a_study_goes_on_after_a_safe_configuration_that_cannot_be(
    name: str | None, tmp_path: Path
) -> None:
    place = None if name is None else tmp_path / name
    study = rp.create_study(PROBLEM, safe={"x": "0.3"}, storage=place, seed=0)
    with pytest.raises(rp.StudyError, match=r"can go on: queue .*study\.enqueue_trial\(\{'x': "):
        searched(study, number, time_limit=60)
    assert study.trials[0].state == TrialState.FAIL
    assert study.trials[0].user_attrs["riskpilot:error"].startswith("StudyError: The safe")
    study.enqueue_trial({"x": 0.3})
    assert searched(study, number, n_trials=2)[0] == 0.3
    rp.select(study)


@pytest.mark.parametrize(("suggest", "value"), OTHER_KINDS)
def test_a_queued_value_of_another_kind_never_reaches_the_evaluation(
    suggest: Suggest, value: object
) -> None:
    study = rp.create_study(PROBLEM, seed=0)
    study.enqueue_trial({"x": value})
    with pytest.raises(rp.StudyError, match=r"^A configuration that is queued .* 'x' is "):
        searched(study, suggest)
    assert study.trials[0].state == TrialState.FAIL


@pytest.mark.parametrize(("suggest", "value"), OUTSIDE)
def test_a_queued_number_outside_the_range_is_evaluated_with_the_warning_of_optuna(
    suggest: Suggest, value: float
) -> None:
    study = rp.create_study(PROBLEM, seed=0)
    study.enqueue_trial({"x": value})
    with pytest.warns(UserWarning, match="out of range"):
        assert searched(study, suggest) == [value]


@pytest.mark.parametrize("storage", ["study.db", None])
@pytest.mark.parametrize(("suggest", "value", "expected"), SAME)
def test_an_evaluation_gets_what_its_parameter_has(
    suggest: Suggest, value: object, expected: object, storage: str | None, tmp_path: Path
) -> None:
    place = None if storage is None else tmp_path / storage
    study = rp.create_study(PROBLEM, safe={"x": value}, storage=place, seed=0)
    (given,) = searched(study, suggest)
    assert given == expected
    assert type(given) is type(expected)


LARGE = 2**53 + 1  # as a float it is 2**53


def large(trial: optuna.Trial) -> Any:
    return trial.suggest_int("x", 0, 2**60)


def large_choice(trial: optuna.Trial) -> Any:
    return trial.suggest_categorical("x", [2**53, LARGE])


@pytest.mark.parametrize("value", [LARGE, np.int64(LARGE), -LARGE])
@pytest.mark.parametrize("is_safe", [True, False])
def test_a_whole_number_that_would_lose_digits_is_refused(value: Any, is_safe: bool) -> None:
    study = rp.create_study(PROBLEM, safe={"x": value} if is_safe else None, seed=0)
    if not is_safe:
        study.enqueue_trial({"x": value})
    with pytest.raises(rp.StudyError, match=r"all digits, as it does up to 2\*\*53, but 'x'") as e:
        searched(study, large)
    assert_rule_value_and_way_out(str(e.value))
    assert f"would be kept as {int(value) // LARGE * 2**53}. " in str(e.value)


@pytest.mark.parametrize("storage", ["study.db", "study.log", None])
@pytest.mark.parametrize(
    ("suggest", "value"), [(large, 2**53), (large, 2**60), (large_choice, LARGE)]
)
def test_a_large_whole_number_that_is_kept_exactly_is_evaluated_and_stored(
    suggest: Suggest, value: int, storage: str | None, tmp_path: Path
) -> None:
    place = None if storage is None else tmp_path / storage
    study = rp.create_study(PROBLEM, safe={"x": value}, storage=place, seed=0)
    assert searched(study, suggest) == [value]
    assert study.trials[0].params == {"x": value}


def test_a_search_that_records_errors_goes_on_without_the_safe_configuration() -> None:
    study = rp.create_study(PROBLEM, safe={"x": "0.3"}, seed=0)
    assert len(searched(study, number, n_trials=3, on_error="record")) == 2
    assert [trial.state.name for trial in study.trials] == ["FAIL", "COMPLETE", "COMPLETE"]


@pytest.mark.parametrize(("suggest", "value"), [(number, "0.3"), (number, 5), (whole, 2.5)])
@pytest.mark.filterwarnings("ignore:Fixed parameter")
def test_a_trial_with_a_value_that_its_parameter_cannot_take_is_not_told(
    suggest: Suggest, value: object
) -> None:
    study = rp.create_study(PROBLEM, safe={"x": value}, seed=0)
    trial = study.ask()
    suggest(trial)
    with pytest.raises(rp.StudyError, match=r"study\.tell\(0, state=.*FAIL\).*enqueue_trial") as e:
        rp.tell(study, trial, EVALUATION)
    assert_rule_value_and_way_out(str(e.value))
    study.tell(0, state=TrialState.FAIL)
    again = study.ask()
    suggest(again)
    rp.tell(study, again, EVALUATION)
    assert study.trials[1].state == TrialState.COMPLETE


def test_a_choice_that_is_a_tuple_can_be_queued_in_a_database(tmp_path: Path) -> None:
    study = rp.create_study(PROBLEM, storage=tmp_path / "study.db", seed=0)
    study.enqueue_trial({"x": (1, 2)})
    assert searched(study, layers) == [(1, 2)]


def test_a_value_is_checked_once_and_a_second_look_at_it_is_free() -> None:
    study = rp.create_study(PROBLEM, safe={"x": 0}, seed=0)
    assert searched(study, lambda trial: [number(trial), number(trial)]) == [[0.0, 0.0]]


def test_an_empty_safe_configuration_queues_nothing() -> None:
    assert rp.create_study(PROBLEM, safe={}).trials == []
