"""With what chance a test passes at a true risk, and how many samples a wanted chance takes."""

import math
from collections.abc import Callable

from scipy.special import betaincc

from riskpilot.common import exact
from riskpilot.errors import ProblemError
from riskpilot.guarantee import risk_tests
from riskpilot.problem import Risk
from riskpilot.statistics import family_named, largest_passing_mean

# Plans reach to here: nobody has more examples, and whole numbers are still exact as floats.
MOST_EXAMPLES = 10**12
# Where the number of losses has a larger variance than this, exact tests are foretold by the normal
# distribution: it differs by a few examples, and does not sum a million terms.
_LARGE_VARIANCE = 1e6


def planning_family(risk: Risk, test: str, deviation: float | None) -> tuple[str, float | None]:
    """Choose the family that foretells what passes, and the deviation on the unit scale.

    Where the statistic is no mean of losses this is the normal approximation, and a deviation that
    is not known is the largest that 0/1 losses have.
    """
    family = risk_tests.steering_family(risk, test)
    largest = risk.statistic.widest_deviation
    if deviation is None:
        return family, risk.statistic.largest_deviation if family == "normal" else None
    unit = deviation / risk.width
    if not 0 < unit <= largest * (1 + 1e-9):
        raise ProblemError(
            f"Risk {risk.name!r}: a standard deviation must be above 0 and at most "
            f"{largest * risk.width:.6g}, the largest that losses between "
            f"{risk.low:g} and {risk.high:g} can lead to, but it is {deviation:g}. Give the "
            f"deviation of the losses in their units."
        )
    return family, unit


def passing_probability(
    family: str, limit: float, risk: float, n: int, delta: float, std: float | None = None
) -> float:
    """Compute the probability that n losses of mean ``risk`` pass; all on the unit scale.

    It is exact for 0/1 losses, and a normal approximation where a standard deviation ``std`` is
    given.
    """
    largest = largest_mean(family, limit, n, delta, std)
    if largest is None:
        return 0.0
    if std is None:
        most = math.floor(largest * n + 1e-9)  # the largest sum of 0/1 losses that passes
        return 1.0 if most >= n else float(betaincc(most + 1, n - most, risk))
    z = (largest - risk) * math.sqrt(n) / max(std, 1e-12)
    return 0.5 * math.erfc(-z / math.sqrt(2))


def samples_for_power(
    family: str,
    limit: float,
    risk: float,
    delta: float,
    power: float = 0.9,
    std: float | None = None,
) -> int | None:
    """Find the number of examples with which a true ``risk`` passes with probability ``power``.

    It is None where `MOST_EXAMPLES` are not enough.
    """
    # With 0/1 losses power rises and falls in small steps as n grows, so that numbers a little
    # smaller than the one that bisection finds are tried, too.
    n = _first(lambda m: passing_probability(family, limit, risk, m, delta, std) >= power)
    if n > MOST_EXAMPLES:
        return None
    start = max(1, int(0.97 * n))
    for m in range(start, n, max(1, (n - start) // 200)):
        if passing_probability(family, limit, risk, m, delta, std) >= power:
            return m
    return n


def samples_to_pass(
    family: str, limit: float, mean: float, delta: float, std: float | None = None
) -> int:
    """Find the number of examples with which this empirical ``mean`` (unit scale) passes."""

    def passes(n: int) -> bool:
        largest = largest_mean(family, limit, n, delta, std)
        return largest is not None and largest >= mean

    return _first(passes)


def largest_mean(
    family: str, limit: float, n: int, delta: float, std: float | None
) -> float | None:
    """Compute `largest_passing_mean` at any n; at very large ones by a normal approximation."""
    variance = limit * (1 - limit)
    errors_at_large_n = family_named(family).errors_at_large_n
    if errors_at_large_n is None or n * variance < _LARGE_VARIANCE:
        return largest_passing_mean(family, limit, n, delta, std)
    return limit - errors_at_large_n(delta) * math.sqrt(variance / n)


def _first(holds: Callable[[int], bool]) -> int:
    """Find the smallest n at which a condition that stays true becomes true, by bisection.

    It is above `MOST_EXAMPLES` where the condition is not true up to there.
    """
    low, high = 0, 1
    while not holds(high):
        if high == MOST_EXAMPLES:
            return high + 1
        low, high = high, min(2 * high, MOST_EXAMPLES)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def unit_risk(risk: Risk, true_risk: float) -> float:
    """Bring a true risk, in the words of the risk, to the unit scale of the losses."""
    unit = risk.to_unit(risk.in_words(true_risk))
    if not 0 <= unit < risk.unit_limit:
        assert risk.bound is not None
        bound, best = exact(risk.bound), exact(risk.in_words(risk.bottom))
        values = f"({bound}, {best}]" if risk.complement else f"[{best}, {bound})"
        raise ProblemError(
            f"Risk {risk.name!r}: a true value that can be certified lies in {values}, but it is "
            f"{true_risk:g}. Give one on the good side of the limit: at the limit or beyond it, "
            f"passing would be the error that delta bounds."
        )
    return unit
