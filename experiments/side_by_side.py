"""Searches side by side: the same task, safe start, number of evaluations and final selection.

The guided search and samplers of Optuna search on validation data, and `riskpilot.select` chooses
from what each of them evaluated. What counts is the free objective of the choice on test.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler

import riskpilot as rp
from experiments.runs import in_processes
from riskpilot.common.arrays import FloatArray
from riskpilot.statistics import largest_passing_mean

Config = dict[str, Any]
Suggest = Callable[[optuna.Trial], Config]


@dataclass(frozen=True)
class SearchTask:
    """A problem, how its parameters are asked for, and the losses of a configuration.

    ``losses``: by part ("validation", "calibration") and name; ``on_test``: risk and free objective
    of a configuration; ``n_counted``: how many calibration examples count.
    """

    problem: rp.Problem
    safe: Config
    n_trials: int
    suggest: Suggest
    losses: Callable[[Config], Mapping[str, Mapping[str, Any]]]
    on_test: Callable[[Config], tuple[float, float]]
    n_counted: int
    _known: dict[str, rp.Evaluation] = field(default_factory=dict)

    def evaluate(self, trial: optuna.Trial) -> rp.Evaluation:
        """Evaluate a trial; a configuration is evaluated once."""
        config = self.suggest(trial)
        key = repr(sorted(config.items()))
        if key not in self._known:
            losses = self.losses(config)
            error = self.problem.risks[0].name
            self._known[key] = rp.Evaluation(
                dict(losses["validation"]), {error: losses["calibration"][error]}
            )
        return self._known[key]


MakeTask = Callable[[int], SearchTask]
Search = Callable[[SearchTask, int], list[Config]]


def guided(
    task: SearchTask, seed: int, kind: Callable[..., BaseSampler] = rp.GuidedSampler
) -> list[Config]:
    """Search with the guided sampler; returns what was evaluated, in its order."""
    sampler = kind(task.problem, seed=seed)
    study = rp.create_study(task.problem, sampler=sampler, safe=task.safe)
    study.optimize(rp.objective(study, task.evaluate), n_trials=task.n_trials)
    return [dict(trial.params) for trial in study.trials]


def constrained(task: SearchTask, seed: int, make: Callable[[int], BaseSampler]) -> list[Config]:
    """Search with a sampler of Optuna, which minimises the free objective under constraints.

    A constraint is kept where a mean as on validation data would pass on calibration data: told
    the limit alone, a sampler would go where the test is lost.
    """

    def objective(trial: optuna.Trial) -> float:
        excess, free = _on_validation(task, trial)
        trial.set_constraint(task.problem.risks[0].name, excess)
        return free

    return _searched(task, objective, make(seed))


def penalised(task: SearchTask, seed: int, make: Callable[[int], BaseSampler]) -> list[Config]:
    """Search with a sampler of Optuna that takes no constraints.

    What breaks a constraint is worse than all that does not: free objectives here are at most 1.
    """

    def objective(trial: optuna.Trial) -> float:
        excess, free = _on_validation(task, trial)
        return free if excess <= 0 else 1 + excess

    return _searched(task, objective, make(seed))


def _on_validation(task: SearchTask, trial: optuna.Trial) -> tuple[float, float]:
    """Return by how much the risk exceeds what would pass, and the free objective."""
    risk = task.problem.risks[0]
    bar = largest_passing_mean("binomial", risk.unit_limit, task.n_counted, task.problem.delta)
    found = task.evaluate(trial).validation
    excess = float(np.nanmean(found[risk.name])) - bar
    return excess, float(np.nanmean(found[task.problem.minimize]))


def _searched(
    task: SearchTask, objective: Callable[[optuna.Trial], float], sampler: BaseSampler
) -> list[Config]:
    """Run a study of Optuna from the safe configuration on."""
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial(dict(task.safe))
    study.optimize(objective, n_trials=task.n_trials)
    return [dict(trial.params) for trial in study.trials]


def tpe(seed: int) -> BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return TPESampler(seed=seed, multivariate=True, group=True)


def nsga2(seed: int) -> BaseSampler:
    # Optuna's population of 50 would be a random search at these numbers of evaluations.
    return NSGAIISampler(seed=seed, population_size=10)


def at_random(seed: int) -> BaseSampler:
    return RandomSampler(seed=seed)


@dataclass(frozen=True)
class Run:
    """One search to be made: a task by its name, a seed of data and search, a method."""

    task: str
    seed: int
    search: str


@dataclass(frozen=True)
class Outcome:
    """The choice on test: its free objective and risk, and whether anything was certified."""

    free: float
    risk: float
    certified: bool


@dataclass(frozen=True)
class Comparison:
    """Tasks and searches by name; which tasks were for tuning, and which searches are peers."""

    tasks: Mapping[str, MakeTask]
    tuning: Sequence[str]
    searches: Mapping[str, Search]
    peers: Sequence[str]

    def outcome(self, run: Run) -> Outcome:
        """Search, select, and look at the choice on test; at the safe one where there is none."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        task = self.tasks[run.task](run.seed)
        configs = self.searches[run.search](task, run.seed)
        study = rp.create_study(task.problem, sampler=RandomSampler(seed=0))
        for config in configs:
            study.enqueue_trial(config)
        study.optimize(rp.objective(study, task.evaluate), n_trials=len(configs))
        chosen = rp.select(study).config
        risk, free = task.on_test(task.safe if chosen is None else chosen)
        return Outcome(free, risk, chosen is not None)

    def summary(self, runs: Sequence[Run], found: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Average over seeds: by task and method, and the ratio of guided to the best peer."""
        rows = []
        for task in dict.fromkeys(run.task for run in runs):
            by_search: dict[str, list[Outcome]] = {}
            for run, one in zip(runs, found, strict=True):
                if run.task == task:
                    by_search.setdefault(run.search, []).append(one)
            limit = self.tasks[task](0).problem.risks[0].limit
            role = "tuning" if task in self.tuning else "reported"
            rows.append({"task": task, "role": role, **self._figures(limit, by_search)})
        return rows

    def _figures(
        self, limit: float | None, by_search: Mapping[str, Sequence[Outcome]]
    ) -> dict[str, Any]:
        """The figures of one task."""
        free = {name: [one.free for one in each] for name, each in by_search.items()}
        row: dict[str, Any] = {
            "seeds": max(map(len, by_search.values())),
            "free": {name: round(float(np.mean(each)), 4) for name, each in free.items()},
            "standard_error": {
                name: round(_standard_error(each), 4) for name, each in free.items()
            },
            "empty": {n: sum(not one.certified for one in each) for n, each in by_search.items()},
            "above_limit": {
                name: sum(one.certified and one.risk > limit for one in each)
                for name, each in by_search.items()
            },
            "by_seed": {name: [round(one, 4) for one in each] for name, each in free.items()},
        }
        return row | self._against_the_best(free)

    def _against_the_best(self, free: Mapping[str, Sequence[float]]) -> dict[str, Any]:
        """Compare guided search with the best peer, on the same data, seed by seed."""
        peers = [name for name in self.peers if name in free]
        if "guided" not in free or not peers:
            return {}
        best = min(peers, key=lambda name: float(np.mean(free[name])))
        gains = np.subtract(free[best], free["guided"])
        return {
            "best_peer": best,
            "ratio": round(float(np.mean(free["guided"]) / np.mean(free[best])), 3),
            "gain": [round(float(np.mean(gains)), 4), round(_standard_error(gains), 4)],
        }

    def _beside(
        self, rows: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Put new figures of some searches beside those of the others that a file has.

        Tasks that were not searched stay as they are. Data and seeds are the same, so that other
        searches would come out as before.
        """
        new = {row["task"]: row for row in rows}
        merged = []
        for old in before:
            row = new.pop(old["task"], old)
            if row["seeds"] != old["seeds"]:
                raise SystemExit(
                    f"The file has {old['seeds']} seeds of {old['task']!r}, but {row['seeds']} "
                    f"were asked for. Give --seeds {old['seeds']}, or another --out."
                )
            joined = {
                key: {**old[key], **value} if isinstance(value, dict) else value
                for key, value in row.items()
            }
            merged.append(joined | self._against_the_best(joined["by_seed"]))
        return [*merged, *new.values()]

    def main(
        self, name: str, description: str | None, out: Path, seeds: int, given: list[str] | None
    ) -> None:
        """Run every search that the command line asks for, and write the figures."""
        parser = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
        every = {"task": list(self.tasks), "search": list(self.searches)}
        for what, names in every.items():
            parser.add_argument(f"--{what}", action="append", choices=names, help="all by default")
        parser.description = (
            f"{description}\n\nWith --search, figures of the other searches stay as --out has them."
        )
        parser.add_argument("--seeds", type=int, default=seeds)
        parser.add_argument("--jobs", type=int, default=2)
        parser.add_argument("--out", type=Path, default=out)
        parser.add_argument(
            "--kept", type=Path, help="a file of outcomes: what it holds is not searched again"
        )
        options = parser.parse_args(given)
        runs = [
            Run(task, seed, search)
            for task in options.task or self.tasks
            for seed in range(options.seeds)
            for search in options.search or self.searches
        ]
        rows = self.summary(runs, self._outcomes(runs, options.jobs, options.kept))
        if options.search and options.out.exists():
            rows = self._beside(rows, json.loads(options.out.read_text()))
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
        for row in rows:
            print(json.dumps(row, indent=1))

    def _outcomes(self, runs: Sequence[Run], jobs: int, kept: Path | None) -> list[Outcome]:
        """Make the runs that the file of kept outcomes lacks, and add each as soon as it is there.

        The file has one line of JSON for each outcome.
        """
        known: dict[Run, Outcome] = {}
        if kept is not None and kept.exists():
            for line in kept.read_text().splitlines():
                run, one = json.loads(line)
                known[Run(**run)] = Outcome(**one)
        new = [run for run in runs if run not in known]
        for run, one in zip(new, in_processes(self.outcome, new, jobs), strict=True):
            known[run] = one
            if kept is not None:
                with kept.open("a") as file:
                    file.write(json.dumps([asdict(run), asdict(one)]) + "\n")
        return [known[run] for run in runs]


def _standard_error(values: Sequence[float] | FloatArray) -> float:
    """Compute the standard error of a mean; 0 for one value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
