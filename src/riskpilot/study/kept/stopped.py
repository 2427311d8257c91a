"""Trials that a race stopped: what they showed on the first validation examples, and nothing more.

Such a trial is pruned in Optuna's words and carries no losses. The search learns from it; it is
never a candidate, because candidates are complete.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from riskpilot.errors import StudyError, shown
from riskpilot.losses import is_usable_free
from riskpilot.study.kept.remembered import Remembered
from riskpilot.study.storages import set_trial_user_attr

STOPPED_KEY = "riskpilot:stopped"
COURSE_KEY = "riskpilot:course"

Course = Sequence[tuple[int, float]]
"""How a free objective that is a number went: after how many examples it was what."""


@dataclass(frozen=True)
class Stopped:
    """What a stopped trial says about itself.

    ``values``: what is known of its risks and its free objective; ``errors``: the standard error
    of each, None where it is not known; ``n_evaluated`` of ``n_examples`` validation examples were
    evaluated.
    """

    values: Sequence[float]
    errors: Sequence[float | None]
    n_evaluated: int
    n_examples: int

    @property
    def variances(self) -> list[float]:
        """The squared standard errors, NaN where they are not known."""
        return [math.nan if error is None else error**2 for error in self.errors]


def keep_stopped(study: optuna.Study, trial: optuna.Trial, stopped: Stopped) -> None:
    """Note on a running trial what it showed so far, before it is stopped."""
    set_trial_user_attr(study, trial, STOPPED_KEY, asdict(stopped))


def keep_course(study: optuna.Study, trial: optuna.Trial, course: Course) -> None:
    """Note on a running trial how its free objective went from block to block.

    Later trials see there how far such a number lies from the last one.
    """
    set_trial_user_attr(study, trial, COURSE_KEY, [list(step) for step in course])


def course_of(trial: FrozenTrial) -> Course:
    """Read how the free objective of a trial went; empty where that is not known."""
    stored = trial.user_attrs.get(COURSE_KEY)
    try:
        return [(int(n), float(value)) for n, value in stored or ()]
    except (TypeError, ValueError) as error:
        raise not_as_written(trial, error) from error


def was_stopped(trial: FrozenTrial) -> bool:
    """Tell whether a race stopped a trial, without reading all that it showed.

    One whose free objective is too large for a search says nothing, as any other pruned trial.
    """
    stored = trial.user_attrs.get(STOPPED_KEY) if trial.state == TrialState.PRUNED else None
    values = stored.get("values") if isinstance(stored, Mapping) else None
    free = values[-1] if isinstance(values, list) and values else None
    return stored is not None and (not isinstance(free, float) or bool(is_usable_free(free)))


def _read_stopped(trial: FrozenTrial) -> Stopped:
    """Read what a stopped trial showed."""
    stored: Any = trial.user_attrs[STOPPED_KEY]
    try:
        values = [float(value) for value in stored["values"]]
        errors = [None if error is None else float(error) for error in stored["errors"]]
        found = Stopped(values, errors, int(stored["n_evaluated"]), int(stored["n_examples"]))
    except (KeyError, TypeError, ValueError) as error:
        raise not_as_written(trial, error) from error
    if len(values) != len(errors) or not 0 < found.n_evaluated <= found.n_examples:
        raise not_as_written(trial, "its numbers do not go together")
    return found


def not_as_written(trial: FrozenTrial, reason: object) -> StudyError:
    """Make the error that says why what a race noted on a trial cannot be used."""
    return StudyError(
        f"What a race noted on trial {trial.number} must be as riskpilot wrote it, but it cannot "
        f"be used: {shown(str(reason))}. The storage was changed from outside; restore it from a "
        f"copy."
    )


stopped_of = Remembered(_read_stopped)
