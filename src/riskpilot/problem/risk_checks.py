"""What must hold of a risk before anything is tested; what does not is refused with a way out."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from riskpilot.common import finite_number, is_flag, is_name
from riskpilot.errors import ProblemError, shown, type_in_words, with_article
from riskpilot.problem import names
from riskpilot.problem.sounds import sounds_larger
from riskpilot.statistics import P_VALUES, STATISTICS, Mean, Statistic, WorstGroup, is_statistic

if TYPE_CHECKING:
    from riskpilot.problem.risk import Risk

# How near a limit may be to an end of its range, as a share of the range: what is nearer would
# take more examples than anybody has.
_NEAREST = 1e-12
_WIDEST = 1e150


def check_words(risk: "Risk") -> None:
    """Refuse names, flags and a statistic that are of no use as such."""
    name = risk.name
    if not is_name(name):
        raise ProblemError(
            f"A risk is named by a non-empty text without control characters, but the name is "
            f'{shown(name)}. Name it: Risk("error", limit=0.1).'
        )
    for field in ("conditional", "complement"):
        if not is_flag(getattr(risk, field)):
            raise ProblemError(
                f"Risk {name!r}: {field} is True or False, but it is "
                f"{shown(getattr(risk, field))}. Leave it out for what the name says."
            )
        risk._set(field, bool(getattr(risk, field)))
    if risk.statistic is not None and not is_statistic(risk.statistic):
        raise ProblemError(
            f"Risk {name!r}: the statistic says what is limited about the losses, but it is "
            f"{shown(risk.statistic)}. Use one of {_listed(STATISTICS)}."
        )
    if not isinstance(risk.p_value, str) or risk.p_value not in P_VALUES:
        raise ProblemError(
            f"Risk {name!r}: p_value must be one of {', '.join(P_VALUES)}, "
            f"but it is {shown(risk.p_value)}. Leave it out for 'auto'."
        )
    if not is_name(risk.groups):
        raise ProblemError(
            f"Risk {name!r}: groups is the name under which the groups stand beside the "
            f'losses, but it is {shown(risk.groups)}. Write groups="sex" and pass '
            f'{{"{name}": losses, "sex": array}}.'
        )


def number_of(name: str, field: str, value: object) -> float:
    """Read a field of a risk that must be a finite number."""
    number = finite_number(value)
    if number is None:
        raise ProblemError(
            f"Risk {name!r}: {field} must be a finite number, but it is {shown(value)}. "
            f"Give it as a float, such as {field}=0.1."
        )
    return number


def check_range(risk: "Risk") -> None:
    """Refuse a range of losses that is empty, or too wide for squares of losses."""
    if not risk.low < risk.high:
        raise ProblemError(
            f"Risk {risk.name!r}: the range needs low < high, but it is [{risk.low}, "
            f"{risk.high}]. Declare the smallest and the largest loss that can occur."
        )
    if not risk.high - risk.low <= _WIDEST:
        raise ProblemError(
            f"Risk {risk.name!r}: the range of the losses must be at most {_WIDEST:g} wide, "
            f"so that squares of losses are numbers, but it is [{risk.low}, {risk.high}]. "
            f"Measure the losses in larger units."
        )


def the_one_limit(name: str, given: Mapping[str, object]) -> tuple[str | None, float | None]:
    """Return in which of the fields a limit is given, and the limit; None and None without one."""
    fields = [field for field, value in given.items() if value is not None]
    if len(fields) > 1:
        raise ProblemError(
            f"Risk {name!r}: a risk has one limit, but more than one of limit, at_most and "
            f"at_least is given. Keep one of them."
        )
    return (fields[0], number_of(name, fields[0], given[fields[0]])) if fields else (None, None)


def check_direction(risk: "Risk", field: str | None, bound: float | None) -> None:
    """Refuse a limit whose direction contradicts what is known of the name."""
    name, statistic = risk.name, risk.statistic
    own = _is_own_and_larger(risk, field)
    larger = names.larger_is_better(names.meaning(name), statistic)
    if risk.complement and not larger and not own:
        raise ProblemError(
            f"Risk {name!r}: complement says that the name is better when larger, but it is "
            f"not known to be. Leave complement out, and record the loss."
        )
    if bound is not None and field != "limit" and not own:
        names.check_direction(name, statistic, bound, lower=field == "at_least")
    if not risk.complement and field != "at_least":
        names.check_limit(name, statistic, bound)


def _is_own_and_larger(risk: "Risk", field: str | None) -> bool:
    """Say whether a lower limit stands on a name of one's own that says itself that larger is
    better, such as "correct"."""
    if names.meaning(risk.name) is not None or not sounds_larger(risk.name):
        return False
    if not isinstance(risk.statistic, Mean | WorstGroup):
        return False
    return risk.complement or field == "at_least"


def check_weights(risk: "Risk") -> None:
    """Refuse weights without a name or a bound, and those of a statistic that has no test."""
    name, largest = risk.name, risk.largest_weight
    if risk.weights is None and largest is None:
        return
    if not is_name(risk.weights):
        raise ProblemError(
            f"Risk {name!r}: weights is the name under which the weights of the examples stand "
            f"beside the losses, but it is {shown(risk.weights)}. Write "
            f'weights="weights" and pass {{"{name}": losses, "weights": array}}.'
        )
    number = finite_number(largest)
    if number is None or not number > 0:
        raise ProblemError(
            f"Risk {name!r}: weights need the largest weight that there can be, known "
            f"beforehand, but largest_weight is {shown(largest)}. Without a bound no test is "
            f"valid: clip the weights, and write largest_weight= the point where they are "
            f"clipped."
        )
    if not risk.statistic.takes_weights:
        raise ProblemError(
            f"Risk {name!r}: no valid test is known here for {type_in_words(risk.statistic)} "
            f"of weighted examples, but weights is {risk.weights!r}. Limit the WorstGroup; or, "
            f"where the weights are known to have mean 1 in every group, weight the losses "
            f"beforehand with riskpilot.weighted."
        )


def check_statistic(risk: "Risk") -> None:
    """Refuse what does not go together with the statistic."""
    name, statistic = risk.name, risk.statistic
    if risk.groups != "groups" and not risk.needs_groups:
        raise ProblemError(
            f"Risk {name!r}: a limit on the {risk.words or 'mean'} knows no groups, but groups "
            f"is {risk.groups!r}. Say what is limited, as its statistic, by one of "
            f"{_listed(kind for kind in STATISTICS if kind.needs_groups)}; or leave groups out."
        )
    if statistic.from_zero and risk.low != 0:
        raise ProblemError(
            f"Risk {name!r}: a ratio of means needs losses from 0 upwards, but low is "
            f"{risk.low:g}. Shift the losses, or limit a GroupGap."
        )
    if risk.complement and (risk.bottom, risk.top) != (0.0, 1.0):
        raise ProblemError(
            f"Risk {name!r}: the losses are one minus a share and lie in [0, 1], but the range "
            f"is [{risk.low:g}, {risk.high:g}]. Leave low and high out, and give the limit as "
            f"a share: at_least=0.9."
        )
    if risk.p_value not in risk.tests:
        tests, what = " or ".join(risk.tests), type(statistic).__name__
        if risk.weights is not None:
            what += " with weights"
        raise ProblemError(
            f"Risk {name!r}: {with_article(what)} is tested by {tests}, "
            f"but p_value is {risk.p_value!r}. Leave it out."
        )


def check_limit(risk: "Risk") -> None:
    """Refuse a limit at an end of the range, or too near to one."""
    if risk.limit is None or (
        risk.bottom < risk.limit < risk.top and _NEAREST <= risk.to_unit(risk.limit) <= 1 - _NEAREST
    ):
        return
    if risk.complement:
        raise ProblemError(
            f"Risk {risk.name!r}: a lower limit must lie strictly between 0 and 1, but it is "
            f"{risk.bound}. {_why_not(risk)}; move the limit."
        )
    raise ProblemError(
        f"Risk {risk.name!r}: the limit must lie strictly inside the range of the "
        f"{risk.words or 'losses'}, ({risk.bottom}, {risk.top}), but it is {risk.limit}. "
        f"{_why_not(risk)}; move the limit, or declare the range of the losses with low= and "
        f"high=."
    )


def _why_not(risk: "Risk") -> str:
    """Say what is wrong with a limit that does not lie inside the range."""
    assert risk.limit is not None
    if risk.limit >= risk.top:
        return "Everything in that range keeps it, so that there is nothing to show"
    if risk.limit < risk.bottom:
        return "Nothing in that range keeps it"
    if risk.limit == risk.bottom:
        return "It may be kept, but no number of examples can show that"
    return "Nearer to an end than 1e-12 of the range no number of examples tells them apart"


def check_scale(risk: "Risk") -> None:
    """Refuse a range in which double precision cannot tell the limit from its surroundings.

    Means are taken on the unit scale. The test of a quantile compares the losses as they are.
    """
    low, high = risk.span
    if not math.isfinite(high - low):
        raise ProblemError(
            f"Risk {risk.name!r}: the range must have a width that is a number, but "
            f"[{risk.low:g}, {risk.high:g}] is wider than the largest one (1.8e308). Declare a "
            f"narrower range."
        )
    if risk.limit is None or risk.statistic.exact:
        return
    blurred = abs(risk.from_unit(risk.to_unit(risk.limit)) - risk.limit)
    if blurred > 1e-6 * abs(risk.limit) or not 0 < risk.unit_limit < 1:
        raise ProblemError(
            f"Risk {risk.name!r}: the limit {risk.limit:g} must be a number that the range "
            f"[{risk.low:g}, {risk.high:g}] resolves, but in double precision it is lost among "
            f"losses so large. Declare a range no wider than what can occur, or clip the "
            f"losses at values fixed beforehand; a Quantile is tested whatever the range."
        )


def _listed(statistics: Iterable[type[Statistic]]) -> str:
    """Write how statistics are made, with their defaults."""
    return ", ".join(f"{statistic.__name__}()" for statistic in statistics)
