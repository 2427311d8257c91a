"""Workers that do the same thing at the same moment: one does it, and the others find it done."""

import itertools
import time
from unittest import mock

import optuna
import pytest

import riskpilot as rp
from riskpilot.study.storages import get_trial, set_trial_state
from tests.durability.cases import PROBLEM, evaluate, evaluation
from tests.durability.turns import adopt, at_once, begin, create, tell

BY_HAND = pytest.mark.filterwarnings("ignore:Heartbeat of storage:UserWarning")


@pytest.mark.parametrize("attempt", range(2))
def test_workers_that_make_the_same_study_get_one(storage, tmp_path, attempt):
    written = at_once(create, storage, tmp_path / "flag", [()] * 4)
    assert len({tuple(lines) for lines in written}) == 1  # all of them have the same seed
    study = rp.load_study(**storage, study_name="s")
    assert len(study.trials) == 1  # the safe configuration was queued once
    optuna.delete_study(study_name="s", storage=study._storage)


@BY_HAND
@pytest.mark.parametrize("again", ["create", "load"])
def test_the_safe_configuration_outlives_the_maker_of_its_study(storage, request, again):
    options = {**storage, "study_name": request.node.name}
    killed = mock.patch.object(optuna.Study, "enqueue_trial", side_effect=KeyboardInterrupt)
    with killed, pytest.raises(KeyboardInterrupt):
        rp.create_study(PROBLEM, safe={"x": 0.25}, **options)
    if again == "create":
        study = rp.create_study(PROBLEM, safe={"x": 0.5}, load_if_exists=True, **options)
    else:
        study = rp.load_study(**options)
    assert study.metric_names is not None
    for _ in range(2):
        trial = rp.load_study(**options).ask()
        trial.suggest_float("x", 0, 1)
    first, second = study.trials
    assert first.params == {"x": 0.25}  # as in any study that is continued, nothing else is queued
    assert second.params != first.params
    assert ["riskpilot:safe" in t.user_attrs for t in study.trials] == [True, False]


def test_a_study_that_was_begun_gets_no_safe_configuration_afterwards():
    with mock.patch.object(optuna.Study, "enqueue_trial"):
        study = rp.create_study(PROBLEM, safe={"x": 0.25}, seed=0, study_name="s")
    study.ask().suggest_float("x", 0, 1)
    again = rp.load_study(storage=study._storage, study_name="s")
    assert [trial.params == {"x": 0.25} for trial in again.trials] == [False]


def test_a_study_whose_settings_name_no_safe_configuration_goes_on():
    """Studies of earlier versions have none there, and those without one have none."""
    study = rp.create_study(PROBLEM, seed=0, study_name="s")
    assert "safe" not in rp.study.settings_of(study)
    assert not rp.load_study(storage=study._storage, study_name="s").trials


@BY_HAND
def test_of_workers_that_tell_the_same_trial_one_is_heard(storage, tmp_path):
    study = rp.create_study(PROBLEM, seed=0, **storage, study_name="s")
    for _ in range(6):
        study.ask().suggest_float("x", 0, 1)
    written = at_once(tell, storage, tmp_path / "flag", [(0.25,), (0.5,), (0.75,)])
    assert sorted(itertools.chain(*written)) == [f"told {number}" for number in range(6)]
    for trial in rp.load_study(**storage, study_name="s").trials:
        assert trial.user_attrs["riskpilot:record"]["free"] == trial.values[-1]
    optuna.delete_study(study_name="s", storage=study._storage)


@BY_HAND
def test_a_trial_that_was_failed_meanwhile_is_told_in_one_sentence(storage, monkeypatch):
    """A worker that was silent for too long loses its trial to others, who ask nobody."""
    study = rp.create_study(PROBLEM, seed=0, **storage, study_name="s")
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    tell = study.tell

    def after_others(*arguments):
        set_trial_state(study, get_trial(study, trial), optuna.trial.TrialState.FAIL)
        return tell(*arguments)

    monkeypatch.setattr(study, "tell", after_others)
    with pytest.raises(rp.StudyError, match="trial 0 is fail"):
        rp.tell(study, trial, evaluation(0.5))
    monkeypatch.undo()
    optuna.delete_study(study_name="s", storage=study._storage)


@pytest.fixture
def plain(tmp_path):
    """The address of a finished study of plain Optuna."""
    address = f"sqlite:///{tmp_path}/plain.db"
    study = optuna.create_study(storage=address, study_name="plain")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=8)
    return address


def adopted_once(storage):
    """Whether every trial was adopted, once, and can be selected from."""
    study = rp.load_study(**storage, study_name="s")
    numbers = [trial.user_attrs["riskpilot:adopted"]["number"] for trial in study.trials]
    rp.select(study)
    optuna.delete_study(study_name="s", storage=study._storage)
    return sorted(numbers) == list(range(8))


@pytest.mark.parametrize("made_before", [False, True])
def test_two_adoptions_at_once_count_nothing_twice(storage, plain, tmp_path, made_before):
    if made_before:
        rp.create_study(PROBLEM, **storage, study_name="s")
    written = at_once(adopt, storage, tmp_path / "flag", [(plain,)] * 2)
    lines = list(itertools.chain(*written))
    assert lines.count("done") == 2
    assert sorted(lines) == sorted(["done"] * 2 + [f"losses {number}" for number in range(8)])
    assert adopted_once(storage)


def test_an_adoption_that_is_killed_again_and_again_goes_on(storage, plain, tmp_path):
    flag = tmp_path / "flag"
    flag.touch()
    for lines in (1, 3, 2):
        worker = begin(adopt, storage, flag, plain)
        for _ in range(lines):
            assert worker.line().startswith("losses")
        time.sleep(0.03 * lines)
        worker.process.kill()
        worker.rest()
    at_once(adopt, storage, flag, [(plain,)] * 2)
    assert adopted_once(storage)


# --- a storage that is gone, or that is something else -------------------------------------------


def removed(path):
    path.unlink()


def emptied(path):
    path.write_bytes(b"")


def overwritten(path):
    path.write_bytes(b"something else " * 10)


@BY_HAND
@pytest.mark.parametrize("lose", [removed, emptied, overwritten])
@pytest.mark.parametrize("name", ["study.db", "study.log"])
def test_a_storage_that_is_lost_meanwhile_is_named_in_one_sentence(tmp_path, name, lose):
    place = tmp_path / name
    study = rp.create_study(PROBLEM, seed=0, storage=place, study_name="s")
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    running = study.ask()
    running.suggest_float("x", 0, 1)
    lose(place)
    for use in (
        study.ask,
        lambda: study.optimize(rp.objective(study, evaluate), n_trials=1),
        lambda: rp.tell(study, running, evaluation(0.5)),
        lambda: rp.select(study),
    ):
        with pytest.raises(rp.StudyError, match=f"{name} can no longer be used"):
            use()
