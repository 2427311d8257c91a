"""The methods that are compared: how each searches, and which p-values then test what it found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

from optuna.samplers import BaseSampler

from riskpilot.bench.baselines import (
    ConstrainedSampler,
    GridSampler,
    LatinHypercubeSampler,
    RandomSampler,
    best_feasible,
)
from riskpilot.bench.searches import SearchResult, run_search
from riskpilot.bench.tasks import Task
from riskpilot.problem import Problem
from riskpilot.search import (
    GUIDED,
    HVI,
    ONE_SIDED,
    PAPER,
    Strategy,
    choices,
    default_pool_size,
    uniform,
)
from riskpilot.study import GuidedSampler

FAMILIES = ("auto", "hoeffding_bentkus", "hoeffding")
DELTA_PRIMES = (1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1)
# The packages of the methods that need more than riskpilot does.
NEEDS = {"ehvi": ("torch", "botorch"), "parego": ("smac",)}
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

    def __call__(self, assignment: Assignment, /) -> SearchResult: ...


@dataclass(frozen=True)
class Method:
    """A method that is compared.

    ``looks_at_limits``: whether it searches anew for every cell, or once for all of them;
    ``seeded``: whether the seed matters; ``search_family``: the p-values that the search expects;
    ``families``: those of the test, none for no test; ``smooth``: whether the plan goes by smoothed
    estimates; ``tasks``: the tasks it is meant for; ``every_cell``: whether it is run in every
    cell, or in every second one; ``ablation``: whether it is left out of the main comparison.
    """

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
        """Tell whether the method can be run on a task, and is meant for it."""
        if self.name == "dense":
            return task.grid is not None
        return self.tasks is None or task.name in self.tasks


@dataclass(frozen=True)
class Guided:
    """A search by `GuidedSampler`.

    ``n_trials``: the number of evaluations, by default the task's N; ``share``: the share of the
    task's N otherwise. The initial pool is the paper's share of the evaluations; the default
    strategy has its own size, which is at most half of them.
    """

    strategy: Strategy
    safe: bool
    share: float = 1.0
    n_trials: int | None = None

    def __call__(self, assignment: Assignment) -> SearchResult:
        task = assignment.task
        n_trials = self.n_trials or max(round(self.share * task.n_trials), 2)
        startup = max(round(n_trials * task.n_startup_trials / task.n_trials), 2)
        if self.strategy.pool is GUIDED.pool:  # the size of its pool is part of the method
            startup = min(default_pool_size(len(task.space)), (n_trials + 1) // 2)
        sampler = GuidedSampler(
            assignment.problem,
            n_startup_trials=startup,
            seed=assignment.seed,
            strategy=self.strategy,
            n_calibration=assignment.n_calibration,
        )
        return run_search(
            task,
            assignment.problem,
            sampler,
            n_trials=n_trials,
            n_calibration=assignment.n_calibration,
            safe=task.safe if self.safe else None,
        )


@dataclass(frozen=True)
class Baseline:
    """A search by one of `riskpilot.bench.baselines`, with the task's budget."""

    kind: str

    def __call__(self, assignment: Assignment) -> SearchResult:
        task = assignment.task
        return run_search(
            task,
            assignment.problem,
            _sampler(self.kind, assignment),
            n_trials=task.n_trials,
            n_calibration=assignment.n_calibration,
            choose=best_feasible if self.kind == "practice" else None,
        )


def _sampler(kind: str, assignment: Assignment) -> BaseSampler:
    """Make the sampler of a baseline."""
    startup, seed = assignment.task.n_startup_trials, assignment.seed
    match kind:
        case "uniform":
            return GridSampler(assignment.task.space, assignment.task.n_trials, seed=seed)
        case "random" if len(assignment.task.space) == 1:
            return RandomSampler(seed=seed)
        case "random":
            return LatinHypercubeSampler(n_trials=assignment.task.n_trials, seed=seed)
        case "practice":
            return ConstrainedSampler(n_startup_trials=startup, seed=seed)
    # The last two need an extra package, so that only who runs them imports them.
    module = import_module(f"riskpilot.bench.baselines.{kind}")
    make = module.EHVISampler if kind == "ehvi" else module.ParEGOSampler
    sampler: BaseSampler = make(n_startup_trials=startup, seed=seed)
    return sampler


@dataclass(frozen=True)
class Dense:
    """A search of every configuration of the grid, by which few evaluations are measured."""

    def __call__(self, assignment: Assignment) -> SearchResult:
        assert assignment.task.grid is not None
        return SearchResult(list(assignment.task.grid))


def installed(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the methods whose packages are installed, and for the others what they lack."""
    lacking = {}
    for name in names:
        gone = [package for package in NEEDS.get(name, ()) if find_spec(package) is None]
        if gone:
            lacking[name] = (
                f"The method {name!r} needs {' and '.join(gone)}. In a clone of riskpilot: "
                f"pip install '.[baselines]'."
            )
    return [name for name in names if name not in lacking], lacking


def _baseline(name: str, label: str) -> Method:
    """Make the method of a baseline, which ignores the limits."""
    return Method(name, label, Baseline(name), looks_at_limits=False)


def delta_prime_method(name: str, value: float) -> str:
    """Return the name of the method with another delta'; its own name where that is its own."""
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
        """The default without this piece."""
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
        replace(GUIDED, reference=choices.guided_reference, scale=choices.as_they_are),
    ),
    Piece(
        "posterior_front",
        "the front is that of posterior means, not of raw observations",
        replace(GUIDED, front=choices.observed_front),
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
