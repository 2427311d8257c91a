"""One search on validation data alone: the configurations that a method evaluated."""

import logging
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import optuna
from optuna.samplers import BaseSampler
from optuna.trial import TrialState

from riskpilot.bench.tasks import Task
from riskpilot.losses import Evaluation
from riskpilot.problem import Problem
from riskpilot.study import create_study, objective, search_snapshot

Config = dict[str, Any]


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    ``configs``: the configurations in the order of evaluation; ``snapshot``: region and reference
    point of a guided search at its end; ``chosen``: the row that a method without a test would
    deploy; ``seconds``: the processor time that it took.
    """

    configs: Sequence[Config]
    snapshot: dict[str, Any] | None = None
    chosen: int | None = None
    seconds: float = 0.0


def evaluate(task: Task, trial: optuna.Trial) -> Evaluation:
    """Evaluate a trial on validation alone: a search must not be able to see held-out losses."""
    config = task.suggest(trial)
    return Evaluation(
        validation={
            **task.losses("validation", config),
            task.problem.minimize: task.free("validation", config, None),
        }
    )


def run_search(
    task: Task,
    problem: Problem,
    sampler: BaseSampler,
    *,
    n_trials: int,
    n_calibration: int,
    safe: Config | None = None,
    choose: Callable[[optuna.Study], Config | None] | None = None,
) -> SearchResult:
    """Let a sampler propose ``n_trials`` configurations, one after the other.

    ``choose``: how a method without a test makes its choice from the finished study.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("riskpilot").setLevel(logging.WARNING)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = create_study(problem, sampler=sampler, safe=safe, n_calibration=n_calibration)
        study.optimize(
            objective(study, lambda trial: evaluate(task, trial)), n_trials=n_trials, n_jobs=1
        )
    seconds = time.process_time() - start
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    configs = [{name: trial.params[name] for name in task.space} for trial in done]
    snapshot = search_snapshot(study, problem)
    chosen = None if choose is None else choose(study)
    return SearchResult(
        configs,
        None if snapshot is None else asdict(snapshot),
        None if chosen is None else configs.index(chosen),
        seconds,
    )
