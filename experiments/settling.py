"""What stopping early saves and costs: ``python -m experiments.settling``.

Every search of the tasks is made to its end, and after each evaluation it is noted what the outlook
expects of the next one, and what the choice would be worth on test if the search ended there. From
that follows, for any smallest gain that is asked, where `riskpilot.StopWhenSettled` would have
ended the search, how many evaluations that saves, and by how much it raises the free objective on
test. Beside it stands what a rule would save that ends every search as soon as its choice is within
1 % of the one at its end; it knows how the search goes on. Tasks for tuning and for reporting are
kept apart.
"""

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna

import riskpilot as rp
from experiments.runs import Setting, in_processes, loaded, read_options, role
from riskpilot.bench import cells
from riskpilot.bench.replay import replay
from riskpilot.bench.searches import evaluate
from riskpilot.bench.validation_sums import sum_validation
from riskpilot.study.settling import enough_evaluations

OUT = Path(__file__).parent / "results" / "settling.json"
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02)
LOOKS = 2
# What a search may lose by ending early, for the rule that knows how each search goes on.
BEARABLE = 0.01


@dataclass(frozen=True)
class Course:
    """What a search looked like after 1, 2, ... evaluations.

    ``gains``: the expected gain of the next one as a share of the free objective, None where there
    was no outlook or nothing was likely to pass; ``free``: the free objective on test of the choice
    from the evaluations up to there; ``enough``: the fewest evaluations whose outlook is believed.
    """

    gains: list[float | None]
    free: list[float]
    enough: int


def ended_after(gains: Sequence[float | None], share: float, enough: int) -> int:
    """Tell after how many evaluations a search ends that asks for so large a share."""
    little = 0
    for n, gain in enumerate(gains, start=1):
        is_little = n >= enough and gain is not None and gain < share
        little = little + 1 if is_little else 0
        if little == LOOKS:
            return n
    return len(gains)


def could_end_after(free: Sequence[float]) -> int:
    """Tell after how many evaluations the choice is about as good as at the end of the search."""
    bearable = free[-1] + BEARABLE * abs(free[-1])
    return next(n for n, value in enumerate(free, start=1) if value <= bearable)


def course(setting: Setting) -> Course:
    """Make a search to its end, and test what each beginning of it would have found."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    task = loaded(setting.task, setting.seed)
    problem = cells.problem_at(task, setting.cell)
    n_calibration = cells.n_calibration(task)
    sampler = rp.GuidedSampler(problem, seed=setting.seed, n_calibration=n_calibration)
    study = rp.create_study(problem, sampler=sampler, safe=task.safe, n_calibration=n_calibration)
    gains: list[float | None] = []

    def look(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        ahead = sampler.outlook(study)
        known = ahead is not None and ahead.free is not None
        gains.append(ahead.gain / abs(ahead.free) if known else None)  # type: ignore[union-attr]

    study.optimize(
        rp.objective(study, lambda trial: evaluate(task, trial)),
        n_trials=task.n_trials,
        callbacks=[look],
    )
    configs = [trial.params for trial in study.trials]
    splits = cells.draw_splits(task, setting.n_splits)
    free = []
    for n in range(1, len(configs) + 1):
        sums = sum_validation(task, configs[:n])
        outcome = replay(task, problem, configs[:n], sums, splits, smooth=n > 1)
        free.append(float(outcome.free.mean()))
    return Course(gains, free, enough_evaluations(len(task.space)))


def summary(settings: Sequence[Setting], courses: Sequence[Course]) -> list[dict[str, Any]]:
    """Average over seeds and limits: what each share saves and costs, task by task."""
    rows = []
    for task in dict.fromkeys(one.task for one in settings):
        runs = [
            (one.cell, each)
            for one, each in zip(settings, courses, strict=True)
            if one.task == task
        ]
        ends = {
            f"{share:g}": [ended_after(c.gains, share, c.enough) for _, c in runs]
            for share in SHARES
        }
        ends["foreseen"] = [could_end_after(c.free) for _, c in runs]
        n_trials = len(runs[0][1].free)
        rows.append(
            {
                "task": task,
                "role": role(task),
                "trials": n_trials,
                "saved": {k: round(float(1 - np.mean(n) / n_trials), 4) for k, n in ends.items()},
                "cost": {k: round(_cost(runs, n), 4) for k, n in ends.items()},
                "foretold": _late([c.gains[:-1] for _, c in runs]),
                "gained": _late([_gained(c.free) for _, c in runs]),
            }
        )
    return rows


def _cost(runs: Sequence[tuple[cells.Cell, Course]], ends: Sequence[int]) -> float:
    """Compute by which share the free objective is larger, as a mean over the limits."""
    early: dict[cells.Cell, list[float]] = {}
    full: dict[cells.Cell, list[float]] = {}
    for (cell, one), n in zip(runs, ends, strict=True):
        early.setdefault(cell, []).append(one.free[n - 1])
        full.setdefault(cell, []).append(one.free[-1])
    return float(np.mean([np.mean(early[cell]) / np.mean(full[cell]) - 1 for cell in early]))


def _gained(free: Sequence[float]) -> list[float]:
    """Compute what each next evaluation gained on test, as a share of the free objective."""
    return [(now - then) / abs(now) for now, then in itertools.pairwise(free)]


def _late(shares: Sequence[Sequence[float | None]]) -> float | None:
    """Average over the last third of every search; None where nothing is known."""
    some = [x for each in shares for x in each[-(len(each) // 3) :] if x is not None]
    return round(float(np.mean(some)), 5) if some else None


def means(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average over the tasks, apart for tuning and reporting."""
    found = []
    for part in dict.fromkeys(row["role"] for row in rows):
        some = [row for row in rows if row["role"] == part]
        average = {
            figure: {
                key: round(float(np.mean([row[figure][key] for row in some])), 4)
                for key in some[0][figure]
            }
            for figure in ("saved", "cost")
        }
        found.append({"role": part, "tasks": len(some), **average})
    return found


def settings_of(names: Iterable[str], seeds: int, splits: int) -> list[Setting]:
    """List every search, task by task."""
    return [
        Setting(name, tuple(cell), seed, splits)
        for name in names
        for seed in range(seeds)
        for cell in loaded(name, seed).cells
    ]


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    options = read_options("settling", __doc__, OUT, arguments)
    settings = settings_of(options.task, options.seeds, options.splits)
    rows = summary(settings, list(in_processes(course, settings, options.jobs)))
    average = means(rows)
    written = {"seeds": options.seeds, "splits": options.splits, "means": average, "rows": rows}
    options.out.write_text(json.dumps(written, indent=1) + "\n")
    for row in average:
        print(row)


if __name__ == "__main__":
    main()
