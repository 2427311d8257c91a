"""A task whose population risks are known formulas, so that tests and benchmarks know the truth."""

import itertools

import numpy as np
from optuna.distributions import FloatDistribution

from riskpilot.bench.tasks.task import Config, Losses, Split, Task, mean_over
from riskpilot.common.arrays import FloatArray, Places
from riskpilot.errors import ProblemError
from riskpilot.problem import Problem, Risk

FREE = "cost"
LIMITS = (0.08, 0.12, 0.16, 0.2, 0.25)
GRID_POINTS = {1: 201, 2: 41}  # per dimension; beyond two dimensions there is no grid
TURN = 0.3  # how fast one example's luck changes from a configuration to its neighbours


def synthetic(
    dimensions: int = 1,
    n_risks: int = 1,
    *,
    binary: bool = True,
    seed: int = 0,
    n_validation: int = 2_000,
    n_held_out: int = 10_000,
) -> Task:
    """Make a task whose risks grow smoothly with x in [0, 1]^d, and whose cost falls.

    Losses are 0/1, or lie in [0, 1] where ``binary`` is False. Every example's loss has exactly the
    population risk as its mean, at every configuration. ``seed`` draws the risks and the examples.

    >>> task = synthetic(dimensions=2, n_risks=2)
    >>> x = {"x1": 0.5, "x2": 0.5}
    >>> truth, sample = task.population(x), task.losses("held_out", x)
    >>> bool(abs(sample["risk1"].mean() - truth["risk1"]) < 0.02)
    True
    """
    for name, value, top in (("dimensions", dimensions, 20), ("n_risks", n_risks, 3)):
        if value not in range(1, top + 1):
            raise ProblemError(
                f"A synthetic task has 1 to {top} {name}, but {name} is {value!r}. "
                f"Choose a number in this range."
            )
    rng = np.random.default_rng(seed)
    names = [f"x{i + 1}" for i in range(dimensions)]
    risk_names = [f"risk{j + 1}" for j in range(n_risks)]
    # Each risk weighs the dimensions differently; rows sum to 1, so risks reach the same height.
    risk_weight = rng.dirichlet(np.full(dimensions, 3.0), size=n_risks)
    cost_weight = rng.dirichlet(np.full(dimensions, 3.0))
    size: dict[Split, int] = {"validation": n_validation, "held_out": n_held_out}
    luck: dict[Split, FloatArray] = {}  # (n_risks + 1, n), uniform on [0, 1)
    turn: dict[Split, FloatArray] = {}  # (n, d)
    for split, n in size.items():
        luck[split] = rng.random((n_risks + 1, n))
        turn[split] = rng.normal(scale=TURN, size=(n, dimensions))

    def point(config: Config) -> FloatArray:
        return np.array([config[name] for name in names], dtype=np.float64)

    def true_risk(x: FloatArray, j: int) -> float:
        rise = 0.85 * x**2 + 0.15 * np.sin(1.5 * np.pi * x) ** 2
        return float(0.02 + 0.5 * risk_weight[j] @ rise)

    def true_cost(x: FloatArray) -> float:
        fall = (1 - x) ** 2 + 0.05 * np.sin(3 * np.pi * x) ** 2
        return float(0.1 + 0.8 * cost_weight @ fall)

    def uniform(split: Split, x: FloatArray, j: int) -> FloatArray:
        """Return every example's luck at x, uniform on [0, 1) for each x.

        It is a shift modulo 1 by a number that is independent of the luck.
        """
        return np.asarray((luck[split][j] + turn[split] @ x) % 1.0)

    def population(config: Config) -> dict[str, float]:
        x = point(config)
        risks = {name: true_risk(x, j) for j, name in enumerate(risk_names)}
        return {**risks, FREE: true_cost(x)}

    def losses(split: Split, config: Config) -> Losses:
        x = point(config)
        found: Losses = {}
        for j, name in enumerate(risk_names):
            u, mean = uniform(split, x, j), true_risk(x, j)
            # U^a has the mean 1 / (a + 1).
            found[name] = u < mean if binary else u ** (1 / mean - 1)
        return found

    def free(split: Split, config: Config, rows: Places | None) -> float:
        x = point(config)
        cost = uniform(split, x, n_risks) ** (1 / true_cost(x) - 1)
        return mean_over(cost, rows)

    ticks = np.linspace(0, 1, GRID_POINTS.get(dimensions, 0))
    return Task(
        name="synthetic",
        problem=Problem([Risk(name, limit=None) for name in risk_names], minimize=FREE),
        cells=[(limit,) * n_risks for limit in LIMITS],
        space={name: FloatDistribution(0.0, 1.0) for name in names},
        n_trials=10 * dimensions,
        n_startup_trials=5 * dimensions,
        size=size,
        losses=losses,
        free=free,
        grid=[
            dict(zip(names, map(float, x), strict=True))
            for x in itertools.product(ticks, repeat=dimensions)
        ]
        if dimensions in GRID_POINTS
        else None,
        safe=dict.fromkeys(names, 0.0),
        population=population,
    )
