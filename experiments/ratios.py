"""What experiments share that compare ways to search, task by task: runs, ratios, tables."""

import json
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from experiments.runs import Setting, in_processes, loaded
from riskpilot.bench import cells
from riskpilot.bench.replay import NOTHING, replay
from riskpilot.bench.tasks import Task
from riskpilot.bench.tasks.task import Config
from riskpilot.bench.validation_sums import sum_validation
from riskpilot.problem import Problem

Result = TypeVar("Result")
Outcomes = dict[str, list[float]]
"""By way to search: the free objective on test, and the share of splits that certify nothing."""

_MOST_CELLS = 3  # limits of a task, from the tightest to the loosest


def some_cells(task: Task) -> list[cells.Cell]:
    """Return the limits at which a task is searched."""
    rows = np.unique(np.linspace(0, len(task.cells) - 1, _MOST_CELLS).round().astype(int))
    return [task.cells[row] for row in rows]


def tested(
    task: Task, problem: Problem, configs: Sequence[Config], splits: cells.Splits
) -> list[float]:
    """Test the configurations that a search evaluated on many splits of the held-out examples."""
    found = replay(task, problem, configs, sum_validation(task, configs), splits, smooth=True)
    return [float(found.free.mean()), float((found.chosen == NOTHING).mean())]


def ratios(
    settings: Sequence[Setting], found: Sequence[Outcomes], base: str
) -> list[dict[str, Any]]:
    """Average over seeds and limits, task by task: ratios to one way, and empty splits."""
    rows = []
    for task in dict.fromkeys(one.task for one in settings):
        by_cell: dict[cells.Cell, list[Outcomes]] = {}
        for one, each in zip(settings, found, strict=True):
            if one.task == task:
                by_cell.setdefault(one.cell, []).append(each)
        ratio, empty = {}, {}
        for way in next(iter(by_cell.values()))[0]:
            means = [
                np.mean([each[way][0] for each in group])
                / np.mean([each[base][0] for each in group])
                for group in by_cell.values()
            ]
            ratio[way] = round(float(np.mean(means)), 4)
            empties = [each[way][1] for group in by_cell.values() for each in group]
            empty[way] = round(float(np.mean(empties)), 4)
        rows.append({"task": task, "ratio": ratio, "empty": empty})
    return rows


def run_all(
    options: Namespace, outcomes: Callable[[Setting], Result]
) -> tuple[list[Setting], list[Result]]:
    """Make every comparison that the options ask for, in processes of their own."""
    settings = [
        Setting(name, cell, seed, options.splits)
        for name in options.task
        for seed in range(options.seeds)
        for cell in some_cells(loaded(name, seed))
    ]
    return settings, list(in_processes(outcomes, settings, options.jobs))


def write_table(options: Namespace, rows: Sequence[dict[str, Any]]) -> None:
    """Write the figures to a file, and print them."""
    written = {"seeds": options.seeds, "splits": options.splits, "rows": rows}
    options.out.write_text(json.dumps(written, indent=1) + "\n")
    for row in rows:
        print(row)
