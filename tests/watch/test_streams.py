"""Every statistic becomes values whose mean is at most the stream's limit where the risk is."""

import numpy as np
import pytest

from riskpilot.errors import LossError, ProblemError
from riskpilot.watch import (
    Block,
    difference_values,
    fill_blocks,
    gap,
    group_shares,
    group_values,
    quantile_values,
    ratio,
    sampling_weights,
    tail_values,
    to_unit,
)

NAN = np.nan


def same(found, expected):
    np.testing.assert_allclose(found, expected)


def test_a_quantile_counts_losses_above_its_limit():
    same(quantile_values([0.2, 0.5, 0.6, NAN], 0.5), [0, 0, 1, NAN])


def test_a_difference_is_mapped_from_both_sides():
    same(difference_values([0, 1, 1, NAN], [1, 0, 1, 0], 0.0, 1.0), [0, 1, 0.5, NAN])
    same(to_unit(0.1, -1, 1), 0.55)


def test_a_tail_keeps_losses_above_the_limit():
    same(tail_values([0.2, 0.5, 0.6, NAN], 0.5), [0, 0, 0.6, NAN])


def test_the_tail_follows_from_the_cvar_for_any_law():
    rng = np.random.default_rng(0)
    for _ in range(500):
        losses, share = rng.random(rng.integers(2, 8)), rng.choice([0.05, 0.2, 0.5])
        p = rng.dirichlet(np.full(len(losses), 0.5))
        # CVaR is the least of t + E[(L - t)+] / share, and reaches it at one of the losses.
        cvar = min(t + p @ np.maximum(losses - t, 0) / share for t in losses)
        assert p @ tail_values(losses, cvar) <= share * cvar * (1 + 1e-9)


def test_groups_have_a_column_each_and_one_together():
    found = group_values([0.1, 0.2, 0.3, NAN], ["b", "a", "c", "a"], ["a", "b"])
    same(found, [[0.1, NAN, 0.1], [0.2, 0.2, NAN], [NAN] * 3, [NAN] * 3])
    same(group_values([0.1, 0.2], ["a", "b"], ["a"]), [[0.1], [NAN]])
    assert sum(group_shares(7)) == pytest.approx(1)
    assert group_shares(1) == (1.0,)


def test_groups_are_told_apart_by_type():
    same(group_values([0.1, 0.2], ["1", 1], ["1", 1])[:, 1:], [[0.1, NAN], [NAN, 0.2]])


def test_sampling_weights_are_shares_of_the_largest():
    same(sampling_weights([0.1, 0.2, 1.0], 0.1), [1, 0.5, 0.1])
    with pytest.raises(LossError, match=r"\[0\.1, 1\]"):
        sampling_weights([0.05], 0.1)
    with pytest.raises(LossError):
        sampling_weights([NAN], 0.1)
    with pytest.raises(ProblemError):
        sampling_weights([0.5], 0.0)


def test_a_block_gives_the_difference_of_its_means():
    contrast = gap("a", "b", 0.1)
    blocks = [Block(length=3)]
    values, blocks = fill_blocks([contrast], blocks, [1.0, 0.5, NAN, 0.0], ["a", "c", "a", "b"])
    assert np.isnan(values).all()
    values, blocks = fill_blocks([contrast], blocks, [0.0], ["a"])
    # The means are 1/2 and 0: a difference of 1/2 is 3/4 of the way from -1 to 1.
    same(values, [[0.75, 0.25]])
    same([claim.limit for claim in contrast.claims], [0.55, 0.55])
    assert (blocks[0].n_first, blocks[0].n_second) == (0, 0)
    assert (blocks[0].ever_first, blocks[0].ever_second) == (2, 1)


def test_a_block_without_both_groups_gives_no_value():
    values, blocks = fill_blocks([gap("a", "b", 0.1)], [Block()], [1.0, 1.0], ["a", "a"])
    assert np.isnan(values).all()
    assert blocks[0].n_first == 0


def test_a_ratio_at_its_limit_has_a_value_at_its_limit():
    for x, y in ((0.4, 0.5), (0.08, 0.1), (0.8, 1.0)):
        contrast = ratio("a", "b", 0.2, directed=True)
        values, _ = fill_blocks([contrast], [Block()], [x, y], ["a", "b"])
        same(values, [[NAN], [contrast.claims[0].limit]])


def test_blocks_go_through_a_record_and_batches_change_nothing():
    rng = np.random.default_rng(1)
    contrasts = [gap("a", "b", 0.1), ratio("a", "c", 0.3), gap(("x", "a"), ("x", "b"), 0.2)]
    groups = [["a", "b", "c", ("x", "a"), ("x", "b")][i] for i in rng.integers(0, 5, 400)]
    losses = rng.random(400)
    whole, end = fill_blocks(contrasts, [Block()] * 3, losses, groups)
    parts, blocks = [], [Block()] * 3
    for t in range(400):
        values, blocks = fill_blocks(contrasts, blocks, losses[t : t + 1], groups[t : t + 1])
        blocks = [Block.from_dict(block.to_dict()) for block in blocks]
        parts.append(values)
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert blocks == end
    # Columns that belong to one contrast have their values at the same labels.
    assert (~np.isnan(whole)).sum(axis=0).min() > 10


def test_blocks_are_longer_where_a_group_is_small():
    rng = np.random.default_rng(2)
    for share, length in ((0.5, 4), (0.1, 12)):
        groups = np.where(rng.random(2_000) < share, "a", "b").tolist()
        _, (block,) = fill_blocks([gap("a", "b", 0.1)], [Block()], np.zeros(2_000), groups)
        assert abs(block.length - length) <= 1


def test_losses_and_groups_have_the_same_length():
    with pytest.raises(LossError, match="group"):
        group_values([0.1], ["a", "b"], ["a"])
    with pytest.raises(LossError, match="group"):
        fill_blocks([gap("a", "b", 0.1)], [Block()], [0.1], ["a", "b"])
