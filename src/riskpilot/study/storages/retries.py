"""The trial of a worker that died is queued again, a few times."""

from collections.abc import Callable

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.trial import FrozenTrial

from riskpilot.common import unwarned

_RETRIES = 3


def queue_again() -> Callable[[optuna.Study, FrozenTrial], None]:
    """Return the callback that queues a failed trial with the same configuration, a few times."""
    with unwarned(ExperimentalWarning):
        return optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=_RETRIES)
