"""What riskpilot needs of Optuna although Optuna does not publish it.

This is the only module that touches a name of Optuna's that begins with an underscore. A release of
Optuna that changes such a name is met here, and nowhere else.
"""

import inspect
from collections.abc import Container
from typing import Any, NamedTuple

import optuna
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages._heartbeat import BaseHeartbeat
from optuna.storages.journal import JournalFileBackend
from optuna.storages.journal._storage import JournalOperation
from optuna.trial import FrozenTrial, TrialState

# --- studies and trials --------------------------------------------------------------------------


def storage_of(study: optuna.Study) -> BaseStorage:
    """Return the storage that a study reads and writes."""
    return study._storage


def id_of(trial: optuna.Trial | FrozenTrial) -> int:
    """Return the number of a trial within its storage, which is not its number within its study."""
    return trial._trial_id


def get_trial(study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> FrozenTrial:
    """Read a trial from the storage as it stands now."""
    return storage_of(study).get_trial(id_of(trial))


def system_attrs_of(trial: optuna.Trial) -> dict[str, Any]:
    """Return the attributes that are not meant for users, as they were when the trial began."""
    return trial._cached_frozen_trial.system_attrs


def set_trial_state(study: optuna.Study, trial: FrozenTrial, state: TrialState) -> None:
    """Change the state of a trial that is not finished.

    Unlike ``study.tell``, this asks nothing of the study's sampler, and of several workers that
    finish the same trial all but one get an `optuna.exceptions.UpdateFinishedTrialError`.
    """
    storage_of(study).set_trial_state_values(id_of(trial), state=state)


def set_trial_system_attr(
    study: optuna.Study, trial: optuna.Trial | FrozenTrial, key: str, value: Any
) -> None:
    """Write an attribute of a trial that is not meant for users."""
    storage_of(study).set_trial_system_attr(id_of(trial), key, value)


def set_trial_user_attr(
    study: optuna.Study, trial: optuna.Trial | FrozenTrial, key: str, value: Any
) -> None:
    """Write an attribute of a trial, which may be known by its number alone."""
    storage_of(study).set_trial_user_attr(id_of(trial), key, value)


def trial_with_number(study: optuna.Study, number: int) -> FrozenTrial | None:
    """Read the trial of a study that has a number, or None where there is none."""
    storage = storage_of(study)
    try:
        found = storage.get_trial_id_from_study_id_trial_number(study._study_id, number)
    except KeyError:
        return None
    return storage.get_trial(found)


def fixed_params(trial: FrozenTrial) -> dict[str, Any]:
    """Return the values that ``study.enqueue_trial`` fixed for a trial."""
    fixed = trial.system_attrs.get("fixed_params", {})
    return fixed if isinstance(fixed, dict) else {}


def is_within(distribution: BaseDistribution, value: Any) -> bool:
    """Tell whether a value of the right kind lies in the range of a parameter, on its steps."""
    return distribution._contains(distribution.to_internal_repr(value))


class AdaptedTrial(optuna.Trial):
    """Optuna's trial, in which a subclass decides what a parameter gets of a queued value."""

    @classmethod
    def like(cls, trial: optuna.Trial) -> "AdaptedTrial":
        """Return a trial of this class that goes on where another one stands."""
        adapted = cls.__new__(cls)
        adapted.__dict__.update(trial.__dict__)
        return adapted

    def _is_fixed_param(self, name: str, distribution: BaseDistribution) -> bool:
        if name in self._fixed_params:
            value = self.queued_value(name, distribution, self._fixed_params[name])
            self._fixed_params = {**self._fixed_params, name: value}
        return super()._is_fixed_param(name, distribution)

    def queued_value(self, name: str, distribution: BaseDistribution, value: Any) -> Any:
        """Return what a parameter gets whose value ``study.enqueue_trial`` fixed."""
        raise NotImplementedError


def stale_trial_ids(study: optuna.Study) -> set[int]:
    """Return the ids of running trials whose last heartbeat is too long ago; none without beats."""
    storage = storage_of(study)
    if not isinstance(storage, BaseHeartbeat) or storage.get_heartbeat_interval() is None:
        return set()
    return set(storage._get_stale_trial_ids(study._study_id))


def is_optimizing(study: optuna.Study) -> bool:
    """Tell whether this thread is inside ``study.optimize``."""
    return bool(getattr(study._thread_local, "in_optimize_loop", False))


def was_told_to_stop(study: optuna.Study) -> bool:
    """Tell whether a callback of the last ``study.optimize`` asked it to stop."""
    return study._stop_flag


# --- storages ------------------------------------------------------------------------------------


def as_storage(storage: str | BaseStorage) -> BaseStorage:
    """Open an address as Optuna does, and put Optuna's cache before an SQL storage.

    The function has no underscore, but says that it is for Optuna's own use.
    """
    return optuna.storages.get_storage(storage)


def behind_cache(storage: object) -> object:
    """Return what is behind Optuna's cache: an SQL storage, or the file of a journal."""
    return getattr(storage, "_backend", storage)


def sql_storage_of(storage: object) -> RDBStorage | None:
    """Return the SQL storage that a storage is, or that Optuna's cache stands before, or None."""
    behind = behind_cache(storage)
    return behind if isinstance(behind, RDBStorage) else None


def journal_file_of(storage: JournalStorage) -> str | None:
    """Return the path of a journal, or None where it is not in a file."""
    path = getattr(getattr(storage, "_backend", None), "_file_path", None)
    return None if path is None else str(path)


def end_of_known_lines(file: JournalFileBackend) -> int:
    """Return where the last line ends that was read of a journal."""
    return next(reversed(file._log_number_offset.values()))


def is_change(line: object) -> bool:
    """Tell whether a line of a journal is a change of a kind that Optuna knows, of some worker."""
    return (
        isinstance(line, dict)
        and isinstance(line.get("worker_id"), str)
        and line.get("op_code") in [operation.value for operation in JournalOperation]
    )


def distributions_in(change: dict[str, Any]) -> list[str]:
    """Return the distributions of parameters that a line of a journal writes, each as JSON."""
    of_parameter, of_trial = change.get("distribution"), change.get("distributions", {})
    return [*([] if of_parameter is None else [of_parameter]), *of_trial.values()]


class AdaptedJournal(JournalStorage, BaseHeartbeat):
    """Optuna's journal as a storage that may have heartbeats, under names of our own."""

    def _sync_with_backend(self) -> None:
        self.read_changes()

    def read_changes(self) -> None:
        """Read the lines of the journal that are new, and change the studies as they say."""
        super()._sync_with_backend()

    def is_own(self, change: dict[str, Any]) -> bool:
        """Tell whether this worker wrote a line of the journal."""
        return self._replay_result._is_issued_by_this_worker(change)

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        return self.find_stale_trials(study_id)

    def find_stale_trials(self, study_id: int) -> list[int]:
        """Return the ids of running trials whose last heartbeat is too long ago."""
        raise NotImplementedError


class AdaptedMemory(InMemoryStorage, BaseHeartbeat):
    """Optuna's storage in memory as one that may have heartbeats, under names of our own."""

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        return self.find_stale_trials(study_id)

    def find_stale_trials(self, study_id: int) -> list[int]:
        """Return the ids of running trials whose last heartbeat is too long ago."""
        raise NotImplementedError


class NewParam(NamedTuple):
    """A parameter that a trial gets; ``previous`` is its distribution in another trial, if any."""

    name: str
    value: float
    distribution: BaseDistribution
    previous: BaseDistribution | None


class AdaptedStorage(RDBStorage):
    """Optuna's SQL storage, in which methods that Optuna does not publish have names of our own.

    Optuna calls the method with an underscore. That one calls the method below it, which a subclass
    may replace; as it stands here, it does what Optuna does.
    """

    def _create_new_trial(
        self, study_id: int, template_trial: FrozenTrial | None = None
    ) -> FrozenTrial:
        return self.add_trial(study_id, template_trial)

    def add_trial(self, study_id: int, template_trial: FrozenTrial | None) -> FrozenTrial:
        """Add a trial to a study, as a copy of the template where one is given."""
        return super()._create_new_trial(study_id, template_trial)

    def _set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
        previous_distribution: BaseDistribution | None,
    ) -> None:
        self.add_param(
            trial_id,
            NewParam(param_name, param_value_internal, distribution, previous_distribution),
        )

    def add_param(self, trial_id: int, param: NewParam) -> None:
        """Write a parameter of a trial."""
        super()._set_trial_param(trial_id, *param)

    def _get_trials(
        self,
        study_id: int,
        states: Container[TrialState] | None,
        included_trial_ids: set[int],
        trial_id_greater_than: int,
    ) -> list[FrozenTrial]:
        return self.find_trials(study_id, states, included_trial_ids, trial_id_greater_than)

    def find_trials(
        self,
        study_id: int,
        states: Container[TrialState] | None,
        ids: set[int],
        after: int,
    ) -> list[FrozenTrial]:
        """Read the trials of a study that have one of these ids or an id above ``after``."""
        return super()._get_trials(study_id, states, ids, after)

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        return self.find_stale_trials(study_id)

    def find_stale_trials(self, study_id: int) -> list[int]:
        """Return the ids of running trials whose last heartbeat is too long ago."""
        return super()._get_stale_trial_ids(study_id)


# --- is Optuna what riskpilot's own SQL statements expect? ---------------------------------------

_MAJOR_VERSION = 5
# The tables that riskpilot's SQL statements name, with all of their columns.
_COLUMNS = {
    "studies": "study_id study_name",
    "trials": "trial_id number study_id state datetime_start datetime_complete",
    "trial_params": "param_id trial_id param_name param_value distribution_json",
    "trial_values": "trial_value_id trial_id objective value value_type",
    "trial_intermediate_values": "trial_intermediate_value_id trial_id step intermediate_value"
    " intermediate_value_type",
    "trial_user_attributes": "trial_user_attribute_id trial_id key value_json",
    "trial_system_attributes": "trial_system_attribute_id trial_id key value_json",
    "trial_heartbeats": "trial_heartbeat_id trial_id heartbeat",
    "study_user_attributes": "study_user_attribute_id study_id key value_json",
}
# All tables that Optuna makes.
TABLES = frozenset(_COLUMNS) | {
    "study_directions",
    "study_system_attributes",
    "version_info",
    "alembic_version",
}


def unexpected(ours: type[RDBStorage]) -> str | None:
    """Say what forbids a storage class of our own with the Optuna that is installed.

    Returns None where Optuna has the major version that the class was written for, every method
    that the class replaces exists with the same parameters, and the tables are the known ones.
    """
    if not optuna.__version__.startswith(f"{_MAJOR_VERSION}."):
        return f"its version is {optuna.__version__}, not {_MAJOR_VERSION}"
    return _unexpected_methods(ours) or _unexpected_tables()


def _unexpected_methods(ours: type[RDBStorage]) -> str | None:
    """Name a method of Optuna's that a class replaces and that is gone or takes other arguments."""
    for cls in ours.__mro__[: ours.__mro__.index(RDBStorage)]:
        for name, method in vars(cls).items():
            theirs = getattr(RDBStorage, name, None)
            is_our_own = theirs is None and not name.startswith("_")
            if is_our_own or not inspect.isfunction(method):
                continue
            if theirs is None:
                return f"RDBStorage has no method {name}"
            if list(inspect.signature(method).parameters) != _parameters(theirs):
                return f"RDBStorage.{name} takes other arguments"
    return None


def _unexpected_tables() -> str | None:
    """Name a table of Optuna's that has other columns or another meaning than riskpilot knows."""
    try:
        from optuna.storages._rdb.models import BaseModel, TrialModel  # they load SQLAlchemy
    except ImportError:
        return "its tables are not described where they were"
    tables = BaseModel.metadata.tables
    for name, columns in _COLUMNS.items():
        if name not in tables or set(tables[name].columns.keys()) != set(columns.split()):
            return f"it has no table {name} with the known columns"
    # Before Optuna 5 the same columns held local times, and the attribute had another name.
    if not hasattr(TrialModel, "_datetime_start_utc"):
        return "it does not say that the times of trials are UTC"
    return None


def _parameters(method: Any) -> list[str]:
    """Return the names of the parameters of a method; none where it is not a function."""
    return list(inspect.signature(method).parameters) if callable(method) else []
