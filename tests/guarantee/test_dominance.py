"""Dominance against brute force."""

import numpy as np
import pytest

from riskpilot.guarantee.dominance import non_dominated


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
