"""How many trials a second go through one storage: ``python -m benchmarks.throughput``.

Several processes work on one study whose evaluations take no time, so that proposals and the
storage are all there is to wait for. They begin together, when each has evaluated a few trials of a
study of its own: to load what a first trial needs takes as long as twenty trials. Beside the rate
stand the processor time of a trial and how long a decision holds the lock for which all workers
take turns: no more trials can go through than there are such times in a second.
"""

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import numpy as np
import optuna

import riskpilot as rp
from benchmarks.durability import FIGURES, record
from benchmarks.postgres import server
from benchmarks.workers import begin_together
from riskpilot.study import sampler
from riskpilot.study.workers import work

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost")
NAMES = ("x1", "x2", "x3")


def evaluate(trial: optuna.Trial) -> rp.Evaluation:
    """Evaluate a trial in no time."""
    x = np.array([trial.suggest_float(name, 0, 1) for name in NAMES])
    error = np.random.default_rng(trial.number).random((2, 200)) < 0.05 + 0.4 * x.mean()
    return rp.Evaluation({"error": error[0], "cost": float(1 - x @ x / 3)}, {"error": error[1]})


@dataclass(frozen=True)
class Place:
    """Where a study is kept: the address of its storage, and the folder of its losses."""

    storage: str
    losses: str


def make_study(place: Place) -> None:
    """Make the study that workers share."""
    rp.create_study(
        PROBLEM,
        storage=place.storage,
        artifact_store=place.losses,
        study_name="s",
        seed=0,
        safe=dict.fromkeys(NAMES, 0.0),
    )


def run_worker(place: Place, n_trials: int, ready: Any, start: Any, found: "Queue[Any]") -> None:
    """Work on a study, and tell what that took: processor time and times of holding the lock."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with fresh_place("sqlite") as own:
        make_study(own)
        work(evaluate, storage=own.storage, artifact_store=own.losses, n_trials=4)
    held: list[tuple[float, float]] = []
    sampler.exclusive = _timed(sampler.exclusive, held)  # type: ignore[attr-defined]
    ready.release()
    start.wait()
    begun = time.process_time()
    work(
        evaluate,
        storage=place.storage,
        artifact_store=place.losses,
        study_name="s",
        n_trials=n_trials,
    )
    found.put((time.process_time() - begun, held))


def _timed(exclusive: Callable[..., Any], held: list[tuple[float, float]]) -> Callable[..., Any]:
    """Note how long each block holds the lock, and how long the processor works meanwhile."""

    @contextmanager
    def timed(*arguments: Any) -> Iterator[Any]:
        with exclusive(*arguments) as is_held:
            begun = time.perf_counter(), time.thread_time()
            try:
                yield is_held
            finally:
                held.append((time.perf_counter() - begun[0], time.thread_time() - begun[1]))

    return timed


def throughput(place: Place, n_workers: int, n_trials: int) -> dict[str, float]:
    """Let workers finish so many trials; returns the rate and what a trial took."""
    context = multiprocessing.get_context("spawn")
    ready, start, found = context.Semaphore(0), context.Event(), context.Queue()
    make_study(place)
    arguments = (place, n_trials, ready, start, found)
    workers = [context.Process(target=run_worker, args=arguments) for _ in range(n_workers)]
    begun = begin_together(workers, ready, start)
    reports = [found.get() for _ in workers]
    seconds = time.perf_counter() - begun
    for worker in workers:
        worker.join()
    held = [each for _, times in reports for each in times]
    return {
        "workers": n_workers,
        "trials": n_trials,
        "per_second": round(n_trials / seconds, 1),
        "processor_ms": round(1000 * sum(used for used, _ in reports) / n_trials, 1),
        "lock_ms": round(1000 * statistics.median(whole for whole, _ in held), 1),
        "lock_processor_ms": round(1000 * statistics.median(used for _, used in held), 1),
    }


@contextmanager
def fresh_place(kind: str) -> Iterator[Place]:
    """Give an empty storage of one kind, and a folder for losses."""
    with tempfile.TemporaryDirectory() as folder:
        losses = f"{folder}/losses"
        if kind == "postgresql":
            with server(durable=True) as address:
                yield Place(address, losses)
        else:
            yield Place(f"sqlite:///{folder}/study.db", losses)


def main(arguments: list[str] | None = None) -> None:
    """Measure every storage with one worker and with several."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--workers", type=int, action="append", help="1, 2 and 4 by default")
    parser.add_argument("--storage", choices=("sqlite", "postgresql"), action="append")
    parser.add_argument("--out", type=Path, default=FIGURES, help="where the JSON goes")
    options = parser.parse_args(arguments)
    for kind in options.storage or ("sqlite", "postgresql"):
        for n_workers in options.workers or (1, 2, 4):
            with fresh_place(kind) as place:
                figures = throughput(place, n_workers, options.trials)
            print(figures, flush=True)
            record("throughput", {f"{kind}, {n_workers}": figures}, options.out)


if __name__ == "__main__":
    sys.exit(main())
