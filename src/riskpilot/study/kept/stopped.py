"""Trials that a race stopped: what they showed on the first validation examples, and nothing more.

Such a trial is pruned in Optuna's words and carries no losses. The search learns from it; it is
never a candidate, because candidates are complete.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from riskpilot.errors import StudyError, shown
from riskpilot.losses import ValidationLosses
from riskpilot.study.kept.records import Record, make_record
from riskpilot.study.kept.remembered import Remembered
from riskpilot.study.storages import set_trial_user_attr

STOPPED_KEY = "riskpilot:stopped"
COURSE_KEY = "riskpilot:course"

Course = Sequence[tuple[int, float]]
"""How a free objective that is a number went: after how many examples it was what."""


@dataclass(frozen=True)
class Stopped:
    """What a stopped trial says about itself.

    ``record``: the sums over the examples that it was evaluated on; ``values``: the risks and the
    free objective there; ``n_examples``: how many validation examples there are in all.
    """

    record: Record
    values: Sequence[float]
    n_examples: int

    def to_json(self) -> dict[str, Any]:
        """Write it as plain JSON; `_from_json` reads it back."""
        values = [float(value) for value in self.values]
        return {"record": self.record.to_json(), "values": values, "n_examples": self.n_examples}


def keep_stopped(
    study: optuna.Study, trial: optuna.Trial, seen: ValidationLosses, n_examples: int
) -> None:
    """Note on a running trial what it showed so far, before it is stopped."""
    stopped = Stopped(make_record(seen, None, {}), seen.objectives[0].tolist(), n_examples)
    set_trial_user_attr(study, trial, STOPPED_KEY, stopped.to_json())


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
        raise _not_whole(trial, error) from error


def was_stopped(trial: FrozenTrial) -> bool:
    """Tell whether a race stopped a trial, without reading what it showed."""
    return trial.state == TrialState.PRUNED and trial.user_attrs.get(STOPPED_KEY) is not None


def _read_stopped(trial: FrozenTrial) -> Stopped:
    """Read what a stopped trial showed."""
    stored = trial.user_attrs[STOPPED_KEY]
    try:
        record, values, n = stored["record"], stored["values"], stored["n_examples"]
        return Stopped(Record.from_json(record), [float(value) for value in values], int(n))
    except (KeyError, TypeError, ValueError) as error:
        raise _not_whole(trial, error) from error


def _not_whole(trial: FrozenTrial, reason: object) -> StudyError:
    """Make the error that says why what a race noted on a trial cannot be used."""
    return StudyError(
        f"What a race noted on trial {trial.number} must be as riskpilot wrote it, but it cannot "
        f"be used: {shown(str(reason))}. The storage was changed from outside; restore it from a "
        f"copy."
    )


stopped_of = Remembered(_read_stopped)
