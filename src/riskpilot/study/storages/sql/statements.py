"""The SQL statements, in words that SQLite and PostgreSQL both understand."""

from typing import Any

import sqlalchemy
from optuna.trial import TrialState

# --- reading -------------------------------------------------------------------------------------

# A trial and all its parts in one form: kind, trial, position among its rows, name, number, text,
# begin and end. One statement sees one moment, so that a trial that is finished has all its parts.
_ROWS = (
    "SELECT 'trial' AS kind, trial_id, number AS position, CAST(state AS VARCHAR) AS name,"
    " NULL AS number, NULL AS text, datetime_start AS begun, datetime_complete AS ended"
    " FROM trials",
    "SELECT 'param', trial_id, param_id, param_name, param_value, distribution_json, NULL, NULL"
    " FROM trial_params",
    "SELECT 'value', trial_id, trial_value_id, CAST(objective AS VARCHAR), value,"
    " CAST(value_type AS VARCHAR), NULL, NULL FROM trial_values",
    "SELECT 'user', trial_id, trial_user_attribute_id, key, NULL, value_json, NULL, NULL"
    " FROM trial_user_attributes",
    "SELECT 'system', trial_id, trial_system_attribute_id, key, NULL, value_json, NULL, NULL"
    " FROM trial_system_attributes",
    "SELECT 'step', trial_id, trial_intermediate_value_id, CAST(step AS VARCHAR),"
    " intermediate_value, CAST(intermediate_value_type AS VARCHAR), NULL, NULL"
    " FROM trial_intermediate_values",
)
# That a study has nothing new is something else than that there is no such study.
_STUDY = (
    "SELECT 'study', NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM studies WHERE study_id = :study"
)


def _query(which: str, *more: str) -> Any:
    """Write the query for the trials that a condition on their ids selects; ``:ids`` is a list."""
    selects = [f"{rows} WHERE trial_id IN {which}" for rows in _ROWS]
    return (
        sqlalchemy.text(" UNION ALL ".join([*selects, *more]))
        .bindparams(sqlalchemy.bindparam("ids", expanding=True))
        .columns(begun=sqlalchemy.DateTime, ended=sqlalchemy.DateTime)
    )


# Two conditions joined by OR would make a database look at every trial of the study.
TRIALS_OF_STUDY = _query(
    "(SELECT trial_id FROM trials WHERE study_id = :study AND trial_id > :after"
    " UNION SELECT trial_id FROM trials WHERE study_id = :study AND trial_id IN :ids)",
    _STUDY,
)
TRIALS_BY_ID = _query(":ids")

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

# Trials are counted and the next one is added in one statement, between whose parts SQLite lets
# nobody else write. PostgreSQL would count before it waits for another worker, so that the study is
# locked before, as Optuna does.
ADD_TRIAL_TO_SQLITE = sqlalchemy.text(
    "INSERT INTO trials (number, study_id, state, datetime_start)"
    " SELECT (SELECT COUNT(*) FROM trials WHERE study_id = :study), study_id, 'RUNNING', :now"
    " FROM studies WHERE study_id = :study"
).bindparams(sqlalchemy.bindparam("now", type_=sqlalchemy.DateTime))
LOCK_STUDY = sqlalchemy.text("SELECT 1 FROM studies WHERE study_id = :study FOR UPDATE")
ADD_TRIAL_TO_POSTGRESQL = sqlalchemy.text(
    "INSERT INTO trials (number, study_id, state, datetime_start)"
    " VALUES ((SELECT COUNT(*) FROM trials WHERE study_id = :study), :study, 'RUNNING', :now)"
    " RETURNING trial_id"
).bindparams(sqlalchemy.bindparam("now", type_=sqlalchemy.DateTime))
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
