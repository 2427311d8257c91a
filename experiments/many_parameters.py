"""Searches over many parameters, for tuning: ``python -m experiments.many_parameters``.

A forest on small digits (8 parameters) and made-up trainings (7, 12 and 20), on which it was
decided how proposals are found among many parameters. The reported tasks are those of
`experiments.training`.
"""

from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

import riskpilot as rp
from experiments.side_by_side import (
    Comparison,
    Config,
    MakeTask,
    SearchTask,
    at_random,
    constrained,
    guided,
    tpe,
)
from experiments.trained_tasks import Losses, task_of
from riskpilot.common.arrays import Array, FloatArray
from riskpilot.study import proposals

OUT = Path(__file__).parent / "results" / "many_parameters.json"
_SIZES = {"validation": 2_000, "calibration": 2_000, "test": 20_000}


def forest_on_digits(seed: int, limit: float) -> SearchTask:
    """Eight parameters of a forest that may hand images over: few errors, little work."""
    images, label = load_digits(return_X_y=True)
    order = np.random.default_rng([9, seed]).permutation(len(label))
    parts = ("train", "validation", "calibration", "test")
    rows = dict(zip(parts, np.split(order, [500, 900, 1350]), strict=True))

    def suggest(trial: optuna.Trial) -> Config:
        return {
            "trees": trial.suggest_int("trees", 2, 40, log=True),
            "depth": trial.suggest_int("depth", 2, 15),
            "share": trial.suggest_float("share", 0.02, 1.0, log=True),
            "leaf": trial.suggest_int("leaf", 1, 20, log=True),
            "criterion": trial.suggest_categorical("criterion", ["gini", "entropy"]),
            "bootstrap": trial.suggest_categorical("bootstrap", [False, True]),
            "side": trial.suggest_int("side", 2, 8),
            "cut": trial.suggest_float("cut", 0.0, 1.0),
        }

    def losses(config: Config) -> dict[str, Losses]:
        pixels = _averaged(images, config["side"])
        model = ExtraTreesClassifier(
            config["trees"],
            max_depth=config["depth"],
            max_features=config["share"],
            min_samples_leaf=config["leaf"],
            criterion=config["criterion"],
            bootstrap=config["bootstrap"],
            random_state=0,
        )
        model.fit(pixels[rows["train"]], label[rows["train"]])
        work = config["trees"] * config["depth"] / 600
        found: dict[str, Losses] = {}
        for part in parts[1:]:
            chances = model.predict_proba(pixels[rows[part]])
            answered = chances.max(axis=1) >= config["cut"]
            wrong = model.classes_[chances.argmax(axis=1)] != label[rows[part]]
            found[part] = {"wrong": answered & wrong, "cost": 0.9 * ~answered + 0.1 * work}
        return found

    safe = {"trees": 40, "depth": 15, "share": 0.1, "leaf": 1, "criterion": "gini"}
    safe |= {"bootstrap": False, "side": 8, "cut": 0.9}
    return task_of(rp.Risk("wrong", limit), "cost", safe, 30, suggest, losses, 450)


def _averaged(images: Array, side: int) -> FloatArray:
    """Sum images of 8 x 8 over a grid of so many cells a side."""
    edges = np.linspace(0, 8, side + 1).astype(int)[:-1]
    rows = np.add.reduceat(images.reshape(-1, 8, 8), edges, axis=1)
    return np.asarray(np.add.reduceat(rows, edges, axis=2).reshape(len(images), -1))


def made_up(seed: int, limit: float, d: int, relevant: int, n_trials: int) -> SearchTask:
    """Parameters that have a best place, sizes that cost, one that falls off a cliff, a choice.

    ``relevant``: so many of the ``d`` parameters matter.
    """
    rng = np.random.default_rng([31, seed, d])
    best, curve = rng.uniform(0.2, 0.9, d), rng.gamma(2.0, 0.25, d)
    order = rng.permutation(d)
    curve[order[relevant:]] = 0.0
    n_sizes = max(2, relevant // 3)
    sizes, cliff, choice = order[:n_sizes], int(order[n_sizes]), int(order[relevant - 1])
    others = np.setdiff1d(np.arange(d), sizes)
    edge = rng.uniform(0.6, 0.9)
    price = rng.dirichlet(np.ones(n_sizes))
    luck = {part: rng.random(n) for part, n in _SIZES.items()}
    turn = {part: rng.normal(scale=0.3, size=(n, d)) for part, n in _SIZES.items()}
    names = [f"x{i}" for i in range(d)]

    def suggest(trial: optuna.Trial) -> Config:
        return {
            name: trial.suggest_categorical(name, [0.0, 0.5, 1.0])
            if i == choice
            else trial.suggest_float(name, 0.0, 1.0)
            for i, name in enumerate(names)
        }

    def risk_and_cost(x: FloatArray) -> tuple[float, float]:
        harm = 0.6 * curve[sizes] @ np.exp(-4 * x[sizes])
        harm += curve[others] @ (x - best)[others] ** 2
        harm += 0.3 * (x[order[0]] - x[order[1]]) ** 2
        harm += 0.6 / (1 + np.exp(-(x[cliff] - edge) / 0.02))
        risk = 0.03 + 0.9 * (1 - np.exp(-harm))
        return min(float(risk), 0.97), float(price @ np.exp(2.5 * (x[sizes] - 1)))

    def losses(config: Config) -> dict[str, Losses]:
        x = np.array([config[name] for name in names])
        risk, cost = risk_and_cost(x)
        return {
            part: {"error": (luck[part] + turn[part] @ x) % 1 < risk, "cost": cost}
            for part in _SIZES
        }

    start = np.clip(best + 0.08 * np.sign(0.5 - best), 0, 1)
    start[cliff] = min(best[cliff], edge - 0.15)
    start[cliff] += 0.08 * np.sign(0.5 - start[cliff])
    start[sizes] = 0.97
    start[choice] = min((0.0, 0.5, 1.0), key=lambda value: abs(value - best[choice]))
    safe = dict(zip(names, map(float, start), strict=True))
    return task_of(rp.Risk("error", limit), "cost", safe, n_trials, suggest, losses)


class CoverAlone(rp.GuidedSampler):
    """The guided search with proposals as among few parameters: the best of a cover, refined."""

    def sample_relative(self, *args: object) -> Config:
        with mock.patch.object(proposals, "_FEW", 10**9):
            return super().sample_relative(*args)  # type: ignore[arg-type]


TASKS: dict[str, MakeTask] = {
    **{
        f"forest on digits, {limit}": partial(forest_on_digits, limit=limit)
        for limit in (0.05, 0.08)
    },
    **{
        f"made up, {d} parameters, {limit}": partial(
            made_up, limit=limit, d=d, relevant=relevant, n_trials=n_trials
        )
        for d, relevant, n_trials, limits in (
            (7, 6, 30, (0.15, 0.25)),
            (12, 8, 40, (0.15, 0.25)),
            (20, 7, 40, (0.25,)),
        )
        for limit in limits
    },
}
COMPARISON = Comparison(
    TASKS,
    tuple(TASKS),
    {
        "guided": guided,
        "guided, cover alone": partial(guided, kind=CoverAlone),
        "TPE": partial(constrained, make=tpe),
        "random": partial(constrained, make=at_random),
    },
    peers=("TPE", "random"),
)


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    COMPARISON.main("experiments.many_parameters", __doc__, OUT, 20, arguments)


if __name__ == "__main__":
    main()
