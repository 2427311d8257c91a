"""Hypervolume and its improvement against moocore."""

import moocore
import numpy as np
import pytest

from riskpilot.search.hypervolume import (
    hypervolume,
    hypervolume_improvement,
    improvement_over,
)


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
    monkeypatch.setattr("riskpilot.search.hypervolume._GRID_CELLS", 0)
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


def test_a_front_that_is_asked_about_again_gives_the_same():
    rng = np.random.default_rng(1)
    front, reference = rng.random((20, 3)), np.ones(3)
    improvement = improvement_over(front, reference)
    for lowest in (0.2, 0.4, -0.5, -0.1):  # the grid reaches down further once, and then suffices
        points = lowest + rng.random((50, 3))
        expected = hypervolume_improvement(points, front, reference)
        np.testing.assert_allclose(improvement(points), expected, rtol=1e-12, atol=1e-12)
