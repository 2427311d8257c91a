"""What races save: ``python -m experiments.racing``.

Every task is searched with whole evaluations and with races, which stop an evaluation whose side is
clear. Both are tested on the same data. What counts is the free objective on test, as a multiple of
that of whole evaluations: with as many trials, and with a given share of the examples that whole
evaluations take. Beside them stands what takes no race: as many whole evaluations, each on a share
of the validation examples. Choices were made on the tasks for tuning; the others only report.
"""

import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna

import riskpilot as rp
from experiments.ratios import Outcomes, ratios, run_all, tested, write_table
from experiments.runs import Setting, loaded, read_options
from riskpilot.bench import cells
from riskpilot.bench.tasks import Task
from riskpilot.bench.tasks.task import Config, Losses, Split
from riskpilot.common.arrays import Places
from riskpilot.problem import Problem
from riskpilot.study.kept.trial_losses import read_validation

OUT = Path(__file__).parent / "results" / "racing.json"
BLOCKS = 20
# Shares of the examples of whole evaluations at which races are looked at.
SHARES = (0.4, 0.6)
_MOST_TRIALS = 3  # times as many trials as whole evaluations


@dataclass(frozen=True)
class Step:
    """A trial of a race.

    Its configuration, whether it is complete, what validation says of it (None for a trial that
    was stopped), and all examples until its end.
    """

    config: Config
    validation: Losses | None
    free: float
    n_examples: int


@dataclass(frozen=True)
class Found:
    """What came of a comparison.

    ``share``: of the examples that as many trials took in races; ``trials``: how many times as many
    trials the race had in all.
    """

    outcomes: Outcomes
    share: float
    trials: float


def on_fewer(task: Task, share: float, seed: int) -> Task:
    """Return the task with a share of its validation examples, drawn at random."""
    k = task.size["validation"]
    kept = np.sort(np.random.default_rng(seed).permutation(k)[: round(share * k)])

    def losses(split: Split, config: Config) -> Losses:
        every = task.losses(split, config)
        if split != "validation":
            return every
        return {name: values[kept] for name, values in every.items()}

    def free(split: Split, config: Config, rows: Places | None) -> float:
        if split == "validation":
            rows = kept if rows is None else kept[rows]
        return task.free(split, config, rows)

    return replace(task, size={**task.size, "validation": len(kept)}, losses=losses, free=free)


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
            if (yield block):
                return

    def whole(trial: optuna.Trial) -> rp.Evaluation:
        nonlocal used
        used += k
        config = task.suggest(trial)
        free = task.free("validation", config, None)
        return rp.Evaluation({**task.losses("validation", config), problem.minimize: free})

    def note(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        config, losses, free = {name: trial.params[name] for name in task.space}, None, math.nan
        if trial.state == optuna.trial.TrialState.COMPLETE:
            table = read_validation(study, problem, trial)
            losses = {name: np.asarray(table[name])[0] for name in problem.names}
            free = trial.values[-1]
        steps.append(Step(config, losses, free, used))
        if used >= SHARES[-1] * n * k and len(steps) >= n:
            study.stop()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = rp.create_study(problem, seed=seed, safe=task.safe, n_calibration=n_calibration)
        run = rp.objective(study, evaluate if race else whole)
        study.optimize(run, n_trials=(_MOST_TRIALS if race else 1) * n, callbacks=[note])
    return steps


def tested_as_seen(
    task: Task, problem: Problem, steps: Sequence[Step], splits: cells.Splits
) -> list[float]:
    """Test what a search evaluated, planned by what the search knew of the validation losses."""
    complete = [step for step in steps if step.validation is not None]
    by_config = {str(step.config): step for step in complete}

    def losses(split: Split, config: Config) -> Losses:
        seen = by_config[str(config)].validation
        return seen if split == "validation" and seen else task.losses(split, config)

    def free(split: Split, config: Config, rows: Places | None) -> float:
        return (
            by_config[str(config)].free if split == "validation" else task.free(split, config, rows)
        )

    seen = replace(task, losses=losses, free=free)
    return tested(seen, problem, [step.config for step in complete], splits)


def outcomes(setting: Setting) -> Found:
    """Search both ways and test."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("riskpilot").setLevel(logging.WARNING)
    task = loaded(setting.task, setting.seed)
    problem = cells.problem_at(task, setting.cell)
    m, n = cells.n_calibration(task), task.n_trials
    splits = cells.draw_splits(task, setting.n_splits)

    whole = searched(task, problem, m, setting.seed, race=False)
    race = searched(task, problem, m, setting.seed, race=True)
    budget = n * task.size["validation"]
    ways = {"whole": whole, "as many trials": race[:n]}
    for share in SHARES:
        within = [step for step in race if step.n_examples <= share * budget] or race[:1]
        ways[f"{share:.0%} of the examples"] = within
    found = {way: tested_as_seen(task, problem, steps, splits) for way, steps in ways.items()}
    fewer = on_fewer(task, SHARES[0], setting.seed)
    steps = searched(fewer, problem, m, setting.seed, race=False)
    way = f"whole, on {SHARES[0]:.0%} of the examples"
    found[way] = tested_as_seen(fewer, problem, steps, splits)
    return Found(found, race[:n][-1].n_examples / budget, len(race) / n)


def summary(settings: Sequence[Setting], found: Sequence[Found]) -> list[dict[str, Any]]:
    """Average over seeds and limits, task by task; with what races took, in means."""
    rows = ratios(settings, [each.outcomes for each in found], "whole")
    for row in rows:
        mine = [f for one, f in zip(settings, found, strict=True) if one.task == row["task"]]
        row["examples of as many trials"] = round(float(np.mean([f.share for f in mine])), 3)
        row["trials in all"] = round(float(np.mean([f.trials for f in mine])), 2)
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    options = read_options("racing", __doc__ or "", OUT, arguments)
    write_table(options, summary(*run_all(options, outcomes)))


if __name__ == "__main__":
    main()
