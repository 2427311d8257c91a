"""Searches that no safe configuration was named for: ``python -m experiments.without_safe_start``.

A person decides where a model of Adult is not confident: one threshold, or the model's
regularisation as well. What is sought is the smallest share of cases left to a person at which the
errors are few enough, among the cases that the model decides or among all. Nothing is left to a
person at one end, which is too risky, and all at the other. Validation losses are as they are, or
thinned by 15 %, at three limits. A search that certifies nothing counts as leaving all cases to a
person. Nothing was decided on these tasks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import riskpilot as rp
from experiments.runs import in_processes, read_seeds, write_rows
from experiments.side_by_side import tpe
from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.datasets import load_adult
from riskpilot.statistics import largest_passing_mean

OUT = Path(__file__).parent / "results" / "without_safe_start.json"
Config = dict[str, Any]
_STRENGTHS = np.logspace(-5, 1, 13)
_N_TRAINED, _N_EXAMPLES = 2_000, 1_000
_THINNED = 0.15


@dataclass(frozen=True)
class Deferral:
    """A task: its limit, whether cases left to a person count as right, and its parameters."""

    limit: float
    among_decided: bool
    n_trials: int
    with_strength: bool

    @property
    def problem(self) -> rp.Problem:
        """The problem, of one risk."""
        risk = rp.Risk("error", self.limit, conditional=self.among_decided)
        return rp.Problem([risk], minimize="left")

    def suggest(self, trial: optuna.Trial) -> Config:
        """Ask for a configuration."""
        config: Config = {"threshold": trial.suggest_float("threshold", 0.5, 1.0)}
        if self.with_strength:
            config["C"] = trial.suggest_float("C", 1e-5, 10.0, log=True)
        return config

    def losses(self, config: Config) -> dict[str, FloatArray]:
        """Compute the losses of a configuration on every case, NaN where one does not count."""
        wrong, confident = predictions()
        row = int(np.abs(np.log(_STRENGTHS / config.get("C", 0.01))).argmin())
        decided = confident[row] >= config["threshold"]
        error = np.where(decided, wrong[row], np.nan if self.among_decided else 0.0)
        return {"error": error, "left": np.where(decided, 0.0, 1.0)}


TASKS = {
    "errors among decided, d = 1": Deferral(0.09, True, 8, False),
    "errors among all, d = 1": Deferral(0.065, False, 8, False),
    "errors among decided, d = 2": Deferral(0.09, True, 12, True),
    "errors among all, d = 2": Deferral(0.065, False, 12, True),
}
# Limits are these multiples of a task's own; at some of them the middle of the range hardly passes.
LIMITS = (0.85, 1.0, 1.25)


@cache
def predictions() -> tuple[BoolArray, FloatArray]:
    """Train a model of each regularisation; where it is wrong, and how confident, (13, n) each."""
    adult = load_adult()
    order = np.random.default_rng(0).permutation(len(adult.label))
    known, rest = order[:_N_TRAINED], order[_N_TRAINED:]
    scaler = StandardScaler().fit(adult.features[known].astype(np.float64))
    x, rest_x = (
        scaler.transform(adult.features[part].astype(np.float64)) for part in (known, rest)
    )
    wrong, confident = [], []
    for strength in _STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=2_000).fit(x, adult.label[known])
        chances = model.predict_proba(rest_x)
        wrong.append(model.classes_[chances.argmax(axis=1)] != adult.label[rest])
        confident.append(chances.max(axis=1))
    return np.array(wrong), np.array(confident)


@dataclass(frozen=True)
class Sample:
    """A task with the cases drawn for validation and calibration."""

    task: Deferral
    validation: Any
    calibration: Any
    kept: BoolArray

    def evaluate(self, trial: optuna.Trial) -> rp.Evaluation:
        """Evaluate a trial."""
        losses = self.task.losses(self.task.suggest(trial))
        error, left = losses["error"], losses["left"]
        seen = np.where(self.kept, error[self.validation], error[self.validation] * 0)
        return rp.Evaluation(
            {"error": seen, "left": left[self.validation]}, {"error": error[self.calibration]}
        )


def drawn(task: Deferral, seed: int, thinned: float) -> Sample:
    """Draw the cases of validation and calibration."""
    rng = np.random.default_rng([20_31, seed])
    n = predictions()[0].shape[1]
    first, second = rng.integers(n, size=(2, _N_EXAMPLES))
    return Sample(task, first, second, rng.random(_N_EXAMPLES) >= thinned)


def guided(sample: Sample, seed: int, strategy: rp.Strategy = rp.GUIDED) -> list[Config]:
    """Search with the guided sampler."""
    sampler = rp.GuidedSampler(sample.task.problem, seed=seed, strategy=strategy)
    study = rp.create_study(sample.task.problem, sampler=sampler)
    study.optimize(rp.objective(study, sample.evaluate), n_trials=sample.task.n_trials)
    return [dict(trial.params) for trial in study.trials]


def constrained(sample: Sample, seed: int) -> list[Config]:
    """Search with Optuna's TPE, under a constraint at the largest mean that passes."""
    task = sample.task

    def objective(trial: optuna.Trial) -> float:
        seen = sample.evaluate(trial).validation
        counted = max(int(np.isfinite(np.asarray(seen["error"])).sum()), 1)
        bar = largest_passing_mean("binomial", task.limit, counted, task.problem.delta)
        mean = np.nanmean(seen["error"]) if counted > 1 else 1.0
        trial.set_constraint("error", float(mean) - (-1.0 if bar is None else bar))
        return float(np.mean(seen["left"]))

    study = optuna.create_study(sampler=tpe(seed))
    study.optimize(objective, n_trials=task.n_trials)
    return [dict(trial.params) for trial in study.trials]


def evenly(sample: Sample, seed: int) -> list[Config]:
    """Evaluate a grid: of thresholds, and of two or three strengths."""
    if not sample.task.with_strength:
        return [{"threshold": t} for t in np.linspace(0.5, 1.0, sample.task.n_trials).tolist()]
    strengths = np.logspace(-4, 0, 3).tolist()
    thresholds = np.linspace(0.5, 1.0, sample.task.n_trials // 3).tolist()
    return [{"threshold": t, "C": c} for t in thresholds for c in strengths]


SEARCHES: dict[str, Callable[[Sample, int], list[Config]]] = {
    "guided": guided,
    "`fallback=0`": partial(guided, strategy=replace(rp.GUIDED, fallback=0.0)),
    "paper's search": partial(guided, strategy=rp.PAPER),
    "TPE": constrained,
    "even grid": evenly,
}


@dataclass(frozen=True)
class Run:
    """One search to be made: a task by its name, a seed, the share by which it is thinned, and a
    multiple of its limit."""

    task: str
    seed: int
    thinned: float
    tightness: float = 1.0


def outcomes(run: Run) -> dict[str, tuple[float, bool]]:
    """Search in every way and select: the true share left to a person, and whether it is empty."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    task = TASKS[run.task]
    task = replace(task, limit=round(task.limit * run.tightness, 5))
    sample = drawn(task, run.seed, run.thinned)
    found = {}
    for name, search in SEARCHES.items():
        configs = search(sample, run.seed)
        study = rp.create_study(sample.task.problem, sampler=optuna.samplers.RandomSampler(seed=0))
        for config in configs:
            study.enqueue_trial(config)
        study.optimize(rp.objective(study, sample.evaluate), n_trials=len(configs))
        chosen = rp.select(study).config
        left = 1.0 if chosen is None else float(task.losses(chosen)["left"].mean())
        found[name] = left, chosen is None
    return found


def summary(
    runs: Sequence[Run], found: Sequence[dict[str, tuple[float, bool]]]
) -> list[dict[str, Any]]:
    """Average over limits and seeds, by task and thinning."""
    rows = []
    for task, thinned in dict.fromkeys((run.task, run.thinned) for run in runs):
        some = [
            each
            for run, each in zip(runs, found, strict=True)
            if (run.task, run.thinned) == (task, thinned)
        ]
        by_search = {name: np.array([each[name] for each in some]) for name in SEARCHES}
        gains = {name: each[:, 0] - by_search["guided"][:, 0] for name, each in by_search.items()}
        rows.append(
            {
                "task": task,
                "thinned": thinned,
                "left": {n: round(float(each[:, 0].mean()), 4) for n, each in by_search.items()},
                "behind": {
                    n: [round(float(one.mean()), 4), round(float(one.std() / len(one) ** 0.5), 4)]
                    for n, one in gains.items()
                },
                "empty": {n: round(float(each[:, 1].mean()), 4) for n, each in by_search.items()},
            }
        )
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    options = read_seeds("without_safe_start", __doc__, OUT, 40, arguments)
    runs = [
        Run(task, seed, thinned, tightness)
        for task in TASKS
        for thinned in (0.0, _THINNED)
        for tightness in LIMITS
        for seed in range(options.seeds)
    ]
    write_rows(options, summary(runs, list(in_processes(outcomes, runs, options.jobs))))


if __name__ == "__main__":
    main()
