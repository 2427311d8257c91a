"""What many workers cost in quality: ``python -m experiments.many_workers``.

The same number of evaluations is shared by 1 to 256 workers in virtual time: sampler and storage
are real, the durations of evaluations are made up. The more workers there are, the fewer results a
proposal can rest on. The guided search, TPE (multivariate, with constant liar and a constraint at
the largest mean that passes) and random search start from the same safe configuration, and what
they evaluated is tested alike. What counts is the free objective on test.
"""

import argparse
import heapq
import json
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

import riskpilot as rp
from experiments.runs import in_processes, loaded
from riskpilot.bench import cells
from riskpilot.bench.replay import replay
from riskpilot.bench.searches import evaluate
from riskpilot.bench.tasks import Task
from riskpilot.bench.validation_sums import sum_validation
from riskpilot.guarantee import region_of
from riskpilot.problem import Problem
from riskpilot.study.space import from_unit

OUT = Path(__file__).parent / "results" / "many_workers.json"
# By task, the limit: two made-up tasks and a table, in three dimensions each.
TASKS = {
    "pruning": (0.05,),
    "tuning: cliffs in steps, d = 3": (0.06,),
    "tuning: synthetic, d = 3": (0.16,),
}
WORKERS = (1, 4, 16, 64, 256)
N_TRIALS = 256
Config = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One search to be made."""

    task: str
    search: str
    n_workers: int
    seed: int
    n_trials: int
    n_splits: int


def in_virtual_time(
    study: optuna.Study, task: Task, run: Run, tell: Callable[[optuna.Trial], None]
) -> list[Config]:
    """Let the workers of a run evaluate its trials; returns what was evaluated."""
    rng = np.random.default_rng([run.seed, run.n_workers])
    under_way: list[tuple[float, int, optuna.Trial]] = []
    now, asked = 0.0, 0
    while asked < run.n_trials or under_way:
        while asked < run.n_trials and len(under_way) < run.n_workers:
            trial = study.ask()
            task.suggest(trial)
            heapq.heappush(under_way, (now + float(rng.lognormal(sigma=0.5)), asked, trial))
            asked += 1
        now, _, trial = heapq.heappop(under_way)
        tell(trial)
    return [dict(trial.params) for trial in study.trials]


def guided(task: Task, problem: Problem, run: Run) -> list[Config]:
    """Search with the guided sampler through SQLite."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Heartbeat of storage")  # no worker crashes here
        study = rp.create_study(
            problem,
            sampler=rp.GuidedSampler(problem, seed=run.seed),
            safe=task.safe,
            n_calibration=cells.n_calibration(task),
            storage=f"sqlite:///{folder}/study.db",
        )
        return in_virtual_time(
            study, task, run, lambda trial: rp.tell(study, trial, evaluate(task, trial))
        )


def constrained(
    task: Task, problem: Problem, run: Run, make: Callable[[int], BaseSampler]
) -> list[Config]:
    """Search with a sampler of Optuna, which minimises the free objective under constraints."""
    bars = passing_means(task, problem)
    study = optuna.create_study(sampler=make(run.seed))
    study.enqueue_trial(dict(task.safe or {}))

    def tell(trial: optuna.Trial) -> None:
        validation = evaluate(task, trial).validation
        for name, bar in bars.items():
            trial.set_constraint(name, float(np.nanmean(validation[name])) - bar)
        study.tell(trial, float(np.nanmean(validation[problem.minimize])))

    return in_virtual_time(study, task, run, tell)


def passing_means(task: Task, problem: Problem) -> dict[str, float]:
    """Compute the largest mean of each risk that passes, as losses at random places vary."""
    rng = np.random.default_rng(0)
    configs = [
        {name: from_unit(dist, float(rng.random())) for name, dist in task.space.items()}
        for _ in range(64)
    ]
    validation = sum_validation(task, configs).under(problem)
    region = region_of(validation, cells.n_calibration(task))
    return {name: part.alpha_max for name, part in zip(problem.names, region, strict=True)}


def _tpe(seed: int) -> BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return TPESampler(seed=seed, multivariate=True, constant_liar=True)


def _random(seed: int) -> BaseSampler:
    return RandomSampler(seed=seed)


SEARCHES: dict[str, Callable[[Task, Problem, Run], list[Config]]] = {
    "guided": guided,
    "TPE": partial(constrained, make=_tpe),
    "random": partial(constrained, make=_random),
}


def free_on_test(run: Run) -> float:
    """Search and test; returns the free objective on test, as a mean over the splits."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    task = loaded(run.task, run.seed)
    problem = cells.problem_at(task, TASKS[run.task])
    configs = SEARCHES[run.search](task, problem, run)
    splits = cells.draw_splits(task, run.n_splits)
    sums = sum_validation(task, configs)
    return float(replay(task, problem, configs, sums, splits, smooth=True).free.mean())


def row_of(task: str, runs: Sequence[Run], found: Sequence[float]) -> dict[str, Any]:
    """Average over seeds: the free objective on one task, by search and number of workers."""
    free: dict[str, dict[str, list[float]]] = {}
    for run, one in zip(runs, found, strict=True):
        free.setdefault(run.search, {}).setdefault(str(run.n_workers), []).append(one)
    means = {
        search: {n: round(float(np.mean(each)), 5) for n, each in by_workers.items()}
        for search, by_workers in free.items()
    }
    alone = means["guided"]["1"]
    ratio = {
        search: {n: round(value / alone, 4) for n, value in by_workers.items()}
        for search, by_workers in means.items()
    }
    return {"task": task, "limit": TASKS[task], "free": means, "ratio": ratio}


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m experiments.many_workers", description=__doc__)
    parser.add_argument("--task", action="append", choices=list(TASKS), help="all by default")
    parser.add_argument("--trials", type=int, default=N_TRIALS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    written = {"trials": options.trials, "seeds": options.seeds, "splits": options.splits}
    rows: list[dict[str, Any]] = []
    for task in options.task or TASKS:
        runs = [
            Run(task, search, n_workers, seed, options.trials, options.splits)
            for search in SEARCHES
            for n_workers in (WORKERS if search != "random" else WORKERS[:1])  # it learns nothing
            for seed in range(options.seeds)
        ]
        rows.append(row_of(task, runs, list(in_processes(free_on_test, runs, options.jobs))))
        print(rows[-1])
        options.out.write_text(json.dumps({**written, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
