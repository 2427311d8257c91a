"""The search with surrogates that know everything."""

import numpy as np
import pytest

from experiments import known_surface
from experiments.known_surface import PAPER, as_held_out, surfaces, task_of
from experiments.runs import Setting


def test_surfaces_are_what_an_evaluation_shows():
    task = task_of("synthetic", 0)
    risk, free = surfaces(task)
    for x in (0.0, 0.3, 1.0):
        shown = np.mean(task.losses("validation", {"x1": x})["risk1"])
        assert risk.mean(np.array([[x]]))[0] == pytest.approx(shown)
        values, doubts = free.mean_and_std(np.array([[x]]))
        assert values[0] == pytest.approx(task.free("validation", {"x1": x}, None))
        assert doubts[0] == 0


def test_what_is_known_of_held_out_examples_is_what_they_show():
    task = task_of("synthetic", 0)
    risk, free = surfaces(as_held_out(task))
    shown = np.mean(task.losses("held_out", {"x1": 0.3})["risk1"])
    assert risk.mean(np.array([[0.3]]))[0] == pytest.approx(shown)
    assert free.mean(np.array([[0.3]]))[0] == pytest.approx(
        task.free("held_out", {"x1": 0.3}, None)
    )


def test_every_way_is_compared_with_the_papers_search():
    setting = Setting("synthetic", (0.2,), 0, 3)
    found = known_surface.outcomes(setting)
    worse = {way: [2 * value for value in found[PAPER]] for way in found if way != PAPER}
    (row,) = known_surface.summary(
        [setting, setting], [{**found, **worse}, {**found, **worse, PAPER: found[PAPER]}]
    )
    assert row["ratio"] == dict.fromkeys(worse, 2.0)
    assert row["losses"] == dict.fromkeys(worse, 1)
    assert row["limits"] == 1
    assert found["knowing validation"] != found["guided"]
    assert found["knowing held out"] != found["knowing validation"]
