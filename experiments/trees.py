"""What a search is worth in tree-shaped spaces: ``python -m experiments.trees``.

Some parameters exist under a condition alone, such as the depth of a tree where the model is one.
The guided search, the same without a model of such parameters, and samplers of Optuna are run from
the same safe configuration for the same number of evaluations, and `riskpilot.select` chooses from
what each of them evaluated. What counts is the free objective of the choice on test.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.search_space import intersection_search_space
from optuna.trial import FrozenTrial

import riskpilot as rp
from experiments.runs import in_processes
from experiments.tree_tasks import TASKS, TUNING, Config, TreeTask
from riskpilot.common.arrays import FloatArray
from riskpilot.search import default_pool_size
from riskpilot.statistics import largest_passing_mean

OUT = Path(__file__).parent / "results" / "trees.json"


class SharedOnly(rp.GuidedSampler):
    """The guided search without branches: it models what all trials have in common."""

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        shared = intersection_search_space(study.get_trials(deepcopy=False))
        return {} if trial.number < default_pool_size(len(shared)) else shared


def guided(
    task: TreeTask, seed: int, kind: Callable[..., BaseSampler] = rp.GuidedSampler
) -> list[Config]:
    """Search with the guided sampler; returns what was evaluated, in its order."""
    sampler = kind(task.problem, seed=seed)
    study = rp.create_study(task.problem, sampler=sampler, safe=task.safe)
    study.optimize(rp.objective(study, task.evaluate), n_trials=task.n_trials)
    return [dict(trial.params) for trial in study.trials]


def constrained(task: TreeTask, seed: int, make: Callable[[int], BaseSampler]) -> list[Config]:
    """Search with a sampler of Optuna, which minimises the free objective under constraints.

    A constraint is kept where a mean as on validation data would pass on calibration data: told
    the limit alone, a sampler would go where the test is lost.
    """
    risk = task.problem.risks[0]
    bar = largest_passing_mean("binomial", risk.unit_limit, task.n_counted, task.problem.delta)

    def objective(trial: optuna.Trial) -> float:
        evaluation = task.evaluate(trial)
        trial.set_constraint(risk.name, float(np.nanmean(evaluation.validation[risk.name])) - bar)
        return float(np.nanmean(evaluation.validation[task.problem.minimize]))

    study = optuna.create_study(sampler=make(seed))
    study.enqueue_trial(dict(task.safe))
    study.optimize(objective, n_trials=task.n_trials)
    return [dict(trial.params) for trial in study.trials]


def _tpe(seed: int) -> BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return TPESampler(seed=seed, multivariate=True, group=True)


def _nsga2(seed: int) -> BaseSampler:
    # Optuna's population of 50 would be a random search at these numbers of evaluations.
    return NSGAIISampler(seed=seed, population_size=10)


def _random(seed: int) -> BaseSampler:
    return RandomSampler(seed=seed)


SEARCHES: Mapping[str, Callable[[TreeTask, int], list[Config]]] = {
    "guided": guided,
    "guided, shared parameters": partial(guided, kind=SharedOnly),
    "TPE": partial(constrained, make=_tpe),
    "NSGA-II": partial(constrained, make=_nsga2),
    "random": partial(constrained, make=_random),
}
PEERS = ("TPE", "NSGA-II", "random")


@dataclass(frozen=True)
class Run:
    """One search to be made: a task by its name, a seed of data and search, a method."""

    task: str
    seed: int
    search: str


@dataclass(frozen=True)
class Outcome:
    """The choice on test: its free objective and risk, and whether anything was certified."""

    free: float
    risk: float
    certified: bool


def outcome(run: Run) -> Outcome:
    """Search, select and look at the choice on test; the safe configuration where there is none."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    task = TASKS[run.task](run.seed)
    configs = SEARCHES[run.search](task, run.seed)
    study = rp.create_study(task.problem, sampler=RandomSampler(seed=0))
    for config in configs:
        study.enqueue_trial(config)
    study.optimize(rp.objective(study, task.evaluate), n_trials=len(configs))
    chosen = rp.select(study).config
    risk, free = task.on_test(task.safe if chosen is None else chosen)
    return Outcome(free, risk, chosen is not None)


def summary(runs: Sequence[Run], found: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Average over seeds: by task and method, and the ratio of guided to the best of the peers."""
    rows = []
    for task in dict.fromkeys(run.task for run in runs):
        by_search: dict[str, list[Outcome]] = {}
        for run, one in zip(runs, found, strict=True):
            if run.task == task:
                by_search.setdefault(run.search, []).append(one)
        limit = TASKS[task](0).problem.risks[0].limit
        free = {name: [one.free for one in each] for name, each in by_search.items()}
        means = {name: float(np.mean(each)) for name, each in free.items()}
        best = min(PEERS, key=lambda name: means.get(name, np.inf))
        row: dict[str, Any] = {
            "task": task,
            "role": "tuning" if task in TUNING else "reported",
            "seeds": max(map(len, by_search.values())),
            "free": {name: round(mean, 4) for name, mean in means.items()},
            "standard_error": {
                name: round(_standard_error(each), 4) for name, each in free.items()
            },
            "empty": {n: sum(not one.certified for one in each) for n, each in by_search.items()},
            "above_limit": {
                name: sum(one.certified and one.risk > limit for one in each)
                for name, each in by_search.items()
            },
        }
        row["by_seed"] = {name: [round(one, 4) for one in each] for name, each in free.items()}
        if "guided" in means and best in means:
            gains = np.subtract(free[best], free["guided"])  # on the same data, seed by seed
            row |= {
                "best_peer": best,
                "ratio": round(means["guided"] / means[best], 3),
                "gain": [round(float(np.mean(gains)), 4), round(_standard_error(gains), 4)],
            }
        rows.append(row)
    return rows


def _standard_error(values: Sequence[float] | FloatArray) -> float:
    """Compute the standard error of a mean; 0 for one value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m experiments.trees", description=__doc__)
    parser.add_argument("--task", action="append", choices=list(TASKS), help="all by default")
    parser.add_argument("--search", action="append", choices=list(SEARCHES), help="all by default")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    names = options.task or TASKS
    runs = [
        Run(task, seed, search)
        for task in names
        for seed in range(options.seeds)
        for search in options.search or SEARCHES
    ]
    found = in_processes(outcome, runs, options.jobs)
    rows = summary(runs, found)
    options.out.write_text(json.dumps(rows, indent=1) + "\n")
    for row in rows:
        print(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
