"""Workers on one study: processes, Dask, Ray; those that die, and those taken for dead."""

import json
import logging
import multiprocessing
import threading
import time
from datetime import UTC, datetime, timedelta
from importlib import import_module

import numpy as np
import optuna
import pytest
from cases import PROBLEM, M, evaluate, evaluation, losses, same_selection, undisturbed
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.study.storages import fail_silent_trials, open_storage
from riskpilot.study.workers import work

BY_HAND = pytest.mark.filterwarnings("ignore:Heartbeat of storage:UserWarning")


def states(study):
    return [trial.state.name for trial in study.trials]


def finished(study):
    return [t for t in study.trials if t.state == TrialState.COMPLETE]


def test_two_processes_share_the_number_of_trials(storage, request):
    name = request.node.name
    study = rp.create_study(PROBLEM, study_name=name, seed=0, **storage)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["riskpilot.study.workers"])
    options = {"study_name": name, "n_trials": 12, **storage}
    workers = [context.Process(target=work, args=(evaluate,), kwargs=options) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    done = finished(study)
    assert len(done) == 12
    assert min(np.diff(sorted(t.params["x"] for t in done))) > 1e-4
    assert same_selection(rp.select(study), rp.select(undisturbed(study)))


def in_blocks(trial):
    """Yield the losses of an evaluation in blocks, as a race has it."""
    x = trial.suggest_float("x", 0, 1)
    found = losses(x, "validation")
    for rows in np.split(np.arange(M), 5):
        yield {**{name: values[rows] for name, values in found.items()}, "cost": 1 - x}
    return losses(x, "calibration")


def test_workers_race_and_stopped_trials_count_as_theirs(storage, request):
    name = request.node.name
    study = rp.create_study(PROBLEM, study_name=name, seed=0, safe={"x": 0.0}, **storage)
    assert work(in_blocks, study_name=name, n_trials=4, **storage) == 4
    assert work(in_blocks, study_name=name, n_trials=12, **storage) == 8
    assert sorted(set(states(study))) == ["COMPLETE", "PRUNED"]
    again = rp.load_study(study_name=name, **storage)
    assert same_selection(rp.select(again), rp.select(undisturbed(study)))


def test_work_continues_where_a_study_stands_and_does_nothing_when_it_is_done(storage, request):
    name = request.node.name
    rp.create_study(PROBLEM, study_name=name, seed=0, **storage)
    assert work(evaluate, study_name=name, n_trials=3, **storage) == 3
    assert work(evaluate, study_name=name, n_trials=5, **storage) == 2
    assert work(evaluate, study_name=name, n_trials=5, **storage) == 0


def test_a_worker_records_failures_and_gives_up_after_ten_in_a_row(tmp_path):
    address = f"sqlite:///{tmp_path}/s.db"
    study = rp.create_study(PROBLEM, storage=address, study_name="s", seed=0)

    def mostly_broken(trial):
        if len(study.trials) > 3:
            raise RuntimeError("no disk")
        return evaluate(trial)

    with pytest.raises(rp.StudyError, match="10 evaluations in a row"):
        work(mostly_broken, storage=address, study_name="s", n_trials=10)
    assert len(finished(study)) == 3


def test_a_worker_gives_up_after_ten_evaluations_in_a_row_that_were_pruned_by_hand(tmp_path):
    place = f"{tmp_path}/s.log"
    rp.create_study(PROBLEM, storage=place, seed=0)

    def mostly_pruned(trial):
        assert trial.number < 30, "the worker goes on for ever"
        if trial.number % 9 == 0 and trial.number < 20:
            return evaluate(trial)
        trial.suggest_float("x", 0, 1)
        raise optuna.TrialPruned

    with pytest.raises(rp.StudyError, match="10 evaluations in a row failed or were pruned"):
        work(mostly_pruned, storage=place, n_trials=10)
    again = rp.load_study(storage=place)
    assert states(again).count("PRUNED") == 8 + 8 + 10
    assert len(finished(again)) == 3


@BY_HAND
@pytest.mark.parametrize("beats", [True, False])
def test_a_trial_of_a_dead_worker_is_taken_over_with_its_configuration(tmp_path, beats):
    address = f"sqlite:///{tmp_path}/s.db"
    storage = open_storage(address, heartbeat_seconds=1, grace_seconds=1)
    study = rp.create_study(PROBLEM, storage=storage, study_name="s", seed=0)
    dead = study.ask()
    x = dead.suggest_float("x", 0, 1)
    if beats:
        study._storage.record_heartbeat(dead._trial_id)
    time.sleep(2.1)
    storage = open_storage(address, heartbeat_seconds=1, grace_seconds=1)
    assert work(evaluate, storage=storage, study_name="s", n_trials=4) == 4
    if beats:
        assert study.trials[0].state == TrialState.FAIL
        assert finished(study)[0].params["x"] == x
    fail_silent_trials(study)  # a trial that nobody heard of is heard of now, and never again
    time.sleep(2.1)
    fail_silent_trials(study)
    assert study.trials[0].state == TrialState.FAIL


def test_a_worker_that_was_taken_for_dead_does_not_count_and_goes_on(tmp_path, caplog):
    address = f"sqlite:///{tmp_path}/s.db"
    study = rp.create_study(PROBLEM, storage=address, study_name="s", seed=0)

    def declared_dead(trial):
        if trial.number == 1:
            study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
        return evaluate(trial)

    with caplog.at_level(logging.WARNING, logger="riskpilot"):
        assert work(declared_dead, storage=address, study_name="s", n_trials=3) == 3
    assert [t.state.name for t in study.trials] == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
    assert "finished by another worker" in caplog.text


def dead_in_a_journal(tmp_path, hours):
    """A journal of Optuna's with two finished trials and one whose worker died so long ago."""
    address = f"{tmp_path}/study.log"
    opened = JournalStorage(JournalFileBackend(address))
    study = rp.create_study(PROBLEM, storage=opened, study_name="s", seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    trial = study.ask()
    x = trial.suggest_float("x", 0, 1)
    lines = (tmp_path / "study.log").read_text().splitlines()
    begun = datetime.now(UTC) - timedelta(hours=hours)
    for i, line in enumerate(lines):
        entry = json.loads(line)
        if "datetime_start" in entry and i > len(lines) - 4:
            entry["datetime_start"] = begun.isoformat(timespec="microseconds")
        lines[i] = json.dumps(entry, separators=(",", ":"))
    (tmp_path / "study.log").write_text("\n".join(lines) + "\n")
    return JournalStorage(JournalFileBackend(address)), x


def test_an_overdue_trial_without_heartbeats_is_failed_and_taken_over(tmp_path, caplog):
    storage, x = dead_in_a_journal(tmp_path, hours=3)
    with caplog.at_level(logging.WARNING, logger="riskpilot"):
        assert work(evaluate, storage=storage, study_name="s", n_trials=3, time_limit=3600) == 1
    trials = rp.load_study(storage=storage, study_name="s").trials
    assert [trial.state.name for trial in trials] == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE"]
    assert trials[3].params == trials[2].params == {"x": x}
    assert trials[3].system_attrs["retry_history"] == [2]
    assert "Trial 2 is overdue" in caplog.text


@pytest.mark.parametrize(("hours", "limit"), [(1, 3600), (3, None)])
def test_a_trial_without_heartbeats_that_may_be_alive_is_left_alone(tmp_path, hours, limit):
    storage, x = dead_in_a_journal(tmp_path, hours)
    assert work(evaluate, storage=storage, study_name="s", n_trials=3, time_limit=limit) == 1
    trials = rp.load_study(storage=storage, study_name="s").trials
    assert trials[2].state == TrialState.RUNNING
    assert abs(trials[3].params["x"] - x) > 1e-4  # a new one, elsewhere
    told = CliRunner().invoke(app, ["status", str(tmp_path / "study.log")]).output
    assert f"Running: trial 2 for {'60 min' if hours == 1 else '3 h'}" in told


@BY_HAND
def test_a_trial_in_a_journal_is_taken_over_when_its_heartbeats_end(tmp_path):
    address = f"{tmp_path}/study.log"
    options = {"heartbeat_seconds": 1, "grace_seconds": 2}
    place = {"storage": open_storage(address, **options), "study_name": "s"}
    study = rp.create_study(PROBLEM, seed=0, **place)
    dead, alive = study.ask(), study.ask()
    x = dead.suggest_float("x", 0, 1)

    def live():
        """Beat for twice as long as a silence may last, and finish the trial."""
        other = open_storage(address, **options)
        for _ in range(8):
            time.sleep(0.5)
            other.record_heartbeat(alive._trial_id)
        study.tell(alive, rp.objective(study, evaluate)(alive))

    thread = threading.Thread(target=live)
    thread.start()
    study._storage.record_heartbeat(dead._trial_id)
    place["storage"] = open_storage(address, **options)
    assert work(evaluate, n_trials=2, **place) == 1
    thread.join()
    assert states(study) == ["FAIL", "COMPLETE", "COMPLETE"]
    assert study.trials[2].params["x"] == x


def test_three_workers_on_a_journal_finish_as_many_as_were_asked_for(tmp_path):
    place = {"storage": f"{tmp_path}/study.log", "study_name": "s"}
    study = rp.create_study(PROBLEM, seed=0, **place)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["riskpilot.study.workers"])
    options = {"n_trials": 3, **place}
    workers = [context.Process(target=work, args=(evaluate,), kwargs=options) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert len(finished(study)) == 3


def test_status_of_a_storage_with_heartbeats_does_not_doubt_running_trials(tmp_path):
    address = f"sqlite:///{tmp_path}/s.db"
    study = rp.create_study(PROBLEM, storage=address, study_name="s", seed=0)
    told = []

    def look(trial):
        told.append(CliRunner().invoke(app, ["status", address]).output)
        return evaluate(trial)

    study.optimize(rp.objective(study, look), n_trials=1)
    assert "Running: trial 0 for" in told[0]
    assert "no heartbeats" not in told[0]
    assert "Running" not in CliRunner().invoke(app, ["status", address]).output


def test_a_safe_configuration_survives_the_worker_that_began_with_it(tmp_path):
    address = f"sqlite:///{tmp_path}/s.db"
    storage = open_storage(address, heartbeat_seconds=1, grace_seconds=1)
    study = rp.create_study(PROBLEM, storage=storage, study_name="s", seed=0, safe={"x": 0.01})
    (waiting,) = study.trials
    storage.set_trial_state_values(waiting._trial_id, TrialState.RUNNING)
    storage.record_heartbeat(waiting._trial_id)
    time.sleep(2.1)
    storage = open_storage(address, heartbeat_seconds=1, grace_seconds=1)
    work(evaluate, storage=storage, study_name="s", n_trials=2)
    assert finished(study)[0].params["x"] == 0.01


# --- engines -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_dask_workers_carry_a_study(tmp_path):
    distributed = import_module("distributed")
    storage = {"storage": f"{tmp_path}/study.log", "study_name": "dask"}
    study = rp.create_study(PROBLEM, seed=0, **storage)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        run = [
            client.submit(work, evaluate_here(), n_trials=8, pure=False, **storage) for _ in "ab"
        ]
        ran = client.gather(run)
    check_shared(study, ran)


@pytest.mark.filterwarnings("ignore")
def test_ray_tasks_carry_a_study(tmp_path):
    ray = import_module("ray")
    storage = {"storage": f"{tmp_path}/study.log", "study_name": "ray"}
    study = rp.create_study(PROBLEM, seed=0, **storage)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        task = ray.remote(num_cpus=1)(work)
        ran = ray.get([task.remote(evaluate_here(), n_trials=8, **storage) for _ in "ab"])
    finally:
        ray.shutdown()
    check_shared(study, ran)


def evaluate_here():
    """A function that travels by value, as one from a script does."""

    def inner(trial):
        time.sleep(0.3)
        x = trial.suggest_float("x", 0, 1)
        rng = np.random.default_rng(round(x * 2**30))
        losses = rng.random((2, 300)) < 0.05 + 0.4 * x
        harm = rng.random((2, 300)) * x
        return rp.Evaluation(
            {"error": losses[0], "harm": harm[0], "cost": 1 - x},
            {"error": losses[1], "harm": harm[1]},
        )

    return inner


def check_shared(study, ran):
    assert min(ran) >= 1
    done = finished(study)
    assert len(done) == sum(ran) <= 9
    assert min(np.diff(sorted(t.params["x"] for t in done))) > 1e-4
    assert rp.select(study).certificate.n_configs == len(done)


def test_an_optuna_journal_shared_by_threads_keeps_every_trial(tmp_path):
    study = rp.create_study(PROBLEM, storage=f"{tmp_path}/s.log", seed=0)
    study.optimize(
        rp.objective(study, lambda t: evaluation(t.suggest_float("x", 0, 1))), 8, n_jobs=4
    )
    assert len(finished(study)) == 8
    assert isinstance(study._storage, optuna.storages.JournalStorage)


def test_a_callback_that_stops_the_study_ends_its_worker(storage, request):
    name = request.node.name
    study = rp.create_study(PROBLEM, study_name=name, seed=0, **storage)

    def after_three(study, trial):
        if len(finished(study)) == 3:
            study.stop()

    place = {"study_name": name, **storage}
    assert work(evaluate, n_trials=9, callbacks=[after_three], **place) == 3
    assert work(evaluate, n_trials=5, **place) == 2  # the next worker goes on
    assert len(finished(study)) == 5
