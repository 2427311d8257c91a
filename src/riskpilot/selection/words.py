"""The verdict in plain words, and what would have decided it otherwise."""

import math
from collections.abc import Sequence

import numpy as np

from riskpilot.guarantee import (
    Certificate,
    Labelling,
    TestPlan,
    TestResult,
    fewest_examples,
    p_in_words,
    samples_to_pass,
    steering_family,
)
from riskpilot.statistics import GroupSummary, name_in_words


def verdict_in_words(
    certificate: Certificate, plan: TestPlan, result: TestResult, closest: int
) -> str:
    """Say what was chosen, or why nothing could be; ``closest``: the candidate to speak of."""
    if certificate.chosen is None:
        return _nothing_certified(certificate, plan, result, closest)
    return _certified(certificate, plan, result, certificate.chosen)


def left_out_in_words(numbers: Sequence[int], before: str = "") -> str:
    """Say how many finished trials were left out, and why; an empty text where none was."""
    if not numbers:
        return ""
    some = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    trials = "trial" if len(numbers) == 1 else "trials"
    return (
        f"{before}Left out: {len(numbers)} finished {trials} ({some}) without losses, told to "
        f"Optuna directly and not through riskpilot.objective."
    )


def _certified(certificate: Certificate, plan: TestPlan, result: TestResult, chosen: int) -> str:
    """Say what was chosen and promised, then the numbers of every risk."""
    risks = range(len(plan.problem.risks))
    return "\n".join(
        [
            f"Chosen: {certificate.config}",
            certificate.promise,
            *(_risk_line(plan, result, i, chosen) for i in risks),
            f"  {plan.problem.minimize}: {plan.free[chosen]:.4g} on validation",
            f"{int(result.passed.sum())} of {len(plan.order)} candidates passed; "
            f"{plan.n_configs} configurations were considered.",
        ]
    )


def _nothing_certified(
    certificate: Certificate, plan: TestPlan, result: TestResult, closest: int
) -> str:
    """Say which candidate came closest, and what each of its risks lacks."""
    level = math.log(plan.aims[closest])
    lines = [
        "Nothing could be certified: no configuration is shown to keep every limit.",
        f"Closest: {dict(certificate.candidates[closest]['config'])}",
    ]
    for i in range(len(plan.problem.risks)):
        line = _risk_line(plan, result, i, closest)
        if result.log_p[closest, i] >= level:
            line += f"; {_what_would_decide(plan, result, i, closest)}"
        lines.append(line)
    if result.worst_log_p[closest] < level:
        lines.append(
            "It stands behind a candidate that failed, so the order of the test did not reach it."
        )
    return "\n".join(lines)


def _risk_line(plan: TestPlan, result: TestResult, i: int, at: int) -> str:
    """Write the numbers of risk ``i`` for the candidate at position ``at``."""
    risk = plan.problem.risks[i]
    return (
        f"  {risk.title}: {result.means[at, i]:.4g} on {result.n[at, i]:,} calibration examples, "
        f"limit {risk.limit:g}, p = {p_in_words(result.log_p[at, i])}"
    )


def _what_would_decide(plan: TestPlan, result: TestResult, i: int, at: int) -> str:
    """Say what it would have taken for risk ``i`` of a candidate to pass."""
    risk = plan.problem.risks[i]
    mean, n = float(result.means[at, i]), int(result.n[at, i])
    if result.labelling is not None:
        return _labels_left(result.labelling, at)
    few = _too_few(plan, result, i, at)
    if few is not None:
        return few
    if n == 0:
        return "no calibration example counts for it"
    unit = risk.to_unit(mean)
    if unit >= risk.unit_limit:
        return "more examples would not help at this value: it is not below the limit"
    family, std = plan.families[risk.name], None
    alone = ""
    if risk.name in plan.judged:
        family, alone = risk.statistic.auto(plan.judged[risk.name]), " without a judge"
    if steering_family(risk, family) == "normal" and result.calibration is not None:
        family = "normal"
        deviations = result.calibration.risks[risk.name].summary.standard_deviation
        std = float(deviations[result.rows[at]])
    needed = samples_to_pass(family, risk.unit_limit, unit, plan.aims[at], std)
    each = " in each group" if risk.needs_groups else ""
    return f"about {needed:,} examples{each} with this value would have passed{alone}"


def _labels_left(labelling: Labelling, at: int) -> str:
    """Say whether further labels can still decide about a candidate."""
    used, most = int(labelling.labels[at]), labelling.horizon
    if used >= most:
        return f"all {most:,} labels of the horizon are used"
    return f"not decided by {used:,} of at most {most:,} labels"


def _too_few(plan: TestPlan, result: TestResult, i: int, at: int) -> str | None:
    """Say which group is too small for anything to be shown about it; None where none is."""
    risk = plan.problem.risks[i]
    if result.calibration is None:
        return None
    summary = result.calibration.risks[risk.name].summary
    if not isinstance(summary, GroupSummary):
        return None
    sizes = [int(part.n[result.rows[at]]) for part in summary.sums]
    smallest = int(np.argmin(sizes))
    needs = fewest_examples(risk, plan.families[risk.name], plan.aims[at])
    if sizes[smallest] >= needs:
        return None
    return (
        f"group {name_in_words(summary.names[smallest])} cannot be certified with "
        f"{sizes[smallest]:,} examples; it needs {needs:,}"
    )
