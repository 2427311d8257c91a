"""Made-up tasks on which it was decided how a search with few evaluations begins."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from optuna.distributions import FloatDistribution

from riskpilot.bench import tasks
from riskpilot.bench.tasks import Task
from riskpilot.bench.tasks.task import Config, Losses, Split
from riskpilot.common.arrays import Places
from riskpilot.problem.problem import Problem, Risk

SIZE: dict[Split, int] = {"validation": 2_000, "held_out": 6_000}
Population = Callable[[Config], dict[str, float]]


def curved(seed: int, d: int, n_risks: int) -> Task:
    """A smooth task whose parameters do all they do near one of their ends."""
    task = _bent(tasks.synthetic(d, n_risks, seed=seed), (0.25, 0.5, 2.0, 4.0)[seed % 4])
    return replace(
        task,
        cells=list(task.cells)[::2],
        n_trials={1: 10, 2: 15, 3: 50}[d],
        n_startup_trials={1: 5, 2: 7, 3: 15}[d],
    )


def large(seed: int) -> Task:
    """A smooth task of one parameter with so many examples that little is left to chance."""
    task = tasks.synthetic(seed=seed, n_validation=10_000, n_held_out=20_000)
    bent = _bent(task, (0.5, 1.0, 1.0, 2.0)[seed % 4])
    return replace(bent, n_trials=15, n_startup_trials=7)


def _bent(task: Task, power: float) -> Task:
    """Take a power of the parameters of a task, which lie between 0 and 1."""

    def bent(config: Config, by: float = power) -> Config:
        return {name: value**by for name, value in config.items()}

    population = task.population
    assert population is not None
    return replace(
        task,
        losses=lambda split, config: task.losses(split, bent(config)),
        free=lambda split, config, rows: task.free(split, bent(config), rows),
        grid=None if task.grid is None else [bent(config, 1 / power) for config in task.grid],
        population=lambda config: population(bent(config)),
    )


def hardly_safe(seed: int) -> Task:
    """One parameter, whose safest value is hardly safe enough."""
    rng = np.random.default_rng([92, seed])
    base, rise, bend, free_bend, fall = rng.uniform(
        (0.1, 0.1, 0.7, 0.7, 0.1), (0.2, 0.5, 3, 3, 0.3)
    )
    dip = rng.uniform(0, 0.04)

    def population(config: Config) -> dict[str, float]:
        x = config["x"]
        error = base * (1 + rise * x**bend - dip * np.sin(np.pi * x))
        return {"error": float(error), "gap": float(0.05 + fall * (1 - x) ** free_bend)}

    limits = [(round(base * share, 4),) for share in (1.07, 1.13, 1.22)]
    return _task("hardly safe", ("x",), ("error",), limits, population, rng, (10, 5))


def abstaining(seed: int) -> Task:
    """Two parameters, of which one trades errors for cases that are left to a person."""
    rng = np.random.default_rng([91, seed])
    base, rise, bend = rng.uniform((0.08, 0.3, 1.5), (0.16, 0.7, 4))
    most, share_bend, worth = rng.uniform((0.25, 0.8, 1.0), (0.45, 1.6, 1.8))
    fall, free_bend = rng.uniform((0.2, 1.0), (0.35, 2.5))

    def population(config: Config) -> dict[str, float]:
        bold, careful = config["bold"], config["careful"]
        left = most * careful**share_bend * (1 + 0.3 * bold)
        error = base * (1 + rise * bold**bend) * max(1 - worth * left, 0.2)
        gap = 0.5 - fall * bold**free_bend - 0.15 * left
        return {"error": float(error), "left": float(left), "gap": float(gap)}

    limits = [(round(base * share, 4), 0.05) for share in (1.12, 1.2, 1.35)]
    names, risks = ("bold", "careful"), ("error", "left")
    return _task("abstaining", names, risks, limits, population, rng, (15, 7))


def varied(seed: int, d: int, n_risks: int) -> Task:
    """Objectives that hang on a few of the parameters, or on all, early or late in their range.

    Every seed draws other ones: the weight of each parameter in each objective, the power of it
    that counts, how far risks and free objective reach, and two sets of limits.
    """
    rng = np.random.default_rng([93, d, n_risks, seed])
    names = tuple(f"x{i + 1}" for i in range(d))
    risks = tuple(f"risk{j + 1}" for j in range(n_risks))
    weights = rng.dirichlet(np.full(d, 0.6), size=n_risks + 1)
    powers = np.exp(rng.uniform(np.log(0.5), np.log(5), (n_risks + 1, d)))
    low = rng.uniform(0.01, 0.15, n_risks)
    width = rng.uniform(0.15, 0.5, n_risks)
    best, fall = rng.uniform(0.05, 0.3), rng.uniform(0.2, 0.6)

    def population(config: Config) -> dict[str, float]:
        x = np.array([config[name] for name in names])
        rise = (weights * x**powers).sum(axis=1)
        found = dict(zip(risks, (low + width * rise[:-1]).tolist(), strict=True))
        return {**found, "gap": float(best + fall * (1 - rise[-1]))}

    shares = rng.uniform(0.15, 0.85, (2, n_risks))
    limits = np.maximum(low + width * shares, 1.1 * low + 0.01).round(4)
    budget = {1: (10, 5), 2: (15, 7)}[d]
    return _task("varied", names, risks, list(map(tuple, limits.tolist())), population, rng, budget)


def _task(
    name: str,
    names: tuple[str, ...],
    risks: tuple[str, ...],
    limits: list[tuple[float, ...]],
    population: Population,
    rng: np.random.Generator,
    n_trials: tuple[int, int],
) -> Task:
    """Draw examples whose 0/1 losses have the population risks as their means everywhere."""
    luck = {split: rng.random((len(risks), n)) for split, n in SIZE.items()}
    turn = {split: rng.normal(scale=0.3, size=(n, len(names))) for split, n in SIZE.items()}

    def losses(split: Split, config: Config) -> Losses:
        moved = turn[split] @ [config[each] for each in names]
        truth = population(config)
        return {
            risk: (own + moved) % 1.0 < truth[risk]
            for risk, own in zip(risks, luck[split], strict=True)
        }

    def free(split: Split, config: Config, rows: Places | None) -> float:
        return population(config)["gap"]

    ticks = np.linspace(0, 1, {1: 201, 2: 41}[len(names)])
    return Task(
        name=name,
        problem=Problem([Risk(risk, limit=None) for risk in risks], minimize="gap"),
        cells=limits,
        space={each: FloatDistribution(0.0, 1.0) for each in names},
        n_trials=n_trials[0],
        n_startup_trials=n_trials[1],
        size=SIZE,
        losses=losses,
        free=free,
        grid=[
            dict(zip(names, map(float, x), strict=True))
            for x in itertools.product(ticks, repeat=len(names))
        ],
        safe=dict.fromkeys(names, 0.0),
        population=population,
    )
