"""What a search is worth where validation is too optimistic: ``python -m experiments.optimism``.

Validation losses of every task are thinned or thickened by up to 15 %, and the guided search, the
same search that trusts validation, a uniform grid of the same size and a dense grid are run and
tested on the same data. What counts is the free objective on test, as a multiple of the dense
grid's. Tasks for tuning and for reporting are kept apart.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.runs import REPORTED, TUNING, in_processes, loaded, read_options, role
from riskpilot.bench import cells
from riskpilot.bench.methods import METHODS, Assignment, Guided
from riskpilot.bench.replay import NOTHING, replay
from riskpilot.bench.tasks import Task
from riskpilot.bench.tasks.task import Config, Losses, Split
from riskpilot.bench.validation_sums import sum_validation
from riskpilot.search import GUIDED

OUT = Path(__file__).parent / "results" / "optimism.json"
# By which share validation risks are changed: negative is too optimistic.
SHIFTS = (-0.15, -0.1, -0.06, 0.0, 0.15)
# The guided searches: the default hedges.
HEDGES = {"guided": GUIDED, "trusting": replace(GUIDED, trust=1.0)}
GRIDS = ("uniform", "dense")
# By method: the free objective on test, and the share of splits in which nothing passed.
Outcomes = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Setting:
    """The searches of a task by its name, at every limit, for one change of validation and seed."""

    task: str
    shift: float
    seed: int
    n_splits: int


def shifted(task: Task, shift: float, seed: int) -> Task:
    """Change the validation risks of a task by a share, the same examples for all configurations.

    Thinning takes the losses of a share of the examples away, so that a risk falls by that share:
    they are 0, also where losses are differences and could be negative. Thickening gives a share of
    them the loss of another example, where that is larger.
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
                changed = np.zeros(n) if shift < 0 else np.fmax(values, values[other])
                found[risk.name] = np.where(counts, changed, values)
        return found

    return replace(task, losses=losses)


def outcomes(setting: Setting) -> dict[cells.Cell, Outcomes]:
    """Search and test with every method that suits the task, limit by limit."""
    task = shifted(loaded(setting.task, setting.seed), setting.shift, setting.seed)
    searches: dict[str, Any] = {
        name: Guided(strategy, safe=True) for name, strategy in HEDGES.items()
    }
    searches |= {name: METHODS[name].search for name in GRIDS if METHODS[name].suits(task)}
    splits = cells.draw_splits(task, setting.n_splits)
    dense = sum_validation(task, list(task.grid)) if task.grid is not None else None
    found: dict[cells.Cell, Outcomes] = {}
    for cell in map(tuple, task.cells):
        problem = cells.problem_at(task, cell)
        assignment = Assignment(task, problem, cells.n_calibration(task), setting.seed)
        found[cell] = {}
        for name, search in searches.items():
            configs = search(assignment).configs
            sums = dense if name == "dense" else sum_validation(task, configs)
            outcome = replay(task, problem, configs, sums, splits, smooth=name in HEDGES)
            empty = float((outcome.chosen == NOTHING).mean())
            found[cell][name] = float(outcome.free.mean()), empty
    return found


def settings_of(names: Iterable[str], seeds: int, splits: int) -> list[Setting]:
    """List every setting, task by task."""
    return [
        Setting(name, shift, seed, splits)
        for name in names
        for seed in range(seeds)
        for shift in SHIFTS
    ]


def summary(
    settings: Sequence[Setting], found: Sequence[dict[cells.Cell, Outcomes]]
) -> list[dict[str, Any]]:
    """Average over seeds and limits, by task and change of validation.

    The ratios are to the dense grid, or to the uniform one where there is no dense one.
    """
    rows = []
    for task in dict.fromkeys(one.task for one in settings):
        for shift in SHIFTS:
            by_cell: dict[cells.Cell, list[Outcomes]] = {}
            for one, each in zip(settings, found, strict=True):
                if (one.task, one.shift) == (task, shift):
                    for cell, outcome in each.items():
                        by_cell.setdefault(cell, []).append(outcome)
            rows.append({"task": task, "role": role(task), "shift": shift, **_row(by_cell)})
    return rows


def _row(by_cell: dict[cells.Cell, list[Outcomes]]) -> dict[str, Any]:
    """Average the outcomes of one task at one change of validation."""
    names = list(next(iter(by_cell.values()))[0])
    base = "dense" if "dense" in names else "uniform"
    free = {
        name: [np.mean([one[name][0] for one in by_cell[c]]) for c in by_cell] for name in names
    }
    ratios = {name: np.divide(free[name], free[base]) for name in names}
    empty = {name: [one[name][1] for each in by_cell.values() for one in each] for name in names}
    return {
        "base": base,
        "ratio": {name: round(float(each.mean()), 4) for name, each in ratios.items()},
        "worst": {name: round(float(each.max()), 4) for name, each in ratios.items()},
        "empty": {name: round(float(np.mean(each)), 4) for name, each in empty.items()},
    }


def means(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average over the tasks that have a dense grid, apart for tuning and reporting."""
    found = []
    for part in dict.fromkeys(row["role"] for row in rows):
        for shift in SHIFTS:
            some = [
                row
                for row in rows
                if (row["role"], row["shift"], row["base"]) == (part, shift, "dense")
            ]
            if some:
                average = {
                    figure: {
                        name: round(float(np.mean([row[figure][name] for row in some])), 4)
                        for name in (*HEDGES, *GRIDS)
                    }
                    for figure in ("ratio", "empty")
                }
                found.append({"role": part, "shift": shift, "tasks": len(some), **average})
    return found


def _kept(file: Path, size: dict[str, int], again: Sequence[str]) -> list[dict[str, Any]]:
    """Read the rows of a file of the same size, without the tasks that are run again."""
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    same = {name: found.get(name) for name in size} == size
    return [row for row in found["rows"] if row["task"] not in again] if same else []


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    options = read_options("optimism", __doc__, OUT, arguments)
    size = {"seeds": options.seeds, "splits": options.splits}
    rows = _kept(options.out, size, options.task)
    for task in options.task:  # what is done is kept
        settings = settings_of([task], options.seeds, options.splits)
        rows += summary(settings, list(in_processes(outcomes, settings, options.jobs)))
        rows.sort(key=lambda row: (TUNING + REPORTED).index(row["task"]))
        written = {**size, "means": means(rows), "rows": rows}
        options.out.write_text(json.dumps(written, indent=1) + "\n")
    for row in means(rows):
        print(row)


if __name__ == "__main__":
    main()
