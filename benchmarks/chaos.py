"""An hour of accidents, and then every promise checked: ``python -m benchmarks.chaos``.

Four workers carry a study while they are killed and stopped, while their disk is full, while their
server is cut off, stopped or made to crash, and while half lines appear in their journal. The
storages take turns. Evaluations sleep, so that the accidents fall on everything around them.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

import riskpilot as rp
from benchmarks.crash import PROBLEM, evaluation, finished, kill, what_is_left
from benchmarks.durability import FIGURES, record
from benchmarks.postgres import Server, controlled_server
from riskpilot.study.kept.attributes import ERROR_KEY
from riskpilot.study.storages import locks, open_storage
from riskpilot.study.storages.journal import JournalLock
from riskpilot.study.workers import work

KINDS = ("sqlite", "postgresql", "journal")
ROUND_SECONDS = 150.0  # a storage has its turn for at most so long
MORE_TRIALS = 8
EVALUATION_SECONDS = (0.1, 1.0)
HEARTBEAT, GRACE, PATIENCE = 1, 6, 120
LEASE_SECONDS = 3.0
PAUSE_SECONDS = (0.2, 2.5)  # between two accidents
HANG_SECONDS = 90.0  # nothing may take so long
SAID = b"finished: "


@dataclass
class Report:
    """What a storage went through, and what is left.

    ``faults``: how many accidents of each kind there were; ``acknowledged``: evaluations whose end
    a worker had seen; ``lost``: those of them that the study does not have; ``twice``:
    configurations that count more than once; ``blamed``: trials that failed although no evaluation
    did; ``surplus``: trials finished beyond the number that was asked for; ``ended``: workers that
    gave up; ``tracebacks``: errors that workers showed raw; ``hangs``: times when nothing happened
    for too long; ``broken``: rounds after which the ledger was not whole, select or verify failed,
    or the selection was another one than undisturbed.
    """

    storage: str
    rounds: int = 0
    seconds: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)
    trials: int = 0
    finished: int = 0
    acknowledged: int = 0
    lost: int = 0
    twice: int = 0
    unreadable: int = 0
    blamed: int = 0
    surplus: int = 0
    ended: int = 0
    tracebacks: int = 0
    hangs: int = 0
    broken: int = 0

    @property
    def ok(self) -> bool:
        return self.acknowledged > 0 and not any(getattr(self, name) for name in MUST_BE_ZERO)


MUST_BE_ZERO = (
    "lost",
    "twice",
    "unreadable",
    "blamed",
    "surplus",
    "ended",
    "tracebacks",
    "hangs",
    "broken",
)


# --- workers -------------------------------------------------------------------------------------


def run_worker(place: dict[str, Any], n_trials: int, output: Connection) -> None:
    """Work on a study, and say on a pipe what was finished; a full disk does not stop a pipe."""
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    locks.LEASE_SECONDS = LEASE_SECONDS
    rng = random.Random(os.getpid())

    def evaluate(trial: optuna.Trial) -> rp.Evaluation:
        x = trial.suggest_float("x", 0, 1)
        time.sleep(rng.uniform(*EVALUATION_SECONDS))
        return evaluation(x)

    def acknowledge(study: optuna.Study, trial: FrozenTrial) -> None:
        if trial.state == TrialState.COMPLETE:
            line = json.dumps([trial.number, trial.params, trial.values]).encode()
            os.write(1, b"\n" + SAID + line + b"\n")

    try:
        work(evaluate, **connect(place), n_trials=n_trials, callbacks=[acknowledge])
    except rp.RiskpilotError as error:
        print(f"ended: {error}", flush=True)
        sys.exit(3)


def connect(place: dict[str, Any]) -> dict[str, Any]:
    """Open the storage of a place with short times, so that an hour has room for many accidents."""
    storage = open_storage(
        place["storage"],
        heartbeat_seconds=HEARTBEAT,
        grace_seconds=GRACE,
        patience_seconds=PATIENCE,
        wait=True,
    )
    return {**place, "storage": storage}


class Workers:
    """Processes that work on one study, and everything that they have said."""

    def __init__(self, place: dict[str, Any], context: ForkServerContext) -> None:
        self.place, self.context = place, context
        self.running: list[BaseProcess] = []
        self.lines: list[bytes] = []
        self.last_finished = time.monotonic()
        self._readers: list[threading.Thread] = []

    def begin(self, n_trials: int) -> None:
        reader, writer = self.context.Pipe(duplex=False)
        process = self.context.Process(target=run_worker, args=(self.place, n_trials, writer))
        process.start()
        writer.close()
        self.running.append(process)
        thread = threading.Thread(target=self._listen, args=(reader,), daemon=True)
        thread.start()
        self._readers.append(thread)

    def _listen(self, reader: Connection) -> None:
        with reader, os.fdopen(os.dup(reader.fileno()), "rb") as lines:
            for line in lines:
                self.lines.append(line)
                if line.startswith(SAID):
                    self.last_finished = time.monotonic()

    def heard(self) -> None:
        """Wait until everything that was said has arrived."""
        for thread in self._readers:
            thread.join(HANG_SECONDS)

    def said(self) -> list[Any]:
        """What the workers had seen finished: number, parameters and values."""
        return [json.loads(line[len(SAID) :]) for line in self.lines if line.startswith(SAID)]

    def kill_all(self) -> None:
        for process in self.running:
            kill(process)
        self.running.clear()


# --- accidents -----------------------------------------------------------------------------------

Fault = Callable[[], None]


class Accidents:
    """The accidents that can happen to workers on one kind of storage."""

    def __init__(self, workers: Workers, server: Server | None, rng: random.Random) -> None:
        self.workers, self.server, self.rng = workers, server, rng
        self.faults: dict[str, Fault] = {
            "killed": self.kill_one,
            "stopped": self.stop_one,
            "disk full": self.fill_the_disk,
        }
        if server is not None:
            self.faults |= {
                "connections cut": self.cut,
                "server restarted": self.restart,
                "server crashed": self.crash,
            }
        if str(workers.place["storage"]).endswith(".log"):
            self.faults["half a line"] = self.half_a_line

    def kill_one(self) -> None:
        """Kill a worker at any moment, and begin another one."""
        victim = self.rng.choice(self.workers.running)
        kill(victim)
        self.workers.running.remove(victim)
        self.workers.begin(10**9)

    def stop_one(self) -> None:
        """Stop a worker for a while, sometimes for longer than a lease and a heartbeat last."""
        victim = self.rng.choice(self.workers.running)
        seconds = self.rng.choice((0.5, 2.0, 5.0, 9.0))
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim.pid or 0, signal.SIGSTOP)
        threading.Timer(seconds, self.go_on, [victim]).start()

    @staticmethod
    def go_on(process: BaseProcess) -> None:
        if process.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGCONT)

    def fill_the_disk(self) -> None:
        """Let no file of the workers grow for a while, as on a disk without space."""
        size = self.rng.choice((0, 1000, 30_000))
        self._limit(size)
        time.sleep(self.rng.uniform(0.5, 4.0))
        self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        for process in self.workers.running:
            with contextlib.suppress(ProcessLookupError):
                limits = (size, resource.RLIM_INFINITY)
                resource.prlimit(process.pid or 0, resource.RLIMIT_FSIZE, limits)

    def cut(self) -> None:
        assert self.server is not None
        self.server.cut_connections()

    def restart(self) -> None:
        self._away(crash=False)

    def crash(self) -> None:
        self._away(crash=True)

    def _away(self, *, crash: bool) -> None:
        assert self.server is not None
        self.server.stop(crash=crash)
        time.sleep(self.rng.uniform(0.1, 5.0))
        self.server.start()

    def half_a_line(self) -> None:
        """Leave half a line under the lock, as a worker does that dies while it writes."""
        path = os.path.abspath(self.workers.place["storage"])
        lock = JournalLock(path)
        lock.acquire()
        try:
            with open(path, "ab") as file:
                file.write(b'{"op_code":8,"worker_id":"half')
        finally:
            lock.release()

    def revive(self) -> int:
        """Begin a worker for each that has ended by itself; return how many had."""
        ended = [process for process in self.workers.running if not process.is_alive()]
        for process in ended:
            self.workers.running.remove(process)
            self.workers.begin(10**9)
        return len(ended)


# --- a round -------------------------------------------------------------------------------------


@contextlib.contextmanager
def a_place(kind: str, folder: str) -> Iterator[tuple[dict[str, Any], Server | None]]:
    """A storage and a folder for losses, as arguments of `create_study`, and the server."""
    place = {"study_name": "chaos", "artifact_store": Path(folder) / "losses"}
    if kind == "postgresql":
        with controlled_server(durable=True) as server:
            yield {**place, "storage": server.address}, server
    elif kind == "sqlite":
        yield {**place, "storage": f"sqlite:///{folder}/study.db"}, None
    else:
        yield {**place, "storage": f"{folder}/study.log"}, None


def chaos(report: Report, seconds: float, n_workers: int, seed: int) -> None:
    """Let a storage have its turn, and add what came of it to its report."""
    rng = random.Random(f"{report.storage} {seed}")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["riskpilot.study.workers", "benchmarks.crash"])
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        a_place(report.storage, folder) as (place, server),
    ):
        rp.create_study(PROBLEM, seed=seed, **connect(place))
        workers = Workers(place, context)
        for _ in range(n_workers):
            workers.begin(10**9)
        accidents = Accidents(workers, server, rng)
        while not workers.said() and time.monotonic() < begun + HANG_SECONDS:
            time.sleep(0.1)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(rng.uniform(*PAUSE_SECONDS))
            name = rng.choice(list(accidents.faults))
            accidents.faults[name]()
            report.faults[name] = report.faults.get(name, 0) + 1
            report.ended += accidents.revive()
            if time.monotonic() - workers.last_finished > HANG_SECONDS:
                report.hangs += 1
                workers.last_finished = time.monotonic()
        workers.kill_all()
        finish(report, workers, n_workers)
        check(report, rp.load_study(**connect(place)), workers)
    report.rounds += 1
    report.seconds += round(time.monotonic() - begun, 1)


def finish(report: Report, workers: Workers, n_workers: int) -> None:
    """Let fresh workers finish a few more trials, undisturbed; each must end by itself."""
    study = rp.load_study(**connect(workers.place))
    n_trials = len(finished(study)) + MORE_TRIALS
    for _ in range(n_workers):
        workers.begin(n_trials)
    for process in workers.running:
        process.join(HANG_SECONDS)
        if process.is_alive():
            report.hangs += 1
        elif process.exitcode != 0:
            report.ended += 1
    workers.kill_all()
    workers.heard()
    report.surplus += max(0, len(finished(study)) - n_trials)


def check(report: Report, study: optuna.Study, workers: Workers) -> None:
    """Check every promise, and add what is broken."""
    said = workers.said()
    left = what_is_left(study, said)
    report.trials += len(study.trials)
    report.finished += len(finished(study))
    report.acknowledged += len(said)
    report.lost += left.lost
    report.twice += left.twice
    report.unreadable += left.unreadable
    report.blamed += sum(ERROR_KEY in trial.user_attrs for trial in study.trials)
    report.tracebacks += sum(line.startswith(b"Traceback") for line in workers.lines)
    certificate = rp.select(study).certificate
    is_whole = (
        left.same_selection
        and len(rp.ledger(study)) == 1  # the same question, asked twice
        and rp.verify(certificate, study=study).ok
    )
    report.broken += not is_whole
    by_config: dict[float, list[FrozenTrial]] = {}
    for trial in finished(study):
        by_config.setdefault(trial.params["x"], []).append(trial)
    for same in by_config.values():
        if len(same) > 1:
            histories = [(t.number, t.system_attrs.get("retry_history")) for t in same]
            print(f"the same configuration, with the trials it repeats: {histories}", flush=True)
    for line in workers.lines:
        if line.startswith((b"Traceback", b"ended")) or b"Error" in line:
            sys.stderr.write(line.decode(errors="replace"))


# --- the whole -----------------------------------------------------------------------------------


def table(reports: list[Report]) -> str:
    """The figures as a table of text."""
    rows = [("storage", *(report.storage for report in reports))]
    for name in ("rounds", "seconds", "trials", "finished", "acknowledged", *MUST_BE_ZERO):
        rows.append((name, *(str(getattr(report, name)) for report in reports)))
    for fault in sorted({fault for report in reports for fault in report.faults}):
        rows.append((f"fault: {fault}", *(str(report.faults.get(fault, 0)) for report in reports)))
    return "\n".join("  ".join(f"{cell:<24}" for cell in row).rstrip() for row in rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--storage", choices=KINDS, action="append")
    parser.add_argument("--out", type=Path, default=FIGURES, help="where the JSON goes")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    reports = [Report(kind) for kind in options.storage or KINDS]
    total, rounds = 60 * options.minutes, 1
    while total / (rounds * len(reports)) > ROUND_SECONDS:
        rounds += 1
    for turn in range(rounds):
        for report in reports:
            seconds = total / (rounds * len(reports))
            chaos(report, seconds, options.workers, options.seed + turn)
            print(f"{'held' if report.ok else 'BROKEN'}: {report}", flush=True)
            record("chaos", {report.storage: asdict(report)}, options.out)
    print(table(reports), flush=True)
    sys.exit(0 if all(report.ok for report in reports) else 1)


if __name__ == "__main__":
    main()
