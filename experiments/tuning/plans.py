"""Ways to order and to choose that were tried: as the default does it, with one thing changed."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from riskpilot.bench.cells import Splits
from riskpilot.bench.replay import (
    NOTHING,
    Config,
    FloatArray,
    Outcome,
    log_p_values,
    outcome_on_test,
)
from riskpilot.bench.tasks import Task
from riskpilot.bench.validation_sums import ValidationSums
from riskpilot.common.arrays import Places
from riskpilot.guarantee.procedures import Graphical, Procedure, fixed_sequence
from riskpilot.guarantee.testing import TestPlan, freeze_plan, known
from riskpilot.losses import ValidationLosses
from riskpilot.problem.problem import Problem
from riskpilot.search import Observations, fit_model, values_and_variances
from riskpilot.study.smoothing import smoothed_risks
from riskpilot.study.space import Space

PLANS = (
    "default",
    "raw means (the paper)",
    "smoothed risks, however small",
    "raw filter, smoothed order",
    "raw, the safest by smoothed risks first",
    "chosen on validation and calibration together",
    "two chains",
)


def test_with(
    plan_name: str,
    task: Task,
    problem: Problem,
    configs: Sequence[Config],
    sums: ValidationSums,
    splits: Splits,
) -> Outcome:
    """Plan, test and choose on every split."""
    plan = _plan(plan_name, task, problem, configs, sums)
    rows = list(plan.order)
    each = [task.losses("held_out", configs[row]) for row in rows]
    losses = {name: np.stack([one[name] for one in each]) for name in problem.names}
    log_p = log_p_values(plan, losses, splits.calibration)
    procedure = two_chains(len(rows)) if plan_name == "two chains" else fixed_sequence
    free = np.tile(np.array(plan.free), (len(log_p), 1))
    if plan_name == "chosen on validation and calibration together":
        m, k = splits.calibration.shape[1], plan.n_validation
        free = (k * free + m * _free_on_calibration(task, configs, rows, splits)) / (k + m)
    chosen = np.full(len(log_p), NOTHING)
    for split, values in enumerate(log_p):
        passed = procedure(values, problem.delta)
        if passed.any():
            chosen[split] = rows[int(np.argmin(np.where(passed, free[split], np.inf)))]
    safest = configs[rows[0]] if task.safe is None else task.safe
    return outcome_on_test(task, problem, configs, chosen, safest, splits, len(rows))


def two_chains(n: int) -> Procedure:
    """Every second candidate in a chain of its own, with half of delta each; the chain that is
    through hands its half to the other."""
    if n < 4:
        return fixed_sequence
    edges = np.eye(n, k=2)
    edges[n - 2, 1] = edges[n - 1, 0] = 1.0
    weights = np.zeros(n)
    weights[:2] = 0.5
    return Graphical(tuple(weights), tuple(map(tuple, edges.tolist())))


def _plan(
    name: str, task: Task, problem: Problem, configs: Sequence[Config], sums: ValidationSums
) -> TestPlan:
    validation = sums.under(problem)
    raw = freeze_plan(validation)
    estimates = smoothed_risks(task.space, configs, validation)
    if name == "raw means (the paper)" or estimates is None:
        return raw
    smooth = freeze_plan(validation, estimates=estimates)
    limits = np.array([risk.limit for risk in problem.risks])
    excess = (estimates - limits).max(axis=1)
    match name:
        case "smoothed risks, however small":
            return freeze_plan(validation, estimates=_posterior_means(task, configs, validation))
        case "raw filter, smoothed order":
            return _ordered(raw, sorted(raw.order, key=lambda row: excess[row]), validation)
        case "raw, the safest by smoothed risks first":
            safest = int(np.argmin(excess))
            rest = [row for row in raw.order if row != safest]
            return _ordered(raw, [safest, *rest], validation)
    return smooth


def _posterior_means(
    task: Task, configs: Sequence[Config], validation: ValidationLosses
) -> FloatArray:
    """What the surrogates alone say about the risks, shape (n, c)."""
    space = Space(task.space)
    x = space.encode(np.array([space.point(config) for config in configs]))
    values, variances = values_and_variances(validation)
    model = fit_model(Observations(x, values, variances, np.empty((0, x.shape[1]))))
    return model.means(x)[:, :-1]


def _ordered(plan: TestPlan, rows: Sequence[int], validation: ValidationLosses) -> TestPlan:
    return replace(
        plan,
        order=tuple(rows),
        free=tuple(float(validation.free[row]) for row in rows),
        aims=(plan.problem.delta,) * len(rows),
        starts=known(validation, plan.families, rows),
    )


def _free_on_calibration(
    task: Task, configs: Sequence[Config], rows: Sequence[int], splits: Splits
) -> FloatArray:
    """The free objective on the calibration rows of every split, shape (splits, rows)."""

    def at(row: int, examples: Places) -> float:
        return task.free("held_out", configs[row], examples)

    return np.array([[at(row, examples) for row in rows] for examples in splits.calibration])
