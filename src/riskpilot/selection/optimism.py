"""Whether calibration data shows that validation data was too optimistic, once both are open."""

import numpy as np

from riskpilot.guarantee import TestPlan, TestResult
from riskpilot.losses import ValidationLosses
from riskpilot.problem import Risk

# From so many standard errors on it is said: chance alone reaches them in 1 selection of 160.
_TOLD = 2.5


def optimism_in_words(
    plan: TestPlan, result: TestResult, validation: ValidationLosses, before: str = ""
) -> str:
    """Say which risks were lower on validation than chance explains, and what to do about it.

    The candidates share their examples, so that the middle one speaks for all of them; of two in
    the middle, the one that is less far off. Returns an empty text where nothing is to be said.
    """
    if result.calibration is None or validation.n_examples == 0:
        return ""
    rows, held_out = list(plan.order), list(result.rows)
    hoped, found = validation.values[rows], result.calibration.values[held_out]
    errors = np.hypot(
        validation.standard_errors[rows], result.calibration.standard_errors[held_out]
    )
    verdict = "The promise stands, but " if result.passed.any() else "Nothing is certified, and "
    lines = []
    for i, risk in enumerate(plan.problem.risks):
        known = np.isfinite(found[:, i] - hoped[:, i]) & (errors[:, i] > 0)
        if not known.any():
            continue
        missed = (found[known, i] - hoped[known, i]) / errors[known, i]
        middle = int(np.argsort(missed)[(len(missed) - 1) // 2])
        if missed[middle] < _TOLD:
            continue
        low, high = hoped[known, i][middle], found[known, i][middle]
        there, here = _told_apart(low, high)
        lines.append(
            f"Validation was too optimistic about {risk.title}: {there} there, {here} on "
            f"calibration data for {_middle_of(len(missed))}, {missed[middle]:.1f} standard "
            f"errors apart. {verdict}candidates were picked by numbers that were "
            f"too good: validate on examples that models were not tuned or stopped on and that "
            f"are as recent{_advice(risk, low, high)}."
        )
    return before + "\n".join(lines) if lines else ""


def _middle_of(count: int) -> str:
    """Name the candidate that stands for all of so many.

    >>> [_middle_of(count) for count in (1, 2, 3)]
    ['the only candidate', 'the nearer of the two candidates', 'the candidate in the middle']
    """
    if count % 2:
        return "the candidate in the middle" if count > 1 else "the only candidate"
    return f"the nearer of the two candidates{' in the middle' if count > 2 else ''}"


def _told_apart(low: float, high: float) -> tuple[str, str]:
    """Write two numbers with as many digits as it takes to tell them apart, four or more.

    >>> _told_apart(0.1, 0.123456), _told_apart(100.26, 100.31)
    (('0.1', '0.1235'), ('100.26', '100.31'))
    """
    texts = [(f"{low:.{digits}g}", f"{high:.{digits}g}") for digits in range(4, 18)]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[-1])


def _advice(risk: Risk, low: float, high: float) -> str:
    """Suggest a doubt that expects what was seen: twice the share by which validation was low.

    A search takes anything up to the doubt for equally likely. Of losses that may be negative no
    share is known that would do.
    """
    if risk.low < 0:
        return ""
    size = high - risk.low
    share = (high - low) / size if size else 0.5
    doubt = round(float(np.clip(2 * share, 0.1, 0.9)), 2)
    return f", or tell a search: GuidedSampler(problem, trust=0, doubt={doubt})"
