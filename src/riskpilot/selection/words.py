"""The verdict in plain words."""

import math
from collections.abc import Sequence

from riskpilot.common import exact, how_many, on_its_side
from riskpilot.guarantee import Certificate, TestPlan, TestResult, p_in_words
from riskpilot.losses import LARGEST_FREE
from riskpilot.selection.needed import examples_behind, what_would_decide


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
    return (
        f"{before}Left out: {how_many(len(numbers), 'finished trial')} ({some}) without losses, "
        f"told to Optuna directly and not through riskpilot.objective, or with a free objective "
        f"beyond {LARGEST_FREE:g}."
    )


def foretold_in_words(certificate: Certificate, before: str = "") -> str:
    """Say that races ended evaluations when enough was known; an empty text where none did."""
    if not certificate.evaluated:
        return ""
    n, known = len(certificate.evaluated), certificate.n_configs
    of = how_many(known, "configuration that was", "configurations that were")
    chosen = _of_the_chosen(certificate)
    return (
        f"{before}Of {of} considered, races ended the evaluation of {n:,} when enough was known of "
        f"validation: the losses of the other validation examples are foretold from neighbouring "
        f"configurations.{chosen} "
        f"Calibration losses are all as they were evaluated."
    )


def _of_the_chosen(certificate: Certificate) -> str:
    """Say after a space of how many examples the chosen one was evaluated, if it was ended."""
    if certificate.chosen is None:
        return ""
    n = certificate.evaluated.get(certificate.candidates[certificate.chosen]["row"])
    if n is None:
        return " The chosen one was evaluated on all of them."
    of = how_many(certificate.n_validation, "validation example")
    return f" The chosen one was evaluated on {n:,} of {of}."


def first_examples(certificate: Certificate) -> str:
    """Write how many examples the rows have that were ended, out of all.

    It stands in "after their first 250 to 400 of 1,000 validation examples".
    """
    numbers = certificate.evaluated.values()
    least, most = min(numbers), max(numbers)
    some = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f"{some} of {how_many(certificate.n_validation, 'validation example')}"


def ended_rows(certificate: Certificate) -> str:
    """Write how many of the configurations were ended: "7 of 14 configurations"."""
    of = how_many(certificate.n_configs, "configuration")
    return f"{len(certificate.evaluated):,} of {of}"


def _certified(certificate: Certificate, plan: TestPlan, result: TestResult, chosen: int) -> str:
    """Say what was chosen and promised, then the numbers of every risk."""
    risks = range(len(plan.problem.risks))
    return "\n".join(
        [
            f"Chosen: {certificate.config}",
            certificate.promise,
            *(_risk_line(plan, result, i, chosen) for i in risks),
            f"  {plan.problem.minimize}: {plan.free[chosen]:.4g} on validation",
            f"{int(result.passed.sum())} of {how_many(len(plan.order), 'candidate')} passed; "
            f"{how_many(plan.n_configs, 'configuration was', 'configurations were')} considered.",
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
            line += f"; {what_would_decide(plan, result, i, closest)}"
        lines.append(line)
    if result.worst_log_p[closest] < level:
        lines.append(
            "It stands behind a candidate that failed, so the order of the test did not reach it."
        )
    return "\n".join(lines)


def _risk_line(plan: TestPlan, result: TestResult, i: int, at: int) -> str:
    """Write the numbers of risk ``i`` for the candidate at position ``at``."""
    risk = plan.problem.risks[i]
    assert risk.limit is not None
    n, smallest = examples_behind(plan, result, i, at)
    value = "no value, as no calibration example counts for it"
    if result.n[at, i] > 0:
        mean = on_its_side(float(result.means[at, i]), risk.limit)
        value = f"{mean} on {how_many(n, 'calibration example')}{smallest}"
    p = p_in_words(result.log_p[at, i], plan.aims[at])
    return f"  {risk.title}: {value}, limit {exact(risk.limit)}, p = {p}"
