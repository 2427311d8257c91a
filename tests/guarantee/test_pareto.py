"""Dominance and hypervolume against brute force and moocore."""

import moocore
import numpy as np
import pytest

from riskpilot.guarantee import pareto
from riskpilot.guarantee.pareto import hypervolume, hypervolume_improvement, non_dominated


def brute_force_front(points):
    kept = []
    for i, p in enumerate(points):
        dominated = any((q <= p).all() and (q < p).any() for q in points)
        copy = any((points[j] == p).all() for j in range(i))
        kept.append(not dominated and not copy)
    return kept


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("ties", [False, True])
def test_the_front_is_what_brute_force_finds(d, ties):
    rng = np.random.default_rng(d)
    for n in (1, 2, 10, 60):
        points = rng.integers(0, 4, (n, d)) * 1.0 if ties else rng.random((n, d))
        assert non_dominated(points).tolist() == brute_force_front(points)


def test_no_points_have_no_front():
    assert non_dominated(np.empty((0, 2))).shape == (0,)


def test_the_hypervolume_of_points_beyond_the_reference_is_zero():
    assert hypervolume([[2.0, 0.0], [1.0, 1.0]], [1.0, 1.0]) == 0.0
    assert hypervolume(np.empty((0, 2)), [1.0, 1.0]) == 0.0
    assert hypervolume([[0.5, 0.5], [9.0, 0.0]], [1.0, 1.0]) == 0.25


def expected_improvement(points, front, reference):
    before = moocore.hypervolume(front, ref=reference) if len(front) else 0.0
    return [
        moocore.hypervolume(np.vstack([front, p]), ref=reference) - before
        if (p < reference).all()
        else 0.0
        for p in points
    ]


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("n", [0, 1, 2, 15, 50])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_improvement_is_moocores_to_twelve_digits(d, n, scale):
    rng = np.random.default_rng(n + d)
    front = rng.random((n, d)) * 1.3
    points = np.vstack([rng.random((60, d)) * 1.4 - 0.1, front[:5]])
    reference = np.ones(d)
    found = hypervolume_improvement(points * scale, front * scale, reference * scale)
    expected = np.array(expected_improvement(points, front, reference)) * scale**d
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * scale**d)


def test_the_grid_and_one_by_one_agree(monkeypatch):
    rng = np.random.default_rng(0)
    front, points = rng.random((40, 3)), rng.random((200, 3))
    on_grid = hypervolume_improvement(points, front, np.ones(3))
    monkeypatch.setattr(pareto, "_GRID_CELLS", 0)
    one_by_one = hypervolume_improvement(points, front, np.ones(3))
    assert (on_grid > 0).sum() > 5
    np.testing.assert_allclose(on_grid, one_by_one, atol=1e-12)


def test_points_on_the_front_or_at_the_reference_improve_nothing():
    front = np.array([[0.2, 0.8], [0.5, 0.5], [0.8, 0.2]])
    points = np.vstack([front, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.6, 0.6]]])
    np.testing.assert_array_equal(hypervolume_improvement(points, front, [1.0, 1.0]), np.zeros(7))


def test_a_front_with_repeated_coordinates_is_no_obstacle():
    front = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.7], [0.2, 0.9], [0.2, 0.9]])
    found = hypervolume_improvement([[0.1, 0.1], [0.3, 0.6]], front, [1.0, 1.0])
    expected = expected_improvement(np.array([[0.1, 0.1], [0.3, 0.6]]), front, np.ones(2))
    np.testing.assert_allclose(found, expected, atol=1e-15)
