"""The methods that are compared: how each searches, and which p-values then test what it found."""

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Protocol

from optuna.samplers import BaseSampler

from riskpilot.bench.baselines import (
    ConstrainedSampler,
    GridSampler,
    LatinHypercubeSampler,
    RandomSampler,
    best_feasible,
)
from riskpilot.bench.searches import Found, run_search
from riskpilot.bench.tasks import Task
from riskpilot.problem import Problem
from riskpilot.search import acquisition
from riskpilot.study import (
    GUIDED,
    HVI,
    ONE_SIDED,
    PAPER,
    GuidedSampler,
    Strategy,
    default_pool_size,
    uniform,
)

FAMILIES = ("auto", "hoeffding_bentkus", "hoeffding")
DELTA_PRIMES = (1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1)
BUDGETS = (10, 20, 50)  # of the N sweep; the paper's N on pruning is the last
# What the ablations start from: name, label, strategy, and whether a safe configuration is given.
PRESETS = (("guided", "guided", GUIDED, True), ("paper", "paper preset", PAPER, False))


@dataclass(frozen=True)
class Assignment:
    """All that a search may know. ``problem`` has open limits for methods that ignore them."""

    task: Task
    problem: Problem
    n_calibration: int
    seed: int


class Search(Protocol):
    """A frozen dataclass whose fields are its settings."""

    def __call__(self, setting: Assignment, /) -> Found: ...


@dataclass(frozen=True)
class Method:
    """``looks_at_limits``: searched anew for every cell, else once for all of them; ``seeded``:
    whether the seed matters; ``search_family``: the p-values that the search expects;
    ``families``: those of the test, none for no test;
    ``smooth``: whether the plan goes by smoothed estimates;
    ``tasks``: those it is meant for; ``every_cell``: or every second one; ``ablation``: left out of
    the main comparison."""

    name: str
    label: str
    search: Search
    looks_at_limits: bool = True
    seeded: bool = True
    search_family: str = "auto"
    families: tuple[str, ...] = ("auto",)
    smooth: bool = False
    tasks: tuple[str, ...] | None = None
    every_cell: bool = True
    ablation: bool = False

    def suits(self, task: Task) -> bool:
        if self.name == "dense":
            return task.grid is not None
        return self.tasks is None or task.name in self.tasks


@dataclass(frozen=True)
class Guided:
    """A search by `GuidedSampler`. ``n_trials``: the task's N where None; ``share``: of it. Of the
    evaluations, the paper's share is initial; the default has its own, at most half."""

    strategy: Strategy
    safe: bool
    share: float = 1.0
    n_trials: int | None = None

    def __call__(self, setting: Assignment) -> Found:
        task = setting.task
        n_trials = self.n_trials or max(round(self.share * task.n_trials), 2)
        startup = max(round(n_trials * task.n_startup_trials / task.n_trials), 2)
        if self.strategy.pool is GUIDED.pool:  # the size of its pool is part of the method
            startup = min(default_pool_size(len(task.space)), (n_trials + 1) // 2)
        sampler = GuidedSampler(
            setting.problem,
            n_startup_trials=startup,
            seed=setting.seed,
            strategy=self.strategy,
            n_calibration=setting.n_calibration,
        )
        return run_search(
            task,
            setting.problem,
            sampler,
            n_trials=n_trials,
            n_calibration=setting.n_calibration,
            safe=task.safe if self.safe else None,
        )


@dataclass(frozen=True)
class Baseline:
    """A search by one of `riskpilot.bench.baselines`, with the task's budget."""

    kind: str

    def __call__(self, setting: Assignment) -> Found:
        task = setting.task
        return run_search(
            task,
            setting.problem,
            _sampler(self.kind, setting),
            n_trials=task.n_trials,
            n_calibration=setting.n_calibration,
            choose=best_feasible if self.kind == "practice" else None,
        )


def _sampler(kind: str, setting: Assignment) -> BaseSampler:
    startup, seed = setting.task.n_startup_trials, setting.seed
    match kind:
        case "uniform":
            return GridSampler(setting.task.space, setting.task.n_trials, seed=seed)
        case "random" if len(setting.task.space) == 1:
            return RandomSampler(seed=seed)
        case "random":
            return LatinHypercubeSampler(n_trials=setting.task.n_trials, seed=seed)
        case "practice":
            return ConstrainedSampler(n_startup_trials=startup, seed=seed)
    # The last two need an extra: imported by whoever runs them.
    module = import_module(f"riskpilot.bench.baselines.{kind}")
    make = module.EHVISampler if kind == "ehvi" else module.ParEGOSampler
    sampler: BaseSampler = make(n_startup_trials=startup, seed=seed)
    return sampler


@dataclass(frozen=True)
class Dense:
    """Every configuration of the grid: the result that few evaluations are measured by."""

    def __call__(self, setting: Assignment) -> Found:
        assert setting.task.grid is not None
        return Found(list(setting.task.grid))


def _baseline(name: str, label: str) -> Method:
    return Method(name, label, Baseline(name), looks_at_limits=False)


def delta_prime_method(name: str, value: float) -> str:
    """The method that is ``name`` with another delta'; itself where it is its own."""
    strategy = {each: strategy for each, _, strategy, _ in PRESETS}[name]
    return name if value == strategy.delta_prime else f"{name}_delta_prime_{value:g}"


@dataclass(frozen=True)
class Piece:
    """One thing that the default does and the paper does not, and the default without it."""

    name: str
    brings: str
    strategy: Strategy = GUIDED
    safe: bool = True
    smooth: bool = True

    @property
    def method(self) -> Method:
        return Method(
            f"guided_without_{self.name}",
            f"guided without {self.name.replace('_', ' ')}",
            Guided(self.strategy, safe=self.safe),
            smooth=self.smooth,
            every_cell=False,
            ablation=True,
        )


PIECES = (
    Piece(
        "soft_edges",
        "the region has soft edges: risks on the scale of their chance to pass",
        replace(GUIDED, reference=acquisition.guided_reference, scale=acquisition.as_they_are),
    ),
    Piece(
        "posterior_front",
        "the front is that of posterior means, not of raw observations",
        replace(GUIDED, front=acquisition.observed_front),
    ),
    Piece(
        "own_pool",
        "a small pool that covers the space, not a random one of the paper's size",
        replace(GUIDED, pool=uniform),
    ),
    Piece(
        "safe_start",
        "a configuration known to be safe comes first",
        replace(GUIDED, safe_first=False),
        safe=False,
    ),
    Piece(
        "boldness",
        "while everything evaluated would pass, values count as optimistic",
        replace(GUIDED, bold=False),
    ),
    Piece(
        "avoiding_repeats",
        "proposals keep away from steps that were evaluated",
        replace(GUIDED, avoid_repeats=False),
    ),
    Piece("smoothed_plan", "the test's filter and order go by smoothed estimates", smooth=False),
)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("guided", "guided (default)", Guided(GUIDED, safe=True), smooth=True),
        Method(
            "guided_hb",
            "guided, Hoeffding-Bentkus",
            Guided(GUIDED, safe=True),
            search_family="hoeffding_bentkus",
            families=("hoeffding_bentkus",),
            smooth=True,
            ablation=True,
        ),
        Method(
            "guided_half",
            "guided, half of N",
            Guided(GUIDED, safe=True, share=0.5),
            smooth=True,
            ablation=True,
        ),
        Method(
            "paper",
            "guided (paper preset)",
            Guided(PAPER, safe=False),
            families=("auto", "hoeffding_bentkus"),
        ),
        Method("one_sided", "one-sided region", Guided(ONE_SIDED, safe=False)),
        Method("hvi", "HVI", Guided(HVI, safe=False), looks_at_limits=False),
        _baseline("ehvi", "EHVI"),
        _baseline("parego", "ParEGO"),
        _baseline("uniform", "uniform grid"),
        _baseline("random", "random / LHS"),
        Method(
            "practice",
            "no test (practice)",
            Baseline("practice"),
            families=(),
        ),
        Method(
            "dense",
            "dense grid",
            Dense(),
            looks_at_limits=False,
            seeded=False,
            families=FAMILIES,
        ),
        *(
            Method(
                f"{name}_delta_prime_{value:g}",
                f"{label}, delta' = {value:g}",
                Guided(replace(strategy, delta_prime=value), safe=safe),
                smooth=name == "guided",
                every_cell=False,
                ablation=True,
            )
            for name, label, strategy, safe in PRESETS
            for value in DELTA_PRIMES
            if value != strategy.delta_prime
        ),
        *(piece.method for piece in PIECES),
        *(
            Method(
                f"{name}_n{n}",
                f"{label}, N = {n}",
                Guided(strategy, safe=safe, n_trials=n),
                smooth=name == "guided",
                tasks=("pruning",),
                ablation=True,
            )
            for name, label, strategy, safe in PRESETS
            for n in BUDGETS[:-1]
        ),
    )
}
