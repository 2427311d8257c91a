"""The verdict in plain words, and what would have decided it otherwise."""

import math
from collections.abc import Sequence

from riskpilot.common import exact, how_many, on_its_side
from riskpilot.guarantee import (
    MOST_EXAMPLES,
    Certificate,
    Labelling,
    TestPlan,
    TestResult,
    fewest_examples,
    p_in_words,
    samples_to_pass,
    steering_family,
)
from riskpilot.losses import LARGEST_FREE
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
    assert risk.limit is not None
    n, smallest = examples_behind(plan, result, i, at)
    value = "no value, as no calibration example counts for it"
    if result.n[at, i] > 0:
        mean = on_its_side(float(result.means[at, i]), risk.limit)
        value = f"{mean} on {how_many(n, 'calibration example')}{smallest}"
    p = p_in_words(result.log_p[at, i], plan.aims[at])
    return f"  {risk.title}: {value}, limit {exact(risk.limit)}, p = {p}"


def examples_behind(plan: TestPlan, result: TestResult, i: int, at: int) -> tuple[int, str]:
    """Count the calibration examples behind risk ``i``, and name the group that has the fewest."""
    groups = _sizes(plan, result, i, at)
    if groups is None:
        return int(result.n[at, i]), ""
    name, fewest = min(groups.items(), key=lambda group: group[1])
    return sum(groups.values()), f", {fewest:,} of them in the smallest group, {name}"


def _sizes(plan: TestPlan, result: TestResult, i: int, at: int) -> dict[str, int] | None:
    """Count the examples of each group of a risk; None where it has no groups."""
    if result.calibration is None:
        return None
    summary = result.calibration.risks[plan.problem.risks[i].name].summary
    if not isinstance(summary, GroupSummary):
        return None
    return {
        name_in_words(name): int(part.n[result.rows[at]])
        for name, part in zip(summary.names, summary.sums, strict=True)
    }


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
        return "without examples nothing can be shown"
    if _counts_parts(plan, result, i, at):
        return (
            f"the test was settled for 0/1 losses, as validation data or the risk's name said, and "
            f"these are not: each above 0 counts as a whole one. Ask with "
            f'Risk({risk.name!r}, ..., p_value="betting")'
        )
    unit = risk.to_unit(mean)
    if unit >= risk.unit_limit:
        return "more examples would not help at this value: it is not below the limit"
    family, alone = plan.families[risk.name], ""
    if risk.name in plan.judged:
        family, alone = risk.statistic.auto(plan.judged[risk.name]), " without a judge"
    family = steering_family(risk, family)
    needed = samples_to_pass(
        family, risk.unit_limit, unit, plan.aims[at], _deviation(plan, result, i, at)
    )
    each = " in each group" if risk.needs_groups else ""
    if needed <= n:  # what passes hangs on more than the mean
        return f"it was close: about every second draw with this value would have passed{alone}"
    if needed > MOST_EXAMPLES:
        return (
            f"no number of examples that anybody has would do{alone}: with this value it takes "
            f"more than {MOST_EXAMPLES:,}{each}"
        )
    return f"about {how_many(needed, 'example')}{each} with this value would have passed{alone}"


def _counts_parts(plan: TestPlan, result: TestResult, i: int, at: int) -> bool:
    """Tell whether the exact test of 0/1 losses was settled for losses that are others."""
    name = plan.problem.risks[i].name
    if result.calibration is None or plan.families[name] != "binomial":
        return False
    summary, row = result.calibration.risks[name].summary, result.rows[at]
    parts = summary.sums if isinstance(summary, GroupSummary) else (summary,)
    return any(not math.isclose(part.total[row], part.above_zero[row]) for part in parts)


def _deviation(plan: TestPlan, result: TestResult, i: int, at: int) -> float | None:
    """Find the standard deviation of the losses behind risk ``i``, on the unit scale."""
    if result.calibration is None:
        return None
    summary = result.calibration.risks[plan.problem.risks[i].name].summary
    return float(summary.standard_deviation[result.rows[at]])


def _labels_left(labelling: Labelling, at: int) -> str:
    """Say whether further labels can still decide about a candidate."""
    used, most = int(labelling.labels[at]), labelling.horizon
    if used >= most:
        return f"all labels of the horizon, {most:,}, are used"
    return f"not decided by {used:,} of at most {how_many(most, 'label')}"


def _too_few(plan: TestPlan, result: TestResult, i: int, at: int) -> str | None:
    """Say which group is too small for anything to be shown about it; None where none is."""
    risk, groups = plan.problem.risks[i], _sizes(plan, result, i, at)
    if groups is None:
        return None
    name, fewest = min(groups.items(), key=lambda group: group[1])
    needs = fewest_examples(risk, plan.families[risk.name], plan.aims[at])
    if fewest >= needs:
        return None
    return (
        f"group {name} cannot be certified with {how_many(fewest, 'example')}; it needs {needs:,}"
    )
