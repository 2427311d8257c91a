"""Trials from the rows of Optuna's tables."""

import json
import math
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

import sqlalchemy
from optuna.trial import FrozenTrial, TrialState

from riskpilot.study.storages.reading import DAMAGES, damaged_trial, read_distribution

_HEADS = ("trial", "study")  # the kinds of rows that are no part of a trial
_NUMBERS = {"INF_POS": math.inf, "INF_NEG": -math.inf, "NAN": math.nan}


def read_trials(
    connection: sqlalchemy.Connection, query: Any, values: dict[str, Any]
) -> list[FrozenTrial] | None:
    """Read trials with all their parts, in the order of their ids; None where there is no row."""
    rows = connection.execute(query, values).all()
    of_trial: defaultdict[int, list[Any]] = defaultdict(list)
    for row in sorted((row for row in rows if row[0] not in _HEADS), key=lambda row: row[2]):
        of_trial[row[1]].append(row)
    trials = sorted((row for row in rows if row[0] == "trial"), key=lambda row: row[1])
    return [_checked(trial, of_trial[trial[1]]) for trial in trials] if rows else None


def _checked(trial: Any, parts: list[Any]) -> FrozenTrial:
    """Put a trial together, or refuse a storage in which it is damaged."""
    try:
        return _frozen(trial, parts)
    except DAMAGES as error:
        raise damaged_trial(error, trial[2]) from error


def value_row(trial_id: int, objective: int, value: float) -> dict[str, Any]:
    """Return the row of an objective's value; an infinite value is stored as a word."""
    row: dict[str, Any] = {"trial": trial_id, "objective": objective}
    if math.isinf(value):
        return {**row, "number": None, "kind": "INF_POS" if value > 0 else "INF_NEG"}
    return {**row, "number": value, "kind": "FINITE"}


def _frozen(trial: Any, parts: list[Any]) -> FrozenTrial:
    """Put a trial together from its row and the rows of its parts."""
    _, trial_id, trial_number, state, _, _, begun, ended = trial
    by_kind: defaultdict[str, list[Any]] = defaultdict(list)
    for kind, _, _, name, number, text, _, _ in parts:
        by_kind[kind].append((name, number, text))
    distributions = {name: read_distribution(text) for name, _, text in by_kind["param"]}
    values = {int(name): _number(number, text) for name, number, text in by_kind["value"]}
    return FrozenTrial(
        number=trial_number,
        state=TrialState[state],
        value=None,
        values=[values[objective] for objective in sorted(values)] or None,
        datetime_start=_local(begun),
        datetime_complete=_local(ended),
        params={
            name: distributions[name].to_external_repr(_as_number(name, number))
            for name, number, _ in by_kind["param"]
        },
        distributions=distributions,
        user_attrs={name: json.loads(text) for name, _, text in by_kind["user"]},
        system_attrs={name: json.loads(text) for name, _, text in by_kind["system"]},
        intermediate_values={
            int(name): _number(number, text) for name, number, text in by_kind["step"]
        },
        trial_id=trial_id,
    )


def _number(number: float | None, kind: str) -> float:
    """Return a stored number; infinite ones and NaN are stored as words."""
    return _NUMBERS[kind] if number is None else _as_number("a value", number)


def _as_number(name: str, number: object) -> float:
    """Return a number as it is stored; SQLite keeps a text in a column of numbers, too."""
    if not isinstance(number, int | float):
        raise TypeError(f"{name} is stored as {number!r}, which is no number")
    return number


def _local(time: datetime | None) -> datetime | None:
    """Return a stored time, which is UTC, as the local time that Optuna shows."""
    return None if time is None else time.replace(tzinfo=UTC).astimezone().replace(tzinfo=None)
