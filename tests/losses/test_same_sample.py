"""Losses of examples that were seen before are told; those of other examples never are."""

import numpy as np
import pytest

from riskpilot.losses import overlap_tells, patterns_of

K = 300


def draw(kind, n, rng):
    if kind == "real":
        return rng.beta(0.3, 1.7, (1, n))
    if kind == "0/1 of many":
        return (rng.random((30, n)) < 0.13).astype(int)
    if kind == "alike":  # the same examples are hard for all
        return (rng.random(n) + 0.1 * rng.random((30, n)) > 0.9).astype(int)
    return rng.beta(0.3, 1.7, (2, n)).round(1)


def tells(seen, fresh):
    return overlap_tells(patterns_of(seen, by_range=False), patterns_of(fresh, by_range=False))


@pytest.mark.parametrize("kind", ["real", "0/1 of many"])
def test_samples_that_share_their_examples_are_told(kind):
    rng = np.random.default_rng(0)
    seen, other = draw(kind, K, rng), draw(kind, K, rng)
    changed = np.c_[1 - seen[:, :1], seen[:, 1:]]
    order = rng.permutation(K)
    for fresh in (
        seen[:, order],
        seen[:, 1:],
        np.c_[seen, other[:, :1]],
        np.c_[seen, seen],
        changed,
        seen[:, order[:80]],
        np.c_[seen[:, : K // 2], other[:, : K // 2]],
    ):
        assert tells(seen, fresh)
    assert not tells(seen, np.c_[other, seen[:, : K // 3]])  # not half of them


@pytest.mark.parametrize("kind", ["real", "0/1 of many", "alike", "rounded"])
def test_other_examples_are_never_refused(kind):
    rng = np.random.default_rng(1)
    for n in (20, K, 2 * K):
        for _ in range(25):
            assert not tells(draw(kind, K, rng), draw(kind, n, rng))


def test_the_evidence_is_bounded_where_patterns_are_rare_but_shared():
    # Two examples show each pattern on average: the case in which chance looks most like sharing.
    rng = np.random.default_rng(2)
    shared = [overlap_tells(*rng.integers(0, K, (2, K)).astype(np.uint64)) for _ in range(200)]
    assert not any(shared)


def test_few_columns_of_0_and_1_tell_nothing():
    few = draw("0/1 of many", 5_000, np.random.default_rng(3))[:2]
    assert not tells(few, few)
