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
from riskpilot.study import create_study, objective, picture

Config = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """``configs``: in the order of evaluation; ``picture``: region and reference point of a guided
    search at its end; ``chosen``: what a method without a test would deploy; ``seconds``: of
    processor time."""

    configs: Sequence[Config]
    picture: dict[str, Any] | None = None
    chosen: int | None = None
    seconds: float = 0.0


def evaluate(task: Task, trial: optuna.Trial) -> Evaluation:
    """Validation alone: a search must not even be able to see held-out losses."""
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
) -> Found:
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
    drawn = picture(study, problem)
    chosen = None if choose is None else choose(study)
    return Found(
        configs,
        None if drawn is None else asdict(drawn),
        None if chosen is None else configs.index(chosen),
        seconds,
    )
