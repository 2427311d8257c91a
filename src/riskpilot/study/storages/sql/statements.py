"""The SQL statements, in words that SQLite and PostgreSQL both understand."""

from typing import Any, NamedTuple

import sqlalchemy
from optuna.trial import TrialState

# --- reading -------------------------------------------------------------------------------------

# All parts of a trial in one form: kind, trial, position among its rows, name, number, text.
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


class TrialQueries(NamedTuple):
    """Two queries about the same trials: one for the trials, one for their parts."""

    trials: Any
    parts: sqlalchemy.TextClause


def _with_ids(statement: str) -> sqlalchemy.TextClause:
    """Return a statement whose ``:ids`` takes a list."""
    return sqlalchemy.text(statement).bindparams(sqlalchemy.bindparam("ids", expanding=True))


def _queries(which: str) -> TrialQueries:
    """Write the queries for the trials that a condition selects."""
    trials = _with_ids(
        "SELECT trial_id, number, CAST(state AS VARCHAR) AS state, datetime_start,"
        f" datetime_complete FROM trials WHERE {which} ORDER BY trial_id"
    ).columns(datetime_start=sqlalchemy.DateTime, datetime_complete=sqlalchemy.DateTime)
    inside = f" WHERE trial_id IN (SELECT trial_id FROM trials WHERE {which})"
    return TrialQueries(trials, _with_ids(" UNION ALL ".join(part + inside for part in _PARTS)))


# Two conditions joined by OR would make a database look at every trial of the study.
TRIALS_OF_STUDY = _queries(
    "trial_id IN (SELECT trial_id FROM trials WHERE study_id = :study AND trial_id > :after"
    " UNION SELECT trial_id FROM trials WHERE study_id = :study AND trial_id IN :ids)"
)
TRIALS_BY_ID = _queries("trial_id IN :ids")

STUDY_ATTRIBUTES = sqlalchemy.text(
    "SELECT key, value_json FROM study_user_attributes WHERE study_id = :study"
)


def _heartbeats(last: str) -> Any:
    """Write the query for the last heartbeats of running trials, and for the database's time."""
    return sqlalchemy.text(
        f"SELECT CURRENT_TIMESTAMP AS now, trials.trial_id AS trial_id, {last} AS heartbeat"
        " FROM trials JOIN trial_heartbeats ON trial_heartbeats.trial_id = trials.trial_id"
        " WHERE study_id = :study AND state = 'RUNNING'"
    ).columns(now=sqlalchemy.DateTime, heartbeat=sqlalchemy.DateTime)


HEARTBEATS = {
    "sqlite": _heartbeats("heartbeat"),
    # A server that was down could not take heartbeats, so that time counts from its start.
    "postgresql": _heartbeats(
        "GREATEST(heartbeat, CAST(pg_postmaster_start_time() AS TIMESTAMP WITHOUT TIME ZONE))"
    ),
}

# --- writing -------------------------------------------------------------------------------------

_NOT_FINISHED = "state IN ('RUNNING', 'WAITING')"

SET_HEARTBEAT = sqlalchemy.text(
    "INSERT INTO trial_heartbeats (trial_id, heartbeat) VALUES (:trial, CURRENT_TIMESTAMP)"
    " ON CONFLICT (trial_id) DO UPDATE SET heartbeat = CURRENT_TIMESTAMP"
)
SET_ATTRIBUTE = {
    kind: sqlalchemy.text(
        f"INSERT INTO trial_{kind}_attributes (trial_id, key, value_json)"
        f" SELECT trial_id, :key, :value FROM trials WHERE trial_id = :trial AND {_NOT_FINISHED}"
        f" ON CONFLICT (trial_id, key) DO UPDATE SET value_json = excluded.value_json"
    )
    for kind in ("user", "system")
}
ADD_PARAM = sqlalchemy.text(
    "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json)"
    " SELECT trial_id, :name, CAST(:number AS DOUBLE PRECISION), :distribution FROM trials"
    f" WHERE trial_id = :trial AND {_NOT_FINISHED}"
)
SET_VALUE = sqlalchemy.text(
    "INSERT INTO trial_values (trial_id, objective, value, value_type)"
    " VALUES (:trial, :objective, :number, :kind) ON CONFLICT (trial_id, objective)"
    " DO UPDATE SET value = excluded.value, value_type = excluded.value_type"
)


def _state_change(state: TrialState, time: str, allowed: str) -> sqlalchemy.TextClause:
    """Write the change of a trial to a state, with the column that keeps the time of it.

    A connection may be cut after the change was made and before that was said. The same change at
    the same time is therefore made again without complaint.
    """
    return sqlalchemy.text(
        f"UPDATE trials SET state = '{state.name}', {time} = :now WHERE trial_id = :trial"
        f" AND ({allowed} OR (state = '{state.name}' AND {time} = :now))"
    ).bindparams(sqlalchemy.bindparam("now", type_=sqlalchemy.DateTime))


SET_STATE = {
    TrialState.RUNNING: _state_change(TrialState.RUNNING, "datetime_start", "state = 'WAITING'"),
    **{
        state: _state_change(state, "datetime_complete", _NOT_FINISHED)
        for state in TrialState
        if state.is_finished()
    },
}
