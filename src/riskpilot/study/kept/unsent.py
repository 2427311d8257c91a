"""Records of trials that could not be written to the storage, kept beside the losses until then.

A worker may end, or be ended, while it waits for its storage. The worker that takes its trial over
finds the record here, and nothing is evaluated again.
"""

import contextlib
import io
import json
import uuid
from collections.abc import Iterable
from typing import Any

import optuna
from optuna.artifacts.exceptions import ArtifactNotFound
from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial

from riskpilot.common import parse, read_json_stream
from riskpilot.errors import StudyError
from riskpilot.study.kept.attributes import settings_of
from riskpilot.study.kept.loss_store import store_of
from riskpilot.study.kept.records import RECORD_KEY, Record
from riskpilot.study.storages import StorageUnreachableError, hurried, set_trial_user_attr

_NAMESPACE = uuid.UUID("6f0d4a52-5d1c-4a43-9a3e-6c1d1f0b7a11")


class UnsentRecords:
    """The records of one study that wait beside its losses.

    The study is read when this is made, because its storage may be away when it is used.
    """

    def __init__(self, study: optuna.Study) -> None:
        self._study = study
        self._store = store_of(study)
        # Two studies of the same name may share a folder of losses, but not what they drew.
        self._prefix = f"{study.study_name} {settings_of(study).get('entropy')}"

    def send(self, trial: optuna.Trial | FrozenTrial, record: Record) -> None:
        """Write a record to its trial; keep it beside the losses while the storage is away."""
        stored = record.to_json()
        try:
            with hurried():
                set_trial_user_attr(self._study, trial, RECORD_KEY, stored)
        except (StorageUnreachableError, StorageInternalError):
            self._store.write(self._name(trial.number), io.BytesIO(json.dumps(stored).encode()))
            set_trial_user_attr(self._study, trial, RECORD_KEY, stored)
            self._remove(trial.number)

    def of(self, numbers: Iterable[int]) -> Any:
        """Return the record that was kept for one of some trials, as JSON; None without one."""
        for number in numbers:
            with (
                contextlib.suppress(ArtifactNotFound, ValueError),
                self._store.open_reader(self._name(number)) as reader,
            ):
                return parse(read_json_stream(reader, "A record of a trial", StudyError))
        return None

    def _name(self, number: int) -> str:
        """Return the name under which the record of a trial is kept."""
        return str(uuid.uuid5(_NAMESPACE, f"{self._prefix} {number}"))

    def _remove(self, number: int) -> None:
        """Remove the record of a trial that has it by now; not every store can do that."""
        remove = getattr(self._store, "remove", None)
        if remove is not None:
            remove(self._name(number))
