"""SQL storages that wait for their database, and try again what a cut connection interrupted."""

import functools
import itertools
import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial

from riskpilot.study.storages.patience import Patience, stand_in
from riskpilot.study.storages.sql.storage import SqlStorage

logger = logging.getLogger("riskpilot")

_HISTORY = "retry_history"  # where Optuna keeps the numbers of the trials that a trial repeats
_BEAT_PAUSE = 1.0  # seconds between two attempts to write a heartbeat

Method = Callable[..., Any]
Storage = TypeVar("Storage", bound=type[SqlStorage])


def patient(cls: Storage) -> Storage:
    """Let the methods of a storage class wait for a database that does not answer."""
    for name, waiting in _WAITING.items():
        setattr(cls, name, waiting(getattr(cls, name)))
    return cls


def _repeated(method: Method) -> Method:
    """Return a method that is called again while the database does not answer."""

    @functools.wraps(method)
    def patiently(self: SqlStorage, *args: Any, **kwargs: Any) -> Any:
        return self.patience(lambda: method(self, *args, **kwargs))

    return patiently


def _added_once(method: Method) -> Method:
    """Return the method that adds a trial, which does not queue a retry a second time.

    A connection may be cut after the database has added the trial and before it could say so. A
    trial that was to be evaluated anew is found by its history; any other that was added so is
    never heard of, and is given to another worker.
    """

    @functools.wraps(method)
    def add_trial(self: SqlStorage, study_id: int, template: FrozenTrial | None) -> FrozenTrial:
        attempts = itertools.count()

        def attempt() -> FrozenTrial:
            history = None if template is None else template.system_attrs.get(_HISTORY)
            if next(attempts) and history:
                for trial in self.get_all_trials(study_id, deepcopy=False):
                    if trial.system_attrs.get(_HISTORY) == history:
                        return trial
            added: FrozenTrial = method(self, study_id, template)
            return added

        return self.patience(attempt)

    return add_trial


def _answering(method: Method) -> Method:
    """Return the method that reads a trial, with an answer for Optuna where there is none."""
    repeated = _repeated(method)

    @functools.wraps(method)
    def get_trial(self: SqlStorage, trial_id: int) -> FrozenTrial:
        stood_in = stand_in(trial_id)
        trial: FrozenTrial = repeated(self, trial_id) if stood_in is None else stood_in
        return trial

    return get_trial


def _lenient(method: Method) -> Method:
    """Return the method that finds silent trials, which finds none right after an outage.

    Workers that live could not write heartbeats meanwhile, and need a moment to do so.
    """
    repeated = _repeated(method)

    @functools.wraps(method)
    def find_stale_trials(self: SqlStorage, study_id: int) -> list[int]:
        found: list[int] = repeated(self, study_id)
        return [] if self.patience.was_out_within(self.silence_allowed) else found

    return find_stale_trials


def _quiet(method: Method) -> Method:
    """Return the method that writes a heartbeat, which does without where it must.

    Optuna calls it in a thread that would end with an error, and the trial would be taken for one
    whose worker died.
    """

    @functools.wraps(method)
    def record_heartbeat(self: SqlStorage, trial_id: int) -> None:
        patience: Patience = self.patience
        end = time.monotonic() + min(self.silence_allowed, patience.seconds)
        while True:
            try:
                method(self, trial_id)
            except (StorageInternalError, OSError) as error:
                reason = patience.reason_of(error)
                if reason is None or time.monotonic() > end:
                    logger.warning("A heartbeat could not be written: %s", reason or error)
                    return
                patience.note_failure(reason)
                time.sleep(_BEAT_PAUSE)
            else:
                patience.note_answer()
                return

    return record_heartbeat


# Every call to the database may be made twice.
_WAITING: dict[str, Callable[[Method], Method]] = {
    "create_new_study": _repeated,
    "set_study_user_attr": _repeated,
    "set_study_system_attr": _repeated,
    "get_study_id_from_name": _repeated,
    "get_study_name_from_id": _repeated,
    "get_study_directions": _repeated,
    "get_study_user_attrs": _repeated,
    "get_study_system_attrs": _repeated,
    "get_all_studies": _repeated,
    "add_trial": _added_once,
    "add_param": _repeated,
    "change_state": _repeated,
    "set_trial_intermediate_value": _repeated,
    "set_trial_user_attr": _repeated,
    "set_trial_system_attr": _repeated,
    "get_trial_id_from_study_id_trial_number": _repeated,
    "find_trials": _repeated,
    "get_trial": _answering,
    "find_stale_trials": _lenient,
    "record_heartbeat": _quiet,
}
