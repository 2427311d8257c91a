"""What a search is worth where validation is too optimistic: ``python -m experiments.optimism``.

Validation losses of every task are thinned or thickened by up to 15 %, and the guided search, a
uniform grid of the same size and a dense grid are run and tested on the same data. What counts is
the free objective on test, as a multiple of the dense grid's.
"""

import argparse
import json
import multiprocessing
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from experiments.tuning.problems import problems
from riskpilot.bench import cells
from riskpilot.bench.methods import METHODS, Assignment, Guided
from riskpilot.bench.replay import NOTHING, replay
from riskpilot.bench.tasks import Task
from riskpilot.bench.tasks.task import Config, Losses, Split
from riskpilot.bench.validation_sums import sum_validation
from riskpilot.search import GUIDED

OUT = Path(__file__).parent / "results" / "optimism.json"
# By which share validation risks are changed: negative is too optimistic.
SHIFTS = (-0.15, -0.1, -0.06, 0.0, 0.06, 0.15)
# Choices about the default were made on the first; the others only report.
TUNING = "tuning"
REPORTED = (
    "celeba",
    "early_exit",
    "fairness",
    "pruning",
    "selective_celeba",
    "selective_waterbirds",
    "waterbirds",
)


@dataclass(frozen=True)
class Setting:
    """One search to be made: a task by its name, a limit, a change of validation, a seed."""

    task: str
    cell: cells.Cell
    shift: float
    seed: int
    n_splits: int
    doubts: tuple[float, ...]


def shifted(task: Task, shift: float, seed: int) -> Task:
    """Change the validation risks of a task by a share, the same examples for all configurations.

    Thinning takes the losses of a share of the examples away. Thickening gives a share of them the
    loss of another example, where that is larger.
    """
    if shift == 0:
        return task
    n = task.size["validation"]
    rng = np.random.default_rng([20_26, seed])
    hit, other = rng.random(n) < abs(shift), rng.permutation(n)

    def losses(split: Split, config: Config) -> Losses:
        found = dict(task.losses(split, config))
        if split == "validation":
            for risk in task.problem.risks:
                values = np.asarray(found[risk.name], dtype=np.float64)
                counts = hit & ~np.isnan(values)
                changed = np.full(n, risk.low) if shift < 0 else np.fmax(values, values[other])
                found[risk.name] = np.where(counts, changed, values)
        return found

    return replace(task, losses=losses)


def loaded(name: str, seed: int) -> Task:
    """Load a task by its name; those for tuning are told apart by a prefix."""
    kind, _, rest = name.partition(": ")
    if kind != TUNING:
        return cells.load(name, cells.variant_of(name, seed))
    return next(one for one in problems(seed + 1) if one.name == rest).at(seed)


def outcomes(setting: Setting) -> dict[str, list[float]]:
    """Search and test: by method, the free objective on test and the share of empty splits."""
    task = shifted(loaded(setting.task, setting.seed), setting.shift, setting.seed)
    problem = cells.problem_at(task, setting.cell)
    assignment = Assignment(task, problem, cells.n_calibration(task), setting.seed)
    searches: dict[str, Any] = {
        **{
            f"guided {doubt:g}": Guided(replace(GUIDED, doubt=doubt), safe=True)
            for doubt in setting.doubts
        },
        **{
            name: METHODS[name].search for name in ("uniform", "dense") if METHODS[name].suits(task)
        },
    }
    splits = cells.draw_splits(task, setting.n_splits)
    found = {}
    for name, search in searches.items():
        configs = search(assignment).configs
        sums = sum_validation(task, configs)
        outcome = replay(task, problem, configs, sums, splits, smooth=name.startswith("guided"))
        found[name] = [float(outcome.free.mean()), float((outcome.chosen == NOTHING).mean())]
    return found


def settings_of(
    names: Iterable[str], seeds: int, splits: int, doubts: Sequence[float]
) -> list[Setting]:
    """List every search, task by task."""
    return [
        Setting(name, tuple(cell), shift, seed, splits, tuple(doubts))
        for name in names
        for seed in range(seeds)
        for shift in SHIFTS
        for cell in loaded(name, seed).cells
    ]


def summary(
    settings: Sequence[Setting], found: Sequence[dict[str, list[float]]]
) -> list[dict[str, Any]]:
    """Average over seeds and limits: ratios to the dense grid (to the uniform one where there is
    no dense one), by task and change of validation."""
    rows = []
    for task in dict.fromkeys(one.task for one in settings):
        for shift in SHIFTS:
            by_cell: dict[cells.Cell, list[dict[str, list[float]]]] = {}
            for one, each in zip(settings, found, strict=True):
                if (one.task, one.shift) == (task, shift):
                    by_cell.setdefault(one.cell, []).append(each)
            names = list(next(iter(by_cell.values()))[0])
            base = "dense" if "dense" in names else "uniform"
            ratio, empty = {}, {}
            for name in names:
                means = [
                    np.mean([each[name][0] for each in group])
                    / np.mean([each[base][0] for each in group])
                    for group in by_cell.values()
                ]
                ratio[name] = [round(float(np.mean(means)), 4), round(float(max(means)), 4)]
                empty[name] = round(
                    float(np.mean([e[name][1] for g in by_cell.values() for e in g])), 4
                )
            rows.append(
                {"task": task, "shift": shift, "base": base, "ratio": ratio, "empty": empty}
            )
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m experiments.optimism", description=__doc__)
    parser.add_argument("--tuning", action="store_true", help="the tasks on which choices are made")
    parser.add_argument("--task", action="append", help="all by default")
    parser.add_argument(
        "--doubt", type=float, action="append", help="by default that of the default"
    )
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    every = [f"{TUNING}: {one.name}" for one in problems(1)] if options.tuning else list(REPORTED)
    names = options.task or every
    settings = settings_of(names, options.seeds, options.splits, options.doubt or [GUIDED.doubt])
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=spawn) as pool:
        results = pool.map(outcomes, settings, chunksize=4)
        found = list(track(results, "searches and tests", total=len(settings)))
    rows = summary(settings, found)
    written = {"seeds": options.seeds, "splits": options.splits, "rows": rows}
    options.out.write_text(json.dumps(written, indent=1) + "\n")
    for row in rows:
        print(row["task"], row["shift"], row["ratio"], row["empty"])


if __name__ == "__main__":
    main()
