"""What an earlier study is worth: ``python -m experiments.warm_start``.

Every task is searched at half its budget: cold, and started from an earlier study of the task's own
distribution, of a drifted one, and of a misleading one. All are tested on the same data. What
counts is the free objective on test, as a multiple of that of a cold search at the whole budget.
Where there are at most two parameters, two cold searches know everything beforehand: their
surrogates know this study's validation examples everywhere, with their luck, or the held-out
examples, of which no earlier study could tell more. Choices were made on the tasks for tuning; the
others only report.
"""

import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna

import riskpilot as rp
from experiments.known_surface import KNOWN_AT, as_held_out, knowing
from experiments.optimism import shifted
from experiments.ratios import Outcomes, ratios, run_all, tested, write_table
from experiments.runs import Setting, loaded, read_options
from riskpilot.bench import cells
from riskpilot.bench.searches import evaluate
from riskpilot.bench.tasks import Task
from riskpilot.bench.tasks.task import Config, Losses, Split
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
    task: Task,
    problem: Problem,
    seed: int,
    n: int,
    warm_start: optuna.Study | None = None,
    kind: type[rp.GuidedSampler] = rp.GuidedSampler,
) -> optuna.Study:
    """Search a task with ``n`` whole evaluations; a cold search has a sampler of this kind."""
    m = cells.n_calibration(task)
    sampler = None
    if warm_start is None:
        pool = min(default_pool_size(len(task.space)), (n + 1) // 2)
        sampler = kind(problem, n_startup_trials=pool, seed=seed, n_calibration=m)
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


def outcomes(setting: Setting) -> Outcomes:
    """Search every way and test: the free objective on test and the share of empty splits."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("riskpilot").setLevel(logging.WARNING)
    task = loaded(setting.task, setting.seed)
    problem = cells.problem_at(task, setting.cell)
    splits = cells.draw_splits(task, setting.n_splits)
    n, half, seed = task.n_trials, (task.n_trials + 1) // 2, setting.seed

    def found(study: optuna.Study) -> list[float]:
        configs = [{name: trial.params[name] for name in task.space} for trial in study.trials]
        return tested(task, problem, configs, splits)

    result = {
        "cold": found(searched(task, problem, seed, n)),
        "cold, half": found(searched(task, problem, seed, half)),
    }
    for kind in EARLIER:
        before = searched(earlier_version(task, kind, seed), problem, 1000 + seed, n)
        result[f"{kind}, half"] = found(searched(task, problem, seed, half, before))
    if len(task.space) in KNOWN_AT:
        for what, known in (("validation", task), ("held out", as_held_out(task))):
            study = searched(task, problem, seed, half, kind=knowing(known))
            result[f"knowing {what}, half"] = found(study)
    return result


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    options = read_options("warm_start", __doc__ or "", OUT, arguments)
    write_table(options, ratios(*run_all(options, outcomes), "cold"))


if __name__ == "__main__":
    main()
