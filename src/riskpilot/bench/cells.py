"""What one run is about: a task, its limits, its seeds, and how held-out examples are split."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from riskpilot.bench import tasks
from riskpilot.bench.tasks import Task
from riskpilot.common.arrays import Places
from riskpilot.errors import TableError
from riskpilot.problem import Problem

Cell = tuple[float, ...]

DELTA = 0.1
# Calibration examples where half of the held-out ones is not what the paper has.
N_CALIBRATION = {"pruning": 2_500, "pruning_drop": 2_500, "early_exit": 2_500}
# Some tasks come in several versions (training seeds, draws of the population); search seeds take
# turns on them.
VARIANTS = {"fairness": 3, "fairness_gap": 3, "synthetic": 10}


@dataclass(frozen=True)
class Splits:
    """Held-out examples, split at random into calibration and test, several times.

    ``calibration``: (splits, m); ``test``: (splits, M - m); both hold row numbers.
    """

    calibration: Places
    test: Places


@lru_cache(maxsize=2)
def load(name: str, variant: int) -> Task:
    """Load a task by its name; ``variant``: which of its versions, where it has several."""
    return tasks.load(name, seed=variant) if name in VARIANTS else tasks.load(name)


def variant_of(name: str, seed: int) -> int:
    """Return which version of a task the given search seed runs on."""
    return seed % VARIANTS.get(name, 1)


def available(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the tasks that can run, and for the others why they cannot."""
    ready, missing = [], {}
    for name in names:
        if name != "synthetic":
            try:
                tasks.table_path(name)
            except TableError as error:
                missing[name] = str(error)
                continue
        ready.append(name)
    return ready, missing


def n_calibration(task: Task) -> int:
    """Return how many of the held-out examples are for calibration."""
    return N_CALIBRATION.get(task.name, task.size["held_out"] // 2)


def draw_splits(task: Task, n_splits: int) -> Splits:
    """Draw splits, the same for every method, limit and search seed, so that runs can be paired."""
    m, size = n_calibration(task), task.size["held_out"]
    shuffles = [np.random.default_rng([2024, i]).permutation(size) for i in range(n_splits)]
    rows = np.array(shuffles, dtype=np.intp)
    return Splits(rows[:, :m], rows[:, m:])


def problem_at(task: Task, cell: Cell | None, family: str = "auto") -> Problem:
    """Give a task's problem the limits of a cell; None leaves them open.

    ``family``: the p-values of the test, for statistics that these can test.
    """
    limits: Sequence[float | None] = [None] * len(task.problem.risks) if cell is None else cell
    risks = [
        replace(risk, limit=limit, p_value=family if family in risk.tests else "auto")
        for risk, limit in zip(task.problem.risks, limits, strict=True)
    ]
    return Problem(risks, task.problem.minimize, DELTA)
