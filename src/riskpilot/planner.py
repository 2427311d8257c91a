"""Before any data is spent: what can pass, how many samples a margin needs, and with what power."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from riskpilot import statistics
from riskpilot.errors import ProblemError
from riskpilot.measures import GroupGap, Ratio
from riskpilot.p_values import largest_passing_mean
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import fewest_examples

# The share of labelled examples that is best spent on validation: the optimum is flat, between a
# fifth and two fifths (experiments/tuning).
VALIDATION_SHARE = 1 / 3


@dataclass(frozen=True)
class RiskPlan:
    """What ``n_calibration`` examples can show about one risk, in the units of its losses.

    ``largest_mean``: the largest calibration mean that passes, None where nothing can;
    ``fewest``: the fewest examples with which anything can pass; ``power``: the probability that a
    configuration of the given ``true_risk`` passes; ``needed``: how many examples make that
    probability ``target_power``.
    """

    risk: Risk
    family: str
    n_calibration: int
    largest_mean: float | None
    fewest: int
    true_risk: float | None = None
    power: float | None = None
    needed: int | None = None
    target_power: float = 0.9

    def __str__(self) -> str:
        m, each = self.n_calibration, " in every group" if self.risk.needs_groups else ""
        least = f"it takes at least {self.fewest:,}" if m < self.fewest else "it takes more"
        if self.largest_mean is None:
            return f"{self.risk}: nothing can pass with {m:,} calibration examples{each}; {least}."
        what = self.risk.words or "mean"
        if self.risk.complement:
            what += f" of {self.risk.label}"
        steering = statistics.steering_family(self.risk, self.family)
        about = "about " if steering == "normal" else ""
        text = (
            f"{self.risk}: with {m:,} calibration examples{each} a {what} of up to {about}"
            f"{self.largest_mean:.4g} passes ({self.family.replace('_', '-')} test)."
        )
        if self.power is not None:
            text += (
                f" A true risk of {self.true_risk:g} passes with probability {self.power:.2f}; "
                f"for {self.target_power:g} it takes {self.needed:,} examples."
            )
        return text


def split_labelled(n: int) -> tuple[int, int]:
    """How many of n labelled examples to use for validation, and how many for calibration.

    Validation steers the search and orders the candidates; calibration has to prove the result,
    and gets twice as many. Which examples go where must be drawn at random.

    >>> split_labelled(6_000)
    (2000, 4000)
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2:
        raise ProblemError(
            f"The number of labelled examples must be a whole number of at least 2, one for "
            f"validation and one for calibration, but it is {n!r}. Label more."
        )
    n_validation = max(round(int(n) * VALIDATION_SHARE), 1)
    return n_validation, int(n) - n_validation


def plan_calibration(
    problem: Problem,
    n_calibration: int,
    *,
    true_risks: Mapping[str, float] | None = None,
    target_power: float = 0.9,
    binary: bool = True,
    deviations: Mapping[str, float] | None = None,
) -> list[RiskPlan]:
    """What ``n_calibration`` examples can show about every risk of a problem.

    For statistics of groups that is the number of examples in the smallest group.
    ``true_risks``: the risk that a configuration is believed to have, for its power. ``binary``:
    whether losses are 0/1, which decides what ``p_value="auto"`` means. ``deviations``: the
    standard deviation of losses that are not 0/1, in their units.

    >>> from riskpilot import Problem, Risk
    >>> print(plan_calibration(Problem([Risk("error", 0.05)], "cost"), 40)[0])
    error <= 0.05: nothing can pass with 40 calibration examples; it takes at least 45.
    """
    if not isinstance(n_calibration, int | np.integer) or n_calibration < 1:
        raise ProblemError(
            f"The number of calibration examples must be a whole number of at least 1, "
            f"but it is {n_calibration!r}. Give how many examples were set aside, such as 1000."
        )
    if not 0 < target_power < 1:
        raise ProblemError(
            f"The power to plan for is a probability in (0, 1), but it is {target_power!r}. "
            f"Use target_power=0.9."
        )
    unknown = sorted({*(true_risks or {}), *(deviations or {})} - set(problem.names))
    if unknown:
        raise ProblemError(
            f"True risks and deviations belong to risks of the problem "
            f"({', '.join(problem.names)}), but {unknown[0]!r} is none of them. "
            f"Use a name of the problem."
        )
    plans = []
    for risk in problem.risks:
        deviation = (deviations or {}).get(risk.name)
        test = statistics.family(risk, binary)
        family, std = planning_family(risk, test, deviation)
        largest = largest_passing_mean(family, risk.unit_limit, n_calibration, problem.delta, std)
        true_risk = (true_risks or {}).get(risk.name)
        power = needed = None
        if true_risk is not None:
            unit = _unit_risk(risk, true_risk)
            power = passing_probability(
                family, risk.unit_limit, unit, n_calibration, problem.delta, std
            )
            needed = samples_for_power(
                family, risk.unit_limit, unit, problem.delta, target_power, std
            )
        plans.append(
            RiskPlan(
                risk=risk,
                family=test,
                n_calibration=int(n_calibration),
                largest_mean=None if largest is None else risk.from_unit(largest),
                fewest=fewest_examples(risk, test, problem.delta),
                true_risk=true_risk,
                power=power,
                needed=needed,
                target_power=target_power,
            )
        )
    return plans


def planning_family(risk: Risk, test: str, deviation: float | None) -> tuple[str, float | None]:
    """The family that foretells what a test will let pass, and the deviation on the unit scale.

    Where the statistic is no mean of losses this is the normal approximation, and a deviation that
    is not known is the largest that 0/1 losses have.
    """
    family = statistics.steering_family(risk, test)
    if deviation is not None:
        return family, deviation / (risk.top - risk.bottom)
    if family != "normal":
        return family, None
    largest = 1 / math.sqrt(2)  # of a difference of two means of 0/1 losses
    match risk.statistic:
        case GroupGap(directed=True):
            return family, largest / 2
        case GroupGap() | Ratio():
            return family, largest
    return family, 0.5


def passing_probability(
    family: str, limit: float, risk: float, n: int, delta: float, std: float | None = None
) -> float:
    """The probability that n losses of mean ``risk`` pass; all on the unit scale.

    Exact for 0/1 losses; a normal approximation where a standard deviation ``std`` is given.
    """
    largest = largest_passing_mean(family, limit, n, delta, std)
    if largest is None:
        return 0.0
    if std is None:
        return float(binom.cdf(math.floor(largest * n + 1e-9), n, risk))
    z = (largest - risk) * math.sqrt(n) / max(std, 1e-12)
    return 0.5 * math.erfc(-z / math.sqrt(2))


def samples_for_power(
    family: str,
    limit: float,
    risk: float,
    delta: float,
    power: float = 0.9,
    std: float | None = None,
) -> int:
    """The number of examples with which a true ``risk`` passes with probability ``power``."""
    # 0/1 losses make power rise in small steps back and forth: look a little around the first.
    n = _first(lambda m: passing_probability(family, limit, risk, m, delta, std) >= power)
    earlier = np.arange(max(1, int(0.97 * n)), n)
    for m in earlier[:: max(1, len(earlier) // 200)]:
        if passing_probability(family, limit, risk, int(m), delta, std) >= power:
            return int(m)
    return n


def samples_to_pass(
    family: str, limit: float, mean: float, delta: float, std: float | None = None
) -> int:
    """The number of examples with which this empirical ``mean`` (unit scale) passes."""

    def passes(n: int) -> bool:
        largest = largest_passing_mean(family, limit, n, delta, std)
        return largest is not None and largest >= mean

    return _first(passes)


def _first(holds: Callable[[int], bool]) -> int:
    """The smallest n at which a condition that stays true becomes true, by doubling and halving."""
    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
        if high > 10**12:
            return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _unit_risk(risk: Risk, true_risk: float) -> float:
    unit = risk.to_unit(true_risk)
    if not 0 <= unit < risk.unit_limit:
        raise ProblemError(
            f"Risk {risk.name!r}: a true risk that can be certified lies in "
            f"[{risk.bottom:g}, {risk.limit:g}), but it is {true_risk:g}. At or above the limit, "
            f"passing would be the error that delta bounds."
        )
    return unit
