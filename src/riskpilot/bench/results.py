"""The outcomes of a run by task, limits, method and p-values, as arrays over seeds and splits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.bench import cells as at
from riskpilot.bench.cache import Cache
from riskpilot.bench.cells import Cell
from riskpilot.bench.jobs import NO_TEST, Job, Key, Scope, seed_of
from riskpilot.bench.methods import METHODS
from riskpilot.bench.replay import NOTHING, Outcome

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Entry:
    """Names what a row of the results is about."""

    task: str
    cell: Cell
    method: str
    family: str


@dataclass(frozen=True)
class Runs:
    """S search seeds x K splits. ``free``, ``nothing``, ``violated``: (S, K); ``risks``: (S, K, c).

    ``free`` counts a run that certified nothing with the safest configuration's free objective.
    """

    free: FloatArray
    nothing: BoolArray
    violated: BoolArray
    risks: FloatArray
    seconds: float
    n_configs: float
    n_candidates: float


@dataclass(frozen=True)
class Picture:
    """One guided search, for drawing. ``points``: (n, c + 1), the risks and then the free one."""

    task: str
    cell: Cell
    points: FloatArray
    search: dict[str, Any]


@dataclass(frozen=True)
class Results:
    scope: Scope
    runs: dict[Entry, Runs]
    names: dict[str, tuple[str, ...]]
    """For each task the names of its risks, and last that of the free objective."""
    cells: dict[str, list[Cell]]
    pictures: list[Picture]

    def get(self, task: str, cell: Cell, method: str, family: str = "auto") -> Runs | None:
        return self.runs.get(Entry(task, cell, method, family))

    def entries(self) -> list[tuple[str, Cell]]:
        """Every task and cell that was run."""
        return [(task, cell) for task in self.scope.tasks for cell in self.cells[task]]


def collect(scope: Scope, jobs: Sequence[Job], cache: Cache) -> Results:
    """Read everything a run made from the cache."""
    outcomes: dict[Key, Outcome] = {}
    searches: dict[Key, dict[str, Any]] = {}
    pictures = []
    for job in jobs:
        search = cache.get(job.search_key)
        for key, stored in job.replays.items():
            outcomes[key] = Outcome.from_json(cache.get(stored))
            searches[key] = search
        if job.method == "guided" and job.seed == 0 and job.cell == _middle(scope, job.task):
            pictures.append(_picture(job, search))
    runs: dict[Entry, Runs] = {}
    for key in outcomes:
        entry = Entry(key.task, key.cell, key.method, key.family)
        if entry not in runs:
            runs[entry] = _runs(scope, entry, outcomes, searches)
    names, cells = {}, {}
    for name in scope.tasks:
        task = at.load(name, 0)
        names[name] = (*task.problem.names, task.problem.minimize)
        cells[name] = scope.cells(task, METHODS["guided"])
    return Results(scope, runs, names, cells, pictures)


def _runs(
    scope: Scope, entry: Entry, outcomes: dict[Key, Outcome], searches: dict[Key, dict[str, Any]]
) -> Runs:
    method = METHODS[entry.method]
    keys = [
        Key(entry.task, entry.cell, entry.method, entry.family, seed_of(entry.task, method, seed))
        for seed in range(scope.n_seeds)
    ]
    each = [outcomes[key] for key in keys]
    grid = at.load(entry.task, 0).grid
    counts = [len(searches[key]["configs"]) or len(grid or ()) for key in keys]
    return Runs(
        free=np.array([one.free for one in each]),
        nothing=np.array([one.chosen == NOTHING for one in each]),
        violated=np.array([one.violated for one in each]),
        risks=np.array([one.risks for one in each]),
        seconds=float(np.mean([searches[key]["seconds"] for key in keys])),
        n_configs=float(np.mean(counts)),
        n_candidates=float(np.mean([one.n_candidates for one in each])),
    )


def _middle(scope: Scope, task: str) -> Cell:
    cells = scope.cells(at.load(task, 0), METHODS["guided"])
    return cells[len(cells) // 2]


def _picture(job: Job, search: dict[str, Any]) -> Picture:
    task = at.load(job.task, at.variant_of(job.task, job.seed))
    points = []
    for config in search["configs"]:
        losses = task.losses("validation", config)
        risks = [float(np.nanmean(losses[name])) for name in task.problem.names]
        points.append([*risks, task.free("validation", config, None)])
    assert job.cell is not None
    return Picture(job.task, job.cell, np.array(points), search["picture"])


def tested(method: str) -> bool:
    return bool(METHODS[method].families)


def family_label(family: str) -> str:
    return {"auto": "default", NO_TEST: "no test"}.get(family, family.replace("_", "-"))
