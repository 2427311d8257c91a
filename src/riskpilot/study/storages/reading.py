"""Trials as a storage has them: read or refused, and how long they have been running."""

import functools
import json
from collections.abc import Container
from datetime import UTC, datetime

import optuna
from optuna.distributions import BaseDistribution, distribution_to_json, json_to_distribution
from optuna.trial import FrozenTrial, TrialState

from riskpilot.common import unwarned
from riskpilot.errors import RiskpilotError, StudyError, shown

# What the parts of a damaged trial raise where Optuna reads them.
DAMAGES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def trials_of(
    study: optuna.Study, states: Container[TrialState] | None = None
) -> list[FrozenTrial]:
    """Read the trials of a study, or refuse a storage in which one of them is damaged."""
    try:
        return study.get_trials(deepcopy=False, states=states)
    except RiskpilotError:
        raise
    except DAMAGES as error:
        raise damaged_trial(error) from error


def damaged_trial(error: Exception, number: int | None = None) -> StudyError:
    """Make the error that says which trial of a storage cannot be read, and why."""
    which = "one" if number is None else f"trial {number}"
    return StudyError(
        f"The trials of a study must be as Optuna wrote them, but {which} cannot be read "
        f"({type(error).__name__}: {shown(str(error))}). The storage was changed from outside; "
        f"restore it from a copy."
    )


@functools.lru_cache(maxsize=1024)  # all trials of a study have the same few
def read_distribution(written: str) -> BaseDistribution:
    """Return the distribution of a parameter; trials with the same one share it.

    Optuna mends a range that it would not have written: it rounds an end, or takes true for 1, and
    nothing for false. Such a range was changed from outside, so that a `ValueError` refuses it.
    """
    with unwarned():  # what Optuna warns of here is refused
        found = json_to_distribution(written)
    rewritten = distribution_to_json(found)
    is_mended = not isinstance(getattr(found, "log", False), bool)
    if is_mended or _sorted(written) != _sorted(rewritten):
        raise ValueError(f"a parameter has the range {written}, which Optuna reads as {rewritten}")
    return found


def _sorted(text: str) -> str:
    """Write a JSON text again with its names in order."""
    return json.dumps(json.loads(text), sort_keys=True)


def seconds_between(begin: datetime, end: datetime) -> float:
    """Return the seconds between two times as Optuna shows them, without a time zone.

    They are local times, which skip an hour in spring and repeat one in autumn; their difference is
    right only in UTC.
    """
    return (end.astimezone(UTC) - begin.astimezone(UTC)).total_seconds()


def seconds_running(trial: FrozenTrial) -> float:
    """Return how long ago a trial began, by the clock of this machine; 0 where it has not."""
    begin = trial.datetime_start
    return 0.0 if begin is None else seconds_between(begin, datetime.now(UTC))
