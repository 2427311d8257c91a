"""Which candidates are tested, in which order and how: fixed from validation data alone."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from riskpilot.common import digest_of
from riskpilot.common.arrays import BoolArray, FloatArray, IntArray, Places
from riskpilot.errors import LossError
from riskpilot.guarantee.dominance import non_dominated
from riskpilot.guarantee.judging import JudgeHelp, help_of_judge, log_p_judged
from riskpilot.guarantee.order_of_bets import check_seed, entropy_of, shuffle_seed
from riskpilot.guarantee.procedures import Procedure, aims, check_procedure, fixed_sequence
from riskpilot.guarantee.risk_tests import family, log_p, log_p_for_order, starts
from riskpilot.losses import CalibrationLosses, FreshScores, JudgeScores, ValidationLosses
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import (
    JUDGED,
    AnySummary,
    GroupName,
    GroupSummary,
    Start,
    Summary,
    TestSettings,
    log_normal,
    name_in_words,
)

# Mean, variance and number of the validation losses of one candidate (see `Start`).
Known = tuple[float, float, float]

logger = logging.getLogger("riskpilot")


@dataclass(frozen=True)
class TestPlan:
    """The whole test, settled before calibration data is opened.

    ``order``: rows of the validation losses, in testing order; ``families``: the p-value of each
    risk; ``risks``: validation means of the candidates, shape (n_candidates, c); ``free``: their
    free objective; ``seed``: the user's; ``shuffle``: the seed of the order in which betting sees
    the calibration examples (see `shuffle_seed`). ``aims``: the level at which the p-value of each
    candidate is to be sharp; ``starts``: by risk that is bet on, what validation losses say of each
    candidate's, by group where the worst group counts.
    ``groups``: the names of the groups of each risk that has some; ``thresholds``: by risk, where
    the tail of each candidate begins, on the unit scale. ``estimates``: of the risks of every
    configuration, shape (n_configs, c), where filter and order went by them. ``entropy``: the
    randomness that the shuffle got beside the validation losses; None where it needed none.
    ``horizon``: the largest number of labels, where they arrive one after another (`sequential`).
    ``judged``: the risks with which a judge helps, and whether their losses looked like 0/1 losses;
    ``pool``: the digest of its scores of fresh examples, where labels arrive one after another.
    ``known_order``: whether the order was known before any data, so that nothing was filtered.
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
    shuffle: int
    aims: tuple[float, ...]
    starts: Mapping[str, tuple[tuple[Known, ...], ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[GroupName, ...]] = field(default_factory=dict)
    thresholds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    estimates: tuple[tuple[float, ...], ...] | None = None
    entropy: int | None = None
    horizon: int | None = None
    judged: Mapping[str, bool] = field(default_factory=dict)
    pool: str | None = None
    known_order: bool = False

    def settings(self, risk: Risk, positions: slice = slice(None)) -> TestSettings:
        """How a risk of some candidates is tested; of all of them by default."""
        known = [np.array(part[positions]) for part in self.starts.get(risk.name, ())]
        thresholds = self.thresholds.get(risk.name)
        return TestSettings(
            self.families[risk.name],
            np.array(self.aims[positions]),
            self.shuffle,
            tuple(Start(*part.T) for part in known),
            None if thresholds is None else np.array(thresholds[positions]),
        )

    @property
    def digest(self) -> str:
        content: list[Any] = [
            self.problem.to_dict(),
            self.order,
            dict(self.families),
            self.validation_digest,
            self.seed,
            self.shuffle,
            self.aims,
            dict(self.starts),
            dict(self.groups),
            dict(self.thresholds),
        ]
        if self.horizon is not None:
            content.append(["horizon", self.horizon])
        if self.judged:
            content.append(["judged", dict(self.judged)])
        if self.pool is not None:
            content.append(["pool", self.pool])
        if self.known_order:
            content.append("known order")
        return digest_of(content)


@dataclass(frozen=True)
class Labelling:
    """How labels came, where they came one after another.

    ``horizon``: how many there can be at most; ``labels``: how many each candidate has got, shape
    (n_candidates,); ``looks``: after how many labels somebody looked, ascending; ``steps``: by
    risk, the label at which a count of 0, 1, 2, ... losses begins to cross the boundary, for risks
    whose boundary is the same for all candidates. ``table``: the losses of the
    candidates in the order of the labels, NaN where there are none; ``fresh``: a judge's scores of
    fresh examples, where one helps; both for pictures. ``needed``: the positions of the candidates
    for which further labels could change something.
    """

    horizon: int
    labels: IntArray
    looks: tuple[int, ...]
    steps: Mapping[str, tuple[int, ...]]
    table: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False)
    fresh: FreshScores | None = field(default=None, repr=False)
    needed: tuple[int, ...] = ()


@dataclass(frozen=True)
class TestResult:
    """What the calibration data says: ``log_p`` of each candidate and risk, shape
    (n_candidates, c), and which candidates ``passed``; ``means`` likewise. ``calibration``: the
    opened losses, in which the candidates are ``rows``; for pictures. ``labelling``: how labels
    came, where they came one after another; ``judge``: what a judge did, where there was one."""

    __test__: ClassVar[bool] = False

    log_p: FloatArray
    passed: BoolArray
    means: FloatArray
    n: npt.NDArray[np.int64]
    n_calibration: int
    calibration_digest: str
    calibration: CalibrationLosses | None = field(default=None, repr=False)
    rows: tuple[int, ...] = ()
    labelling: Labelling | None = field(default=None, repr=False)
    judge: JudgeHelp | None = field(default=None, repr=False)

    @property
    def worst_log_p(self) -> FloatArray:
        """Of several risks the largest p-value counts: all limits must be kept at once."""
        return np.asarray(self.log_p.max(axis=1))


def freeze_plan(
    validation: ValidationLosses,
    *,
    estimates: FloatArray | None = None,
    procedure: Procedure = fixed_sequence,
    seed: int = 0,
    entropy: int | None = None,
    judged: Collection[str] = (),
    known_order: Sequence[int] | None = None,
) -> TestPlan:
    """Filter the configurations by dominance, then order them by approximate p-value.

    These are lines 5 to 7 of the paper's Algorithm 2.

    ``estimates``: of the risks, shape (n, c), from validation alone, where there are better ones
    than the means, which are as they are by luck, too. Filter and order go by them. ``procedure``:
    the one that will decide; p-values are made sharp at the levels at which it does. ``entropy``:
    randomness for the shuffle that does not come from the validation losses, where there is some.
    ``judged``: the risks with which a judge will help.
    ``known_order``: the rows in an order that was known before any data; nothing is filtered then,
    and validation may say nothing of the risks.
    """
    check_procedure(procedure)
    seed = check_seed(seed)
    problem = validation.problem
    summaries = {name: losses.summary for name, losses in validation.risks.items()}
    families = {risk.name: family(risk, summaries[risk.name].binary) for risk in problem.risks}
    means = validation.values
    believed = means if estimates is None else _rounded(estimates)
    by_risk = np.column_stack(
        [
            log_p_for_order(risk, families[risk.name], summaries[risk.name])
            if estimates is None
            else _log_p_of(risk, believed[:, i], summaries[risk.name])
            for i, risk in enumerate(problem.risks)
        ]
    )
    worst = by_risk.max(axis=1)
    # A conditional mean of three examples must not push one of three thousand aside: there, a
    # configuration dominates only if its evidence is as good, too.
    conditional = [risk.conditional for risk in problem.risks]
    columns = np.column_stack([believed, validation.free, by_risk[:, conditional]])
    candidates = np.flatnonzero(non_dominated(columns))
    # Smallest p first; where two are equal (both 1, say) the smaller risks decide.
    keys = (*reversed(believed[candidates].T), worst[candidates])
    order = candidates[np.lexsort(keys)]
    if known_order is not None:
        order = np.asarray(known_order, dtype=np.intp)
    digest = validation.digest()
    helped = {name: summaries[name].binary for name in judged}
    families |= dict.fromkeys(helped, JUDGED)
    fresh = entropy_of(validation, families, seed, entropy)
    logger.info(
        "Plan frozen: %d of %d configurations to be tested, seen on %d validation examples",
        len(order),
        validation.n_configs,
        validation.n_examples,
    )
    return TestPlan(
        problem=problem,
        order=tuple(map(int, order)),
        families=families,
        log_p_validation=tuple(map(float, worst[order])),
        risks=tuple(tuple(map(float, row)) for row in means[order]),
        free=tuple(map(float, validation.free[order])),
        n_configs=validation.n_configs,
        n_validation=validation.n_examples,
        validation_digest=digest,
        seed=seed,
        shuffle=shuffle_seed(digest, seed, fresh),
        entropy=fresh,
        aims=tuple(map(float, aims(procedure, len(order), problem.delta))),
        starts={} if not validation.n_examples else known(validation, families, order),
        groups={
            name: summary.names
            for name, summary in summaries.items()
            if isinstance(summary, GroupSummary)
        },
        thresholds={
            name: tuple(map(float, summary.threshold[order]))
            for name, summary in summaries.items()
            if summary.threshold is not None
        },
        estimates=None if estimates is None else tuple(map(tuple, believed.tolist())),
        judged=helped,
        known_order=known_order is not None,
    )


def known(
    validation: ValidationLosses,
    families: Mapping[str, str],
    rows: Sequence[int] | Places,
) -> dict[str, tuple[tuple[Known, ...], ...]]:
    """What validation losses say of some configurations, for each risk that is bet on."""
    found = {}
    for risk in validation.problem.risks:
        if families[risk.name] == "betting":
            parts = starts(risk, validation.risks[risk.name].summary)
            found[risk.name] = tuple(_plain(start.of(np.asarray(rows))) for start in parts)
    return found


def _plain(start: Start) -> tuple[Known, ...]:
    columns = start.mean.tolist(), start.variance.tolist(), start.n.tolist()
    return tuple(zip(*columns, strict=True))


def _log_p_of(risk: Risk, estimates: FloatArray, summary: AnySummary) -> FloatArray:
    """Approximate log p-values by estimates of a risk, shape (n_configs,): they order, no more.

    Of a conditional risk, nothing speaks louder than that all examples that count are without a
    loss: its neighbours make a configuration for which two examples count seem safe, but no test
    would say so.
    """
    found = log_normal(risk.to_unit(estimates), summary.standard_error, risk.unit_limit)
    if not risk.conditional or not isinstance(summary, Summary):
        return found
    loudest = np.where(summary.n > 0, summary.n * np.log1p(-min(risk.unit_limit, 1 - 1e-12)), 0.0)
    return np.maximum(found, loudest)


def _rounded(estimates: FloatArray) -> FloatArray:
    """To nine significant digits: an order must not hang on how another machine rounds."""
    with np.errstate(divide="ignore"):
        digits = 8 - np.floor(np.log10(np.abs(estimates)))
    scale = 10.0 ** np.where(np.isfinite(digits), digits, 0.0)
    rounded: FloatArray = np.round(estimates * scale) / scale
    return rounded


def run_test(
    plan: TestPlan,
    calibration: CalibrationLosses,
    procedure: Procedure,
    rows: Sequence[int] | None = None,
    judge: JudgeScores | None = None,
) -> TestResult:
    """Open the calibration losses and test: lines 8 and 9 of the paper's Algorithm 2.

    ``rows``: where the candidates stand in the calibration losses; as in the plan by default.
    ``judge``: the scores of a judge, with rows as the losses have, where the plan says that one
    helps.
    """
    problem = plan.problem
    check_procedure(procedure)
    chosen = list(plan.order if rows is None else rows)
    for name, groups in plan.groups.items():
        _check_groups(name, groups, calibration)
    columns = [
        log_p(risk, calibration.risks[risk.name], chosen, plan.settings(risk))
        if judge is None or risk.name not in plan.judged
        else log_p_judged(
            risk,
            calibration.risks[risk.name],
            chosen,
            judge,
            aims=plan.aims,
            shuffle=plan.shuffle,
            binary=plan.judged[risk.name],
        )
        for risk in problem.risks
    ]
    by_risk = np.column_stack(columns)
    passed = _decide(procedure, by_risk.max(axis=1), problem.delta)
    logger.info(
        "Calibration opened: %d of %d tested configurations passed on %d examples",
        int(passed.sum()),
        len(chosen),
        calibration.n_examples,
    )
    helped = None if judge is None else help_of_judge(plan.judged, calibration.risks, chosen, judge)
    return TestResult(
        log_p=by_risk,
        passed=passed,
        means=calibration.values[chosen],
        n=calibration.counted[chosen],
        n_calibration=calibration.n_examples,
        calibration_digest=calibration.digest(chosen),
        calibration=calibration,
        rows=tuple(chosen),
        judge=helped,
    )


def _decide(procedure: Procedure, log_p: FloatArray, delta: float) -> BoolArray:
    """What the procedure says, checked: it may be the user's own."""
    returned: Any = procedure(log_p, delta)
    try:
        passed = np.asarray(returned)
    except ValueError:  # rows of different lengths
        passed = np.empty(0, dtype=object)
    if passed.shape != log_p.shape or passed.dtype != bool:
        raise LossError(
            f"A procedure must return one boolean per candidate, shape {log_p.shape}, but it "
            f"returned shape {passed.shape} of type {passed.dtype}. It must keep the chance "
            f"that any false one passes at most at delta, as riskpilot.holm does, or Bonferroni: "
            f"log_p < math.log(delta / len(log_p))."
        )
    return passed


def _check_groups(
    name: str, planned: tuple[GroupName, ...], calibration: CalibrationLosses
) -> None:
    summary = calibration.risks[name].summary
    assert isinstance(summary, GroupSummary)
    odd = sorted(set(planned) ^ set(summary.names))
    if odd:
        where, other = (
            ("validation", "calibration") if odd[0] in planned else ("calibration", "validation")
        )
        raise LossError(
            f"Risk {name!r}: validation and calibration need the same groups, but "
            f"{name_in_words(odd[0])} is in {where} and not in {other}. Bring examples of it, or "
            f"name the groups that count: groups=(...) of the statistic."
        )
