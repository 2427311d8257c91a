"""A study of many finished trials in a SQLite file, made in about a minute for 20,000 of them."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import FloatDistribution, distribution_to_json

import riskpilot as rp
from riskpilot.losses import ExampleIds
from riskpilot.study.kept.records import RECORD_KEY, Record, validation_of
from riskpilot.study.kept.trial_losses import store_evaluation

PROBLEM = rp.Problem([rp.Risk("error", 0.2), rp.Risk("harm", 0.2)], "cost")
NAMES = ("x", "y", "z")
_UNIT = FloatDistribution(0.0, 1.0)


def evaluation(config: dict[str, float], seed: int, n_examples: int) -> rp.Evaluation:
    """Draw 0/1 losses of one risk and real ones of the other at a configuration."""
    x, y, z = (config[name] for name in NAMES)
    rng = np.random.default_rng(seed)

    def losses() -> dict[str, np.ndarray]:
        error = rng.random(n_examples, dtype=np.float32) < 0.4 * x
        return {"error": error, "harm": 0.5 * y * rng.random(n_examples)}

    return rp.Evaluation({**losses(), "cost": 2 - x - y + 4 * z}, losses())


def fill(path: Path, n_trials: int, n_examples: int) -> str:
    """Make a study of finished trials at random places, and return its address.

    Losses and records are written as an evaluation writes them. The rows of the trials go into
    Optuna's tables in one transaction: one by one they would take a quarter of an hour.
    """
    address = f"sqlite:///{path}"
    study = rp.create_study(PROBLEM, storage=address, study_name="many trials", seed=0)
    finished = list(_finished(study, n_trials, n_examples))
    with sqlite3.connect(path) as database:
        for table, columns, rows in _rows(finished):
            marks = ", ".join("?" * len(columns.split()))
            names = ", ".join(columns.split())
            database.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
    database.close()
    return address


def _finished(
    study: optuna.Study, n_trials: int, n_examples: int
) -> Iterator[tuple[dict[str, float], Record]]:
    """Evaluate random configurations; yield each with the record of its losses."""
    rng = np.random.default_rng(0)
    for number in range(n_trials):
        config = dict(zip(NAMES, rng.random(len(NAMES)).tolist(), strict=True))
        losses = evaluation(config, number, n_examples)
        yield config, store_evaluation(study, PROBLEM, losses, ExampleIds())


def _rows(
    finished: list[tuple[dict[str, float], Record]],
) -> Iterator[tuple[str, str, list[tuple[Any, ...]]]]:
    """Yield each of Optuna's tables with its columns and the rows of all trials."""
    numbered = list(enumerate(finished, start=1))
    times = ("2026-01-01 00:00:00.000000", "2026-01-01 00:00:01.000000")
    yield (
        "trials",
        "trial_id number study_id state datetime_start datetime_complete",
        [(i, i - 1, 1, "COMPLETE", *times) for i, _ in numbered],
    )
    unit = distribution_to_json(_UNIT)
    yield (
        "trial_params",
        "trial_id param_name param_value distribution_json",
        [(i, *item, unit) for i, (config, _) in numbered for item in config.items()],
    )
    validation = validation_of(PROBLEM, [record for _, record in finished])
    values = np.column_stack([validation.values, validation.free]).tolist()
    yield (
        "trial_values",
        "trial_id objective value value_type",
        [(i, k, at, "FINITE") for i, row in enumerate(values, 1) for k, at in enumerate(row)],
    )
    yield (
        "trial_user_attributes",
        "trial_id key value_json",
        [(i, RECORD_KEY, json.dumps(record.to_json())) for i, (_, record) in numbered],
    )
