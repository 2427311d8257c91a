"""The tasks on which choices about the default were made; no other table has a say in them."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from optuna.distributions import FloatDistribution

from riskpilot.bench import tasks
from riskpilot.bench.tasks import Task
from riskpilot.bench.tasks.task import Config, Losses, Split
from riskpilot.common.arrays import FloatArray, Places
from riskpilot.problem.problem import Problem, Risk

CLIFF_CELLS = ((0.03,), (0.06,), (0.12,))
CLIFF_STEPS = (12, 12, 45)


def _middle(task: Task, n_trials: int, n_startup_trials: int) -> Task:
    """Every second limit, and the budget that the paper has in as many dimensions."""
    return replace(
        task, cells=list(task.cells)[::2], n_trials=n_trials, n_startup_trials=n_startup_trials
    )


def cliffs(seed: int, n_validation: int = 2_000, n_held_out: int = 10_000) -> Task:
    """Three thresholds, each harmless up to a point; values between steps make no difference."""
    rng = np.random.default_rng([77, seed])
    names = ("x1", "x2", "x3")
    edge, width, height = rng.uniform((0.3, 0.05, 0.2), (0.8, 0.12, 0.6), (3, 3)).T
    weight = rng.dirichlet(np.full(3, 3.0))
    size: dict[Split, int] = {"validation": n_validation, "held_out": n_held_out}
    luck = {split: rng.random(n) for split, n in size.items()}
    turn = {split: rng.normal(scale=0.3, size=(n, 3)) for split, n in size.items()}

    def point(config: Config) -> FloatArray:
        last = np.array(CLIFF_STEPS) - 1
        return np.rint(np.array([config[name] for name in names]) * last) / last

    def risk(x: FloatArray) -> float:
        harm = height / (1 + np.exp(-(x - edge) / width))
        return float(0.005 + 0.99 * (1 - np.prod(1 - harm)))

    def cost(x: FloatArray) -> float:
        return float(0.05 + 0.9 * weight @ ((1 - x) + 0.1 * (1 - x) ** 2) / 1.1)

    def losses(split: Split, config: Config) -> Losses:
        x = point(config)
        return {"error": (luck[split] + turn[split] @ x) % 1.0 < risk(x)}

    def free(split: Split, config: Config, rows: Places | None) -> float:
        return cost(point(config))

    return Task(
        name="cliffs",
        problem=Problem([Risk("error", limit=None)], minimize="cost"),
        cells=list(CLIFF_CELLS),
        space={name: FloatDistribution(0.0, 1.0) for name in names},
        n_trials=50,
        n_startup_trials=15,
        size=size,
        losses=losses,
        free=free,
        grid=[
            dict(zip(names, map(float, x), strict=True))
            for x in itertools.product(*(np.linspace(0, 1, n) for n in CLIFF_STEPS))
        ],
        safe=dict.fromkeys(names, 0.0),
        population=lambda config: {"error": risk(point(config)), "cost": cost(point(config))},
    )


# By name, from a seed: real tables have one version, made-up ones have one for each seed.
TASKS: dict[str, Callable[[int], Task]] = {
    "fairness, training seed 0": lambda seed: tasks.load("fairness", seed=0),
    "vae": lambda seed: tasks.load("vae"),
    "synthetic, d = 1": lambda seed: tasks.synthetic(seed=seed),
    "synthetic, d = 2, two risks": lambda seed: _middle(tasks.synthetic(2, 2, seed=seed), 15, 7),
    "synthetic, d = 3": lambda seed: _middle(tasks.synthetic(3, seed=seed), 50, 15),
    "cliffs in steps, d = 3": cliffs,
}
