"""Optuna's SQL storage with fewer statements, as a guided trial asks more than a plain one.

The tables are Optuna's, and so is what is written to them; any Optuna reads such a study. Optuna
itself sends a statement for each part of a trial and a transaction around each of them, which would
make up most of the time of a trial on a database across a network.
"""

import contextlib
import json
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy
from optuna.distributions import (
    BaseDistribution,
    check_distribution_compatibility,
    distribution_to_json,
    json_to_distribution,
)
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.storages._rdb.models import TrialHeartbeatModel, TrialModel, TrialValueModel
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

# Databases limit the number of values in a statement; so many unfinished trials are left to Optuna.
_MOST_IDS = 10_000

_OF_STUDY = "study_id = :study AND (trial_id > :after OR trial_id IN :ids)"
_OF_TRIAL = "trial_id IN :ids"
# Every part of a trial: what it is, the order of its rows, its name, a number, a text.
_PARTS = (
    "SELECT 'param', trial_id, param_id, param_name, param_value, distribution_json"
    " FROM trial_params",
    "SELECT 'value', trial_id, trial_value_id, CAST(objective AS VARCHAR), value,"
    " CAST(value_type AS VARCHAR) FROM trial_values",
    "SELECT 'user', trial_id, trial_user_attribute_id, key, NULL, value_json"
    " FROM trial_user_attributes",
    "SELECT 'system', trial_id, trial_system_attribute_id, key, NULL, value_json"
    " FROM trial_system_attributes",
    "SELECT 'step', trial_id, trial_intermediate_value_id, CAST(step AS VARCHAR),"
    " intermediate_value, CAST(intermediate_value_type AS VARCHAR) FROM trial_intermediate_values",
)
_NUMBERS = {"INF_POS": float("inf"), "INF_NEG": float("-inf"), "NAN": float("nan")}
_UPDATABLE = "state IN ('RUNNING', 'WAITING')"


def _with_ids(statement: str) -> sqlalchemy.TextClause:
    return sqlalchemy.text(statement).bindparams(sqlalchemy.bindparam("ids", expanding=True))


def _trials_and_parts(which: str) -> tuple[Any, sqlalchemy.TextClause]:
    trials = _with_ids(
        "SELECT trial_id, number, CAST(state AS VARCHAR) AS state, datetime_start,"
        f" datetime_complete FROM trials WHERE {which} ORDER BY trial_id"
    ).columns(datetime_start=sqlalchemy.DateTime, datetime_complete=sqlalchemy.DateTime)
    inside = f" WHERE trial_id IN (SELECT trial_id FROM trials WHERE {which})"
    return trials, _with_ids(" UNION ALL ".join(part + inside for part in _PARTS))


_BY_STUDY, _BY_TRIAL = _trials_and_parts(_OF_STUDY), _trials_and_parts(_OF_TRIAL)
_STUDY_ATTRIBUTES = sqlalchemy.text(
    "SELECT key, value_json FROM study_user_attributes WHERE study_id = :study"
)
_HEARTBEAT = sqlalchemy.text(
    "INSERT INTO trial_heartbeats (trial_id, heartbeat) VALUES (:trial, CURRENT_TIMESTAMP)"
    " ON CONFLICT (trial_id) DO UPDATE SET heartbeat = CURRENT_TIMESTAMP"
)
_ATTRIBUTE = {
    kind: sqlalchemy.text(
        f"INSERT INTO trial_{kind}_attributes (trial_id, key, value_json)"
        f" SELECT trial_id, :key, :value FROM trials WHERE trial_id = :trial AND {_UPDATABLE}"
        f" ON CONFLICT (trial_id, key) DO UPDATE SET value_json = excluded.value_json"
    )
    for kind in ("user", "system")
}


_PARAM = sqlalchemy.text(
    "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json)"
    " SELECT trial_id, :name, CAST(:number AS DOUBLE PRECISION), :distribution FROM trials"
    f" WHERE trial_id = :trial AND {_UPDATABLE}"
)
_VALUE = sqlalchemy.text(
    "INSERT INTO trial_values (trial_id, objective, value, value_type)"
    " VALUES (:trial, :objective, :number, :kind) ON CONFLICT (trial_id, objective)"
    " DO UPDATE SET value = excluded.value, value_type = excluded.value_type"
)


class SqlStorage(RDBStorage):
    """Optuna's storage in a SQLite or PostgreSQL database, in one or a few statements per call."""

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        with self._autocommit() as connection:
            rows = connection.execute(_STUDY_ATTRIBUTES, {"study": study_id}).all()
        if not rows:  # no attributes, or no such study
            return super().get_study_user_attrs(study_id)
        return {key: json.loads(value) for key, value in rows}

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        if not self._set_attribute("user", trial_id, key, value):
            super().set_trial_user_attr(trial_id, key, value)  # which says why it cannot be

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        if not self._set_attribute("system", trial_id, key, value):
            super().set_trial_system_attr(trial_id, key, value)

    def _set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
        previous_distribution: BaseDistribution | None,
    ) -> None:
        given = (trial_id, param_name, param_value_internal, distribution, previous_distribution)
        if previous_distribution is None:  # Optuna looks for another trial's
            super()._set_trial_param(*given)
            return
        check_distribution_compatibility(previous_distribution, distribution)
        asked = {
            "trial": trial_id,
            "name": param_name,
            "number": param_value_internal,
            "distribution": distribution_to_json(distribution),
        }
        # Another one that took the same waiting trial has set it already: not an error to Optuna.
        with contextlib.suppress(IntegrityError):
            with self._autocommit() as connection:
                is_set = connection.execute(_PARAM, asked).rowcount
            if not is_set:
                super()._set_trial_param(*given)

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        begins = state == TrialState.RUNNING
        trials = TrialModel.__table__
        allowed = (TrialState.WAITING,) if begins else (TrialState.WAITING, TrialState.RUNNING)
        change: dict[str, Any] = {"state": state}
        if begins or state.is_finished():
            now = datetime.now(UTC).replace(tzinfo=None)
            change["datetime_start" if begins else "datetime_complete"] = now
        update = trials.update().where(trials.c.trial_id == trial_id, trials.c.state.in_(allowed))
        with _clear_errors(), self.engine.begin() as connection:
            changed = connection.execute(update.values(change)).rowcount
            if changed and values is not None:
                connection.execute(_VALUE, [_value(trial_id, i, v) for i, v in enumerate(values)])
        if changed:
            return True
        return super().set_trial_state_values(trial_id, state, values)  # which says why it cannot

    def record_heartbeat(self, trial_id: int) -> None:
        with contextlib.suppress(IntegrityError), self._autocommit() as connection:
            connection.execute(_HEARTBEAT, {"trial": trial_id})

    def get_trial(self, trial_id: int) -> FrozenTrial:
        found = self._read(_BY_TRIAL, {"ids": [trial_id]})
        return found[0] if found else super().get_trial(trial_id)

    def _get_trials(
        self,
        study_id: int,
        states: Container[TrialState] | None,
        included_trial_ids: set[int],
        trial_id_greater_than: int,
    ) -> list[FrozenTrial]:
        ids = [i for i in included_trial_ids if i <= trial_id_greater_than]
        found = []
        if len(ids) <= _MOST_IDS:
            asked = {"study": study_id, "after": trial_id_greater_than, "ids": ids}
            found = self._read(_BY_STUDY, asked)
        if not found:  # nothing new, or no such study
            return super()._get_trials(study_id, states, included_trial_ids, trial_id_greater_than)
        return [trial for trial in found if states is None or trial.state in states]

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        assert self.heartbeat_interval is not None
        query = (
            sqlalchemy.select(
                sqlalchemy.func.now(), TrialModel.trial_id, TrialHeartbeatModel.heartbeat
            )
            .join(TrialHeartbeatModel, TrialHeartbeatModel.trial_id == TrialModel.trial_id)
            .where(TrialModel.study_id == study_id, TrialModel.state == TrialState.RUNNING)
        )
        grace = timedelta(seconds=self.grace_period or 2 * self.heartbeat_interval)
        with self._autocommit() as connection:
            rows = connection.execute(query).all()
        return [trial for now, trial, beat in rows if now.replace(tzinfo=None) - beat > grace]

    def _set_attribute(self, kind: str, trial_id: int, key: str, value: Any) -> bool:
        asked = {"trial": trial_id, "key": key, "value": json.dumps(value)}
        with self._autocommit() as connection:
            return bool(connection.execute(_ATTRIBUTE[kind], asked).rowcount)

    def _read(
        self, statements: tuple[Any, sqlalchemy.TextClause], asked: dict[str, Any]
    ) -> list[FrozenTrial]:
        """A trial that is finished has all its parts, so that the trials are read first."""
        with self._autocommit() as connection:
            trials = connection.execute(statements[0], asked).all()
            parts = connection.execute(statements[1], asked).all() if trials else []
        of_trial: defaultdict[int, list[Any]] = defaultdict(list)
        for part in sorted(parts, key=lambda part: part[2]):
            of_trial[part[1]].append(part)
        return [_frozen(trial, of_trial[trial.trial_id]) for trial in trials]

    @contextmanager
    def _autocommit(self) -> Iterator[sqlalchemy.Connection]:
        """A connection whose statements are transactions of their own."""
        with _clear_errors(), self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Errors of the database as Optuna raises them."""
    try:
        yield
    except IntegrityError:
        raise
    except SQLAlchemyError as error:
        raise StorageInternalError(
            f"The database did not answer as it should ({type(error).__name__}). Check that it "
            f"runs and can be reached."
        ) from error


def _value(trial_id: int, objective: int, value: float) -> dict[str, Any]:
    number, kind = TrialValueModel.value_to_stored_repr(value)
    return {"trial": trial_id, "objective": objective, "number": number, "kind": kind.name}


def _frozen(trial: Any, parts: list[Any]) -> FrozenTrial:
    by_kind: defaultdict[str, list[Any]] = defaultdict(list)
    for kind, _, _, name, number, text in parts:
        by_kind[kind].append((name, number, text))
    distributions = {name: json_to_distribution(text) for name, _, text in by_kind["param"]}
    values = {int(name): _number(number, text) for name, number, text in by_kind["value"]}
    return FrozenTrial(
        number=trial.number,
        state=TrialState[trial.state],
        value=None,
        values=[values[objective] for objective in sorted(values)] or None,
        datetime_start=_local(trial.datetime_start),
        datetime_complete=_local(trial.datetime_complete),
        params={
            name: distributions[name].to_external_repr(number)
            for name, number, _ in by_kind["param"]
        },
        distributions=distributions,
        user_attrs={name: json.loads(text) for name, _, text in by_kind["user"]},
        system_attrs={name: json.loads(text) for name, _, text in by_kind["system"]},
        intermediate_values={
            int(name): _number(number, text) for name, number, text in by_kind["step"]
        },
        trial_id=trial.trial_id,
    )


def _number(number: float | None, kind: str) -> float:
    return _NUMBERS[kind] if number is None else number


def _local(time: datetime | None) -> datetime | None:
    """Optuna keeps UTC and shows the time of the place."""
    return None if time is None else time.replace(tzinfo=UTC).astimezone().replace(tzinfo=None)
