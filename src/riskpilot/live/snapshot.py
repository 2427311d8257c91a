"""A study at one moment, with all that its page shows."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.trial import TrialState

from riskpilot.guarantee import Background
from riskpilot.losses import ValidationLosses
from riskpilot.study import (
    QuestionStatus,
    Status,
    finished,
    search_so_far,
    silent_trials,
    study_status,
)


@dataclass(frozen=True)
class Trial:
    """A finished trial: its configuration and its free objective on validation data."""

    config: Mapping[str, Any]
    free: float


@dataclass(frozen=True)
class Snapshot:
    """What the page shows: where a study stands, and its finished trials by number.

    ``search``: what its figures are drawn from, None before a trial has finished.
    """

    status: Status
    trials: Mapping[int, Trial]
    search: tuple[ValidationLosses, Background] | None

    @property
    def verdict(self) -> QuestionStatus | None:
        """The last question that was answered, or None while calibration data is sealed."""
        answered = [question for question in self.status.questions if question.answered]
        return answered[-1] if answered else None

    @property
    def is_guided(self) -> bool:
        """Whether riskpilot's own search proposes the configurations, as far as trials tell."""
        outline = None if self.search is None else self.search[1].search
        return outline is None or bool(outline.pool)

    @property
    def best(self) -> int | None:
        """The number of the trial that was chosen or, before a selection, is expected to pass."""
        ahead = self.status.outlook
        if self.verdict is None:
            return None if ahead is None else ahead.trial
        config = self.verdict.config
        return next((n for n, trial in self.trials.items() if trial.config == config), None)


def version_of(now: optuna.Study) -> str:
    """Name the state of a study that stands still; another state has another name."""
    trials = now.get_trials(deepcopy=False)
    states = [(trial.number, trial.state.value) for trial in trials]
    under_way = [trial.params for trial in trials if trial.state == TrialState.RUNNING]
    content = (now.user_attrs, states, under_way, sorted(silent_trials(now)))
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def snapshot_of(now: optuna.Study) -> Snapshot:
    """Compute what the page shows of a study that stands still."""
    done = finished(now)
    trials = {
        trial.number: Trial(trial.params, record.free)
        for trial, record in zip(done.trials, done.records, strict=True)
    }
    return Snapshot(study_status(now), trials, search_so_far(now))
