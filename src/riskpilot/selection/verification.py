"""A certificate computed again from the losses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from riskpilot.common import how_many, plain_configs
from riskpilot.common.arrays import FloatArray
from riskpilot.errors import CertificateError, LossError, ProblemError
from riskpilot.guarantee import (
    Certificate,
    Procedure,
    Question,
    TestPlan,
    TestResult,
    Use,
    freeze_plan,
    issue,
    label_by_label,
    labels_again,
    numbers_of,
    run_test,
)
from riskpilot.guarantee.label_progress import check_boundaries
from riskpilot.losses import (
    ANY_FREE,
    CalibrationLosses,
    FreshScores,
    JudgeMapping,
    LossMapping,
    ValidationLosses,
    calibration_losses,
    judged_risks,
    read_fresh,
    read_judge,
)
from riskpilot.problem import Problem
from riskpilot.selection.differing import differences_in_words
from riskpilot.selection.from_counts import COUNTS, counted
from riskpilot.selection.from_table import seen_losses

Configs = Sequence[Mapping[str, Any]]
Smooth = Callable[[Mapping[str, Any], Configs, ValidationLosses], FloatArray | None]
"""A function that computes estimates from a search space as JSON, configurations and validation
losses; None where they cannot be smoothed."""

# How far estimates that another machine computed may lie from those of this one. Measured over
# 1,500 fits whose inputs were moved by the last bit: at most 3e-13 of their size.
_SAME_ESTIMATE = 1e-6


@dataclass(frozen=True)
class Verification:
    """What a second computation found.

    Attributes
    ----------
    differences : tuple of str
        Every difference between the certificate and what was computed, in words.
    trusted : tuple of str
        What the certificate says and nobody could compare here with anything else.
    """

    differences: tuple[str, ...]
    trusted: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the certificate holds."""
        return not self.differences

    def __str__(self) -> str:
        if not self.ok:
            listed = "\n".join(f"- {difference}" for difference in self.differences)
            return f"The certificate does not hold:\n{listed}"
        listed = "".join(f"\nTaken on trust: {what}." for what in self.trusted)
        return f"The certificate holds: the losses lead to the same selection.{listed}"


@dataclass(frozen=True)
class Brought:
    """What a verifier brings along to compute a certificate again.

    ``validation``, ``calibration``: losses as `select_from_losses` takes them; calibration may hold
    the candidates alone, in testing order. ``configs``: what the rows stand for; ``space``: the
    search space as JSON; ``use`` and ``trials``: what the ledger says; ``table``: which columns a
    table was read from. None where it is not at hand, and then it is taken from the certificate.
    ``judge``: the scores of a judge, with rows as the calibration losses have. ``evaluated``: how
    many validation examples were evaluated of the rows that a race ended.
    """

    validation: LossMapping
    calibration: LossMapping
    configs: Configs | None = None
    space: Mapping[str, Any] | None = None
    use: Use | None = None
    trials: Sequence[int] | None = None
    judge: JudgeMapping | None = None
    table: Mapping[str, Any] | None = None
    evaluated: Mapping[int, int] | None = None


def compare(
    certificate: Certificate, brought: Brought, procedure: Procedure, smooth: Smooth
) -> list[str]:
    """Compute a certificate again, whole, and describe every field that differs."""
    asked = Problem.from_dict(certificate.problem)
    spend = certificate.use["spend"]
    problem = asked.spending(spend)
    brought = _as_asked(certificate, problem, brought)
    known_order = [candidate["row"] for candidate in certificate.candidates]
    # The plan of labels that arrive was frozen before anything was known of their types.
    sealed = brought.calibration if certificate.sequential is None else {}
    known = certificate.known_order
    seen = seen_losses(problem, brought.validation, sealed, known_order=known, largest=ANY_FREE)
    if known and (not known_order or max(known_order) >= seen.n_configs):
        return [f"the order names rows that are not among the {seen.n_configs:,} of the losses"]
    if seen.n_configs != certificate.n_configs:
        return [f"the losses have {seen.n_configs} rows, the certificate {certificate.n_configs}"]
    configs = _configs(certificate, brought)
    if configs is not None and len(configs) != seen.n_configs:
        return [f"the number of losses' rows is {seen.n_configs:,}, of configs {len(configs):,}"]
    space = certificate.space if brought.space is None else dict(brought.space)
    estimates, differences = _estimates(certificate, smooth, space, configs, seen)
    trials = _trials(certificate, brought)
    question = Question(
        problem=asked,
        plan=freeze_plan(
            seen,
            estimates=estimates,
            procedure=procedure,
            seed=certificate.seeds["test"] or 0,
            entropy=certificate.seeds["entropy"],
            judged=judged_risks(problem, brought.judge),
            known_order=known_order if certificate.known_order else None,
        ),
        procedure=procedure,
        configs=configs,
        spend=spend,
        space=None if certificate.space is None else space,
        trials=trials,
        search_seed=None if trials is None else certificate.seeds["search"],
        table=certificate.table if brought.table is None else brought.table,
        evaluated=certificate.evaluated if brought.evaluated is None else brought.evaluated,
    )
    if certificate.sequential is not None:
        found = _of_labels(certificate, brought, question)
        if isinstance(found, str):
            return [*differences, found]
        return [*differences, *differences_in_words(found, certificate, seen)]
    opened = calibration_losses(problem, brought.calibration, ANY_FREE)
    orders = _orders(question.plan, opened, certificate)
    if not orders:
        mismatch = (
            f"calibration has {how_many(opened.n_configs, 'configuration')}, but {seen.n_configs} "
            f"were considered and {len(question.plan.order)} tested"
        )
        return [*differences, mismatch]
    scores = read_judge(problem, brought.judge, opened.n_configs, opened.n_examples)
    for rows in orders:
        result = run_test(question.plan, opened, procedure, rows, scores)
        if _same_data(result, certificate):
            break
    found = issue(question, result, _use(certificate, brought))
    return [*differences, *differences_in_words(found, certificate, seen)]


def _of_labels(certificate: Certificate, brought: Brought, question: Question) -> Certificate | str:
    """Compute the certificate of labels that arrived one after another; or say why it cannot be.

    The losses of a candidate count up to the label at which it was decided.
    """
    assert certificate.sequential is not None
    plan = question.plan
    labels, horizon = certificate.sequential["labels"], certificate.sequential["horizon"]
    if len(labels) != len(plan.order):
        return "the numbers of labels are not those of the candidates"
    shape = np.shape(brought.calibration.get(plan.problem.names[0], ()))
    n_rows = shape[0] if shape else 0
    places = {plan.n_configs: plan.order, len(plan.order): range(len(plan.order))}
    if n_rows not in places:
        return (
            f"calibration has {how_many(n_rows, 'configuration')}, but {plan.n_configs} were "
            f"considered and {len(plan.order)} tested"
        )
    if len(shape) == 2 and shape[1] < max(labels):  # before each look is read
        return (
            f"the certificate says that {how_many(max(labels), 'label was', 'labels were')} used, "
            f"but calibration has {shape[1]:,}"
        )
    looks = numbers_of(certificate.sequential["looks"])
    fresh, judge = _scores_of_labels(plan.problem, brought.judge, n_rows)
    orders = [places[n_rows]] if len(places) > 1 else [plan.order, range(len(plan.order))]
    refused: LossError | None = None
    found: tuple[Question, TestResult] | None = None
    for rows in orders:  # where every configuration is a candidate, either order will do
        own = None if fresh is None else fresh.of(rows)
        asked = replace(question, plan=label_by_label(plan, horizon, own))
        try:
            check_boundaries(asked.plan, horizon)
        except ProblemError as error:
            return f"no labels can have begun with the horizon of the certificate. {error}"
        try:
            result = labels_again(
                asked.plan, brought.calibration, labels, looks, rows, own, judge
            ).result()
        except LossError as error:  # in the wrong order, a candidate may seem to lack losses
            refused = error
            continue
        found = asked, result
        if _same_data(result, certificate):
            break
    if found is None:
        assert refused is not None
        raise refused
    return issue(*found, _use(certificate, brought))


def _same_data(result: TestResult, certificate: Certificate) -> bool:
    """Tell whether losses, and a judge's scores, are those of a certificate, in its order.

    Candidates may have the same losses, so that only the scores tell one order from another.
    """
    said = None if certificate.judge is None else certificate.judge["digest"]
    scores = None if result.judge is None else result.judge.digest
    return result.calibration_digest == certificate.calibration_digest and scores == said


def _scores_of_labels(
    problem: Problem, judge: JudgeMapping | None, n_rows: int
) -> tuple[FreshScores | None, JudgeMapping | None]:
    """Part a judge's scores into those of fresh examples and those of labels that arrived."""
    if judge is None:
        return None, None
    fresh = read_fresh(problem, {"unlabelled": judge["unlabelled"]}, n_rows)
    return fresh, {"labelled": judge["labelled"]}


def _as_asked(certificate: Certificate, problem: Problem, brought: Brought) -> Brought:
    """Take pairs of sums and numbers as counts where the question was put to counts."""
    if certificate.table is None or dict(certificate.table) != dict(COUNTS):
        return brought
    return replace(
        brought,
        validation=counted(problem, brought.validation, "validation"),
        calibration=counted(problem, brought.calibration, "calibration"),
    )


def _configs(certificate: Certificate, brought: Brought) -> tuple[dict[str, Any], ...] | None:
    """Take what the rows stand for from who brought the losses, or else from the certificate."""
    if brought.configs is None:
        return None if certificate.configs is None else tuple(certificate.configs)
    given = plain_configs(brought.configs, LossError)
    by_index = all(config == {"index": row} for row, config in enumerate(given))
    return None if by_index and certificate.configs is None else given


def _trials(certificate: Certificate, brought: Brought) -> tuple[int, ...] | None:
    """Find the numbers of the trials, as they were brought or as the certificate says."""
    if brought.trials is not None:
        return tuple(brought.trials)
    return None if certificate.trials is None else tuple(numbers_of(certificate.trials))


def _use(certificate: Certificate, brought: Brought) -> Use:
    """Say which use of the data it is, by the ledger where there is one."""
    if brought.use is not None:
        return brought.use
    created, versions = certificate.created, certificate.versions
    use = certificate.use
    if certificate.trials is None and use["ledger"] is None:
        return Use(created=created, versions=versions)
    return Use(use["number"], use["ledger"], tuple(use["elsewhere"]), created, versions)


def _estimates(
    certificate: Certificate,
    smooth: Smooth,
    space: Mapping[str, Any] | None,
    configs: Configs | None,
    seen: ValidationLosses,
) -> tuple[FloatArray | None, list[str]]:
    """Return the estimates that the order went by, if losses and configurations lead to them.

    Where they do, the certificate's own digits count, so that its digests can be compared.
    """
    if certificate.estimates is None and certificate.space is None:
        return None, []
    if certificate.estimates is None or space is None or configs is None:
        raise CertificateError(
            "A certificate has estimates where it has a search space and named configurations, "
            "but one of them is missing. Take an untouched copy."
        )
    shapes = {len(row) for row in certificate.estimates}
    expected = (seen.n_configs, len(seen.problem.risks))
    if len(certificate.estimates) != expected[0] or shapes != {expected[1]}:
        raise CertificateError(
            f"The certificate has estimates of shape ({len(certificate.estimates)}, "
            f"{', '.join(map(str, shapes))}), but there are {expected[0]} configurations and "
            f"{expected[1]} risks. Bring the validation losses of every configuration that was "
            f"considered."
        )
    found = smooth(space, configs, seen)
    stored = np.array(certificate.estimates)
    if found is None:
        return None, ["the risks of these configurations cannot be smoothed over a search space"]
    if np.allclose(found, stored, rtol=_SAME_ESTIMATE, atol=1e-12):
        return stored, []
    worst = np.unravel_index(np.argmax(np.abs(found - stored)), stored.shape)
    return found, [
        f"the estimates are not those that validation losses and configurations lead to: for "
        f"configuration {int(worst[0])} {found[worst]:.6g}, the certificate has {stored[worst]:.6g}"
    ]


def _orders(
    plan: TestPlan, opened: CalibrationLosses, certificate: Certificate
) -> list[Sequence[int]]:
    """Find the candidates' rows in calibration losses, which may hold the candidates alone.

    Where every configuration is a candidate the losses may be in either order; none where they have
    neither as many rows as there are configurations nor as there are candidates.
    """
    candidates = range(len(plan.order))
    if opened.n_configs == plan.n_configs == len(candidates):
        either: tuple[Sequence[int], ...] = (candidates, plan.order)
        fitting = [r for r in either if opened.digest(r) == certificate.calibration_digest]
        return fitting or [plan.order]
    if opened.n_configs == plan.n_configs:
        return [plan.order]
    return [candidates] if opened.n_configs == len(candidates) else []
