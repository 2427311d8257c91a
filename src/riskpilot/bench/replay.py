"""The test over many splits of the held-out examples at once, and what each split's choice costs.

`guarantee.testing.run_test` tests one split. Here the plan is frozen once, since it depends on
validation alone, and all splits are tested together: sums over the calibration rows of every split
are one matrix product, and the betting test sees all splits as rows of one array. Statistics other
than means are tested split by split.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.bench.cells import Splits
from riskpilot.bench.tasks import Task
from riskpilot.bench.validation_sums import ValidationSums
from riskpilot.common.arrays import Array, FloatArray, Places
from riskpilot.guarantee import TestPlan, fixed_sequence, freeze_plan, log_p
from riskpilot.losses import calibration_losses, value_of
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import Mean, Summary, TestSettings, families, shuffled
from riskpilot.study import smoothed_risks

Config = dict[str, Any]

NOTHING = -1
_BLOCK = 64  # candidates that are tested together
_BETTING_NUMBERS = 8_000_000  # losses per call of the betting test


@dataclass(frozen=True)
class Outcome:
    """What happened on each of k splits.

    ``chosen``: the row of the configuration that was chosen, -1 where nothing was certified;
    ``free``: its free objective on test, or that of the safest configuration where nothing was
    certified; ``risks``: its limited risks on test, shape (k, c), NaN where nothing was certified;
    ``violated``: whether a population risk of the chosen configuration lies above its limit.
    """

    chosen: Places
    free: FloatArray
    risks: FloatArray
    violated: npt.NDArray[np.bool_]
    n_candidates: int

    def to_json(self) -> dict[str, Any]:
        return {
            "chosen": self.chosen.tolist(),
            "free": self.free.tolist(),
            "risks": [[None if np.isnan(x) else x for x in row] for row in self.risks.tolist()],
            "violated": self.violated.tolist(),
            "n_candidates": self.n_candidates,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Outcome":
        return cls(
            np.array(data["chosen"], dtype=np.intp),
            np.array(data["free"], dtype=np.float64),
            np.array(data["risks"], dtype=np.float64),
            np.array(data["violated"], dtype=np.bool_),
            data["n_candidates"],
        )


def replay(
    task: Task,
    problem: Problem,
    configs: Sequence[Config],
    sums: ValidationSums,
    splits: Splits,
    *,
    smooth: bool = False,
) -> Outcome:
    """Plan on validation, then test in sequence and choose on every split.

    ``smooth``: whether the plan goes by smoothed risks, as in `riskpilot.select`.
    """
    validation = sums.under(problem)
    estimates = smoothed_risks(task.space, configs, validation) if smooth else None
    # Splits are drawn at random, so that the stored order needs no further randomness.
    plan = freeze_plan(validation, estimates=estimates, entropy=0)

    def losses(rows: Sequence[int]) -> dict[str, Array]:
        each = [task.losses("held_out", configs[row]) for row in rows]
        beside = {name: each[0][name] for name in problem.beside}
        return {name: np.stack([one[name] for one in each]) for name in problem.names} | beside

    n_passed = passed_in_sequence(plan, losses, splits)
    best = np.array([NOTHING, *_argmin_so_far(np.array(plan.free))])
    positions = best[n_passed]
    chosen = np.where(positions == NOTHING, NOTHING, np.array(plan.order)[positions])
    safest = configs[plan.order[0]] if task.safe is None else task.safe
    return outcome_on_test(task, problem, configs, chosen, safest, splits, len(plan.order))


def passed_in_sequence(
    plan: TestPlan, losses: Callable[[Sequence[int]], dict[str, Array]], splits: Splits
) -> Places:
    """Count the candidates that pass on each split before the first that does not, (splits,).

    ``losses``: those of some rows on all held-out examples, by risk, shape (rows, M). A front can
    have thousands of candidates, so they are tested in blocks, and only on splits still going.
    """
    n_splits = len(splits.calibration)
    n_passed = np.zeros(n_splits, dtype=np.intp)
    going = np.arange(n_splits)
    for start in range(0, len(plan.order), _BLOCK):
        block = slice(start, start + _BLOCK)
        found = log_p_values(plan, losses(plan.order[block]), splits.calibration[going], block)
        passed = np.array([fixed_sequence(row, plan.problem.delta) for row in found])
        n_passed[going] += passed.sum(axis=1)
        going = going[passed.all(axis=1)]
        if not len(going):
            break
    return n_passed


def log_p_values(
    plan: TestPlan,
    losses: dict[str, Array],
    calibration: Places,
    positions: slice = slice(None),
) -> FloatArray:
    """Compute log p-values, the worst over the risks, shape (splits, candidates).

    ``losses``: by risk, those of the candidates on all held-out examples, shape (n, M), and what
    stands beside them, shape (M,); ``calibration``: the rows of each split, shape (splits, m);
    ``positions``: where the candidates stand in the plan; by default all of it is tested.
    """
    n_examples = losses[plan.problem.names[0]].shape[1]
    inside = np.zeros((n_examples, len(calibration)))
    inside[calibration.T, np.arange(len(calibration))] = 1.0
    by_risk = []
    for risk in plan.problem.risks:
        settings = plan.settings(risk, positions)
        if risk.statistic != Mean():
            by_risk.append(_split_by_split(plan, risk, settings, losses, calibration))
            continue
        unit = _to_unit(risk, losses[risk.name])
        if plan.families[risk.name] == "betting":
            by_risk.append(_betting(risk, settings, unit, calibration))
        else:
            summary = _sums(unit, inside)
            by_risk.append(families.log_p_from_sums(settings.family, summary, risk.unit_limit).T)
    worst: FloatArray = np.max(by_risk, axis=0)
    return worst


def _argmin_so_far(values: FloatArray) -> Places:
    """Find the smallest of the first 1, 2, ... values, the first of equals; shape (n,)."""
    smaller = values < np.minimum.accumulate(np.r_[np.inf, values])[:-1]
    return np.maximum.accumulate(np.where(smaller, np.arange(len(values)), 0))


def outcome_on_test(
    task: Task,
    problem: Problem,
    configs: Sequence[Config],
    chosen: Places,
    safest: Config,
    splits: Splits,
    n_candidates: int,
) -> Outcome:
    """Measure on test what the ``chosen`` configurations cost, and whether limits held."""
    limits = np.array([risk.limit for risk in problem.risks])
    free = np.empty(len(chosen))
    risks = np.full((len(chosen), len(limits)), np.nan)
    violated = np.zeros(len(chosen), dtype=bool)
    for row in np.unique(chosen):
        where = np.flatnonzero(chosen == row)
        config = safest if row == NOTHING else configs[row]
        for k in where:
            free[k] = task.free("held_out", config, splits.test[k])
        if row == NOTHING:
            continue
        losses = task.losses("held_out", config)
        for i, risk in enumerate(problem.risks):
            risks[where, i] = [_value(risk, losses, splits.test[k]) for k in where]
        violated[where] = bool((_population(task, config, losses, problem) > limits).any())
    return Outcome(chosen, free, risks, violated, n_candidates)


def _population(
    task: Task, config: Config, losses: dict[str, Array], problem: Problem
) -> FloatArray:
    """Return the true risks where the task knows them, else those of all held-out examples."""
    if task.population is not None:
        truth = task.population(config)
        return np.array([truth[name] for name in problem.names])
    return np.array([_value(risk, losses, slice(None)) for risk in problem.risks])


def _value(risk: Risk, losses: dict[str, Array], rows: Places | slice) -> float:
    """Compute a risk from the losses of one configuration on some rows."""
    values = np.asarray(losses[risk.name], dtype=np.float64)[rows]
    if risk.statistic == Mean():
        return float(np.nanmean(values))
    beside = {name: losses[name][rows] for name in (*risk.labels, *risk.numbers)}
    return float(value_of(risk, {risk.name: values[None], **beside})[0])


def _split_by_split(
    plan: TestPlan,
    risk: Risk,
    settings: TestSettings,
    losses: dict[str, Array],
    calibration: Places,
) -> FloatArray:
    """Compute the log p-values of a risk one split after the other, (splits, candidates)."""
    problem = Problem([risk], plan.problem.minimize, plan.problem.delta)
    names = (risk.name, *problem.beside)
    rows = range(len(losses[risk.name]))
    found = []
    for some in calibration:
        read = calibration_losses(problem, {name: losses[name][..., some] for name in names})
        found.append(log_p(risk, read.risks[risk.name], rows, settings))
    return np.array(found)


def _to_unit(risk: Risk, values: Array) -> FloatArray:
    """Move losses to the unit scale."""
    unit = np.asarray(values, dtype=np.float64)
    if (risk.low, risk.high) == (0.0, 1.0):
        return unit
    return np.clip((unit - risk.low) / (risk.high - risk.low), 0.0, 1.0)


def _sums(unit: FloatArray, indicator: FloatArray) -> Summary:
    """Sum losses over the calibration rows of every split; arrays of shape (n, splits).

    ``indicator``: 1 where an example is a calibration example of a split, shape (M, splits).
    """
    counts = ~np.isnan(unit)
    filled = np.where(counts, unit, 0.0)
    above_zero = np.asarray(filled > 0, dtype=np.float64)
    return Summary(
        n=np.rint(counts.astype(np.float64) @ indicator).astype(np.int64),
        total=filled @ indicator,
        squares=filled**2 @ indicator,
        above_zero=np.rint(above_zero @ indicator).astype(np.int64),
        binary=False,
    )


def _betting(
    risk: Risk, settings: TestSettings, unit: FloatArray, calibration: Places
) -> FloatArray:
    """Bet against the limit on every split at once, as `riskpilot.guarantee` does on one.

    The examples are shuffled as the plan says, and then taken one after the other.
    """
    n_splits, m = calibration.shape
    rows = calibration[:, shuffled(m, settings.seed)]
    result = np.empty((n_splits, len(unit)))
    step = max(1, _BETTING_NUMBERS // (m * len(unit)))
    for first in range(0, n_splits, step):
        some = rows[first : first + step]  # (s, m)
        stacked = unit[:, some].reshape(-1, m)  # (n, s, m) as rows
        candidates = np.repeat(np.arange(len(unit)), len(some))
        start, aims = settings.start(), np.broadcast_to(settings.aim, (len(unit),))
        found = families.log_betting(
            stacked,
            risk.unit_limit,
            aims[candidates],
            None if start is None else start.of(candidates),
        )
        result[first : first + step] = found.reshape(len(unit), len(some)).T
    return result
