"""An earlier surrogate is believed as far as it foretells what is observed."""

import numpy as np
import pytest

from riskpilot.guarantee import Interval
from riskpilot.search import best_rows
from riskpilot.search.believed import fit_believing
from riskpilot.search.surrogate import fit

RNG = np.random.default_rng(0)


def truth(x):
    return np.sin(4 * x[:, 0]) + 0.5 * x[:, 0]


def observed(n, function=truth):
    x = RNG.random((n, 1))
    return x, function(x) + 0.01 * RNG.standard_normal(n), np.full(n, 1e-4)


EARLIER = fit(*observed(20))


def test_foresight_is_the_density_of_each_observation_given_all_others():
    x, y, noise = observed(8)
    model = fit(x, y, noise)
    covariance = model.factor @ model.factor.T  # of standardised values, with their noise
    z = (y - model.offset) / model.scale
    densities = 0.0
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        solve = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, i])
        mean, variance = solve @ z[rest], covariance[i, i] - solve @ covariance[rest, i]
        densities += -0.5 * np.log(variance) - 0.5 * (z[i] - mean) ** 2 / variance
    assert model.foresight() == pytest.approx(densities - len(y) * np.log(model.scale))


def test_an_earlier_study_that_proves_right_helps_where_nothing_was_observed():
    x, y, noise = observed(5)
    believed, alone = fit_believing(x, y, noise, EARLIER), fit(x, y, noise)
    everywhere = np.linspace(0, 1, 50)[:, None]
    assert believed.belief > 0.8
    errors = [np.abs(m.mean(everywhere) - truth(everywhere)).mean() for m in (believed, alone)]
    assert errors[0] < 0.5 * errors[1]


def test_one_that_differs_smoothly_helps_too():
    x, y, noise = observed(6, lambda x: 1.2 * truth(x) + 0.3)
    assert fit_believing(x, y, noise, EARLIER).belief > 0.6


def test_one_that_misleads_is_not_believed():
    x, y, noise = observed(6, lambda x: truth(1 - x))
    believed = fit_believing(x, y, noise, EARLIER)
    assert believed.belief < 0.2
    mean, std = believed.mean_and_std(x)
    np.testing.assert_allclose(mean, believed.mean(x))
    assert (std > 0).all()


def test_evaluations_that_are_worth_most_together_come_first():
    region = [Interval(0.2, 0.15, 0.25, 10, True, noise=0.01)]
    values = np.array([[0.05, 1.0], [0.3, 0.1], [0.15, 0.5], [0.19, 0.4], [0.16, 0.6]])
    assert best_rows(values, region, 2) == [3, 2]
    assert best_rows(values[[0]], region, 2) == []


@pytest.mark.parametrize("unit", [1, 1000])
@pytest.mark.parametrize(("slope", "belief"), [(0.1, 0.0), (0.0001, 1.0)])
def test_observations_that_are_all_the_same_judge_an_earlier_study_in_any_unit(unit, slope, belief):
    everywhere = np.linspace(0, 1, 20)[:, None]
    earlier = fit(everywhere, unit * (0.02 + slope * everywhere[:, 0]), np.full(20, 1e-12))
    x, noise = np.array([[0.0], [0.5], [0.8]]), np.full(3, (1e-3 * unit) ** 2)
    assert fit_believing(x, np.full(3, 0.02 * unit), noise, earlier).belief == belief


def test_an_earlier_study_that_leaves_nothing_to_explain_is_right_in_any_unit():
    for unit in (1, 1000):
        earlier = fit(np.array([[0.0], [1.0]]), np.array([0.0, 1.0]) * unit, np.full(2, 1e-12))
        x = np.array([[0.1], [0.4], [0.9]])
        assert fit_believing(x, earlier.mean(x), np.full(3, 1e-8), earlier).belief == 1.0
