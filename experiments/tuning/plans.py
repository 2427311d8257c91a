"""Ways to order and to choose that were tried: as the default does it, with one thing changed."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from riskpilot.bench.replay import (
    NOTHING,
    Array,
    Config,
    FloatArray,
    IntArray,
    Outcome,
    measure,
    passed_in_sequence,
)
from riskpilot.bench.seen import Seen
from riskpilot.bench.setting import Splits
from riskpilot.plan import TestPlan, freeze_plan
from riskpilot.problem import Problem
from riskpilot.sampler import smoothed_risks
from riskpilot.tasks import Task

PLANS = (
    "default",
    "raw means (the paper)",
    "raw filter, smoothed order",
    "raw, the safest by smoothed risks first",
    "chosen on validation and calibration together",
)


def test_with(
    plan_name: str,
    task: Task,
    problem: Problem,
    configs: Sequence[Config],
    seen: Seen,
    splits: Splits,
) -> Outcome:
    """Plan, test and choose on every split."""
    plan = _plan(plan_name, task, problem, configs, seen)
    if len(plan.free) != len(plan.order):
        raise AssertionError("a plan has one free value for each candidate")

    def losses(rows: Sequence[int]) -> dict[str, Array]:
        each = [task.losses("held_out", configs[row]) for row in rows]
        return {name: np.stack([one[name] for one in each]) for name in problem.names}

    n_passed = passed_in_sequence(plan, losses, splits)
    together = plan_name == "chosen on validation and calibration together"
    rows = list(plan.order)
    on_calibration = _free_on_calibration(task, configs, rows, splits) if together else None
    chosen = np.full(len(n_passed), NOTHING)
    for k, n in enumerate(n_passed):
        if n:
            free = np.array(plan.free[:n])
            if on_calibration is not None:
                m = splits.calibration.shape[1]
                n_validation = plan.n_validation
                free = (n_validation * free + m * on_calibration[:n, k]) / (n_validation + m)
            chosen[k] = rows[int(np.argmin(free))]
    safest = configs[rows[0]] if task.safe is None else task.safe
    return measure(task, problem, configs, chosen, safest, splits, len(rows))


def _plan(
    name: str, task: Task, problem: Problem, configs: Sequence[Config], seen: Seen
) -> TestPlan:
    validation = seen.under(problem)
    raw = freeze_plan(validation)
    estimates = smoothed_risks(task.space, configs, validation)
    if name == "raw means (the paper)" or estimates is None:
        return raw
    smooth = freeze_plan(validation, estimates=estimates)
    limits = np.array([risk.limit for risk in problem.risks])
    excess = (estimates - limits).max(axis=1)
    match name:
        case "raw filter, smoothed order":
            return _ordered(raw, sorted(raw.order, key=lambda row: excess[row]), seen.free)
        case "raw, the safest by smoothed risks first":
            safest = int(np.argmin(excess))
            rest = [row for row in raw.order if row != safest]
            return _ordered(raw, [safest, *rest], seen.free)
    return smooth


def _ordered(plan: TestPlan, rows: Sequence[int], free: FloatArray) -> TestPlan:
    return replace(plan, order=tuple(rows), free=tuple(float(free[row]) for row in rows))


def _free_on_calibration(
    task: Task, configs: Sequence[Config], rows: Sequence[int], splits: Splits
) -> FloatArray:
    """The free objective on the calibration rows of every split, shape (rows, splits)."""

    def at(row: int, examples: IntArray) -> float:
        return task.free("held_out", configs[row], examples)

    return np.array([[at(row, examples) for examples in splits.calibration] for row in rows])
