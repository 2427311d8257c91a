"""SQL storages that wait for their database, and try again what a cut connection interrupted."""

import itertools
import json
import logging
import time
from collections.abc import Container, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from optuna.exceptions import StorageInternalError
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from riskpilot.study.storages.optuna_internals import NewParam
from riskpilot.study.storages.patience import stand_in
from riskpilot.study.storages.sql.storage import SqlStorage

logger = logging.getLogger("riskpilot")

_HISTORY = "retry_history"  # where Optuna keeps the numbers of the trials that a trial repeats
_BEAT_PAUSE = 1.0  # seconds between two attempts to write a heartbeat


class PatientStorage(SqlStorage):
    """A storage whose calls are made again while the database does not answer.

    Every call may be made twice, because a connection can be cut after the database has done what
    it was asked and before it could say so.
    """

    # --- studies ---

    def create_new_study(
        self, directions: Sequence[StudyDirection], study_name: str | None = None
    ) -> int:
        return self.patience(partial(super().create_new_study, directions, study_name))

    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None:
        self.patience(partial(super().set_study_user_attr, study_id, key, value))

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        self.patience(partial(super().set_study_system_attr, study_id, key, value))

    def get_study_id_from_name(self, study_name: str) -> int:
        return self.patience(partial(super().get_study_id_from_name, study_name))

    def get_study_name_from_id(self, study_id: int) -> str:
        return self.patience(partial(super().get_study_name_from_id, study_id))

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        return self.patience(partial(super().get_study_directions, study_id))

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        return self.patience(partial(super().get_study_user_attrs, study_id))

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        return self.patience(partial(super().get_study_system_attrs, study_id))

    def get_all_studies(self) -> list[Any]:
        return self.patience(super().get_all_studies)

    # --- trials ---

    def add_trial(self, study_id: int, template_trial: FrozenTrial | None) -> FrozenTrial:
        """Add a trial; a copy of a template is found again where the answer to it was lost.

        A new trial has nothing to find it by. One that was added although nobody heard of it is
        given to another worker.
        """
        add = partial(super().add_trial, study_id, template_trial)
        attempts = itertools.count()

        def attempt() -> FrozenTrial:
            if next(attempts) and template_trial is not None:
                for trial in self.get_all_trials(study_id, deepcopy=False):
                    if _is_copy(trial, template_trial):
                        return trial
            return add()

        return self.patience(attempt)

    def add_param(self, trial_id: int, param: NewParam) -> None:
        self.patience(partial(super().add_param, trial_id, param))

    def change_state(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None, now: datetime
    ) -> bool:
        return self.patience(partial(super().change_state, trial_id, state, values, now))

    def set_trial_intermediate_value(
        self, trial_id: int, step: int, intermediate_value: float
    ) -> None:
        self.patience(
            partial(super().set_trial_intermediate_value, trial_id, step, intermediate_value)
        )

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        self.patience(partial(super().set_trial_user_attr, trial_id, key, value))

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        self.patience(partial(super().set_trial_system_attr, trial_id, key, value))

    def get_trial_id_from_study_id_trial_number(self, study_id: int, trial_number: int) -> int:
        return self.patience(
            partial(super().get_trial_id_from_study_id_trial_number, study_id, trial_number)
        )

    def find_trials(
        self,
        study_id: int,
        states: Container[TrialState] | None,
        ids: set[int],
        after: int,
    ) -> list[FrozenTrial]:
        return self.patience(partial(super().find_trials, study_id, states, ids, after))

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """Read a trial; Optuna gets a stand-in while it handles a storage that was given up."""
        stood_in = stand_in(trial_id)
        return stood_in or self.patience(partial(super().get_trial, trial_id))

    # --- heartbeats ---

    def find_stale_trials(self, study_id: int) -> list[int]:
        """Find the trials of workers that fell silent; none right after an outage.

        Workers that live could not write heartbeats meanwhile, and need a moment to do so.
        """
        found = self.patience(partial(super().find_stale_trials, study_id))
        return [] if self.patience.was_out_within(self.silence_allowed) else found

    def record_heartbeat(self, trial_id: int) -> None:
        """Write a heartbeat, or do without where it must be.

        Optuna calls this in a thread that would end with an error, and the trial would be taken for
        one whose worker died.
        """
        end = time.monotonic() + min(self.silence_allowed, self.patience.seconds)
        while True:
            try:
                super().record_heartbeat(trial_id)
            except (StorageInternalError, OSError) as error:
                reason = self.patience.reason_of(error)
                if reason is None or time.monotonic() > end:
                    logger.warning("A heartbeat could not be written: %s", reason or error)
                    return
                self.patience.note_failure(reason)
                time.sleep(_BEAT_PAUSE)
            else:
                self.patience.note_answer()
                return


def _is_copy(trial: FrozenTrial, template: FrozenTrial) -> bool:
    """Tell whether a trial is the copy of a template that was added.

    One that repeats others may have begun meanwhile, and is found by its history.
    """
    history = template.system_attrs.get(_HISTORY)
    if history:
        return bool(trial.system_attrs.get(_HISTORY) == history)
    return _content(trial) == _content(template)


def _content(trial: FrozenTrial) -> str:
    """Write what a storage keeps of a trial that waits or was added as a finished one."""
    params = {
        name: trial.distributions[name].to_internal_repr(value)
        for name, value in trial.params.items()
    }
    parts = (params, trial.values, trial.user_attrs, trial.system_attrs)
    times = (trial.datetime_start, trial.datetime_complete)
    return json.dumps([trial.state, parts, list(map(str, times))], sort_keys=True)
