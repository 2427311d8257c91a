"""Measure what was tried for the default, on the tuning tasks: ``python -m experiments.tuning``."""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.runs import Setting, in_processes
from experiments.tuning.bets import power_of_bets
from experiments.tuning.plans import PLANS, test_with
from experiments.tuning.problems import TASKS
from experiments.tuning.searches import SEARCHES
from riskpilot.bench import cells, tasks
from riskpilot.bench.methods import METHODS, Assignment
from riskpilot.bench.validation_sums import sum_validation

OUT = Path(__file__).parent / "tried.json"
Figures = dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class _Sharing:
    """A synthetic task with ``n`` labelled examples, a share of which goes to validation."""

    n: int
    share: float
    d: int
    n_risks: int
    limit: float
    seed: int
    n_splits: int


def main() -> None:
    """Run every search and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m experiments.tuning", description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    settings = [
        Setting(task, tuple(cell), seed, options.splits)
        for task in TASKS
        for cell in TASKS[task](0).cells
        for seed in range(options.seeds)
    ]
    free: Figures = {}
    nothing: Figures = {}
    every = in_processes(_tried, settings, options.jobs)
    for one, outcomes in zip(settings, every, strict=True):
        for name, (cost, empty) in outcomes.items():
            free.setdefault(name, {}).setdefault(f"{one.task} at {one.cell}", []).append(cost)
            nothing.setdefault(name, {}).setdefault(one.task, []).append(empty)
    found = {
        "seeds": options.seeds,
        "splits": options.splits,
        "tried": [_row(name, free, nothing) for name in free],
        "shares": _split_shares(options.seeds, options.splits, options.jobs),
        "bets": power_of_bets(),
    }
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def _tried(setting: Setting) -> dict[str, tuple[float, float]]:
    """For each thing tried: the free objective on test, and the share of empty runs."""
    task = TASKS[setting.task](setting.seed)
    splits = cells.draw_splits(task, setting.n_splits)
    limited = cells.problem_at(task, setting.cell)
    assignment = Assignment(task, limited, cells.n_calibration(task), setting.seed)
    found = {}

    def note(name: str, search: Callable[[Assignment], Any], plan: str) -> None:
        configs = searched(search).configs
        outcome = test_with(plan, task, limited, configs, sum_validation(task, configs), splits)
        found[name] = (float(outcome.free.mean()), float((outcome.chosen < 0).mean()))

    done: dict[Any, Any] = {}

    def searched(search: Callable[[Assignment], Any]) -> Any:
        if search not in done:
            done[search] = search(assignment)
        return done[search]

    for name, search in SEARCHES.items():
        note(name, search, "default")
    for plan in PLANS[1:]:
        note(f"plan: {plan}", SEARCHES["default"], plan)
    note("the paper's preset", METHODS["paper"].search, "raw means (the paper)")
    return found


def _row(name: str, free: Figures, nothing: Figures) -> dict[str, Any]:
    """Means over cells of the free objective relative to the default's, and of empty runs."""
    change: dict[str, list[float]] = {}
    for cell, values in free[name].items():
        task = cell.rpartition(" at ")[0]
        default = np.mean(free["default"][cell])
        change.setdefault(task, []).append(float(np.mean(values) / default) - 1)
    return {
        "tried": name,
        "change": {task: round(float(np.mean(each)), 4) for task, each in change.items()},
        "mean_change": round(float(np.mean([np.mean(each) for each in change.values()])), 4),
        "nothing_certified": round(
            float(np.mean([np.mean(each) for each in nothing[name].values()])), 4
        ),
    }


def _split_shares(n_seeds: int, n_splits: int, n_jobs: int) -> list[dict[str, float]]:
    """True cost of the choice where a share of all labelled examples went to validation."""
    limits = (0.08, 0.16, 0.25)
    runs = [
        _Sharing(n, share, d, n_risks, limit, seed, n_splits)
        for n, d, n_risks in ((1_000, 1, 1), (4_000, 1, 1), (2_000, 2, 2))
        for share in (0.1, 0.2, 1 / 3, 0.4, 0.5, 0.7)
        for seed in range(n_seeds)
        for limit in limits
    ]
    costs = list(in_processes(_true_cost, runs, n_jobs))
    each = n_seeds * len(limits)
    return [
        {
            "labelled": runs[start].n,
            "d": runs[start].d,
            "share": round(runs[start].share, 3),
            "cost": round(float(np.mean(costs[start : start + each])), 4),
        }
        for start in range(0, len(runs), each)
    ]


def _true_cost(run: _Sharing) -> float:
    """Compute the true cost of the choice, as a mean over splits into calibration and test."""
    k = round(run.share * run.n)
    m = run.n - k
    # Half of the held-out examples are for calibration; the truth is known and needs no test.
    task = tasks.synthetic(run.d, run.n_risks, seed=run.seed, n_validation=k, n_held_out=2 * m)
    limited = cells.problem_at(task, (run.limit,) * run.n_risks)
    configs = SEARCHES["default"](Assignment(task, limited, m, run.seed)).configs
    splits = cells.draw_splits(task, run.n_splits)
    outcome = test_with("default", task, limited, configs, sum_validation(task, configs), splits)
    assert task.population is not None
    assert task.safe is not None
    chosen = [task.safe if row < 0 else configs[row] for row in outcome.chosen]
    return float(np.mean([task.population(config)["cost"] for config in chosen]))
