"""The experiments with races and with earlier studies run on a small task, and sum up rightly."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import racing, warm_start
from experiments.ratios import Setting, ratios
from riskpilot.bench.tasks import synthetic

TASK = replace(synthetic(n_validation=200, n_held_out=400), n_trials=4)
CELL = TASK.cells[-1]


@pytest.fixture
def small(monkeypatch):
    for module in (racing, warm_start):
        monkeypatch.setattr(module, "loaded", lambda name, seed: TASK)


def test_races_are_compared_with_whole_evaluations(small):
    setting = Setting("small", CELL, 0, 3)
    found = racing.outcomes(setting)
    assert found.share <= 1
    (row,) = racing.summary([setting], [found])
    assert row["ratio"]["whole"] == 1
    assert row["ratio"].keys() == row["empty"].keys()
    assert len(row["ratio"]) == 3 + len(racing.SHARES)


def test_warm_starts_are_compared_with_cold_ones(small):
    setting = Setting("small", CELL, 0, 3)
    found = warm_start.outcomes(setting)
    (row,) = ratios([setting], [found], "cold")
    assert row["ratio"]["cold"] == 1
    assert {f"{kind}, half" for kind in warm_start.EARLIER} < row["ratio"].keys()
    assert {"knowing validation, half", "knowing held out, half"} <= row["ratio"].keys()


def test_a_misleading_version_is_the_task_turned_round():
    turned = warm_start.earlier_version(TASK, "misleading", 0)
    assert turned.safe == {"x1": 1.0}
    here, there = ({name: x} for name, x in (("x1", 0.2), ("x1", 0.8)))
    assert turned.free("validation", here, None) == pytest.approx(
        TASK.free("validation", there, None), abs=0.05
    )


def test_a_task_on_fewer_examples_keeps_some_for_validation_and_all_that_are_held_out():
    task = synthetic(n_validation=100)
    fewer = racing.on_fewer(task, 0.4, seed=0)
    x = {"x1": 0.5}
    every, some = (one.losses("validation", x)["risk1"] for one in (task, fewer))
    assert fewer.size == {"validation": 40, "held_out": 10_000}
    kept = np.sort(np.random.default_rng(0).permutation(100)[:40])
    assert (some == every[kept]).all()
    assert fewer.free("validation", x, None) == task.free("validation", x, kept)
    assert fewer.free("validation", x, np.array([0, 1])) == task.free("validation", x, kept[:2])
    held_out = (one.losses("held_out", x)["risk1"] for one in (task, fewer))
    assert np.array_equal(*held_out)
    assert fewer.free("held_out", x, None) == task.free("held_out", x, None)
