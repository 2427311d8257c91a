"""Narrow and failing spaces: the tasks, and what the figures of their searches mean."""

import itertools

import numpy as np
import optuna
import pytest
from scipy.stats import binom

from experiments import hard_spaces
from experiments.hard_spaces import BAR, NARROW, PENALTY, SEARCHES, TASKS, lowest, outcomes, summary


def on_grid(task):
    """Places of a dense grid that are safe and not in the region; of one and two parameters."""
    n = {1: 200_001, 2: 1_001}[task.d]
    x = np.array(list(itertools.product(np.linspace(0, 1, n), repeat=task.d)))
    return x[(task.risk(x) <= BAR) & ~task.region(x)]


def searching(monkeypatch, places):
    """Put a search that evaluates given places in the stead of all others."""
    configs = [dict(zip("abcde", map(float, place), strict=False)) for place in places]
    monkeypatch.setattr(hard_spaces, "SEARCHES", {"given": lambda task, seed: configs})


def test_the_bar_is_the_largest_share_of_errors_that_passes():
    n_errors = round(BAR * 1_000)
    assert binom.cdf(n_errors, 1_000, 0.1) <= 0.1 < binom.cdf(n_errors + 1, 1_000, 0.1)


@pytest.mark.parametrize("name", [name for name in TASKS if "d = 1" in name or "d = 2" in name])
def test_the_best_and_the_worst_are_those_of_a_dense_grid(name):
    task = TASKS[name](3)
    on = task.free(on_grid(task))
    best, worst = lowest(task.free, task), -lowest(lambda x: -task.free(x), task)
    assert best == pytest.approx(on.min(), abs=0.03 * (worst - best))
    assert worst == pytest.approx(on.max(), abs=0.03 * (worst - best))


@pytest.mark.parametrize("name", TASKS)
def test_nothing_at_random_is_better_than_the_best(name):
    task = TASKS[name](0)
    x = np.random.default_rng(1).random((200_000, task.d))
    assert task.free(x[(task.risk(x) <= BAR) & ~task.region(x)]).min() > lowest(task.free, task)


@pytest.mark.parametrize("name", [name for name in TASKS if TASKS[name](0).safe is None])
def test_so_much_of_a_narrow_task_is_safe_and_nothing_is_far_from_the_limit(name):
    task = TASKS[name](1)
    n_trials, share = NARROW[task.d]
    x = np.random.default_rng(1).random((100_000, task.d))
    assert task.n_trials == n_trials
    assert (task.risk(x) <= BAR).mean() == pytest.approx(share, rel=0.25)
    assert task.risk(x).min() >= 0.06


@pytest.mark.parametrize("name", [name for name in TASKS if TASKS[name](0).safe is not None])
def test_evaluations_of_a_region_fail_or_return_the_penalty(name):
    task = TASKS[name](0)
    x = np.random.default_rng(0).random((40, task.d))
    in_region = task.region(x)
    assert 0 < in_region.sum() < 40
    for place, is_inside in zip(x, in_region, strict=True):
        trial = optuna.trial.FixedTrial(dict(zip("abcde", place.tolist(), strict=False)))
        if is_inside and not task.is_penalised:
            with pytest.raises(hard_spaces.NoResultError):
                task.evaluate(trial)
        else:
            seen = task.evaluate(trial).validation
            assert np.mean(seen["error"]) == pytest.approx(
                float(task.risk(place[None])[0]), abs=0.06
            )
            assert seen["cost"] == (PENALTY if is_inside else task.free(place[None])[0])


def test_a_choice_of_nothing_counts_as_one_and_a_half_times_the_spread(monkeypatch):
    task = TASKS["corner, d = 1"](0)
    risks = [float(task.risk(np.array([[end]]))[0]) for end in (0.0, 1.0)]
    searching(monkeypatch, [[float(np.argmax(risks))]] * task.n_trials)
    assert outcomes(("corner, d = 1", 0)) == {"given": (pytest.approx(1.5), True, 0)}


def test_the_gap_is_a_share_of_what_safe_ones_differ_by(monkeypatch):
    task = TASKS["bowl, d = 2"](0)
    grid = on_grid(task)
    free = task.free(grid)
    safest = grid[np.argmin(task.risk(grid))]
    searching(monkeypatch, [safest] * task.n_trials)
    gap = (float(task.free(safest[None])[0]) - free.min()) / (free.max() - free.min())
    found = outcomes(("bowl, d = 2", 0))
    assert found == {"given": (pytest.approx(gap, abs=0.03), False, 0)}


@pytest.mark.parametrize("what", ["fails", "penalty"])
def test_failures_are_counted_and_the_choice_is_a_multiple_of_the_best_outside(monkeypatch, what):
    name = f"gap, d = 1, {what}"
    task = TASKS[name](0)
    searching(monkeypatch, [[0.0], [0.26], [0.3], [0.37], [0.2], [0.24], *[[0.9]] * 18])
    multiple = (2 - 0.24 - 0.3 * 0.24**2) / task.free(on_grid(task)).min()
    assert outcomes((name, 0)) == {"given": (pytest.approx(multiple, rel=1e-4), False, 3)}


@pytest.mark.parametrize("name", ["corner, d = 1", "gap, d = 1, fails"])
def test_every_search_makes_all_evaluations_from_the_safe_one_on(name):
    task = TASKS[name](0)
    for search in SEARCHES.values():
        configs = search(task, 0)
        assert len(configs) == task.n_trials
        assert task.safe in (None, configs[0])


def test_figures_are_means_over_seeds():
    runs = [("ring, d = 2, fails", 0), ("ring, d = 2, fails", 1)]
    rest = dict.fromkeys(list(SEARCHES)[2:], (1.0, False, 0))
    found = [
        {"guided": (1.0, False, 2), "paper's search": (1.1, True, 5), **rest},
        {"guided": (1.2, False, 3), "paper's search": (1.5, False, 5), **rest},
    ]
    (row,) = summary(runs, found)
    assert (row["task"], row["trials"]) == ("ring, d = 2, fails", 24)
    assert row["multiple"] == {"guided": 1.1, "paper's search": 1.3, "TPE": 1.0, "random": 1.0}
    assert row["empty"]["paper's search"] == 0.5
    assert row["fell"]["guided"] == 2.5
    assert row["more"]["guided"] == [0.0, 0.0]
    assert row["more"]["paper's search"] == [0.2, pytest.approx(0.1 / 2**0.5, abs=1e-4)]
