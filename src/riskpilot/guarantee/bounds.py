"""Upper bounds on the risks of tested candidates: the smallest limits they would have passed."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq

from riskpilot.common.arrays import FloatArray
from riskpilot.guarantee.risk_tests import log_p as log_p_of
from riskpilot.guarantee.testing import TestPlan, TestResult
from riskpilot.losses import RiskLosses
from riskpilot.problem import Risk

LogP = Callable[[float], float]

_END = 1e-6  # limits stay this far from the ends of the range


def upper_bounds(plan: TestPlan, result: TestResult, positions: Sequence[int]) -> FloatArray:
    """Of some candidates, by position in the test; shape (len(positions), c), in units of losses.

    Each inverts the p-value of its risk at delta: a limit above the bound would have passed, so
    that P(risk > bound) <= delta for a candidate named beforehand. After a selection the promise is
    about the limits; the bounds show by how much they were kept. The top of the range where no
    limit would have passed; NaN where labels arrived one after another, or a judge helped.
    """
    if result.calibration is None:
        return np.full((len(positions), len(plan.problem.risks)), np.nan)
    columns = []
    for i, risk in enumerate(plan.problem.risks):
        if risk.name in plan.judged:  # a judge's help is for the limit that was asked about
            columns.append(np.full(len(positions), np.nan))
            continue
        losses = result.calibration.risks[risk.name]
        means, errors = losses.summary.mean, losses.summary.standard_error
        bounds = []
        for position in positions:
            row = result.rows[position]
            log_p = _log_p(plan, risk, losses, row, position)
            mean, error = float(means[row]), float(errors[row])
            bounds.append(_smallest_limit(log_p, mean, error, plan.problem.delta))
        shown = result.log_p[list(positions), i] < math.log(plan.problem.delta)
        assert risk.limit is not None
        most = np.where(shown, risk.limit, np.inf)  # a limit that was shown is a bound itself
        columns.append(np.minimum(risk.from_unit(np.array(bounds)), most))
    return np.column_stack(columns)


def _smallest_limit(log_p: LogP, mean: float, error: float, delta: float) -> float:
    """The limit on the unit scale at which the p-value falls to delta, rounded up a little.

    ``mean``, ``error``: of the losses; a limit at the mean fails, one some errors above it passes.
    """
    low, step = min(max(mean, _END), 1 - _END), 2 * error
    if log_p(low) < math.log(delta):
        return low
    while log_p(high := min(low + step, 1 - _END)) >= math.log(delta):
        if high == 1 - _END:
            return 1.0
        low, step = high, 2 * step
    tolerance = 1e-3 * high
    root = brentq(lambda limit: log_p(limit) - math.log(delta), low, high, xtol=tolerance)
    return min(float(root) + tolerance, 1.0)


def _log_p(plan: TestPlan, risk: Risk, losses: RiskLosses, row: int, position: int) -> LogP:
    rows, settings = [row], plan.settings(risk, slice(position, position + 1))

    def at(limit: float) -> float:
        return float(log_p_of(risk, losses, rows, settings, limit=limit)[0])

    return at
