"""A study that stands still: what its storage held at one moment, which nothing changes.

Whoever computes several things from a study under way would otherwise read it several times, and a
trial that finishes between two readings makes them contradict each other.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from riskpilot.study.storages.optuna_internals import (
    AdaptedMemory,
    id_of,
    stale_trial_ids,
    storage_of,
)
from riskpilot.study.storages.reading import trials_of


class StillStorage(AdaptedMemory):
    """A storage of one study, which can be read only; Optuna finds no study to change in it."""

    def __init__(
        self,
        directions: Sequence[StudyDirection],
        attributes: Mapping[str, Any],
        trials: Sequence[FrozenTrial],
        heartbeat_interval: int | None,
        stale: Sequence[int],
    ) -> None:
        super().__init__()
        self._still_directions = list(directions)
        self._still_attributes = dict(attributes)
        self._still_trials = list(trials)
        self._interval = heartbeat_interval
        self._stale = list(stale)

    def get_study_id_from_name(self, study_name: str) -> int:
        """Return 0: there is one study, whatever its name."""
        return 0

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        """Return the directions of the objectives."""
        return self._still_directions

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        """Return the attributes of the study."""
        return dict(self._still_attributes)

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """Return the trials themselves, or those in some states; they are not copied."""
        return [trial for trial in self._still_trials if states is None or trial.state in states]

    def get_heartbeat_interval(self) -> int | None:
        """Return how often workers say that they live, in seconds."""
        return self._interval

    def record_heartbeat(self, trial_id: int) -> None:
        """Do nothing: no worker runs here."""

    def get_heartbeat_stale_trial_callback(
        self,
    ) -> Callable[[optuna.Study, FrozenTrial], None] | None:
        """Return nothing to call: no trial is failed here."""
        return None

    def find_stale_trials(self, study_id: int) -> list[int]:
        """Return the ids of running trials whose last heartbeat was too long ago."""
        return self._stale


def stand_still(study: optuna.Study, attributes: Mapping[str, Any]) -> optuna.Study:
    """Read a study once, and return it as it is now; what happens later does not change it.

    ``attributes``: those of the study, which were read before.
    """
    storage = storage_of(study)
    if isinstance(storage, StillStorage):
        return study
    stale = sorted(stale_trial_ids(study))
    copy = StillStorage(study.directions, attributes, trials_of(study), _interval(storage), stale)
    return optuna.Study(study.study_name, copy, study.sampler)


def silent_trials(study: optuna.Study) -> frozenset[int]:
    """Return the numbers of running trials whose workers have been silent for too long."""
    stale = stale_trial_ids(study)
    running = trials_of(study, (TrialState.RUNNING,))
    return frozenset(trial.number for trial in running if id_of(trial) in stale)


def _interval(storage: BaseStorage) -> int | None:
    """Return how often workers write heartbeats into a storage; None where they do not."""
    interval = getattr(storage, "get_heartbeat_interval", None)
    return None if interval is None else interval()
