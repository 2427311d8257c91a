"""Kill workers at random moments, resume, count what was lost: ``python -m benchmarks.crash``."""

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

import riskpilot as rp
from benchmarks.durability import FIGURES, record
from benchmarks.postgres import server
from riskpilot.study.kept.trial_losses import read_calibration, read_validation
from riskpilot.study.storages import open_storage
from riskpilot.study.workers import work

PROBLEM = rp.Problem([rp.Risk("error", 0.3), rp.Risk("harm", 0.5)], "cost")
EXAMPLES = 500
MORE_TRIALS = 8
HEARTBEAT, GRACE = 1, 2
LONGEST_LIFE = 1.5  # seconds that a worker has from the moment its end was decided
KINDS = ("sqlite", "postgresql")


@dataclass(frozen=True)
class Report:
    """What is left after the kills. ``acknowledged``: evaluations whose end a worker had seen;
    ``lost``: those of them that the study does not have; ``twice``: configurations that count more
    than once; ``unreadable``: finished trials whose losses cannot be read back."""

    storage: str
    kills: int
    workers: int
    seconds: float
    trials: int
    finished: int
    failed: int
    running: int
    acknowledged: int
    lost: int
    twice: int
    unreadable: int
    same_selection: bool

    @property
    def ok(self) -> bool:
        return self.same_selection and not (self.lost or self.twice or self.unreadable)


def losses(x: float, split: str) -> dict[str, Any]:
    rng = np.random.default_rng([zlib.crc32(split.encode()), round(x * 2**30)])
    return {"error": rng.random(EXAMPLES) < 0.05 + 0.4 * x, "harm": rng.random(EXAMPLES) * x}


def evaluation(x: float) -> rp.Evaluation:
    return rp.Evaluation({**losses(x, "validation"), "cost": 1 - x}, losses(x, "calibration"))


def evaluate(trial: optuna.Trial) -> rp.Evaluation:
    x = trial.suggest_float("x", 0, 1)
    time.sleep(0.05 * x)
    return evaluation(x)


def connect(place: dict[str, Any]) -> dict[str, Any]:
    storage = open_storage(place["storage"], heartbeat_seconds=HEARTBEAT, grace_seconds=GRACE)
    return {**place, "storage": storage}


def run_worker(place: dict[str, Any], n_trials: int, log: Path) -> None:
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)

    def acknowledge(study: optuna.Study, trial: FrozenTrial) -> None:
        if trial.state == TrialState.COMPLETE:
            line = json.dumps([trial.number, trial.params, trial.values]) + "\n"
            with log.open("ab", buffering=0) as file:
                file.write(line.encode())

    options = connect(place)
    log.with_name(str(os.getpid())).touch()
    work(evaluate, **options, n_trials=n_trials, callbacks=[acknowledge])


def crash(kind: str, *, kills: int, workers: int = 4, seed: int = 0) -> Report:
    """Let workers die ``kills`` times, let others finish, and look at what there is."""
    rng = random.Random(seed)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["riskpilot.study.workers", "benchmarks.postgres"])
    start = time.monotonic()
    with a_place(kind) as place, tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "acknowledged"
        rp.create_study(PROBLEM, seed=seed, **connect(place))

        def begin(n_trials: int) -> BaseProcess:
            process = context.Process(target=run_worker, args=(place, n_trials, log))
            process.start()
            return process

        running = [begin(10**9) for _ in range(workers)]
        for _ in range(kills):
            victim = rng.choice(at_work(running, log))
            time.sleep(rng.uniform(0.0, LONGEST_LIFE))
            kill(victim)
            running[running.index(victim)] = begin(10**9)
        for process in running:
            kill(process)
        study = rp.load_study(**connect(place))
        n_trials = len(finished(study)) + MORE_TRIALS
        running = [begin(n_trials) for _ in range(workers)]
        for process in running:
            process.join()
        return inspect(study, kind, log, kills + workers, workers, time.monotonic() - start)


def at_work(processes: list[BaseProcess], log: Path) -> list[BaseProcess]:
    """Those that have done with their imports; waits for the first."""
    while True:
        ready = [process for process in processes if log.with_name(str(process.pid)).exists()]
        if ready:
            return ready
        time.sleep(0.01)


def kill(process: BaseProcess) -> None:
    assert process.pid is not None
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.join()


def finished(study: optuna.Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


@dataclass(frozen=True)
class Left:
    """What is left of what workers had seen finished; see `Report`."""

    lost: int
    twice: int
    unreadable: int
    same_selection: bool


def what_is_left(study: optuna.Study, said: list[Any]) -> Left:
    """Compare a study with what its workers had seen finished: number, parameters, values."""
    done = {trial.number: trial for trial in finished(study)}
    lost = sum(
        number not in done or (done[number].params, done[number].values) != (params, values)
        for number, params, values in said
    )
    unreadable = 0
    for trial in done.values():
        try:
            read_validation(study, PROBLEM, trial)
            read_calibration(study, PROBLEM, trial)
        except rp.StudyError:
            unreadable += 1
    again = rp.create_study(PROBLEM, seed=0)
    for trial in done.values():
        again.enqueue_trial(trial.params)
    again.optimize(
        rp.objective(again, lambda trial: evaluation(trial.suggest_float("x", 0, 1))),
        n_trials=len(done),
    )
    one, two = rp.select(study).certificate, rp.select(again).certificate
    fields = ("config", "promise", "plan_digest", "calibration_digest", "log_p", "candidates")
    configs = Counter(trial.params["x"] for trial in done.values())
    return Left(
        lost=lost,
        twice=sum(n > 1 for n in configs.values()),
        unreadable=unreadable,
        same_selection=all(getattr(one, name) == getattr(two, name) for name in fields),
    )


def inspect(
    study: optuna.Study, kind: str, log: Path, kills: int, workers: int, seconds: float
) -> Report:
    said = [json.loads(line) for line in log.read_text().splitlines()]
    states = Counter(trial.state for trial in study.trials)
    return Report(
        storage=kind,
        kills=kills,
        workers=workers,
        seconds=round(seconds, 1),
        trials=len(study.trials),
        finished=states[TrialState.COMPLETE],
        failed=states[TrialState.FAIL],
        running=states[TrialState.RUNNING],
        acknowledged=len(said),
        **asdict(what_is_left(study, said)),
    )


@contextlib.contextmanager
def a_place(kind: str) -> Iterator[dict[str, Any]]:
    """A storage and a folder for losses, as arguments of `create_study`."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        address = f"sqlite:///{folder}/study.db"
        if kind == "postgresql":
            address = stack.enter_context(server())
        yield {"storage": address, "study_name": "crash", "artifact_store": Path(folder) / "losses"}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--storage", choices=KINDS, action="append")
    parser.add_argument("--out", type=Path, default=FIGURES, help="where the JSON goes")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    good = True
    for kind in options.storage or KINDS:
        report = crash(kind, kills=options.kills, workers=options.workers, seed=options.seed)
        print(f"{'held' if report.ok else 'BROKEN'}: {report}", flush=True)
        record("crash", {kind: asdict(report)}, options.out)
        good = good and report.ok
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
