"""All searches and replays of a run: which are still missing, and the processes that make them."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from riskpilot.bench import cells, tasks
from riskpilot.bench.cache import Cache, as_json, file_digest, source_digest
from riskpilot.bench.cells import Cell, Splits
from riskpilot.bench.methods import METHODS, Assignment, Method
from riskpilot.bench.peers import is_peer, peer_key
from riskpilot.bench.replay import NOTHING, Outcome, outcome_on_test, replay
from riskpilot.bench.searches import SearchResult
from riskpilot.bench.tasks import Task
from riskpilot.bench.validation_sums import sum_validation
from riskpilot.common import digest_of

# Every test and every search of riskpilot's own depends on these; results are made again when any
# of them changes.
CORE = (
    "bench.baselines",
    "bench.methods",
    "bench.replay",
    "bench.cells",
    "bench.searches",
    "bench.tasks.task",
    "bench.validation_sums",
    "common",
    "guarantee",
    "losses",
    "problem",
    "search",
    "statistics",
    "study",
)
NO_TEST = "none"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Key:
    """The name of one replay: task, limits, method, family of p-values, search seed."""

    task: str
    cell: Cell
    method: str
    family: str
    seed: int


@dataclass(frozen=True)
class Job:
    """One search and every replay of what it finds. ``cell``: None for all limits at once."""

    task: str
    method: str
    cell: Cell | None
    seed: int
    n_splits: int
    search_key: str
    replays: Mapping[Key, str] = field(hash=False)
    """The names of the replays, and their keys in the cache."""


@dataclass(frozen=True)
class Scope:
    """How much of the experiments is run."""

    tasks: Sequence[str]
    methods: Sequence[str]
    n_seeds: int
    n_splits: int
    every_cell: bool = True

    def cells(self, task: Task, method: Method) -> list[Cell]:
        """Return the cells in which a method is run: all of a task's, or every second one."""
        some = not (self.every_cell and method.every_cell)
        return list(task.cells)[1::2] if some else list(task.cells)


def plan_jobs(scope: Scope) -> list[Job]:
    """Plan every job of a run; within a task, those that serve all limits come first."""
    jobs: list[Job] = []
    for name in scope.tasks:
        task = cells.load(name, 0)
        methods = [METHODS[m] for m in scope.methods if METHODS[m].suits(task)]
        for method in sorted(methods, key=lambda m: m.looks_at_limits):
            for seed in job_seeds(name, method, scope.n_seeds):
                jobs.extend(_jobs(scope, task, method, seed))
    return jobs


def job_seeds(task: str, method: Method, n_seeds: int) -> list[int]:
    """Return the seeds to search with; a method without randomness needs one for each variant."""
    if method.seeded:
        return list(range(n_seeds))
    return sorted({cells.variant_of(task, seed) for seed in range(n_seeds)})


def seed_of(task: str, method: Method, seed: int) -> int:
    """Return the seed of the job that serves search seed ``seed``."""
    return seed if method.seeded else cells.variant_of(task, seed)


def _jobs(scope: Scope, task: Task, method: Method, seed: int) -> Iterator[Job]:
    """Make the jobs of one method with one seed: one per cell, or one for all cells."""
    all_cells = scope.cells(task, method)
    for group in [[cell] for cell in all_cells] if method.looks_at_limits else [all_cells]:
        cell = group[0] if method.looks_at_limits else None
        search_key = _search_key(task, method, cell, seed)
        core = source_digest(CORE)
        replays = {
            Key(task.name, each, method.name, family, seed): digest_of(
                ["replay", search_key, core, method.smooth, each, family, scope.n_splits]
            )
            for each in group
            for family in method.families or (NO_TEST,)
        }
        yield Job(task.name, method.name, cell, seed, scope.n_splits, search_key, replays)


def _search_key(task: Task, method: Method, cell: Cell | None, seed: int) -> str:
    """Compute the key of a search in the cache: all that its result depends on."""
    variant, table = cells.variant_of(task.name, seed), _table_digest(task.name)
    if is_peer(method):
        return peer_key(task, method, table, variant, seed)
    return digest_of(
        [
            ["search", table, source_digest([task.losses.__module__, *CORE])],
            [task.name, variant, task.n_trials, task.n_startup_trials],
            [method.search_family, as_json(method.search), cell, seed],
            [cells.DELTA, cells.n_calibration(task)],
        ]
    )


@lru_cache
def _table_digest(task: str) -> str:
    """Compute the digest of a task's table; the synthetic task has none."""
    return "" if task == "synthetic" else file_digest(tasks.table_path(task))


def run_jobs(
    jobs: Sequence[Job], cache: Cache, workers: int, progress: Callable[[Job], None]
) -> None:
    """Make what is missing and put it in the cache as it comes."""
    waiting = []
    for job in jobs:
        found = cache.get(job.search_key)
        missing = [key for key, stored in job.replays.items() if cache.get(stored) is None]
        if found is None or missing:
            waiting.append((job, found, missing))
        else:
            progress(job)
    for job, values in _results(waiting, workers):
        cache.put(values)
        progress(job)


def _results(
    waiting: Sequence[tuple[Job, Any, list[Key]]], workers: int
) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Work on jobs, in this process or in several, and give their values as they come."""
    if workers == 1:
        for job, found, missing in waiting:
            yield job, work(job, found, missing)
        return
    spawn = multiprocessing.get_context("spawn")
    with _one_thread(), ProcessPoolExecutor(workers, mp_context=spawn) as pool:
        futures = {pool.submit(work, *each): each[0] for each in waiting}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that are started inside use one thread each for linear algebra."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def work(job: Job, found: Mapping[str, Any] | None, missing: Iterable[Key]) -> dict[str, Any]:
    """Search where nothing was found yet, replay what is missing; return values for the cache."""
    task = cells.load(job.task, cells.variant_of(job.task, job.seed))
    method = METHODS[job.method]
    values: dict[str, Any] = {}
    if found is None or not found["configs"]:
        problem = cells.problem_at(task, job.cell, method.search_family)
        result = method.search(Assignment(task, problem, cells.n_calibration(task), job.seed))
        stored = asdict(result)
        if not method.seeded:
            stored["configs"] = []  # cheaper to make again than to keep
        values[job.search_key] = stored
    else:
        result = SearchResult(**found)
    splits = _splits(job.task, job.n_splits)
    sums = sum_validation(task, result.configs)
    for key in missing:
        if method.families:
            problem = cells.problem_at(task, key.cell, key.family)
            outcome = replay(task, problem, result.configs, sums, splits, smooth=method.smooth)
        else:
            outcome = _without_test(task, key.cell, result, splits)
        values[job.replays[key]] = outcome.to_json()
    return values


def _without_test(task: Task, cell: Cell, found: SearchResult, splits: Splits) -> Outcome:
    """Make the same choice on every split, whatever the calibration examples say."""
    problem = cells.problem_at(task, cell)
    row = NOTHING if found.chosen is None else found.chosen
    chosen = np.full(len(splits.test), row, dtype=np.intp)
    safest = found.configs[0] if task.safe is None else task.safe
    return outcome_on_test(task, problem, found.configs, chosen, safest, splits, len(found.configs))


@lru_cache(maxsize=2)
def _splits(task: str, n_splits: int) -> Splits:
    """Draw the splits of a task once for all its jobs."""
    return cells.draw_splits(cells.load(task, 0), n_splits)
