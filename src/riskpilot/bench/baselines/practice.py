"""What people do today: optimise under constraints, take the best that looks feasible, no test."""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import optuna
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import TrialState

from riskpilot.bench.baselines.sequential import History, SequentialSampler
from riskpilot.problem import Problem
from riskpilot.study import problem_of, record_of, validation_of


def tpe(seed: int) -> BaseSampler:
    return TPESampler(seed=seed, n_startup_trials=0)


class ConstrainedSampler(SequentialSampler):
    """Optuna's constrained optimisation: minimise the free objective, every risk at its limit.

    ``inner`` makes the sampler that proposes, from a seed; TPE by default, and any that knows
    constraints will do, such as ``lambda seed: GPSampler(seed=seed, n_startup_trials=0)``. It sees
    an ordinary study of one objective, with each risk's validation mean less its limit as a
    constraint (none for a limit still open).
    """

    def __init__(
        self,
        *,
        n_startup_trials: int = 10,
        seed: int | None = None,
        inner: Callable[[int], BaseSampler] = tpe,
    ) -> None:
        super().__init__(n_startup_trials=n_startup_trials, seed=seed)
        self._inner = inner

    def propose(self, history: History, seed: int) -> dict[str, Any]:
        distributions = dict(history.space.distributions)
        with _without_news():
            study = optuna.create_study(sampler=self._inner(seed))
        for config, values in zip(history.configs, history.values, strict=True):
            trial = optuna.create_trial(
                params=config, distributions=distributions, value=float(values[-1])
            )
            for risk, value in zip(history.problem.risks, values[:-1], strict=True):
                if risk.limit is not None:
                    trial.set_constraint(risk.name, float(value) - risk.limit)
            study.add_trial(trial)
        return study.ask(distributions).params


def best_feasible(study: optuna.Study, problem: Problem | None = None) -> dict[str, Any] | None:
    """The finished trial with the smallest free objective among those whose validation risks keep
    their limits, or None. No test, no promise: a choice by validation data is optimistic.

    ``problem``: other limits than the study's, where given.
    """
    problem = problem or problem_of(study)
    best: dict[str, Any] | None = None
    least = math.inf
    for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        record = record_of(trial)
        if record is None or record.free >= least:
            continue
        seen = validation_of(problem, [record])
        if all(seen.risks[r.name].summary.mean[0] <= r.unit_limit for r in problem.risks):
            best, least = dict(trial.params), record.free
    return best


@contextlib.contextmanager
def _without_news() -> Iterator[None]:
    """Hide that a study was created: it lives for one proposal."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(level, optuna.logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)
