"""Before any data is spent: what can pass, how many samples a margin needs, and with what power."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

import numpy as np

from riskpilot.common import bound_in_words, exact, how_many
from riskpilot.errors import ProblemError, shown, with_article
from riskpilot.guarantee import risk_tests
from riskpilot.guarantee.passing import (
    MOST_EXAMPLES,
    largest_mean,
    passing_probability,
    planning_family,
    samples_for_power,
    unit_risk,
)
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import Quantile


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
        examples = f"{how_many(m, 'calibration example')}{each}"
        least = f"it takes at least {self.fewest:,}" if m < self.fewest else "it takes more"
        if self.just_passes is None and self.assumes is not None and m >= self.fewest:
            return (
                f"{self.risk}: {examples} {'is' if m == 1 else 'are'} too few to say what passes, "
                f"if {self.assumes}. Give deviations= for a closer plan."
            )
        if self.just_passes is None:
            return f"{self.risk}: nothing can pass with {examples}; {least}."
        what, up_to = self.risk.words or "mean", "up to"
        if self.risk.complement:
            what, up_to = f"{what} of {self.risk.subject}", "at least"
        steering = risk_tests.steering_family(self.risk, self.family)
        is_exact = steering != "normal" or isinstance(self.risk.statistic, Quantile)
        about = "" if is_exact else "about "
        just_passes = bound_in_words(self.just_passes, up=self.risk.complement)
        text = (
            f"{self.risk}: with {examples} {with_article(what)} of {up_to} {about}"
            f"{just_passes} passes ({self.family.replace('_', '-')} test)"
        )
        text += "." if self.assumes is None else f", if {self.assumes}."
        if self.unknown is not None:
            text += f" {self.unknown}"
        if self.power is not None:
            needed = f"more than {MOST_EXAMPLES:,} examples"
            if self.needed is not None:
                needed = how_many(self.needed, "example")
            text += (
                f" A true {self.risk.subject if self.risk.complement else 'risk'} of "
                f"{self.true_risk:g} passes with probability {self.power:.2f}; "
                f"for {self.target_power:g} it takes {needed}."
            )
        return text


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
        largest = largest_mean(family, risk.unit_limit, m, problem.delta, std)
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
            f"that share, Risk('share above {_bound(risk)}', {share:g}), which is the same test."
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
    share = largest_mean(test, risk.statistic.share_above, m, delta, None)
    if share is None or test != "binomial":
        return "few enough of the losses lie above the limit"
    most = math.floor(share * m + 1e-9)
    return f"at most {most:,} of the losses lie above {_bound(risk)}"


def _bound(risk: Risk) -> str:
    """Write the limit of a risk in its own words, exactly."""
    assert risk.bound is not None
    return exact(risk.bound)


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
