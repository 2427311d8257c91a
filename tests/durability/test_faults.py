"""Faults that are no fault of an evaluation, injected for real: each is waited for and survived."""

import contextlib
import functools
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import optuna
import pytest
from cases import PROBLEM, evaluate, evaluation, same_selection, undisturbed
from optuna.trial import TrialState

import riskpilot as rp
from benchmarks.postgres import controlled_server
from riskpilot.study import study_status
from riskpilot.study.storages import (
    fail_overdue_trials,
    fail_silent_trials,
    locks,
    open_storage,
)
from riskpilot.study.storages.retries import queue_again
from riskpilot.study.workers import work

NO_RAW_ERRORS = ("Traceback", "UnboundLocalError", "Should not reach")


def states(study):
    return [trial.state.name for trial in study.trials]


def check_whole(study, n_trials):
    """Every trial asked for is finished, none failed, none counts twice, and select works."""
    assert states(study).count("COMPLETE") == n_trials
    assert "FAIL" not in states(study)
    done = [trial.params["x"] for trial in study.trials if trial.state == TrialState.COMPLETE]
    assert len(set(done)) == len(done)
    assert same_selection(rp.select(study), rp.select(undisturbed(study)))


# --- a journal with half a line ------------------------------------------------------------------


@pytest.mark.parametrize("rest", [b"", b'{"op_code":4,"worker_id":"x', b'{"op_code":4}', b"\xff"])
def test_half_a_line_at_the_end_of_a_journal_is_dropped(tmp_path, caplog, rest):
    place = {"storage": tmp_path / "study.log", "study_name": "s"}
    rp.create_study(PROBLEM, seed=0, **place)
    work(evaluate, n_trials=3, **place)
    with place["storage"].open("ab") as file:
        file.write(rest)
    with caplog.at_level(logging.WARNING, logger="riskpilot"):
        assert work(evaluate, n_trials=6, **place) == 3
    assert caplog.text.count("half a line") == bool(rest)
    check_whole(rp.load_study(**place), 6)


WRITINGS = {
    "work": lambda place: work(evaluate, n_trials=6, **place),
    "create_study": lambda place: rp.create_study(
        PROBLEM, storage=place["storage"], study_name="other"
    ),
    "select": lambda place: rp.select(rp.load_study(**place)),
}


@pytest.mark.parametrize("writing", WRITINGS)
@pytest.mark.parametrize("rest", [b"", b'{"op_code":4,"worker_id":"x'])
@pytest.mark.parametrize("line", [b"garbage\n", b'{"op_code":4,"worker_\n', b"\0\0\0\n", b"\n"])
def test_a_last_line_that_is_whole_and_no_change_is_refused_and_left(tmp_path, line, rest, writing):
    """A worker that dies leaves no end of a line; before, lines were added, and then none read."""
    place = {"storage": tmp_path / "study.log", "study_name": "s"}
    rp.create_study(PROBLEM, seed=0, **place)
    work(evaluate, n_trials=3, **place)
    whole = place["storage"].read_bytes()
    place["storage"].write_bytes(whole + line + rest)
    with pytest.raises(rp.StudyError, match=r"cannot be read .* restore it from a copy\.$"):
        WRITINGS[writing](place)
    assert place["storage"].read_bytes() == whole + line + rest
    assert not Path(f"{place['storage']}.lock").is_symlink()
    place["storage"].write_bytes(whole)
    WRITINGS[writing](place)


@pytest.mark.parametrize("line", [b"garbage\n", b'{"op_code":4}\n', b"[" * 100_000 + b"\n"])
def test_a_line_that_comes_while_a_worker_runs_is_not_added_to(tmp_path, line):
    place = {"storage": tmp_path / "study.log", "study_name": "s"}
    study = rp.create_study(PROBLEM, seed=0, **place)
    other = rp.load_study(**place)
    other.set_user_attr("long", "x" * 10_000)  # a line of another worker, which is not read yet
    study.set_user_attr("note", 1)
    with place["storage"].open("ab") as file:
        file.write(line)
    before = place["storage"].read_bytes()
    with pytest.raises(rp.StudyError, match="the last one is"):
        study.set_user_attr("note", 2)
    assert place["storage"].read_bytes() == before


def test_a_journal_whose_worker_died_with_the_lock_is_open_to_others(tmp_path, monkeypatch):
    """The lock is a link; one that was relative to another folder led nowhere, for ever."""
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    place = {"storage": "runs/study.log", "study_name": "s"}
    study = rp.create_study(PROBLEM, seed=0, **place)
    lock = study._storage._backend.lock
    lock.grace_period = 1
    Path("runs/study.log.lock").symlink_to(tmp_path / "runs/study.log")
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    assert states(study) == ["COMPLETE"] * 2


def test_a_line_of_a_journal_that_cannot_be_read_is_named(tmp_path):
    place = {"storage": tmp_path / "study.log", "study_name": "s"}
    rp.create_study(PROBLEM, seed=0, **place)
    lines = place["storage"].read_bytes().splitlines(keepends=True)
    place["storage"].write_bytes(lines[0] + b'{"op_code":2\n' + b"".join(lines[1:]))
    with pytest.raises(rp.StudyError, match="changed from outside"):
        work(evaluate, n_trials=2, **place)


# --- a PostgreSQL server that goes away ----------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    with controlled_server() as one:
        yield one


@pytest.fixture
def place(server, tmp_path, request):
    """A study on the server, as arguments of `load_study`."""
    return {
        "storage": server.address,
        "study_name": request.node.name,
        "artifact_store": tmp_path / "losses",
    }


def during(trial_number, fault):
    """An evaluation that has an accident of the server in one of its trials."""
    done = []

    def result(trial):
        evaluated = evaluate(trial)
        if trial.number == trial_number and not done:
            done.append(True)
            fault()
        return evaluated

    return result


def restarted_later(server, seconds, *, crash=False):
    """Stop the server and start it again so many seconds later, from another thread."""
    server.stop(crash=crash)
    thread = threading.Timer(seconds, server.start)
    thread.start()
    return thread


FAULTS = {
    "cut": lambda server: server.cut_connections(),
    "stopped": lambda server: restarted_later(server, 2),
    "crashed": lambda server: restarted_later(server, 2, crash=True),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", ["work", "optimize"])
def test_a_finished_evaluation_outlives_its_server(server, place, fault, way, caplog, capfd):
    study = rp.create_study(PROBLEM, seed=0, **place)
    disturbed = during(1, functools.partial(FAULTS[fault], server))
    with caplog.at_level(logging.WARNING, logger="riskpilot"):
        if way == "work":
            assert work(disturbed, n_trials=4, **place) == 4
        else:
            study.optimize(rp.objective(study, disturbed), n_trials=4)
    assert caplog.text.count("does not work") == (fault != "cut")
    check_whole(study, 4)
    assert list(Path(place["artifact_store"]).glob(".*")) == []
    assert len(list(Path(place["artifact_store"]).iterdir())) == 8  # no record waits any more
    assert not any(word in capfd.readouterr().err for word in NO_RAW_ERRORS)


@pytest.mark.parametrize("way", ["work", "optimize"])
def test_after_the_limit_a_worker_ends_in_one_sentence_and_its_losses_stay(
    server, place, way, capfd
):
    impatient = open_storage(
        place["storage"], heartbeat_seconds=1, grace_seconds=2, patience_seconds=1
    )
    study = rp.create_study(PROBLEM, seed=0, **{**place, "storage": impatient})
    stopped = during(1, server.stop)
    run = {
        "work": lambda: work(stopped, n_trials=4, **{**place, "storage": impatient}),
        "optimize": lambda: study.optimize(rp.objective(study, stopped), n_trials=4),
    }
    with pytest.raises(rp.StudyError, match="has not worked for 1 second") as caught:
        run[way]()
    assert caught.value.__suppress_context__
    assert place["storage"].split(":")[2].split("@")[0] not in str(caught.value)
    server.start()
    assert not any(word in capfd.readouterr().err for word in NO_RAW_ERRORS)
    again = []

    def counted(trial):
        again.append(trial.number)
        return evaluate(trial)

    patient = open_storage(place["storage"], heartbeat_seconds=1, grace_seconds=2)
    assert work(counted, n_trials=4, **{**place, "storage": patient}) == 3
    study = rp.load_study(**place)
    assert states(study)[:2] == ["COMPLETE", "FAIL"]  # the worker that ended could not finish it
    taken_over = next(t for t in study.trials if t.system_attrs.get("retry_history") == [1])
    assert taken_over.state == TrialState.COMPLETE
    assert taken_over.number not in again
    assert taken_over.params == study.trials[1].params


def test_trials_are_not_failed_because_a_server_took_no_heartbeats(server, place):
    """The heartbeats are older than they may be when the server is back; the workers live."""
    options = {"heartbeat_seconds": 1, "grace_seconds": 2}
    study = rp.create_study(
        PROBLEM, seed=0, **{**place, "storage": open_storage(place["storage"], **options)}
    )
    begun, ended = threading.Event(), threading.Event()

    def slow(trial):
        begun.set()
        ended.wait(30)
        return evaluate(trial)

    runner = threading.Thread(
        target=study.optimize, args=(rp.objective(study, slow),), kwargs={"n_trials": 1}
    )
    runner.start()
    begun.wait(30)
    time.sleep(1)
    server.stop()
    time.sleep(4)
    server.start()
    other = rp.load_study(**{**place, "storage": open_storage(place["storage"], **options)})
    for _ in range(6):
        with contextlib.suppress(optuna.exceptions.ExperimentalWarning):
            optuna.storages.fail_stale_trials(other)
        time.sleep(0.5)
    ended.set()
    runner.join(30)
    assert states(other) == ["COMPLETE"]


# --- a worker that is stopped while it holds a lock ----------------------------------------------

HOLDER = """
import sys, time
import riskpilot as rp
from riskpilot.study.storages import exclusive, locks
locks.LEASE_SECONDS = float(sys.argv[4])
study = rp.load_study(storage=sys.argv[1], study_name=sys.argv[2], artifact_store=sys.argv[3])
with exclusive(study) as is_held:
    print("held" if is_held() else "lost", flush=True)
    time.sleep(1)
    print("held" if is_held() else "lost", flush=True)
print("left", flush=True)
"""


def test_a_lock_is_taken_from_a_worker_that_was_stopped(
    storage, request, tmp_path, monkeypatch, caplog
):
    name, losses = request.node.name, str(storage.get("artifact_store", tmp_path / "losses"))
    storage = {**storage, "artifact_store": losses}
    study = rp.create_study(PROBLEM, study_name=name, seed=0, **storage)
    study.optimize(rp.objective(study, evaluate), n_trials=3)
    command = [sys.executable, "-c", HOLDER, str(storage["storage"]), name, losses, "1.5"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGSTOP)
        monkeypatch.setattr(locks, "LEASE_SECONDS", 1.5)
        begun = time.monotonic()
        with caplog.at_level(logging.WARNING, logger="riskpilot"):
            study.optimize(rp.objective(study, evaluate), n_trials=2)
        waited = time.monotonic() - begun
        holder.send_signal(signal.SIGCONT)
        out, err = holder.communicate(timeout=30)
    assert 0.2 < waited < 10
    assert "this worker goes on" in caplog.text
    assert (out, holder.returncode) == ("lost\nleft\n", 0), err  # it knows, and decides again
    study.optimize(rp.objective(study, evaluate), n_trials=1)  # and the lock works as before
    check_whole(study, 6)


def test_a_worker_that_lost_its_turn_decides_again(tmp_path, monkeypatch):
    """Its proposal would be the one that another worker has made meanwhile."""
    study = rp.create_study(PROBLEM, storage=f"{tmp_path}/study.log", seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=8)
    turns = iter([False, False, True])
    real = locks.exclusive

    @contextlib.contextmanager
    def lost_twice(study):
        with real(study):
            yield lambda: next(turns)

    monkeypatch.setattr("riskpilot.study.sampler.exclusive", lost_twice)
    study.optimize(rp.objective(study, evaluate), n_trials=1)
    assert list(turns) == []
    check_whole(study, 9)


def answers_lost(server, monkeypatch):
    """Cut the connection each time a trial was added, before anybody hears of it.

    Returns the list that the numbers of added trials go to.
    """
    add, calls = optuna.storages.RDBStorage._create_new_trial, []

    def cut_off(self, study_id, template_trial=None):
        added = add(self, study_id, template_trial)
        calls.append(added.number)
        if len(calls) < 10:
            with self.engine.connect() as connection:
                connection.exec_driver_sql("SELECT 1")
                server.cut_connections()
                connection.exec_driver_sql("SELECT 1")
        return added

    monkeypatch.setattr(optuna.storages.RDBStorage, "_create_new_trial", cut_off)
    return calls


def test_a_retry_is_queued_once_when_the_answer_to_it_is_lost(server, place, monkeypatch):
    study = rp.create_study(PROBLEM, seed=0, **place)
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    calls = answers_lost(server, monkeypatch)
    queue_again()(study, study.trials[1])
    assert calls == [2]  # the second attempt finds what the first one added
    assert [t.system_attrs.get("retry_history") for t in study.trials] == [None, None, [1]]


def test_a_trial_is_adopted_once_when_the_answer_to_it_is_lost(server, place, monkeypatch):
    plain = optuna.create_study()
    plain.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    calls, evaluated = answers_lost(server, monkeypatch), []

    def again(trial):
        evaluated.append(trial.number)
        return evaluation(trial.params["x"])

    adopted = rp.adopt(plain, PROBLEM, again, seed=0, **place)
    assert calls == evaluated == [0, 1, 2]
    assert [trial.params for trial in adopted.trials] == [trial.params for trial in plain.trials]
    check_whole(rp.load_study(**place), 3)


def test_a_configuration_is_queued_once_when_the_answer_to_it_is_lost(server, place, monkeypatch):
    calls = answers_lost(server, monkeypatch)
    study = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0}, **place)
    assert calls == [0]
    study.enqueue_trial({"x": 0.0}, user_attrs={"mine": (1, 2)})
    assert calls == [0, 1]  # the same configuration, and another trial
    assert states(study) == ["WAITING", "WAITING"]


# --- a disk without space ------------------------------------------------------------------------

FULL = """
import logging, resource, signal, sys, threading, time
import optuna
import riskpilot as rp
from cases import evaluate
from riskpilot.study.workers import work

logging.basicConfig(level=logging.WARNING, format="%(message)s")
optuna.logging.set_verbosity(optuna.logging.CRITICAL)
storage, patience, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def fills(trial):
    result = evaluate(trial)
    if trial.number == 2:
        limit(10)
        timer = threading.Timer(seconds, limit, [resource.RLIM_INFINITY])
        timer.daemon = True
        timer.start()
    return result

try:
    print("ran", work(fills, storage=storage, study_name="s", n_trials=5, patience=patience))
except rp.StudyError as error:
    print("ended:", error)
"""


def on_a_full_disk(address, patience, seconds):
    command = [sys.executable, "-c", FULL, address, str(patience), str(seconds)]
    folder = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert not any(word in run.stdout + run.stderr for word in NO_RAW_ERRORS), run.stderr
    return run


@pytest.mark.parametrize("name", ["study.db", "study.log"])
def test_a_worker_waits_for_space_and_goes_on(tmp_path, name):
    address = str(tmp_path / name)
    study = rp.create_study(PROBLEM, storage=address, study_name="s", seed=0)
    run = on_a_full_disk(address, 60, 2)
    assert run.stdout == "ran 5\n"
    assert run.stderr.count("does not work") >= 1
    check_whole(study, 5)
    assert len(list((tmp_path / f"{name}.losses").iterdir())) == 10  # and nothing else


@pytest.mark.parametrize("name", ["study.db", "study.log"])
def test_a_disk_that_stays_full_ends_a_worker_in_one_sentence(tmp_path, name):
    address = str(tmp_path / name)
    study = rp.create_study(PROBLEM, storage=address, study_name="s", seed=0)
    run = on_a_full_disk(address, 1, 30)
    assert run.stdout.startswith("ended: The ")
    assert "has not worked for 1 second" in run.stdout
    assert run.stdout.count("\n") == 1
    assert states(study) == ["COMPLETE", "COMPLETE", "RUNNING"]
    assert list((tmp_path / f"{name}.losses").glob(".*")) == []


# --- clocks --------------------------------------------------------------------------------------


@pytest.fixture
def summer_time():
    """Set a time zone in which summer time begins in two seconds, by the real clock."""
    before = os.environ.get("TZ")
    change = time.gmtime(time.time() + 2)
    rule = f"J{change.tm_yday}/{change.tm_hour}:{change.tm_min:02}:{change.tm_sec:02}"
    os.environ["TZ"] = f"AAA0BBB,{rule},J{change.tm_yday + 30}/0"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def after_the_change():
    time.sleep(2.5)
    assert time.localtime().tm_isdst == 1


def test_no_trial_is_overdue_because_summer_time_began(summer_time, tmp_path):
    plain = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(f"{tmp_path}/study.log")
    )
    study = rp.create_study(PROBLEM, storage=plain, study_name="s", seed=0)
    study.ask()
    after_the_change()
    assert fail_overdue_trials(study, 180) == []
    assert study_status(study).running[0].seconds < 60
    assert fail_overdue_trials(study, 1) == [0]
    assert study_status(study).seconds < 60


def test_a_heartbeat_is_not_old_because_summer_time_began(summer_time, storage, request):
    opened = open_storage(storage["storage"], heartbeat_seconds=1, grace_seconds=20)
    place = {**storage, "storage": opened, "study_name": request.node.name}
    study = rp.create_study(PROBLEM, seed=0, **place)
    changed = during(0, after_the_change)
    look = during(0, lambda: fail_silent_trials(rp.load_study(**place)))

    def both(trial):
        changed(trial)
        return look(trial)

    study.optimize(rp.objective(study, both), n_trials=1)
    assert states(study) == ["COMPLETE"]


def test_a_heartbeat_is_not_old_in_a_session_with_another_time_zone(
    postgres, tmp_path, request, monkeypatch
):
    place = {"study_name": request.node.name, "artifact_store": tmp_path / "losses"}
    options = {"heartbeat_seconds": 1, "grace_seconds": 20}
    monkeypatch.setenv("PGTZ", "America/New_York")
    west = open_storage(postgres, **options)
    study = rp.create_study(PROBLEM, storage=west, seed=0, **place)

    def look(trial):
        time.sleep(0.5)
        monkeypatch.setenv("PGTZ", "Asia/Tokyo")
        east = rp.load_study(storage=open_storage(postgres, **options), **place)
        fail_silent_trials(east)
        return evaluate(trial)

    study.optimize(rp.objective(study, look), n_trials=1)
    assert states(study) == ["COMPLETE"]


# --- damage --------------------------------------------------------------------------------------


def test_a_worker_that_reads_a_damaged_trial_ends_in_one_sentence(tmp_path):
    place = {"storage": tmp_path / "study.db", "study_name": "s"}
    rp.create_study(PROBLEM, seed=0, **place)
    work(evaluate, n_trials=3, **place)
    with sqlite3.connect(place["storage"]) as base:
        base.execute("UPDATE trial_params SET distribution_json = '{}'")
    base.close()
    with pytest.raises(rp.StudyError, match=r"trial 0 cannot be read.*restore it from a copy"):
        work(evaluate, n_trials=5, **place)
