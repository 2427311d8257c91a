"""Optuna's SQL storage with fewer statements, because a guided trial asks more than a plain one.

The tables are Optuna's, and so is what is written to them: any Optuna reads such a study. Optuna
itself sends a statement for each part of a trial and a transaction around each of them, which would
make up most of the time of a trial on a database across a network.
"""

import contextlib
import functools
import json
from collections.abc import Container, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from optuna.distributions import (
    check_distribution_compatibility,
    distribution_to_json,
)
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import IntegrityError

from riskpilot.study.storages.optuna_internals import AdaptedStorage, NewParam
from riskpilot.study.storages.patience import Patience
from riskpilot.study.storages.sql import statements
from riskpilot.study.storages.sql.connections import clear_errors, new_patience, one_statement
from riskpilot.study.storages.sql.rows import read_trials, value_row

# Databases limit the number of values in a statement. More unfinished trials are left to Optuna.
_MOST_IDS = 10_000


class SqlStorage(AdaptedStorage):
    """Optuna's storage in a SQLite or PostgreSQL database, in one or a few statements per call.

    Where a statement changes or finds nothing, Optuna's own method is called: it knows the reason
    and raises the error that belongs to it.
    """

    @functools.cached_property
    def patience(self) -> Patience:
        """How long the database is waited for, and what was said about that."""
        return new_patience(self.url)

    @property
    def silence_allowed(self) -> float:
        """Seconds without a heartbeat after which a worker is taken for dead."""
        assert self.heartbeat_interval is not None
        return self.grace_period or 2 * self.heartbeat_interval

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        with one_statement(self.engine) as connection:
            rows = connection.execute(statements.STUDY_ATTRIBUTES, {"study": study_id}).all()
        if not rows:  # no attributes, or no such study
            return super().get_study_user_attrs(study_id)
        return {key: json.loads(value) for key, value in rows}

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        if not self.set_attribute("user", trial_id, key, value):
            super().set_trial_user_attr(trial_id, key, value)

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        if not self.set_attribute("system", trial_id, key, value):
            super().set_trial_system_attr(trial_id, key, value)

    def set_attribute(self, kind: str, trial_id: int, key: str, value: Any) -> bool:
        """Write an attribute of a trial, and tell whether there is such a trial to write to."""
        given = {"trial": trial_id, "key": key, "value": json.dumps(value)}
        with one_statement(self.engine) as connection:
            return bool(connection.execute(statements.SET_ATTRIBUTE[kind], given).rowcount)

    def add_param(self, trial_id: int, param: NewParam) -> None:
        if param.previous is None:  # Optuna looks for another trial's
            super().add_param(trial_id, param)
            return
        check_distribution_compatibility(param.previous, param.distribution)
        given = {
            "trial": trial_id,
            "name": param.name,
            "number": param.value,
            "distribution": distribution_to_json(param.distribution),
        }
        # Another worker that took the same waiting trial may have written the parameter already.
        # That is not an error to Optuna, either.
        with contextlib.suppress(IntegrityError):
            with one_statement(self.engine) as connection:
                is_set = connection.execute(statements.ADD_PARAM, given).rowcount
            if not is_set:
                super().add_param(trial_id, param)

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        now = datetime.now(UTC).replace(tzinfo=None)
        return self.change_state(trial_id, state, values, now)

    def change_state(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None, now: datetime
    ) -> bool:
        """Change the state of a trial; the same change at the same time may be made again."""
        changed = 0
        if state in statements.SET_STATE:
            given = {"trial": trial_id, "now": now}
            with clear_errors(), self.engine.begin() as connection:
                changed = connection.execute(statements.SET_STATE[state], given).rowcount
                if changed and values is not None:
                    rows = [value_row(trial_id, i, value) for i, value in enumerate(values)]
                    connection.execute(statements.SET_VALUE, rows)
        return bool(changed) or super().set_trial_state_values(trial_id, state, values)

    def record_heartbeat(self, trial_id: int) -> None:
        # A heartbeat of a trial that was deleted meanwhile breaks a constraint, and is not missed.
        with contextlib.suppress(IntegrityError), one_statement(self.engine) as connection:
            connection.execute(statements.SET_HEARTBEAT, {"trial": trial_id})

    def get_trial(self, trial_id: int) -> FrozenTrial:
        with one_statement(self.engine) as connection:
            found = read_trials(connection, statements.TRIALS_BY_ID, {"ids": [trial_id]})
        return found[0] if found else super().get_trial(trial_id)

    def find_trials(
        self,
        study_id: int,
        states: Container[TrialState] | None,
        ids: set[int],
        after: int,
    ) -> list[FrozenTrial]:
        below = [i for i in ids if i <= after]
        found = None
        if len(below) <= _MOST_IDS:
            given = {"study": study_id, "after": after, "ids": below}
            with one_statement(self.engine) as connection:
                found = read_trials(connection, statements.TRIALS_OF_STUDY, given)
        if found is None:  # no such study, or too many of its trials
            return super().find_trials(study_id, states, ids, after)
        return [trial for trial in found if states is None or trial.state in states]

    def find_stale_trials(self, study_id: int) -> list[int]:
        grace = timedelta(seconds=self.silence_allowed)
        with one_statement(self.engine) as connection:
            query = statements.HEARTBEATS[self.engine.dialect.name]
            rows = connection.execute(query, {"study": study_id}).all()
        return [
            row.trial_id for row in rows if row.now.replace(tzinfo=None) - row.heartbeat > grace
        ]
