"""Before any data is spent: what can pass, how many samples a margin needs, and with what power."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.special import betaincc

from riskpilot.common import IntArray
from riskpilot.errors import ProblemError, shown
from riskpilot.guarantee import risk_tests
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import Quantile, family_named, largest_passing_mean

# The share of labelled examples that is best spent on validation: the optimum is flat, between a
# fifth and two fifths (experiments/tuning).
VALIDATION_SHARE = Fraction(1, 3)
# Plans reach to here: nobody has more examples, and whole numbers are still exact as floats.
MOST_EXAMPLES = 10**12
# Where the number of losses has a larger variance than this, exact tests are foretold by the normal
# distribution: it differs by a few examples, and does not sum a million terms.
_LARGE_VARIANCE = 1e6


@dataclass(frozen=True)
class RiskPlan:
    """What ``n_calibration`` examples can show about one risk, in the words of the risk.

    Of ``precision >= 0.9`` all numbers are precisions, and larger ones are better.

    Parameters
    ----------
    risk : Risk
        The risk that is planned for.
    family : str
        The p-value that will test it.
    n_calibration : int
        The number of calibration examples; in every group, for a statistic of groups.
    just_passes : float or None
        The worst value on calibration data that passes: the largest one, or the smallest where
        larger is better. None where nothing can pass.
    fewest : int
        The fewest examples with which anything can pass.
    true_risk : float, optional
        The value that a configuration is believed to have.
    power : float, optional
        The probability that a configuration of that true risk passes.
    needed : int, optional
        How many examples make that probability ``target_power``; None where 10**12 do not.
    target_power : float, default 0.9
        The probability to aim for.
    assumes : str, optional
        What is assumed about the losses, in words, where the numbers hang on more than is known.
    unknown : str, optional
        Why no power is told for a true risk, and what to do, as sentences.
    """

    risk: Risk
    family: str
    n_calibration: int
    just_passes: float | None
    fewest: int
    true_risk: float | None = None
    power: float | None = None
    needed: int | None = None
    target_power: float = 0.9
    assumes: str | None = None
    unknown: str | None = None

    def __str__(self) -> str:
        m, each = self.n_calibration, " in every group" if self.risk.needs_groups else ""
        least = f"it takes at least {self.fewest:,}" if m < self.fewest else "it takes more"
        if self.just_passes is None and self.assumes is not None and m >= self.fewest:
            return (
                f"{self.risk}: {m:,} calibration examples{each} are too few to say what passes, if "
                f"{self.assumes}. Give deviations= for a closer plan."
            )
        if self.just_passes is None:
            return f"{self.risk}: nothing can pass with {m:,} calibration examples{each}; {least}."
        what, up_to = self.risk.words or "mean", "up to"
        if self.risk.complement:
            what, up_to = f"{what} of {self.risk.subject}", "at least"
        steering = risk_tests.steering_family(self.risk, self.family)
        exact = steering != "normal" or isinstance(self.risk.statistic, Quantile)
        about = "" if exact else "about "
        text = (
            f"{self.risk}: with {m:,} calibration examples{each} a {what} of {up_to} {about}"
            f"{self.just_passes:.4g} passes ({self.family.replace('_', '-')} test)"
        )
        text += "." if self.assumes is None else f", if {self.assumes}."
        if self.unknown is not None:
            text += f" {self.unknown}"
        if self.power is not None:
            needed = f"more than {MOST_EXAMPLES:,}" if self.needed is None else f"{self.needed:,}"
            text += (
                f" A true {self.risk.subject if self.risk.complement else 'risk'} of "
                f"{self.true_risk:g} passes with probability {self.power:.2f}; "
                f"for {self.target_power:g} it takes {needed} examples."
            )
        return text


class LabelledSplit(NamedTuple):
    """How many labelled examples go to validation, and how many to calibration.

    Parameters
    ----------
    validation : int
        The number of validation examples.
    calibration : int
        The number of calibration examples.
    """

    validation: int
    calibration: int

    def indices(self, seed: int) -> tuple[IntArray, IntArray]:
        """Draw at random which examples go where.

        Parameters
        ----------
        seed : int
            The same seed gives the same draw.

        Returns
        -------
        tuple of arrays of int
            The places of the validation examples and of the calibration examples, in order.

        Raises
        ------
        ProblemError
            If ``seed`` is no whole number of at least 0.

        Examples
        --------
        >>> validation, calibration = split_labelled(6).indices(seed=0)
        >>> sorted([*validation, *calibration]) == list(range(6))
        True
        """
        if not is_whole(seed, 0, 2**64 - 1):
            raise ProblemError(
                f"seed is a whole number from 0 to 2**64 - 1, but it is {shown(seed)}. Use 0."
            )
        order = np.random.default_rng(int(seed)).permutation(sum(self))
        return np.sort(order[: self.validation]), np.sort(order[self.validation :])


def split_labelled(n: int) -> LabelledSplit:
    """Say how many of n labelled examples to use for validation, and how many for calibration.

    Validation steers the search and orders the candidates; calibration has to prove the result,
    and gets twice as many. Which examples go where must be drawn at random.

    Parameters
    ----------
    n : int
        The number of labelled examples, at least 2.

    Returns
    -------
    LabelledSplit
        The numbers of validation and of calibration examples, a tuple; its ``indices(seed)`` draws
        which examples these are.

    Raises
    ------
    ProblemError
        If ``n`` is no whole number from 2 to 10**12.

    Examples
    --------
    >>> split_labelled(6_000)
    LabelledSplit(validation=2000, calibration=4000)
    """
    if not is_whole(n, 2, MOST_EXAMPLES):
        raise ProblemError(
            f"The number of labelled examples must be a whole number of at least 2, one for "
            f"validation and one for calibration, and at most 10**12, but it is {shown(n)}. "
            f"Give how many examples have a label, such as 7500."
        )
    n_validation = max(round(int(n) * VALIDATION_SHARE), 1)
    return LabelledSplit(n_validation, int(n) - n_validation)


def plan_calibration(
    problem: Problem,
    n_calibration: int,
    *,
    true_risks: Mapping[str, float] | None = None,
    target_power: float = 0.9,
    binary: bool = True,
    deviations: Mapping[str, float] | None = None,
) -> list[RiskPlan]:
    """Say what ``n_calibration`` examples can show about every risk of a problem.

    Parameters
    ----------
    problem : Problem
        The risks with their limits, and delta.
    n_calibration : int
        The number of calibration examples, from 1 to 10**12; for statistics of groups, that of the
        smallest group.
    true_risks : mapping of str to float, optional
        By the name of a risk, the value that a configuration is believed to have, for its power;
        in the words of the risk, so that 0.95 is a precision above that of ``precision >= 0.9``.
    target_power : float, default 0.9
        The probability of passing that ``needed`` is computed for.
    binary : bool, default True
        Whether losses are 0/1, which decides what ``p_value="auto"`` means.
    deviations : mapping of str to float, optional
        By the name of a risk, the standard deviation of losses that are not 0/1, in their units:
        above 0, and at most the largest that numbers of that range can have.

    Returns
    -------
    list of RiskPlan
        One plan for each risk, in the order of the problem.

    Raises
    ------
    ProblemError
        If a number cannot be meant, a name is none of the problem's, or a limit is still open.

    Examples
    --------
    >>> from riskpilot import Problem, Risk
    >>> print(plan_calibration(Problem([Risk("error", 0.05)], "cost"), 40)[0])
    error <= 0.05: nothing can pass with 40 calibration examples; it takes at least 45.
    """
    m = _checked(problem, n_calibration, target_power, binary)
    true_values = _by_name(problem, true_risks, "true_risks")
    spreads = _by_name(problem, deviations, "deviations")
    plans = []
    for risk in problem.risks:
        test = risk_tests.family(risk, bool(binary))
        family, std = planning_family(risk, test, spreads.get(risk.name))
        largest = _largest_mean(family, risk.unit_limit, m, problem.delta, std)
        fewest = risk_tests.fewest_examples(risk, test, problem.delta)
        largest = None if m < fewest else largest
        assumes = None
        if family == "normal" and risk.name not in spreads:
            assumes = risk.statistic.assumed
        if isinstance(risk.statistic, Quantile):
            # Whatever lies below the limit, a quantile passes as long as few losses lie above it.
            largest = None if m < fewest else risk.unit_limit
            assumes = None if largest is None else _few_above(risk, test, m, problem.delta)
        true_risk = true_values.get(risk.name)
        power = needed = unknown = None
        if true_risk is not None:
            unit = unit_risk(risk, true_risk)
            unknown = power_is_unknown(risk, spreads.get(risk.name))
        if true_risk is not None and unknown is None:
            power = passing_probability(family, risk.unit_limit, unit, m, problem.delta, std)
            needed = samples_for_power(
                family, risk.unit_limit, unit, problem.delta, float(target_power), std
            )
        plans.append(
            RiskPlan(
                risk=risk,
                family=test,
                n_calibration=m,
                just_passes=None if largest is None else risk.in_words(risk.from_unit(largest)),
                fewest=fewest,
                true_risk=true_risk,
                power=power,
                needed=needed,
                target_power=float(target_power),
                assumes=assumes,
                unknown=unknown,
            )
        )
    return plans


def power_is_unknown(risk: Risk, deviation: float | None) -> str | None:
    """Say why the true value alone does not tell with what probability it passes, if so."""
    hangs_on, statistic = risk.statistic.power_hangs_on, risk.statistic
    if hangs_on is None:
        return None
    if isinstance(statistic, Quantile):
        share = statistic.share_above
        return (
            f"With what probability it passes hangs on {hangs_on}, which is not known: plan for "
            f"that share, Risk('share above {risk.bound:g}', {share:g}), which is the same test."
        )
    if deviation is not None:
        return None
    return (
        f"With what probability it passes hangs on {hangs_on}, which is not known: give "
        f"deviations={{{risk.name!r}: ...}}, the standard error on validation data times the root "
        f"of the number of examples."
    )


def _few_above(risk: Risk, test: str, m: int, delta: float) -> str | None:
    """Say how many losses may lie above the limit of a quantile."""
    assert isinstance(risk.statistic, Quantile)
    share = _largest_mean(test, risk.statistic.share_above, m, delta, None)
    if share is None or test != "binomial":
        return "few enough of the losses lie above the limit"
    most = math.floor(share * m + 1e-9)
    return f"at most {most:,} of the losses lie above {risk.bound:g}"


def _checked(problem: Problem, n_calibration: int, target_power: float, binary: bool) -> int:
    """Refuse what `plan_calibration` cannot plan, and return the number of examples."""
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"plan_calibration takes a Problem first, but got {shown(problem)}. "
            f'Write Problem([Risk("error", limit=0.1)], minimize="cost").'
        )
    if not is_whole(n_calibration, 1, MOST_EXAMPLES):
        raise ProblemError(
            f"The number of calibration examples must be a whole number of at least 1 and at most "
            f"10**12, but it is {shown(n_calibration)}. "
            f"Give how many examples were set aside, such as 1000."
        )
    power = as_number(target_power)
    if power is None or not 0 < power < 1:
        raise ProblemError(
            f"The power to plan for is a probability in (0, 1), but it is {shown(target_power)}. "
            f"Use target_power=0.9."
        )
    if not isinstance(binary, bool | np.bool_):
        raise ProblemError(
            f"binary says whether the losses are 0/1, True or False, but it is {shown(binary)}. "
            f"Leave it out for 0/1 losses."
        )
    return int(n_calibration)


def _by_name(problem: Problem, given: object, what: str) -> dict[str, float]:
    """Read finite numbers by the names of risks; what is None is left out."""
    if given is None:
        return {}
    example = f'{what}={{"{problem.names[0]}": 0.05}}'
    if not isinstance(given, Mapping):
        raise ProblemError(
            f"{what} maps names of risks to numbers, but it is {shown(given)}. Write {example}."
        )
    result: dict[str, float] = {}
    for name, value in given.items():
        if not isinstance(name, str) or name not in problem.names:
            raise ProblemError(
                f"True risks and deviations belong to risks of the problem "
                f"({', '.join(problem.names)}), but {shown(name)} is none of them. "
                f"Use a name of the problem."
            )
        if value is None:
            continue
        number = as_number(value)
        if number is None:
            raise ProblemError(
                f"{what} must hold finite numbers, but that of {name!r} is {shown(value)}. "
                f"Write {example}."
            )
        result[name] = number
    return result


def is_whole(value: object, least: int, most: int) -> bool:
    """Say whether a value is a whole number between two others."""
    # numpy counts spans of time among its integers
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)
    return whole and least <= int(value) <= most  # type: ignore[call-overload]


def as_number(value: object) -> float | None:
    """Return a finite real number as a float, and None for anything else."""
    if not isinstance(value, Real) or isinstance(value, bool | np.timedelta64):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


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
    largest = _largest_mean(family, limit, n, delta, std)
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
        largest = _largest_mean(family, limit, n, delta, std)
        return largest is not None and largest >= mean

    return _first(passes)


def _largest_mean(
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
        bound, best = risk.bound, risk.in_words(risk.bottom)
        values = f"({bound:g}, {best:g}]" if risk.complement else f"[{best:g}, {bound:g})"
        raise ProblemError(
            f"Risk {risk.name!r}: a true value that can be certified lies in {values}, but it is "
            f"{true_risk:g}. Give one on the good side of the limit: at the limit or beyond it, "
            f"passing would be the error that delta bounds."
        )
    return unit
