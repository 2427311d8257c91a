"""The trial of a worker that died is queued again, a few times."""

import warnings
from collections.abc import Callable

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.trial import FrozenTrial

_RETRIES = 3


def queue_again() -> Callable[[optuna.Study, FrozenTrial], None]:
    """Return the callback that queues a failed trial with the same configuration, a few times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=_RETRIES)
