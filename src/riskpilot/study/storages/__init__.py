"""Storages, opened by their address; locks between workers; the trials of workers that died.

What Optuna does not publish is touched in `optuna_internals` alone. SQLAlchemy is loaded by
`sql` alone, when a database is opened.
"""

from riskpilot.study.storages.addresses import hide_password, is_storage, without_password
from riskpilot.study.storages.heartbeats import (
    GRACE_SECONDS,
    HEARTBEAT_SECONDS,
    fail_overdue_trials,
    fail_silent_trials,
    has_heartbeat,
)
from riskpilot.study.storages.location import (
    SameFile,
    address_of,
    earlier_names_of,
    file_of,
    is_in_memory,
)
from riskpilot.study.storages.locks import exclusive, file_lock
from riskpilot.study.storages.opening import clear_errors, existing_storage, open_storage
from riskpilot.study.storages.optuna_internals import (
    AdaptedTrial,
    as_storage,
    fixed_params,
    get_trial,
    is_optimizing,
    is_within,
    set_trial_state,
    set_trial_system_attr,
    set_trial_user_attr,
    storage_of,
    system_attrs_of,
    trial_with_number,
    was_told_to_stop,
)
from riskpilot.study.storages.patience import (
    PATIENCE_SECONDS,
    Patience,
    StorageUnreachableError,
    disk_reason,
    hurried,
    patience_with,
    unless_away,
)
from riskpilot.study.storages.reading import seconds_between, seconds_running, trials_of
from riskpilot.study.storages.still import silent_trials, stand_still

__all__ = [
    "GRACE_SECONDS",
    "HEARTBEAT_SECONDS",
    "PATIENCE_SECONDS",
    "AdaptedTrial",
    "Patience",
    "SameFile",
    "StorageUnreachableError",
    "address_of",
    "as_storage",
    "clear_errors",
    "disk_reason",
    "earlier_names_of",
    "exclusive",
    "existing_storage",
    "fail_overdue_trials",
    "fail_silent_trials",
    "file_lock",
    "file_of",
    "fixed_params",
    "get_trial",
    "has_heartbeat",
    "hide_password",
    "hurried",
    "is_in_memory",
    "is_optimizing",
    "is_storage",
    "is_within",
    "open_storage",
    "patience_with",
    "seconds_between",
    "seconds_running",
    "set_trial_state",
    "set_trial_system_attr",
    "set_trial_user_attr",
    "silent_trials",
    "stand_still",
    "storage_of",
    "system_attrs_of",
    "trial_with_number",
    "trials_of",
    "unless_away",
    "was_told_to_stop",
    "without_password",
]
