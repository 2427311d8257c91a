"""How a search begins that has few evaluations: ``python -m experiments.few_evaluations``.

Tasks for tuning, searched with the task's own number of evaluations and with half of it: by the
default, and with one thing of its beginning changed. What counts is the free objective on
test, as a multiple of that of the paper's own search, which has all evaluations. The reported
figures are those of the replay.
"""

from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

from experiments.ratios import Outcomes, ratios, write_table
from experiments.runs import TUNING, Setting, in_processes, loaded
from experiments.tuning import few
from experiments.tuning.plans import test_with
from experiments.tuning.searches import Search
from riskpilot.bench import cells
from riskpilot.bench.methods import METHODS, Assignment
from riskpilot.bench.searches import SearchResult
from riskpilot.bench.tasks import Task
from riskpilot.bench.validation_sums import sum_validation
from riskpilot.search import GUIDED
from riskpilot.study import proposals
from riskpilot.study.sampler import GuidedSampler

OUT = Path(__file__).parent / "results" / "few_evaluations.json"
MADE_UP: dict[str, Callable[[int], Task]] = {
    "curved, d = 1": partial(few.curved, d=1, n_risks=1),
    "curved, d = 2, two risks": partial(few.curved, d=2, n_risks=2),
    "curved, d = 3": partial(few.curved, d=3, n_risks=1),
    "large samples, d = 1": few.large,
    "hardly safe, d = 1": few.hardly_safe,
    "abstaining, d = 2, two risks": few.abstaining,
    "varied, d = 1": partial(few.varied, d=1, n_risks=1),
    "varied, d = 2": partial(few.varied, d=2, n_risks=1),
    "varied, d = 2, two risks": partial(few.varied, d=2, n_risks=2),
}
PAPER = "the paper's search"


class AllTheWay(GuidedSampler):
    """Bold steps that are not shortened."""

    def _decide(self, *args: Any, **named: Any) -> dict[str, Any]:
        with mock.patch.object(proposals, "part_of_the_way", lambda best, *_: best):
            return super()._decide(*args, **named)


def hedging(when: Callable[[int, int], bool]) -> type[GuidedSampler]:
    """A sampler that hedges against optimistic validation now and then, and else trusts it.

    ``when``: whether it does, from the number of evaluations and of parameters.
    """

    class Hedging(GuidedSampler):
        def _survey(self, *args: Any, **named: Any) -> Any:
            found = super()._survey(*args, **named)
            if when(len(found.whole.numbers), len(found.space.distributions)):
                return found
            return replace(found, region=[replace(part, trust=1.0) for part in found.region])

    return Hedging


def larger_pool(d: int, n_trials: int) -> int:
    """A pool that covers the space of two or three parameters, too."""
    return min(2 ** (d + 1) - 1 if d > 1 else 2, (n_trials + 1) // 2)


WAYS = {
    "default": Search(),
    "bold steps all the way": Search(sampler=AllTheWay),
    "a late hedge": Search(sampler=hedging(lambda n, d: n >= 4 * d)),
    "a hedge in every third proposal": Search(sampler=hedging(lambda n, d: n % 3 == 2)),
    "larger pools": Search(pool=larger_pool),
    "no caution": Search(replace(GUIDED, caution=0.0)),
    "no exploration": Search(replace(GUIDED, exploration=0.0)),
    "all noise is its own": Search(replace(GUIDED, own_noise=1.0)),
}


@cache
def task_of(name: str, seed: int) -> Task:
    """Load a task by its name."""
    return MADE_UP[name](seed) if name in MADE_UP else loaded(name, seed)


def outcomes(setting: Setting) -> Outcomes:
    """Search in every way, and test."""
    task = task_of(setting.task, setting.seed)
    # Limits are named by their place, since those of some tasks differ from seed to seed.
    problem = cells.problem_at(task, list(task.cells)[int(setting.cell[0])])
    assignment = Assignment(task, problem, cells.n_calibration(task), setting.seed)
    splits = cells.draw_splits(task, setting.n_splits)

    def tested(found: SearchResult, plan: str = "default") -> list[float]:
        sums = sum_validation(task, found.configs)
        outcome = test_with(plan, task, problem, found.configs, sums, splits)
        return [float(outcome.free.mean()), float((outcome.chosen < 0).mean())]

    every = {PAPER: tested(METHODS["paper"].search(assignment), "raw means (the paper)")}
    for name, search in WAYS.items():
        every[name] = tested(search(assignment))
        every[f"{name}, half"] = tested(replace(search, share=0.5)(assignment))
    return every


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    names = (*TUNING, *MADE_UP)
    parser = ArgumentParser(prog="python -m experiments.few_evaluations", description=__doc__)
    parser.add_argument("--task", action="append", choices=names, help="all by default")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    settings = [
        Setting(name, (float(place),), seed, options.splits)
        for name in options.task or names
        for seed in range(options.seeds)
        for place in range(len(task_of(name, seed).cells))
    ]
    found = list(in_processes(outcomes, settings, options.jobs))
    write_table(options, ratios(settings, found, PAPER))


if __name__ == "__main__":
    main()
