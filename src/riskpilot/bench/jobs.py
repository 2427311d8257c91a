"""All searches and replays of a run: which are still missing, and two cores to make them."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from riskpilot.bench import cells as at
from riskpilot.bench import tasks
from riskpilot.bench.cache import Cache, digest, file_digest, settings, source_digest
from riskpilot.bench.cells import Cell, Splits
from riskpilot.bench.methods import METHODS, Assignment, Method
from riskpilot.bench.replay import NOTHING, Outcome, measure, replay
from riskpilot.bench.searches import Found
from riskpilot.bench.tasks import Task
from riskpilot.bench.validation_sums import see

# Every search and every test depends on these; results are made again when any of them changes.
CORE = (
    "bench.baselines",
    "bench.methods",
    "bench.replay",
    "bench.cells",
    "bench.searches",
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
    """Names one replay: task, limits, method, family of p-values, search seed."""

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
        some = not (self.every_cell and method.every_cell)
        return list(task.cells)[1::2] if some else list(task.cells)


def plan_jobs(scope: Scope) -> list[Job]:
    """Every job of a run; slow ones first within a task."""
    jobs: list[Job] = []
    for name in scope.tasks:
        task = at.load(name, 0)
        methods = [METHODS[m] for m in scope.methods if METHODS[m].suits(task)]
        for method in sorted(methods, key=lambda m: m.looks_at_limits):
            for seed in job_seeds(name, method, scope.n_seeds):
                jobs.extend(_jobs(scope, task, method, seed))
    return jobs


def job_seeds(task: str, method: Method, n_seeds: int) -> list[int]:
    """The seeds to search with; a method without randomness needs one for each variant."""
    if method.seeded:
        return list(range(n_seeds))
    return sorted({at.variant_of(task, seed) for seed in range(n_seeds)})


def seed_of(task: str, method: Method, seed: int) -> int:
    """The seed of the job that serves search seed ``seed``."""
    return seed if method.seeded else at.variant_of(task, seed)


def _jobs(scope: Scope, task: Task, method: Method, seed: int) -> Iterator[Job]:
    cells = scope.cells(task, method)
    for group in [[cell] for cell in cells] if method.looks_at_limits else [cells]:
        cell = group[0] if method.looks_at_limits else None
        search_key = digest(
            "search",
            _table_digest(task.name),
            source_digest([task.losses.__module__, *CORE]),
            [task.name, at.variant_of(task.name, seed), task.n_trials, task.n_startup_trials],
            [method.search_family, settings(method.search), cell, seed],
            [at.DELTA, at.n_calibration(task)],
        )
        replays = {
            Key(task.name, each, method.name, family, seed): digest(
                "replay", search_key, method.smooth, each, family, scope.n_splits
            )
            for each in group
            for family in method.families or (NO_TEST,)
        }
        yield Job(task.name, method.name, cell, seed, scope.n_splits, search_key, replays)


@lru_cache
def _table_digest(task: str) -> str:
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
    """Processes started inside use one thread each for linear algebra."""
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
    """Search where nothing was found yet, replay what is missing; values for the cache."""
    task = at.load(job.task, at.variant_of(job.task, job.seed))
    method = METHODS[job.method]
    values: dict[str, Any] = {}
    if found is None or not found["configs"]:
        problem = at.problem_at(task, job.cell, method.search_family)
        result = method.search(Assignment(task, problem, at.n_calibration(task), job.seed))
        stored = asdict(result)
        if not method.seeded:
            stored["configs"] = []  # cheaper to make again than to keep
        values[job.search_key] = stored
    else:
        result = Found(**found)
    splits = _splits(job.task, job.n_splits)
    seen = see(task, result.configs)
    for key in missing:
        if method.families:
            problem = at.problem_at(task, key.cell, key.family)
            outcome = replay(task, problem, result.configs, seen, splits, smooth=method.smooth)
        else:
            outcome = _without_test(task, key.cell, result, splits)
        values[job.replays[key]] = outcome.to_json()
    return values


def _without_test(task: Task, cell: Cell, found: Found, splits: Splits) -> Outcome:
    """The same choice on every split, whatever the calibration examples say."""
    problem = at.problem_at(task, cell)
    row = NOTHING if found.chosen is None else found.chosen
    chosen = np.full(len(splits.test), row, dtype=np.intp)
    safest = found.configs[0] if task.safe is None else task.safe
    return measure(task, problem, found.configs, chosen, safest, splits, len(found.configs))


@lru_cache(maxsize=2)
def _splits(task: str, n_splits: int) -> Splits:
    return at.draw_splits(at.load(task, 0), n_splits)
