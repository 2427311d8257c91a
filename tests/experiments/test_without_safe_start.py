"""Searches without a safe configuration: the tasks, and the summary of their outcomes."""

import numpy as np
import pytest

from experiments import without_safe_start
from experiments.without_safe_start import LIMITS, SEARCHES, TASKS, Run, drawn, summary


@pytest.mark.parametrize("name", TASKS)
def test_one_end_breaks_every_limit_and_leaving_more_to_a_person_keeps_it(name):
    task = TASKS[name]
    risky, safe = (task.losses({"threshold": t, "C": 0.01}) for t in (0.5, 0.97))
    assert np.nanmean(risky["error"]) > task.limit * max(LIMITS)
    assert np.nanmean(safe["error"]) < task.limit * min(LIMITS) / 2
    assert risky["left"].mean() == 0
    assert safe["left"].mean() > 0.5


def test_validation_alone_is_thinned():
    plain, thinned = (drawn(TASKS["errors among all, d = 1"], 0, share) for share in (0.0, 0.15))
    assert plain.kept.all()
    assert 0.8 < thinned.kept.mean() < 0.9
    assert np.array_equal(plain.calibration, thinned.calibration)


def test_every_search_ends_in_a_choice_or_counts_as_leaving_all_to_a_person():
    (name, *_) = TASKS
    runs = [Run(name, seed, 0.0) for seed in range(2)]
    found = [without_safe_start.outcomes(run) for run in runs]
    (row,) = summary(runs, found)
    assert row["left"].keys() == row["empty"].keys() == SEARCHES.keys()
    assert all(left == 1.0 for each in found for left, empty in each.values() if empty)
    assert row["behind"]["guided"] == [0.0, 0.0]
