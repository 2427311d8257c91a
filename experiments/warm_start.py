"""What an earlier study is worth: ``python -m experiments.warm_start``.

Every task is searched at half its budget: cold, and started from an earlier study of the task's own
distribution, of a drifted one, and of a misleading one. All are tested on the same data. What
counts is the free objective on test, as a multiple of that of a cold search at the whole budget.
Choices were made on the tasks for tuning; the others only report.
"""

import argparse
import json
import logging
import multiprocessing
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from rich.progress import track

import riskpilot as rp
from experiments.optimism import REPORTED, TUNING, loaded, shifted
from experiments.racing import some_cells
from experiments.tuning.problems import problems
from riskpilot.bench import cells
from riskpilot.bench.replay import NOTHING, replay
from riskpilot.bench.searches import evaluate
from riskpilot.bench.tasks import Task
from riskpilot.bench.tasks.task import Config, Losses, Split
from riskpilot.bench.validation_sums import sum_validation
from riskpilot.common.arrays import Places
from riskpilot.problem import Problem
from riskpilot.search import default_pool_size
from riskpilot.study import from_unit, to_unit

OUT = Path(__file__).parent / "results" / "warm_start.json"
# How the places of parameters, from 0 to 1, of the earlier study relate to those of this one, the
# inverse of that, and by which share its risks are changed.
EARLIER: dict[str, tuple[Callable[[float], float], Callable[[float], float], float]] = {
    "same": (lambda u: u, lambda u: u, 0.0),
    "drifted": (lambda u: u**1.3, lambda u: u ** (1 / 1.3), 0.15),
    "misleading": (lambda u: 1 - u, lambda u: 1 - u, 0.0),
}


@dataclass(frozen=True)
class Setting:
    """One comparison: a task by its name, a limit, a seed."""

    task: str
    cell: cells.Cell
    seed: int
    n_splits: int


def earlier_version(task: Task, kind: str, seed: int) -> Task:
    """Make the task that an earlier study was about: other examples, and other places of values."""
    there, back, shift = EARLIER[kind]
    n = task.size["validation"]
    drawn = np.random.default_rng([20_27, seed]).integers(n, size=n)
    changed = shifted(task, shift, seed)

    def moved(config: Config, move: Callable[[float], float]) -> Config:
        return {
            name: from_unit(dist, move(to_unit(dist, config[name])))
            for name, dist in task.space.items()
        }

    def losses(split: Split, config: Config) -> Losses:
        found = changed.losses(split, moved(config, there))
        return {name: values[drawn] for name, values in found.items()}

    def free(split: Split, config: Config, rows: Places | None) -> float:
        return changed.free(split, moved(config, there), drawn if rows is None else drawn[rows])

    safe = None if task.safe is None else moved(task.safe, back)
    return replace(task, losses=losses, free=free, safe=safe)


def searched(
    task: Task, problem: Problem, seed: int, n: int, warm_start: optuna.Study | None = None
) -> optuna.Study:
    """Search a task with ``n`` whole evaluations."""
    m = cells.n_calibration(task)
    sampler = None
    if warm_start is None:
        pool = min(default_pool_size(len(task.space)), (n + 1) // 2)
        sampler = rp.GuidedSampler(problem, n_startup_trials=pool, seed=seed, n_calibration=m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = rp.create_study(
            problem,
            seed=seed,
            safe=task.safe,
            n_calibration=m,
            sampler=sampler,
            warm_start=warm_start,
        )
        study.optimize(rp.objective(study, lambda trial: evaluate(task, trial)), n_trials=n)
    return study


def outcomes(setting: Setting) -> dict[str, list[float]]:
    """Search every way and test: the free objective on test and the share of empty splits."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("riskpilot").setLevel(logging.WARNING)
    task = loaded(setting.task, setting.seed)
    problem = cells.problem_at(task, setting.cell)
    splits = cells.draw_splits(task, setting.n_splits)
    n, half, seed = task.n_trials, (task.n_trials + 1) // 2, setting.seed

    def tested(study: optuna.Study) -> list[float]:
        configs = [{name: trial.params[name] for name in task.space} for trial in study.trials]
        found = replay(task, problem, configs, sum_validation(task, configs), splits, smooth=True)
        return [float(found.free.mean()), float((found.chosen == NOTHING).mean())]

    result = {
        "cold": tested(searched(task, problem, seed, n)),
        "cold, half": tested(searched(task, problem, seed, half)),
    }
    for kind in EARLIER:
        before = searched(earlier_version(task, kind, seed), problem, 1000 + seed, n)
        result[f"{kind}, half"] = tested(searched(task, problem, seed, half, before))
    return result


def summary(
    settings: Sequence[Setting], found: Sequence[dict[str, list[float]]]
) -> list[dict[str, Any]]:
    """Average over seeds and limits, task by task: ratios to a cold search, and empty runs."""
    rows = []
    for task in dict.fromkeys(one.task for one in settings):
        by_cell: dict[cells.Cell, list[dict[str, list[float]]]] = {}
        for one, each in zip(settings, found, strict=True):
            if one.task == task:
                by_cell.setdefault(one.cell, []).append(each)
        ratio, empty = {}, {}
        for way in found[0]:
            means = [
                np.mean([each[way][0] for each in group])
                / np.mean([each["cold"][0] for each in group])
                for group in by_cell.values()
            ]
            ratio[way] = round(float(np.mean(means)), 4)
            empties = [each[way][1] for group in by_cell.values() for each in group]
            empty[way] = round(float(np.mean(empties)), 4)
        rows.append({"task": task, "ratio": ratio, "empty": empty})
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m experiments.warm_start", description=__doc__)
    parser.add_argument("--task", action="append", help="all by default")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    names = options.task or [*(f"{TUNING}: {one.name}" for one in problems(1)), *REPORTED]
    settings = [
        Setting(name, cell, seed, options.splits)
        for name in names
        for seed in range(options.seeds)
        for cell in some_cells(loaded(name, seed))
    ]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=spawn) as pool:
        results = pool.map(outcomes, settings, chunksize=2)
        found = list(track(results, "searches and tests", total=len(settings)))
    rows = summary(settings, found)
    written = {"seeds": options.seeds, "splits": options.splits, "rows": rows}
    options.out.write_text(json.dumps(written, indent=1) + "\n")
    for row in rows:
        print(row["task"], row["ratio"], row["empty"])


if __name__ == "__main__":
    main()
