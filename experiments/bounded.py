"""What it costs to fit surrogates to half of the trials: ``python -m experiments.bounded``.

Large studies fit their surrogates to at most `MOST_OBSERVATIONS` trials. Here searches of 200
trials are run twice, with a bound of 100 and without one, and what each certifies is compared on
test data.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from rich.progress import track

from riskpilot.bench import cells, replay
from riskpilot.bench.searches import run_search
from riskpilot.bench.validation_sums import sum_validation
from riskpilot.study import GuidedSampler, smoothed_risks

OUT = Path(__file__).parent / "results" / "bounded.json"
TASKS = ("fairness", "synthetic", "pruning")


class Bounded(GuidedSampler):
    """The default sampler with another bound on the trials that its surrogates are fitted to."""

    most: int

    def _survey(self, *args: Any) -> Any:
        return super()._survey(*args, most=self.most)


def outcome(name: str, seed: int, bound: int, n_trials: int, n_splits: int) -> list[float]:
    """Search, plan and test: the free objective on test, the share of splits without a promise,
    and the share of splits on which the promise was broken."""
    task = cells.load(name, cells.variant_of(name, seed))
    problem = cells.problem_at(task, task.cells[len(task.cells) // 2])
    m = cells.n_calibration(task)
    sampler = Bounded(problem, seed=seed, n_calibration=m)
    sampler.most = bound
    found = run_search(
        task, problem, sampler, n_trials=n_trials, n_calibration=m, safe=task.safe
    ).configs
    splits = cells.draw_splits(task, n_splits)
    with mock.patch.object(replay, "smoothed_risks", partial(smoothed_risks, most=bound)):
        result = replay.replay(
            task, problem, found, sum_validation(task, found), splits, smooth=True
        )
    empty = result.chosen == replay.NOTHING
    return [float(part.mean()) for part in (result.free, empty, result.violated)]


def compared(name: str, seeds: int, bound: int, n_trials: int, n_splits: int) -> dict[str, Any]:
    """Compare both searches of a task seed by seed; the interval is of the mean difference."""
    each = {
        key: np.array([outcome(name, s, most, n_trials, n_splits) for s in range(seeds)])
        for key, most in (("all", n_trials), ("bounded", bound))
    }
    gaps = each["bounded"][:, 0] - each["all"][:, 0]
    error = float(gaps.std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else float("nan")
    return {
        **{key: dict(zip(_WORDS, part.mean(axis=0), strict=True)) for key, part in each.items()},
        "gap": [float(gaps.mean()), error],
    }


_WORDS = ("free", "nothing_certified", "violations")


def main(arguments: list[str] | None = None) -> None:
    """Run the comparison and write its figures."""
    parser = argparse.ArgumentParser(prog="python -m experiments.bounded", description=__doc__)
    parser.add_argument("--task", action="append", choices=TASKS, help="all by default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--bound", type=int, default=100)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    settings = {key: getattr(options, key) for key in ("seeds", "splits", "trials", "bound")}
    found = {
        name: compared(name, options.seeds, options.bound, options.trials, options.splits)
        for name in track(options.task or TASKS, "searches and tests")
    }
    options.out.write_text(json.dumps({**settings, "tasks": found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
