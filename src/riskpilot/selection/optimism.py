"""Whether calibration data shows that validation data was too optimistic, once both are open."""

import math
from collections.abc import Mapping

import numpy as np

from riskpilot.common import how_many
from riskpilot.common.arrays import FloatArray
from riskpilot.guarantee import DOUBT, TRUST, TestPlan, TestResult
from riskpilot.losses import ValidationLosses
from riskpilot.problem import Risk

# From so many standard errors on it is said: chance alone reaches them in 1 selection of 160.
_TOLD = 2.5
# What is foretold of candidates errs by half of its variance in the same way for all of them, who
# have the same neighbours and the same first examples. The rest is each one's own, and hardly moves
# the one in the middle of many: the variance of a median is pi / 2 that of a mean.
_IN_COMMON = 0.5
_OF_MEDIAN = math.pi / 2


def optimism_in_words(
    plan: TestPlan,
    result: TestResult,
    validation: ValidationLosses,
    ended: Mapping[int, int],
    before: str = "",
    foretold: Mapping[int, tuple[Mapping[str, float], Mapping[str, float]]] | None = None,
) -> str:
    """Say which risks were lower on validation than chance explains, and what to do about it.

    All candidates that were tested are asked: most of them have to show it, and what is advised is
    what most of them show. One alone may be far off by chance, and where its risk is small, a few
    losses are a large share of it. Returns an empty text where nothing is to be said. ``ended``:
    of the rows whose evaluation a race ended, how many validation examples were evaluated. It may
    be another reason. ``foretold``: what is foretold of the risks of these rows, and its standard
    errors; where that is not known, only the examples count that were evaluated.
    """
    if result.calibration is None or validation.n_examples == 0 or not plan.order:
        return ""
    rows, held_out = list(plan.order), list(result.rows)
    hoped, errors = _hoped(validation, rows, ended, foretold or {})
    found = result.calibration.values[held_out]
    errors = np.hypot(errors, result.calibration.standard_errors[held_out])
    verdict = "The promise stands, but " if result.passed.any() else "Nothing is certified, and "
    lines = []
    for i, risk in enumerate(plan.problem.risks):
        low, high = hoped[:, i], found[:, i]
        # A candidate whose risk is not known on both sides shows no optimism.
        known = np.isfinite(high - low) & (errors[:, i] > 0)
        missed = np.divide(high - low, errors[:, i], out=np.zeros(len(low)), where=known)
        told = missed[_middle(missed)]
        if told < _TOLD:
            continue
        # A share is one of what lies above the smallest loss. The middle one is positive, because
        # most differences are. Losses that may be negative have no such share.
        size = high - risk.low
        shares = np.divide(high - low, size, out=np.zeros(len(low)), where=known & (size > 0))
        middle = _middle(missed if risk.low < 0 else shares)
        there, here = _told_apart(low[middle], high[middle])
        lines.append(
            f"Validation was too optimistic about {risk.title}: {there} there, {here} on "
            f"calibration data for {_middle_of(len(missed), told)} standard "
            f"errors apart. {verdict}candidates were picked by numbers that were "
            f"too good: validate on examples that models were not tuned or stopped on and that "
            f"are as recent{_advice(risk, shares[middle])}."
        )
    if not lines:
        return ""
    return before + "\n".join(lines) + _other_reason(len(plan.order), len({*plan.order} & {*ended}))


def _hoped(
    validation: ValidationLosses,
    rows: list[int],
    ended: Mapping[int, int],
    foretold: Mapping[int, tuple[Mapping[str, float], Mapping[str, float]]],
) -> tuple[FloatArray, FloatArray]:
    """Return the validation risks of candidates and their standard errors, shape (n, c) each.

    What is foretold takes the place of the losses that were filled in with caution, as caution
    would hide an optimism. The arguments are those of `optimism_in_words`.
    """
    k, names = validation.n_examples, validation.problem.names
    values, errors = validation.values[rows], validation.standard_errors[rows]
    n_foretold = max(len({*rows} & {*foretold}), 1)
    counts = _IN_COMMON + (1 - _IN_COMMON) * min(_OF_MEDIAN / n_foretold, 1.0)
    for at, row in enumerate(rows):
        if row in foretold:
            risks, misses = ([part[name] for name in names] for part in foretold[row])
            values[at] = risks
            errors[at] = np.hypot(errors[at], math.sqrt(counts) * np.array(misses))
        else:
            errors[at] *= math.sqrt(k / ended.get(row, k))
    return values, errors


def _other_reason(n_tested: int, n_ended: int) -> str:
    """Say after a space that a race may be the reason, where it ended evaluations of candidates."""
    if not n_ended:
        return ""
    were = "was" if n_ended == 1 else "were"
    return (
        f" Another reason is possible: a race foretold validation losses of {n_ended:,} of "
        f"{how_many(n_tested, 'tested candidate')}, which {were} not evaluated on all examples. It "
        f"foretells rightly only from examples in a random order: shuffle them once with a fixed "
        f"seed, or evaluate in full."
    )


def _middle(values: FloatArray) -> int:
    """Find the value in the middle, (n,), of two there the smaller one: most are at least as large.

    >>> _middle(np.array([3.0, 1.0, 2.0, 4.0])), _middle(np.array([5.0]))
    (2, 0)
    """
    return int(np.argsort(values)[(len(values) - 1) // 2])


def _middle_of(count: int, told: float) -> str:
    """Name the candidate in the middle of so many, and how far most of them are off.

    >>> _middle_of(1, 2.58), _middle_of(2, 2.58)
    ('the only candidate, 2.6', 'the nearer of the two candidates, and both are at least 2.5')
    >>> _middle_of(3, 4.01)
    'the candidate in the middle, and most are at least 4.0'
    """
    if count == 1:
        return f"the only candidate, {told:.1f}"
    least = f"at least {math.floor(10 * told) / 10:.1f}"
    if count == 2:
        return f"the nearer of the two candidates, and both are {least}"
    where = "candidate" if count % 2 else "nearer of the two candidates"
    return f"the {where} in the middle, and most are {least}"


def _told_apart(low: float, high: float) -> tuple[str, str]:
    """Write two numbers with as many digits as it takes to tell them apart, four or more.

    >>> _told_apart(0.1, 0.123456), _told_apart(100.26, 100.31)
    (('0.1', '0.1235'), ('100.26', '100.31'))
    """
    texts = [(f"{low:.{digits}g}", f"{high:.{digits}g}") for digits in range(4, 18)]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[-1])


def _advice(risk: Risk, share: float) -> str:
    """Suggest a doubt that expects what was seen: twice the share by which validation was low.

    A search takes anything up to the doubt for equally likely. Of losses that may be negative no
    share is known that would do, and by default a search expects a small share anyway.
    """
    if risk.low < 0 or share <= (1 - TRUST) * DOUBT / 2:
        return ""
    doubt = round(min(2 * float(share), 0.9), 2)
    return f", or tell a search: GuidedSampler(problem, trust=0, doubt={doubt})"
