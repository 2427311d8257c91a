"""What better surrogates could be worth at most: ``python -m experiments.known_surface``.

The search with half of N evaluations, once as it is and four times with surrogates that know the
risks and the free objective everywhere: on the validation examples, or on the held-out ones, with
the hedge against optimistic validation and without it. All are compared with the paper's search,
which has all N, as in the replay. Who knows validation everywhere knows its luck as well, and goes
after it; calibration and test are drawn from the held-out examples, so that nobody can know more of
these than the surrogates that do. What is lost with them is lost for want of evaluations.
Tasks of one and two parameters; nothing was decided by this.
"""

import itertools
import json
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from experiments.runs import Setting, in_processes
from experiments.tuning.searches import Search
from riskpilot.bench import cells
from riskpilot.bench.methods import METHODS, Assignment
from riskpilot.bench.replay import replay
from riskpilot.bench.shown.estimate import two_way
from riskpilot.bench.tasks import Task
from riskpilot.bench.tasks.task import Config, Losses, Split
from riskpilot.bench.validation_sums import sum_validation
from riskpilot.common.arrays import FloatArray, Places
from riskpilot.search import GUIDED, Model
from riskpilot.study.sampler import GuidedSampler
from riskpilot.study.space import Space

OUT = Path(__file__).parent / "results" / "known_surface.json"
TASKS = (
    "fairness",
    "waterbirds",
    "celeba",
    "selective_waterbirds",
    "selective_celeba",
    "vae",
    "synthetic",
)
PAPER = "the paper's search"
# At how many places along each parameter surfaces are looked up; elsewhere the nearest one counts.
KNOWN_AT = {1: 1001, 2: 41}


@dataclass(frozen=True)
class Known:
    """A surrogate that knows an objective everywhere."""

    surface: RegularGridInterpolator

    def mean(self, x: FloatArray) -> FloatArray:
        """Look the objective up at ``x``, shape (n, d); returns shape (n,)."""
        return np.asarray(self.surface(x))

    def mean_and_std(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Look it up, without any doubt, shape (n,) each."""
        return self.mean(x), np.zeros(len(x))


@lru_cache(maxsize=2)
def task_of(name: str, seed: int) -> Task:
    """Load a task of the replay, in the version of a seed."""
    return cells.load(name, cells.variant_of(name, seed))


def as_held_out(task: Task) -> Task:
    """Return the task with its held-out examples in the place of the validation examples."""

    def losses(split: Split, config: Config) -> Losses:
        return task.losses("held_out", config)

    def free(split: Split, config: Config, rows: Places | None) -> float:
        return task.free("held_out", config, rows)

    size: dict[Split, int] = {**task.size, "validation": task.size["held_out"]}
    return replace(task, size=size, losses=losses, free=free)


def surfaces(task: Task) -> tuple[Known, ...]:
    """Evaluate a task on validation data on a grid: one surface for each objective."""
    space, d = Space(task.space), len(task.space)
    axis = np.linspace(0, 1, KNOWN_AT[d])
    configs = [space.config(np.array(place)) for place in itertools.product(axis, repeat=d)]
    problem = cells.problem_at(task, tuple(task.cells[0]))
    values = sum_validation(task, configs).under(problem).objectives
    grids = values.T.reshape(-1, *[len(axis)] * d)
    # Tables have steps: what lies between two of their places is one of them, and no mean.
    return tuple(Known(RegularGridInterpolator([axis] * d, grid, "nearest")) for grid in grids)


def knowing(task: Task) -> type[GuidedSampler]:
    """Make a sampler whose surrogates know the surfaces of a task of one or two parameters."""
    known: Any = surfaces(task)

    class Knowing(GuidedSampler):
        def _survey(self, *args: Any, **named: Any) -> Any:
            found = super()._survey(*args, **named)
            model = Model(found.model.observations, known)
            return replace(found, model=model, cover_means=model.means(found.cover))

    return Knowing


@lru_cache(maxsize=2)
def searches(name: str, seed: int) -> dict[str, Search]:
    """Return the searches of a task with half of the evaluations."""
    half, trusting = partial(Search, share=0.5), replace(GUIDED, trust=1.0)
    task = task_of(name, seed)
    found = {"guided": half()}
    for what, known in (("validation", task), ("held out", as_held_out(task))):
        knows = knowing(known)
        found[f"knowing {what}"] = half(sampler=knows)
        found[f"knowing {what}, no hedge"] = half(trusting, sampler=knows)
    return found


def outcomes(setting: Setting) -> dict[str, list[float]]:
    """Search in every way, and test: the free objective on each split of the held-out examples."""
    task = task_of(setting.task, setting.seed)
    problem = cells.problem_at(task, setting.cell)
    assignment = Assignment(task, problem, cells.n_calibration(task), setting.seed)
    splits = cells.draw_splits(task, setting.n_splits)

    def tested(configs: Sequence[Any], *, smooth: bool) -> list[float]:
        sums = sum_validation(task, configs)
        found = replay(task, problem, configs, sums, splits, smooth=smooth)
        return [float(value) for value in found.free]

    every = {PAPER: tested(METHODS["paper"].search(assignment).configs, smooth=False)}
    for way, search in searches(setting.task, setting.seed).items():
        every[way] = tested(search(assignment).configs, smooth=True)
    return every


def summary(
    settings: Sequence[Setting], found: Sequence[dict[str, list[float]]]
) -> list[dict[str, Any]]:
    """Compare every way with the paper's search, limit by limit, and count by task."""
    rows = []
    for task in dict.fromkeys(one.task for one in settings):
        by_cell: dict[cells.Cell, list[dict[str, list[float]]]] = {}
        for one, each in zip(settings, found, strict=True):
            if one.task == task:
                by_cell.setdefault(one.cell, []).append(each)
        ways = [way for way in found[0] if way != PAPER]
        row: dict[str, Any] = {"task": task, "limits": len(by_cell), "ratio": {}, "losses": {}}
        for way in ways:
            pairs = [
                (np.array([each[way] for each in group]), np.array([each[PAPER] for each in group]))
                for group in by_cell.values()
            ]
            row["ratio"][way] = round(float(np.mean([a.mean() / b.mean() for a, b in pairs])), 4)
            row["losses"][way] = sum(two_way(a - b).verdict == "loss" for a, b in pairs)
        rows.append(row)
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    parser = ArgumentParser(prog="python -m experiments.known_surface", description=__doc__)
    parser.add_argument("--task", action="append", choices=TASKS, help="all by default")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    settings = [
        Setting(name, tuple(cell), seed, options.splits)
        for name in options.task or TASKS
        for seed in range(options.seeds)
        for cell in task_of(name, seed).cells
    ]
    rows = summary(settings, list(in_processes(outcomes, settings, options.jobs)))
    written = {"seeds": options.seeds, "splits": options.splits, "rows": rows}
    options.out.write_text(json.dumps(written, indent=1) + "\n")
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
