"""Which candidates are tested, in which order and how: fixed from validation data alone."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from riskpilot import p_values
from riskpilot.errors import LossError, ProblemError
from riskpilot.losses import CalibrationLosses, ValidationLosses
from riskpilot.pareto import non_dominated
from riskpilot.problem import Problem
from riskpilot.procedures import Procedure
from riskpilot.statistics import family, log_p_for_order, log_p_from_sums

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TestPlan:
    """The whole test, settled before calibration data is opened.

    ``order``: rows of the validation losses, in testing order; ``families``: the p-value of each
    risk; ``risks``: validation means of the candidates, shape (n_candidates, c); ``free``: their
    free objective; ``seed``: of the order in which betting sees the calibration examples.
    """

    __test__: ClassVar[bool] = False  # not a test case, whatever its name says

    problem: Problem
    order: tuple[int, ...]
    families: Mapping[str, str]
    log_p_validation: tuple[float, ...]
    risks: tuple[tuple[float, ...], ...]
    free: tuple[float, ...]
    n_configs: int
    n_validation: int
    validation_digest: str
    seed: int

    @property
    def digest(self) -> str:
        content = [
            self.problem.to_dict(),
            self.order,
            dict(self.families),
            self.validation_digest,
            self.seed,
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class TestResult:
    """What the calibration data says: ``log_p`` of each candidate and risk, shape
    (n_candidates, c), and which candidates ``passed``; ``means`` likewise. ``calibration``: the
    opened losses, in which the candidates are ``rows``; for pictures."""

    __test__: ClassVar[bool] = False

    log_p: FloatArray
    passed: BoolArray
    means: FloatArray
    n: npt.NDArray[np.int64]
    n_calibration: int
    calibration_digest: str
    calibration: CalibrationLosses | None = field(default=None, repr=False)
    rows: tuple[int, ...] = ()

    @property
    def worst_log_p(self) -> FloatArray:
        """Of several risks the largest p-value counts: all limits must be kept at once."""
        return np.asarray(self.log_p.max(axis=1))


def freeze_plan(validation: ValidationLosses, *, seed: int = 0) -> TestPlan:
    """Algorithm alg:selection, lines 5 to 7: Pareto filter, then order by approximate p-value."""
    problem = validation.problem
    summaries = {name: losses.summary for name, losses in validation.risks.items()}
    families = {risk.name: family(risk, summaries[risk.name].binary) for risk in problem.risks}
    means = np.column_stack([risk.from_unit(summaries[risk.name].mean) for risk in problem.risks])
    by_risk = np.column_stack(
        [log_p_for_order(risk, families[risk.name], summaries[risk.name]) for risk in problem.risks]
    )
    log_p = by_risk.max(axis=1)
    # A conditional mean of three examples must not push one of three thousand aside: there, a
    # configuration dominates only if its evidence is as good, too.
    conditional = [risk.conditional for risk in problem.risks]
    columns = np.column_stack([means, validation.free, by_risk[:, conditional]])
    candidates = np.flatnonzero(non_dominated(columns))
    # Smallest p first; where two are equal (both 1, say) the smaller risks decide.
    keys = (*reversed(means[candidates].T), log_p[candidates])
    order = candidates[np.lexsort(keys)]
    return TestPlan(
        problem=problem,
        order=tuple(map(int, order)),
        families=families,
        log_p_validation=tuple(map(float, log_p[order])),
        risks=tuple(tuple(map(float, row)) for row in means[order]),
        free=tuple(map(float, validation.free[order])),
        n_configs=validation.n_configs,
        n_validation=validation.n_examples,
        validation_digest=validation.digest(),
        seed=seed,
    )


def run_test(
    plan: TestPlan,
    calibration: CalibrationLosses,
    procedure: Procedure,
    rows: Sequence[int] | None = None,
) -> TestResult:
    """Algorithm alg:selection, lines 8 and 9: open the calibration losses and test.

    ``rows``: where the candidates stand in the calibration losses; as in the plan by default.
    """
    problem = plan.problem
    if not callable(procedure):
        raise ProblemError(
            f"A procedure is a function of log p-values and delta, but it is {procedure!r}. "
            f"Pass one: procedure=riskpilot.holm."
        )
    chosen = list(plan.order if rows is None else rows)
    log_p = np.column_stack(
        [_log_p(plan, calibration, i, chosen) for i in range(len(problem.risks))]
    )
    passed = np.asarray(procedure(log_p.max(axis=1), problem.delta))
    if passed.shape != (len(chosen),) or passed.dtype != bool:
        raise LossError(
            f"A procedure must return one boolean per candidate, shape ({len(chosen)},), but it "
            f"returned shape {passed.shape} of type {passed.dtype}. Return log_p < threshold."
        )
    summaries = [calibration.risks[name].summary for name in problem.names]
    means = [
        risk.from_unit(summary.mean[chosen])
        for risk, summary in zip(problem.risks, summaries, strict=True)
    ]
    return TestResult(
        log_p=log_p,
        passed=passed,
        means=np.column_stack(means),
        n=np.column_stack([summary.n[chosen] for summary in summaries]),
        n_calibration=calibration.n_examples,
        calibration_digest=calibration.digest(chosen),
        calibration=calibration,
        rows=tuple(chosen),
    )


def _log_p(plan: TestPlan, calibration: CalibrationLosses, i: int, rows: list[int]) -> FloatArray:
    risk = plan.problem.risks[i]
    losses = calibration.risks[risk.name]
    name = plan.families[risk.name]
    if name != "betting":
        return log_p_from_sums(risk, name, losses.summary)[rows]
    # Betting sees the examples one after the other. A fixed shuffle makes it indifferent to the
    # order in which they were stored, which may follow the label or the loss.
    shuffle = np.random.default_rng(plan.seed).permutation(losses.n_examples)
    values = losses.unit_rows(rows)[:, shuffle]
    return p_values.log_betting(values, risk.unit_limit, plan.problem.delta)
