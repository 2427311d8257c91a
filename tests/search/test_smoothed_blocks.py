"""Smoothing in blocks: what one process over everything says, without a matrix of everything."""

import numpy as np
import pytest

from riskpilot.search import surrogate


def observed(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    truth = np.sin(3 * x[:, 0]) + x[:, -1] ** 2
    return x, truth, truth + 0.1 * rng.standard_normal(n), np.full(n, 0.01)


@pytest.mark.parametrize("n", [5, 128, 200])
@pytest.mark.parametrize("known", [True, False])
def test_up_to_the_bound_nothing_changes(n, known):
    x, _, y, noise = observed(n)
    given = noise if known else None
    whole = surrogate.fit(x, y, given).mean(x)
    np.testing.assert_array_equal(surrogate.smoothed(x, y, given, 200), whole)


def test_blocks_are_nearly_as_close_to_the_truth_as_one_process():
    x, truth, y, noise = observed(1_200)
    errors = [
        np.sqrt(np.mean((surrogate.smoothed(x, y, noise, most) - truth) ** 2))
        for most in (1_200, 200)
    ]
    assert errors[0] < 0.03  # an observation alone is 0.1 away
    assert errors[1] < 1.5 * errors[0]


def test_no_matrix_is_larger_than_a_block(monkeypatch):
    sizes = []
    factor = surrogate._large_factor

    def noting(x, *others):
        sizes.append(len(x))
        return factor(x, *others)

    monkeypatch.setattr(surrogate, "_large_factor", noting)
    x, _, y, noise = observed(3_000)
    surrogate.smoothed(x, y, noise, 400)
    assert sum(sizes) == 3_000
    assert max(sizes) <= 400


def test_every_observation_is_in_one_block_also_where_all_are_at_one_place():
    for x in (observed(1_001)[0], np.full((1_001, 2), 0.5)):
        blocks = surrogate._blocks(x, 100)
        assert sorted(np.concatenate(blocks).tolist()) == list(range(1_001))


def test_blocks_do_not_hang_on_the_last_digit():
    x = np.round(observed(1_000)[0], 2)
    moved = x * (1 + 1e-15)
    for one, other in zip(surrogate._blocks(x, 100), surrogate._blocks(moved, 100), strict=True):
        np.testing.assert_array_equal(one, other)
