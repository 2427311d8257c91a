"""What experiments on searches share: their tasks by name, and the processes that run them.

Choices about the default are made on the tuning tasks; the others only report.
"""

import json
import multiprocessing
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from rich.progress import track

from experiments.tuning.problems import TASKS
from riskpilot.bench import cells
from riskpilot.bench.tasks import Task

Run = TypeVar("Run")
Result = TypeVar("Result")

TUNING = tuple(f"tuning: {name}" for name in TASKS)
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
    """One search to be made: a task by its name, a limit, a seed."""

    task: str
    cell: cells.Cell
    seed: int
    n_splits: int


def read_options(
    name: str, description: str | None, out: Path, arguments: list[str] | None
) -> Namespace:
    """Read the options of an experiment that makes searches, task by task."""
    parser = ArgumentParser(prog=f"python -m experiments.{name}", description=description)
    parser.add_argument("--task", action="append", choices=TUNING + REPORTED, help="all by default")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=out)
    options = parser.parse_args(arguments)
    options.task = options.task or TUNING + REPORTED
    return options


def read_seeds(
    name: str, description: str | None, out: Path, seeds: int, arguments: list[str] | None
) -> Namespace:
    """Read the options of an experiment that makes all its searches for a number of seeds."""
    parser = ArgumentParser(prog=f"python -m experiments.{name}", description=description)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=out)
    return parser.parse_args(arguments)


def write_rows(options: Namespace, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows of such an experiment with the number of its seeds, and print them."""
    options.out.write_text(json.dumps({"seeds": options.seeds, "rows": rows}, indent=1) + "\n")
    for row in rows:
        print(row)


def role(name: str) -> str:
    """Tell whether a task is for tuning or for reporting."""
    return "tuning" if name in TUNING else "reported"


@lru_cache(maxsize=4)
def loaded(name: str, seed: int) -> Task:
    """Load a task by its name; tasks with several versions have one for each seed."""
    if name in REPORTED:
        return cells.load(name, cells.variant_of(name, seed))
    return TASKS[name.removeprefix("tuning: ")](seed)


def in_processes(
    function: Callable[[Run], Result], runs: Sequence[Run], n_jobs: int
) -> Iterator[Result]:
    """Apply a function to every run, in several processes; the results are in order."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_jobs, mp_context=spawn) as pool:
        yield from track(pool.map(function, runs, chunksize=1), "runs", total=len(runs))
