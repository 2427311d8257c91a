"""Which observations a surrogate is fitted to, where there are too many."""

import numpy as np
import pytest
from scipy.stats import qmc

from riskpilot.guarantee import Interval
from riskpilot.search import representative_rows

COVER = qmc.Sobol(2, rng=0).random(512)
LIMIT = Interval(0.3, 0.28, 0.32, 10, feasible=True, noise=0.02)


def observed(n, seed=0, noise=0.0):
    """A risk that grows along the first coordinate, and a cost that falls along it."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))
    luck = noise * rng.standard_normal(n)
    return x, np.column_stack([x[:, 0] + luck, 1 - x[:, 0] + x[:, 1]]), luck


@pytest.mark.parametrize("n", [1, 99, 100])
def test_as_many_as_fit_are_all_taken(n):
    x, values, _ = observed(n)
    assert representative_rows(x, values, [LIMIT], COVER, 100).tolist() == list(range(n))


@pytest.mark.parametrize("n", [101, 5_000])
def test_of_more_the_bound_is_kept_with_the_extremes_of_every_objective(n):
    x, values, _ = observed(n)
    rows = representative_rows(x, values, [LIMIT], COVER, 100)
    assert 50 < len(rows) <= 100
    assert (np.diff(rows) > 0).all()  # in the order of the trials, each of them once
    assert {*values.argmin(axis=0), *values.argmax(axis=0)} <= set(rows.tolist())


def test_half_of_them_lie_near_the_region_and_the_others_all_over_the_space():
    x, values, _ = observed(5_000)
    chosen = x[representative_rows(x, values, [LIMIT], COVER, 100)]
    near = (np.abs(chosen[:, 0] - 0.3) < 0.1) & (chosen[:, 1] < 0.1)
    assert near.sum() >= 35  # of 5,000 about 100 lie there, and two of 100 would by chance
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    gaps = np.abs(chosen[:, None] - corners).max(axis=2)
    assert (gaps.min(axis=0) < 0.2).all()


def test_the_safest_observation_is_among_them_with_its_neighbours():
    """It is the extreme of no objective: the worst of its two risks is the smallest."""
    x, _, _ = observed(5_000)
    values = np.column_stack([x[:, 0] + 1 - x[:, 1], x[:, 1] + 1 - x[:, 0], x.sum(axis=1)])
    values[:, :2] += ((x - 0.8) ** 2).sum(axis=1)[:, None]
    missed = values[:, :2].max(axis=1)
    rows = representative_rows(x, values, [LIMIT, LIMIT], COVER, 100)
    assert missed.argmin() in rows
    assert (np.abs(x[rows] - x[missed.argmin()]).max(axis=1) < 0.05).sum() >= 3


def test_neighbours_are_taken_whatever_they_showed():
    """The mean luck of those near the region is small: taking the luckiest would be -2 or so."""
    x, values, luck = observed(5_000, noise=0.05)
    rows = representative_rows(x, values, [LIMIT], COVER, 200)
    assert luck[rows].mean() > -0.5 * 0.05


def test_open_limits_leave_the_front_to_be_covered():
    x, values, _ = observed(2_000)
    unlimited = Interval(np.inf, np.inf, np.inf, 0, feasible=True)
    assert 50 < len(representative_rows(x, values, [unlimited], COVER, 100)) <= 100


def test_many_trials_at_few_places_are_no_obstacle():
    x, values, _ = observed(12)
    again = np.arange(3_000) % 12
    rows = representative_rows(x[again], values[again], [LIMIT], COVER, 100)
    assert len(rows) <= 100
    assert {tuple(place) for place in x[again][rows]} == {tuple(place) for place in x}
