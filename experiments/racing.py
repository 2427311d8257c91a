"""What races save: ``python -m experiments.racing``.

Every task is searched with whole evaluations and with races, which stop an evaluation whose side is
clear. Both are tested on the same data. What counts is the free objective on test, as a multiple of
that of whole evaluations: with as many trials, and with a given share of the examples that whole
evaluations take. Choices were made on the tasks for tuning; the others only report.
"""

import argparse
import json
import logging
import multiprocessing
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from rich.progress import track

import riskpilot as rp
from experiments.optimism import REPORTED, TUNING, loaded
from experiments.tuning.problems import problems
from riskpilot.bench import cells
from riskpilot.bench.replay import NOTHING, replay
from riskpilot.bench.tasks import Task
from riskpilot.bench.tasks.task import Config
from riskpilot.bench.validation_sums import sum_validation
from riskpilot.problem import Problem
from riskpilot.statistics import Mean

OUT = Path(__file__).parent / "results" / "racing.json"
BLOCKS = 20
# Shares of the examples of whole evaluations at which races are looked at.
SHARES = (0.4, 0.6)
_MOST_TRIALS = 3  # times as many trials as whole evaluations
_MOST_CELLS = 3  # limits of a task, from the tightest to the loosest


@dataclass(frozen=True)
class Setting:
    """One pair of searches: a task by its name, a limit, a seed."""

    task: str
    cell: cells.Cell
    seed: int
    n_splits: int


@dataclass(frozen=True)
class Step:
    """A trial of a race: its configuration, whether it is whole, and all examples until its end."""

    config: Config
    whole: bool
    n_examples: int


def blocks_of(task: Task, config: Config, order: np.ndarray[Any, Any]) -> Iterator[dict[str, Any]]:
    """Yield the validation losses of a configuration in blocks of a shuffled order."""
    losses, n = task.losses("validation", config), 0
    for rows in np.array_split(order, BLOCKS):
        n += len(rows)
        free = task.free("validation", config, order[:n])
        block = {name: values[rows] for name, values in losses.items()}
        yield {**block, task.problem.minimize: free}


def searched(
    task: Task, problem: Problem, n_calibration: int, seed: int, *, race: bool
) -> list[Step]:
    """Search a task with races, or with whole evaluations, and list the trials."""
    n, k = task.n_trials, task.size["validation"]
    order = np.random.default_rng(seed).permutation(k)
    steps: list[Step] = []
    used = 0

    def evaluate(trial: optuna.Trial) -> Any:
        nonlocal used
        for block in blocks_of(task, task.suggest(trial), order):
            used += len(block[problem.names[0]])
            yield block

    def whole(trial: optuna.Trial) -> rp.Evaluation:
        nonlocal used
        used += k
        config = task.suggest(trial)
        free = task.free("validation", config, None)
        return rp.Evaluation({**task.losses("validation", config), problem.minimize: free})

    def note(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        complete = trial.state == optuna.trial.TrialState.COMPLETE
        steps.append(Step({name: trial.params[name] for name in task.space}, complete, used))
        if used >= SHARES[-1] * n * k and len(steps) >= n:
            study.stop()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = rp.create_study(problem, seed=seed, safe=task.safe, n_calibration=n_calibration)
        run = rp.objective(study, evaluate if race else whole)
        study.optimize(run, n_trials=(_MOST_TRIALS if race else 1) * n, callbacks=[note])
    return steps


def some_cells(task: Task) -> list[cells.Cell]:
    """Return the limits at which a task is searched."""
    rows = np.unique(np.linspace(0, len(task.cells) - 1, _MOST_CELLS).round().astype(int))
    return [task.cells[row] for row in rows]


def outcomes(setting: Setting) -> dict[str, Any]:
    """Search both ways and test: by way, the free objective on test and the share of empty splits.

    Also returned: the share of the examples that as many trials took in races.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("riskpilot").setLevel(logging.WARNING)
    task = loaded(setting.task, setting.seed)
    problem = cells.problem_at(task, setting.cell)
    m, n = cells.n_calibration(task), task.n_trials
    splits = cells.draw_splits(task, setting.n_splits)

    def tested(steps: Sequence[Step]) -> list[float]:
        configs = [step.config for step in steps if step.whole]
        found = replay(task, problem, configs, sum_validation(task, configs), splits, smooth=True)
        return [float(found.free.mean()), float((found.chosen == NOTHING).mean())]

    whole = searched(task, problem, m, setting.seed, race=False)
    race = searched(task, problem, m, setting.seed, race=True)
    budget = n * task.size["validation"]
    result: dict[str, Any] = {"whole": tested(whole), "as many trials": tested(race[:n])}
    for share in SHARES:
        within = [step for step in race if step.n_examples <= share * budget] or race[:1]
        result[f"{share:.0%} of the examples"] = tested(within)
    return {"outcome": result, "share": race[:n][-1].n_examples / budget, "trials": len(race) / n}


def summary(settings: Sequence[Setting], found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average over seeds and limits, task by task: ratios to whole evaluations, shares, empties."""
    rows = []
    for task in dict.fromkeys(one.task for one in settings):
        mine = [each for one, each in zip(settings, found, strict=True) if one.task == task]
        by_cell: dict[cells.Cell, list[dict[str, Any]]] = {}
        for one, each in zip(settings, found, strict=True):
            if one.task == task:
                by_cell.setdefault(one.cell, []).append(each["outcome"])
        ways = list(mine[0]["outcome"])
        ratio, empty = {}, {}
        for way in ways:
            means = [
                np.mean([each[way][0] for each in group])
                / np.mean([each["whole"][0] for each in group])
                for group in by_cell.values()
            ]
            ratio[way] = round(float(np.mean(means)), 4)
            empty[way] = round(float(np.mean([each["outcome"][way][1] for each in mine])), 4)
        rows.append(
            {
                "task": task,
                "examples of as many trials": round(float(np.mean([e["share"] for e in mine])), 3),
                "trials in all": round(float(np.mean([e["trials"] for e in mine])), 2),
                "ratio": ratio,
                "empty": empty,
            }
        )
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m experiments.racing", description=__doc__)
    parser.add_argument("--task", action="append", help="all by default")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    names = options.task or [*(f"{TUNING}: {one.name}" for one in problems(1)), *REPORTED]
    settings = [
        Setting(name, cell, seed, options.splits)
        for name in names
        for seed in range(options.seeds)
        for cell in some_cells(loaded(name, seed))
        if all(risk.statistic == Mean() for risk in loaded(name, seed).problem.risks)
    ]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=spawn) as pool:
        results = pool.map(outcomes, settings, chunksize=2)
        found = list(track(results, "searches and tests", total=len(settings)))
    rows = summary(settings, found)
    written = {"seeds": options.seeds, "splits": options.splits, "rows": rows}
    options.out.write_text(json.dumps(written, indent=1) + "\n")
    for row in rows:
        print(row["task"], row["examples of as many trials"], row["ratio"], row["empty"])


if __name__ == "__main__":
    main()
