"""Queued configurations: their values are checked as soon as an evaluation names their ranges."""

from collections.abc import Sequence
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from riskpilot.common import canonical, plain_configs
from riskpilot.errors import StudyError, shown
from riskpilot.guarantee import as_number
from riskpilot.study.kept.attributes import SAFE_KEY
from riskpilot.study.space import check_choices, check_ends, check_width, range_in_words
from riskpilot.study.storages import AdaptedTrial, fixed_params, is_within

# A number this share of an end beyond it is the end itself in single precision.
_ROUNDING = 1e-7


class CheckedTrial(AdaptedTrial):
    """A trial that hands its evaluation no queued value that the parameter cannot take.

    Ends of ranges and choices that are too large for any number, such as 10**400, are refused by
    name.
    """

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Suggest a number, as Optuna does."""
        check_ends(name, low, high)
        return super().suggest_float(name, low, high, step=step, log=log)

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """Suggest a whole number, as Optuna does."""
        check_ends(name, low, high, int)
        return super().suggest_int(name, low, high, step=step, log=log)

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Suggest one of the choices, as Optuna does; later trials compare them with the first."""
        if len(choices):
            check_choices(name, CategoricalDistribution(choices))
        return super().suggest_categorical(name, choices)

    def queued_value(self, name: str, distribution: BaseDistribution, value: Any) -> Any:
        """Return a queued value as its parameter has it, or refuse it."""
        end = "The trial fails, and the study can go on"
        return _usable(self, name, distribution, value, end)


def checked(trial: optuna.Trial) -> optuna.Trial:
    """Return a trial of ``study.optimize`` as one that checks what was queued for it."""
    return CheckedTrial.like(trial) if type(trial) is optuna.Trial else trial


def check_queued(trial: FrozenTrial) -> None:
    """Refuse a running trial with a queued value that its parameter cannot take.

    Between ``study.ask`` and ``tell`` nobody checks what an evaluation gets.
    """
    end = f"End the trial, study.tell({trial.number}, state=optuna.trial.TrialState.FAIL)"
    for name, value in fixed_params(trial).items():
        if name in trial.distributions:
            _usable(trial, name, trial.distributions[name], value, end)


def _usable(
    trial: optuna.Trial | FrozenTrial,
    name: str,
    distribution: BaseDistribution,
    value: Any,
    end: str,
) -> Any:
    """Return a queued value as its parameter has it, or refuse it; ``end``: how the trial ends.

    Numbers outside the range are refused in the safe configuration, because the search would take
    what they show for what the end of the range is like. Of others Optuna warns.
    """
    check_width(name, distribution)
    is_safe = SAFE_KEY in trial.user_attrs
    found = _of_its_kind(distribution, value)
    if found and (not is_safe or is_within(distribution, found[0])):
        return found[0]
    what = "The safe configuration" if is_safe else "A configuration that is queued"
    elsewhere = ", or correct safe= in a new study" if is_safe else ""
    if isinstance(distribution, IntDistribution) and _loses_digits(value):
        raise StudyError(
            f"{what} has whole numbers of which Optuna keeps all digits, as it does up to 2**53, "
            f"but {name!r} of trial {trial.number} is {shown(value)} and would be kept as "
            f"{int(float(value))}. {end}: queue the latter, study.enqueue_trial({{{name!r}: "
            f"{int(float(value))}, ...}}), or make it a choice, of which all digits are kept, "
            f"trial.suggest_categorical({name!r}, ...){elsewhere}."
        )
    raise StudyError(
        f"{what} has a value that each parameter can take, but {name!r} is {shown(value)}, and the "
        f"evaluation of trial {trial.number} suggests {range_in_words(distribution)}. {end}: queue "
        f"such a value, study.enqueue_trial({{{name!r}: ..., ...}}){elsewhere}."
    )


def _of_its_kind(distribution: BaseDistribution, value: Any) -> list[Any]:
    """Return the value, in a list of its own, as a parameter of this kind has it; else no value.

    A text is no number, although Optuna would read it as one, and neither is a truth value.
    """
    if isinstance(distribution, CategoricalDistribution):
        return [choice for choice in distribution.choices if _is_same(choice, value)][:1]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    number = as_number(value)
    if number is None or (distribution.log and number <= 0):
        return []
    if isinstance(distribution, FloatDistribution):
        low, high = distribution.low, distribution.high
        if low - _ROUNDING * abs(low) <= number <= high + _ROUNDING * abs(high):
            number = min(max(number, low), high)
        return [number]
    return [int(value)] if number.is_integer() and not _loses_digits(value) else []


def _loses_digits(value: Any) -> bool:
    """Tell whether a value is a whole number that is another one as a float, as Optuna keeps it."""
    number = as_number(value)
    return number is not None and number.is_integer() and int(number) != int(value)


def _is_same(choice: Any, value: Any) -> bool:
    """Tell whether a value is a choice, which a storage may have turned from a tuple into a list.

    2.0 is the choice 2, but True is not the choice 1.
    """
    # As floats, whole numbers beyond 2**53 would be equal to their neighbours.
    if choice is value or (None not in map(as_number, (choice, value)) and choice == value):
        return True
    try:
        one, other = plain_configs([{"": choice}, {"": value}], StudyError)
    except StudyError:  # what JSON cannot hold is refused by name once it is evaluated
        return shown(choice) == shown(value)
    return canonical(one) == canonical(other)
