"""Searches under hard conditions: validation that is off, and searches that end early."""

import json

import numpy as np
import pytest

from experiments import optimism, settling
from experiments.runs import REPORTED, TUNING, loaded, role

SYNTHETIC = "tuning: synthetic, d = 1"


def test_tasks_for_tuning_and_for_reporting_are_apart():
    assert not set(TUNING) & set(REPORTED)
    assert [role(name) for name in (TUNING[0], REPORTED[0])] == ["tuning", "reported"]


@pytest.mark.parametrize("shift", [-0.15, 0.0, 0.15])
def test_validation_risks_are_changed_and_nothing_else_is(shift):
    task = loaded(SYNTHETIC, 0)
    changed = optimism.shifted(task, shift, seed=0)
    config = dict.fromkeys(task.space, 0.5)
    before, after = (np.mean(one.losses("validation", config)["risk1"]) for one in (task, changed))
    assert after / before == pytest.approx(1 + shift * (1 - before if shift > 0 else 1), abs=0.03)
    held_out = [one.losses("held_out", config)["risk1"] for one in (task, changed)]
    assert (held_out[0] == held_out[1]).all()


def test_thinning_takes_its_share_of_a_difference_too():
    task = loaded("early_exit", 0)  # a drop in accuracy: losses are -1, 0 and 1
    thinned = optimism.shifted(task, -0.1, seed=0)
    config = {name: each.low + 0.1 * (each.high - each.low) for name, each in task.space.items()}
    before, after = (np.mean(one.losses("validation", config)["drop"]) for one in (task, thinned))
    assert before > 0.01
    assert after / before == pytest.approx(0.9, abs=0.1)


def test_tasks_that_are_not_run_again_keep_their_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(optimism, "SHIFTS", (0.0,))
    for one in (SYNTHETIC, "tuning: vae"):
        size = ["--seeds", "1", "--splits", "2", "--jobs", "1"]
        optimism.main(["--task", one, *size, "--out", str(tmp_path / "found.json")])
    found = json.loads((tmp_path / "found.json").read_text())
    assert [row["task"] for row in found["rows"]] == ["tuning: vae", SYNTHETIC]
    assert found["means"][0]["tasks"] == 2


def test_every_method_is_run_on_the_same_data():
    found = optimism.outcomes(optimism.Setting(SYNTHETIC, -0.1, 0, n_splits=2))
    assert len(found) == len(loaded(SYNTHETIC, 0).cells)
    assert all(list(each) == ["guided", "trusting", "uniform", "dense"] for each in found.values())


def test_ratios_are_those_of_means_and_averaged_over_tasks_with_a_dense_grid():
    def outcomes(guided, dense):
        by_method = {"guided": guided, "trusting": 2.0, "uniform": 3.0, "dense": dense}
        return {(0.1,): {name: (free, 0.5) for name, free in by_method.items() if free}}

    settings = optimism.settings_of([SYNTHETIC, "early_exit"], seeds=2, splits=1)
    without = (1.5, None)
    found = [outcomes(*((s.seed + 1.0, 1.0) if s.task == SYNTHETIC else without)) for s in settings]
    rows = optimism.summary(settings, found)
    assert {row["base"] for row in rows if row["task"] == "early_exit"} == {"uniform"}
    averages = optimism.means(rows)
    assert [row["shift"] for row in averages] == list(optimism.SHIFTS)
    assert averages[0]["ratio"] == {"guided": 1.5, "trusting": 2.0, "uniform": 3.0, "dense": 1.0}
    assert averages[0]["empty"]["guided"] == 0.5


def test_a_search_ends_after_two_small_gains_in_a_row():
    gains = [None, 0.1, 0.001, 0.1, 0.001, 0.001, 0.0]
    assert settling.ended_after(gains, 0.01, enough=1) == 6
    assert settling.ended_after(gains, 0.01, enough=6) == 7
    assert settling.ended_after(gains, 1e-4, enough=1) == 7  # never
    assert settling.could_end_after([3.0, 1.5, 1.009, 1.2, 1.0]) == 3


def test_the_course_of_a_search_is_told_after_every_evaluation():
    task = loaded(SYNTHETIC, 0)
    setting = settling.Setting(SYNTHETIC, tuple(task.cells[2]), 0, n_splits=2)
    found = settling.course(setting)
    assert len(found.gains) == len(found.free) == task.n_trials
    assert found.gains[0] is None
    assert found.gains[-1] < found.gains[2]
    assert found.free[-1] < found.free[0]
    rows = settling.summary([setting], [found])
    assert settling.means(rows)[0]["saved"] == rows[0]["saved"]
    assert 0 <= rows[0]["saved"]["foreseen"] < 1
