"""Two workers against one: time and quality: ``python -m benchmarks.workers``."""

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.trial import TrialState

import riskpilot as rp
from benchmarks.durability import FIGURES, record
from riskpilot.bench.tasks import load
from riskpilot.study.workers import work

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost")
LIMIT = 0.17


def evaluate(trial: optuna.Trial) -> rp.Evaluation:
    """A second of something, as training on another machine would be."""
    x = trial.suggest_float("x", 0, 1)
    time.sleep(1.0)
    error = np.random.default_rng(trial.number).random((2, 1000)) < 0.05 + 0.4 * x
    return rp.Evaluation({"error": error[0], "cost": 1 - x}, {"error": error[1]})


def run_worker(address: str, n_trials: int, ready: object, start: object) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    ready.release()
    start.wait()
    work(evaluate, storage=address, study_name="s", n_trials=n_trials)


def seconds(n_workers: int, n_trials: int) -> float:
    """Wall-clock time of a study, from the moment all workers have done with their imports."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["riskpilot.study.workers", "riskpilot.bench.tasks"])
    ready, start = context.Semaphore(0), context.Event()
    with tempfile.TemporaryDirectory() as folder:
        address = f"sqlite:///{folder}/study.db"
        rp.create_study(PROBLEM, storage=address, study_name="s", seed=0)
        arguments = (address, n_trials, ready, start)
        workers = [context.Process(target=run_worker, args=arguments) for _ in range(n_workers)]
        begun = begin_together(workers, ready, start)
        for worker in workers:
            worker.join()
        return time.perf_counter() - begun


def begin_together(workers: Sequence[Any], ready: Any, start: Any) -> float:
    """Start workers, let them begin at one moment when all are ready, and return that moment."""
    for worker in workers:
        worker.start()
    for _ in workers:
        ready.acquire()
    begun = time.perf_counter()
    start.set()
    return begun


def quality(n_workers: int, seed: int, n_trials: int) -> float | None:
    """The certified free objective on the fairness table, with so many trials always under way."""
    task = load("fairness", seed=seed % 3)
    problem = task.problem.with_limits(**{task.problem.names[0]: LIMIT})
    rows = np.random.default_rng(seed).permutation(task.size["held_out"])[:5000]
    study = rp.create_study(problem, seed=seed, safe=task.safe)
    objective = rp.objective(study, lambda trial: task.evaluate(trial, rows))
    under_way: list[optuna.Trial] = []
    while len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))) < n_trials:
        while len(under_way) < n_workers:
            trial = study.ask()
            task.suggest(trial)
            under_way.append(trial)
        trial = under_way.pop(0)
        study.tell(trial, objective(trial))
    for trial in under_way:
        study.tell(trial, state=TrialState.FAIL)
    certificate = rp.select(study).certificate
    return (
        None if certificate.chosen is None else certificate.candidates[certificate.chosen]["free"]
    )


def compared(n_trials: int, seeds: int) -> dict[str, Any]:
    pairs = [(quality(1, seed, n_trials), quality(2, seed, n_trials)) for seed in range(seeds)]
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    return {
        "trials": n_trials,
        "limit": LIMIT,
        "seeds": seeds,
        "certified": len(both),
        "one": interval([a for a, _ in both]),
        "two": interval([b for _, b in both]),
        "gap": interval([b - a for a, b in both]),
    }


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95 % interval."""
    half = 1.96 * statistics.stdev(values) / len(values) ** 0.5
    return round(statistics.mean(values), 5), round(half, 5)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=__doc__)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=FIGURES, help="where the JSON goes")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    one, two = (round(seconds(n, options.trials), 2) for n in (1, 2))
    figures: dict[str, Any] = {"time": {"trials": options.trials, "one": one, "two": two}}
    print(figures, flush=True)
    figures["quality"] = {}
    for n_trials in (10, options.trials):
        figures["quality"][str(n_trials)] = compared(n_trials, options.seeds)
        print(figures["quality"][str(n_trials)], flush=True)
    record("workers", figures, options.out)


if __name__ == "__main__":
    sys.exit(main())
