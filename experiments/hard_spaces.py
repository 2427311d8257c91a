"""Searches of spaces of which much is of no use: ``python -m experiments.hard_spaces``.

Two kinds of made-up tasks. In the narrow ones no safe configuration is named, and at most a few
percent of the space are safe: a bowl, what lies near a corner, or what lies near one in the worst
of all coordinates. Shown is how often nothing is certified, and by how much the true free objective
of the choice exceeds the best safe one, as a share of what safe ones differ by; 1.5 where nothing
is certified. In the failing ones a safe configuration is named, and evaluations in a region raise
an error or return a penalty in place of the free objective. Shown is how many evaluations fell into
the region, and the true free objective of the choice, or of the safe configuration where nothing is
certified, as a multiple of the best safe one outside. Safe is what would pass if the share of its
errors were its true risk.

All these are tasks for tuning: the rules of the search for such spaces were decided on tasks that
were made in this way.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, RandomSampler

import riskpilot as rp
from experiments.runs import in_processes, read_seeds, write_rows
from experiments.side_by_side import tpe
from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.statistics import largest_passing_mean

OUT = Path(__file__).parent / "results" / "hard_spaces.json"
PROBLEM = rp.Problem([rp.Risk("error", 0.1)], minimize="cost")
EMPTY = 1.5
PENALTY = 1e4
_N_EXAMPLES = 1_000
BAR = largest_passing_mean("binomial", 0.1, _N_EXAMPLES, PROBLEM.delta) or 0.0

Config = dict[str, Any]
Values = Callable[[FloatArray], FloatArray]
Region = Callable[[FloatArray], BoolArray]
Run = tuple[str, int]  # a task by its name, and a seed


class NoResultError(RuntimeError):
    """An evaluation that fails."""


@dataclass(frozen=True)
class Task:
    """A task, with what is true at places: functions of an array (n, d), whose values are (n,).

    ``region``: where evaluations fail, or return the penalty; ``draws``: uniform numbers (2, n), of
    validation and calibration examples, of which those below the risk are errors.
    """

    d: int
    n_trials: int
    risk: Values
    free: Values
    region: Region
    draws: FloatArray
    is_penalised: bool = False
    safe: Config | None = None

    def counts(self, x: FloatArray) -> BoolArray:
        """Tell which places are safe, and not in the region."""
        return (self.risk(x) <= BAR) & ~self.region(x)

    def evaluate(self, trial: optuna.Trial) -> rp.Evaluation:
        """Evaluate a trial."""
        x = place({name: trial.suggest_float(name, 0, 1) for name in "abcde"[: self.d]})
        in_region = bool(self.region(x)[0])
        if in_region and not self.is_penalised:
            raise NoResultError
        cost = PENALTY if in_region else float(self.free(x)[0])
        validation, calibration = self.draws < self.risk(x)
        return rp.Evaluation({"error": validation, "cost": cost}, {"error": calibration})


def place(config: Config) -> FloatArray:
    """Find the place of a configuration, (1, d)."""
    return np.array([[config[name] for name in sorted(config)]])


# By the number of parameters: how many evaluations there are, and which share of the space is safe.
NARROW = {1: (8, 0.05), 2: (12, 0.03), 3: (20, 0.01), 5: (40, 0.003)}


def narrow(shape: str, d: int, seed: int) -> Task:
    """Make a task of which what lies near a place is safe, while most of it is better far off."""
    rng = np.random.default_rng([20_32, d, seed])
    n_trials, share = NARROW[d]
    inside, corner = rng.uniform(0.15, 0.85, d), rng.integers(0, 2, d)
    centre = inside if shape == "bowl" else corner
    power, weights = rng.uniform(0.6, 2.5, d), rng.dirichlet(np.full(d, 1.5))
    worth, tilt = rng.dirichlet(np.ones(d)), rng.choice([-0.1, 0.1], d)
    least = rng.uniform(0.06, 0.075)

    def away(x: FloatArray) -> FloatArray:
        each = np.abs(x - centre) ** power
        return np.asarray(each.max(axis=1) if shape == "worst" else each @ weights)

    edge = np.quantile(away(rng.random((100_000, d))), share)
    return Task(
        d,
        n_trials,
        risk=lambda x: np.minimum(least + (BAR - least) * away(x) / edge, 1.0),
        free=lambda x: 1.5 - np.abs(x - centre) @ worth + x @ tilt,
        region=lambda x: np.zeros(len(x), dtype=bool),
        draws=rng.random((2, _N_EXAMPLES)),
    )


REGIONS: dict[str, tuple[int, Region]] = {
    "gap, d = 1": (1, lambda x: (x[:, 0] > 0.25) & (x[:, 0] < 0.38)),
    "comb, d = 1": (1, lambda x: (15 * x[:, 0]).astype(int) % 2 == 1),
    "ring, d = 2": (2, lambda x: np.abs((x**2).sum(axis=1) - 0.275) < 0.075),
    "half, d = 2": (2, lambda x: x[:, 0] > 0.5),
    "diagonal, d = 2": (2, lambda x: x.sum(axis=1) > 0.8),
    "band, d = 3": (3, lambda x: (x[:, 0] > 0.3) & (x[:, 0] < 0.5)),
    "corner, d = 3": (3, lambda x: x[:, [0, 2]].min(axis=1) > 0.4),
    "half, d = 5": (5, lambda x: x[:, 4] > 0.5),
    "diagonal, d = 5": (5, lambda x: x.sum(axis=1) > 2.2),
}


def failing(name: str, is_penalised: bool, seed: int) -> Task:
    """Make a task of which a region gives no results; where all is 0, nothing is an error."""
    d, region = REGIONS[name]
    worth = np.linspace(1, 0.5, d) / np.linspace(1, 0.5, d).sum()
    return Task(
        d,
        n_trials=24,
        risk=lambda x: 0.4 * x.mean(axis=1) ** 2,
        free=lambda x: 2 - x @ worth - 0.3 * x[:, 0] * x[:, -1],
        region=region,
        draws=np.random.default_rng([20_33, seed]).random((2, _N_EXAMPLES)),
        is_penalised=is_penalised,
        safe=dict.fromkeys("abcde"[:d], 0.0),
    )


TASKS: Mapping[str, Callable[[int], Task]] = {
    f"{shape}, d = {d}": partial(narrow, shape, d)
    for d in NARROW
    for shape in ("bowl", "corner", "worst")
    if (shape, d) != ("worst", 1)  # with one coordinate, that is the corner
} | {
    f"{name}, {what}": partial(failing, name, what == "penalty")
    for name in REGIONS
    for what in ("fails", "penalty")
}


def lowest(value: Values, task: Task) -> float:
    """Find the lowest value among places that count: anywhere, then ever closer to the best."""
    rng = np.random.default_rng(0)
    x = rng.random((50_000, task.d))
    for reach in 0.3 * 0.7 ** np.arange(25):
        x = x[task.counts(x)]
        x = x[np.argsort(value(x))[:50]]
        around = np.repeat(x, 40, axis=0)
        steps = rng.normal(0, reach, around.shape) * (rng.random(around.shape) < 0.5)
        x = np.vstack([x, (around + steps).clip(0, 1)])
    return float(value(x[task.counts(x)]).min())


def searched(task: Task, sampler: BaseSampler) -> list[Config]:
    """Search in a study of riskpilot; returns what was evaluated, in its order."""
    study = rp.create_study(PROBLEM, sampler=sampler, safe=task.safe)
    run = rp.objective(study, task.evaluate)
    study.optimize(run, n_trials=task.n_trials, catch=(NoResultError,))
    return [dict(trial.params) for trial in study.trials]


def constrained(task: Task, seed: int) -> list[Config]:
    """Search with Optuna's TPE, under a constraint at the largest mean that passes."""

    def objective(trial: optuna.Trial) -> float:
        seen = task.evaluate(trial).validation
        trial.set_constraint("error", float(np.asarray(seen["error"]).mean()) - BAR)
        return float(np.asarray(seen["cost"]).mean())

    study = optuna.create_study(sampler=tpe(seed))
    if task.safe is not None:
        study.enqueue_trial(task.safe)
    study.optimize(objective, n_trials=task.n_trials, catch=(NoResultError,))
    return [dict(trial.params) for trial in study.trials]


SEARCHES: Mapping[str, Callable[[Task, int], list[Config]]] = {
    "guided": lambda task, seed: searched(task, rp.GuidedSampler(PROBLEM, seed=seed)),
    "paper's search": lambda task, seed: searched(
        task, rp.GuidedSampler(PROBLEM, seed=seed, strategy=rp.PAPER)
    ),
    "TPE": constrained,
    "random": lambda task, seed: searched(task, RandomSampler(seed=seed)),
}


def selected(task: Task, configs: Sequence[Config]) -> Config | None:
    """Select among configurations; None where nothing is certified."""
    study = rp.create_study(PROBLEM, sampler=RandomSampler(seed=0))
    for config in configs:
        study.enqueue_trial(config)
    run = rp.objective(study, task.evaluate)
    study.optimize(run, n_trials=task.n_trials, catch=(NoResultError,))
    return rp.select(study).config


def outcomes(run: Run) -> dict[str, tuple[float, bool, int]]:
    """Search in every way and select: the gap to the best or the multiple of it, whether the choice
    is empty, and how many evaluations fell into the region."""
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    name, seed = run
    task = TASKS[name](seed)
    best = lowest(task.free, task)
    spread = -lowest(lambda x: -task.free(x), task) - best
    found = {}
    for way, search in SEARCHES.items():
        configs = search(task, seed)
        chosen = selected(task, configs)
        fell = sum(bool(task.region(place(config))[0]) for config in configs)
        end = chosen or task.safe
        free = best + EMPTY * spread if end is None else float(task.free(place(end))[0])
        behind = (free - best) / spread if task.safe is None else free / best
        found[way] = behind, chosen is None, fell
    return found


def summary(
    runs: Sequence[Run], found: Sequence[dict[str, tuple[float, bool, int]]]
) -> list[dict[str, Any]]:
    """Average over seeds, task by task; ``more``: than guided, with the standard error."""
    rows = []
    for name in dict.fromkeys(task for task, _ in runs):
        some = [each for (task, _), each in zip(runs, found, strict=True) if task == name]
        figures = np.array([[each[search] for search in SEARCHES] for each in some], dtype=float)
        behind, empty, fell = figures.mean(axis=0).T
        more = figures[:, :, 0] - figures[:, :1, 0]
        columns = {
            "gap" if TASKS[name](0).safe is None else "multiple": behind,
            "more": np.stack([more.mean(axis=0), more.std(axis=0) / len(more) ** 0.5], axis=1),
            "empty": empty,
            "fell": fell,
        }
        row: dict[str, Any] = {"task": name, "trials": TASKS[name](0).n_trials}
        for column, values in columns.items():
            row[column] = dict(zip(SEARCHES, values.round(4).tolist(), strict=True))
        rows.append(row)
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    options = read_seeds("hard_spaces", __doc__, OUT, 12, arguments)
    runs = [(task, seed) for task in TASKS for seed in range(options.seeds)]
    write_rows(options, summary(runs, list(in_processes(outcomes, runs, options.jobs))))


if __name__ == "__main__":
    main()
