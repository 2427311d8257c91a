"""Every statistic's p-value is super-uniform where the statistic sits exactly at its limit."""

from dataclasses import replace

import numpy as np
import pytest
from exact import assert_super_uniform, shows_rate_above

import riskpilot as rp
from riskpilot.guarantee.risk_tests import log_p
from riskpilot.losses import calibration_losses
from riskpilot.statistics import (
    CVaR,
    Difference,
    GroupGap,
    Quantile,
    Ratio,
    TestSettings,
    WorstGroup,
)
from riskpilot.statistics.families import log_trinomial

R = 3000
SAMPLES = 700  # where each has weights or a reference of its own


def p_at(risk, losses, *, groups=None, family="betting", thresholds=None, seed=0, **beside):
    """log p of every row of ``losses``, each an independent draw of the calibration data."""
    table = {risk.name: losses, **beside} | ({} if groups is None else {"groups": groups})
    read = calibration_losses(rp.Problem([risk], "cost"), table).risks[risk.name]
    settings = TestSettings(family, 0.1, seed, thresholds=thresholds)
    return log_p(risk, read, range(len(losses)), settings)


def bernoulli(rng, rates, groups):
    return rng.random((R, len(groups))) < np.asarray(rates)[groups]


@pytest.mark.parametrize("family", ["binomial", "betting", "hoeffding", "hoeffding_bentkus"])
@pytest.mark.parametrize("rates", [(0.2, 0.0, 0.0), (0.2, 0.2, 0.2), (0.01, 0.19, 0.2)])
def test_the_worst_group_at_its_limit(family, rates, effort):
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], [25, 60, 40])
    for _ in range(effort):
        losses = bernoulli(rng, rates, groups)
        risk = rp.Risk("error", 0.2, statistic=WorstGroup())
        assert_super_uniform(p_at(risk, losses, groups=groups, family=family))


# (rates of the groups, sizes): each has a largest gap of exactly 0.1.
GAPS = {
    "middle": ((0.55, 0.45), (60, 60)),
    "rare": ((0.1, 0.0), (60, 60)),
    "frequent": ((1.0, 0.9), (60, 60)),
    "small and large group": ((0.3, 0.2), (15, 130)),
    "large and small group": ((0.3, 0.2), (130, 15)),
    "one and many": ((0.6, 0.5), (1, 40)),
    "three groups": ((0.3, 0.25, 0.2), (40, 30, 50)),
    "three groups, two apart": ((0.3, 0.3, 0.2), (40, 30, 50)),
}


@pytest.mark.parametrize("case", GAPS)
def test_the_gap_between_groups_at_its_limit(case, effort):
    rates, sizes = GAPS[case]
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    for seed in range(effort):
        losses = bernoulli(rng, rates, groups)
        risk = rp.Risk("gap", 0.1, statistic=GroupGap())
        assert_super_uniform(p_at(risk, losses, groups=groups, seed=seed))


@pytest.mark.parametrize("limit", [-0.1, 0.0, 0.2])
def test_a_directed_gap_of_any_losses_at_its_limit(limit, effort):
    rng = np.random.default_rng(2)
    groups = np.repeat(["a", "b"], [40, 70])
    risk = rp.Risk("gap", limit, statistic=GroupGap(groups=("a", "b"), directed=True))
    for _ in range(effort):
        spread = rng.beta(0.5, 0.5, (R, len(groups)))  # mean 1/2
        losses = np.where(groups == "a", 0.4 + limit, 0.2) + 0.4 * (spread - 0.5) + 0.0
        losses[:, groups == "b"] += 0.2
        assert_super_uniform(p_at(risk, losses, groups=groups))


def test_a_gap_among_the_examples_that_count_at_its_limit(effort):
    rng = np.random.default_rng(3)
    groups = np.repeat([0, 1], [60, 90])
    for _ in range(effort):
        losses = bernoulli(rng, (0.4, 0.3), groups) * 1.0
        losses[rng.random(losses.shape) < 0.5] = np.nan
        risk = rp.Risk("gap", 0.1, conditional=True, statistic=GroupGap())
        assert_super_uniform(p_at(risk, losses, groups=groups))


@pytest.mark.parametrize("rates", [(0.4, 0.5), (0.08, 0.1), (0.8, 1.0)])
@pytest.mark.parametrize("sizes", [(60, 60), (20, 110), (110, 20)])
def test_a_ratio_at_its_limit(rates, sizes, effort):
    rng = np.random.default_rng(4)
    groups = np.repeat([0, 1], sizes)
    for _ in range(effort):
        risk = rp.Risk("ratio", at_least=0.8, statistic=Ratio())
        assert_super_uniform(p_at(risk, bernoulli(rng, rates, groups), groups=groups))


@pytest.mark.parametrize(("level", "m"), [(0.5, 20), (0.9, 60), (0.95, 45), (0.99, 300)])
def test_a_quantile_just_above_its_limit(level, m, effort):
    rng = np.random.default_rng(5)
    for _ in range(effort):
        # P(loss > limit) = 1 - level: the quantile would be broken by any more.
        losses = np.where(rng.random((R, m)) < 1 - level, 0.51, 0.5 * rng.random((R, m)))
        risk = rp.Risk("slow", 0.5, statistic=Quantile(level))
        assert_super_uniform(p_at(risk, losses, family="binomial"))


# Losses with a known CVaR at level 0.9: (draw, CVaR).
TAILS = {
    "uniform": (lambda rng, shape: rng.random(shape), 0.95),
    "0/1, in the tail": (lambda rng, shape: (rng.random(shape) < 0.04) * 1.0, 0.4),
    "heavy": (lambda rng, shape: rng.random(shape) ** 4, (1 - 0.9**5) / 5 / 0.1),
}


@pytest.mark.parametrize("case", TAILS)
@pytest.mark.parametrize("shift", [-0.2, 0.0, 0.1])
def test_a_tail_mean_at_its_limit_wherever_the_tail_was_thought_to_begin(case, shift, effort):
    draw, limit = TAILS[case]
    rng = np.random.default_rng(6)
    start = np.quantile(draw(rng, 4000), 0.9)
    for _ in range(effort):
        thresholds = np.full(R, min(max(start + shift, 0.0), 0.99))
        risk = rp.Risk("tail", limit, statistic=CVaR(0.9))
        assert_super_uniform(p_at(risk, draw(rng, (R, 150)), thresholds=thresholds))


def test_a_normal_approximation_of_the_gap_would_not_hold_delta():
    # What the betting test is for: rare events in a small group.
    rng = np.random.default_rng(7)
    x, y = rng.random((R, 25)) < 0.02, rng.random((R, 25)) < 0.1
    gap = y.mean(axis=1) - x.mean(axis=1)
    error = np.sqrt((x.var(axis=1) + y.var(axis=1)) / 25)
    passed = (gap - 0.08) / np.maximum(error, 1e-9) < -1.2816
    assert shows_rate_above(0.1, passed.sum(), R)


def test_a_gap_within_labels_at_its_limit(effort):
    rng = np.random.default_rng(9)
    groups, label = np.repeat(["a", "b"], [120, 200]), np.arange(320) % 2
    risk = rp.Risk("odds", 0.1, statistic=GroupGap(within="label"))
    for rates in ([[0.3, 0.3], [0.8, 0.7]], [[0.1, 0.0], [0.5, 0.5]], [[0.3, 0.2], [0.4, 0.5]]):
        for seed in range(effort):
            at = np.asarray(rates)[label, (groups == "b").astype(int)]  # one label is at the limit
            losses = rng.random((R, 320)) < at
            assert_super_uniform(p_at(risk, losses, groups=groups, label=label, seed=seed))


# (how often a 0/1 loss gets worse less how often it gets better, how often it changes at all)
CHANGES = [(0.0, 0.02), (0.0, 0.5), (0.02, 0.02), (0.02, 0.1), (0.1, 0.1), (0.1, 0.9), (-0.1, 0.2)]


@pytest.mark.parametrize(("mean", "change"), CHANGES)
@pytest.mark.parametrize("m", [40, 300])
def test_a_difference_of_0_1_losses_at_its_limit(mean, change, m, effort):
    rng = np.random.default_rng(10)
    shares = [(change + mean) / 2, (change - mean) / 2, 1 - change]
    for _ in range(effort):
        worse, better, _ = rng.multinomial(m, shares, size=20 * R).T
        assert_super_uniform(log_trinomial(worse, better, np.full(20 * R, m), mean))


def test_the_exact_test_counts_losses_of_two_configurations():
    rng = np.random.default_rng(17)
    reference, losses = rng.random(200) < 0.3, rng.random((50, 200)) < 0.32
    risk = rp.Risk("drop", 0.1, statistic=Difference())
    found = p_at(risk, losses, family="trinomial", reference=reference)
    worse, better = (losses & ~reference).sum(axis=1), (~losses & reference).sum(axis=1)
    expected = log_trinomial(worse, better, np.full(50, 200), 0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # A loss between the ends counts as the next larger of the three values.
    between = p_at(risk, np.where(losses, 0.4, 0.0), family="trinomial", reference=reference)
    assert (between >= expected - 1e-12).all()


def test_a_difference_of_any_losses_at_its_limit(effort):
    rng = np.random.default_rng(18)
    risk = rp.Risk("drop", 0.1, statistic=Difference())
    for _ in range(effort):
        # The reference is drawn with the examples, so that every sample has its own.
        reference = rng.beta(0.5, 0.5, (SAMPLES, 100)) * 0.8
        losses = np.minimum(reference + 0.4 * (rng.random((SAMPLES, 100)) < 0.25), 1.2)
        found = [
            p_at(replace(risk, high=1.2), row[None], reference=base)
            for row, base in zip(losses, reference, strict=True)
        ]
        assert_super_uniform(np.concatenate(found))


def test_weighted_losses_at_their_limit(effort):
    rng = np.random.default_rng(8)
    risk = rp.Risk("error", 0.2, high=4.0)
    for _ in range(effort):
        heavy = rng.random((R, 100)) < 0.1  # weights of mean 1: 4 for a tenth, 2/3 for the others
        weights = np.where(heavy, 4.0, 2 / 3)
        losses = weights * (rng.random((R, 100)) < 0.2)
        assert_super_uniform(p_at(risk, losses))


WEIGHTS = np.array([0.2, 1.0, 4.0])


def heavy(rng, shape):
    """Weights of the examples, as they are drawn: a few count twenty times as much as most."""
    return rng.choice(WEIGHTS, shape, p=[0.6, 0.3, 0.1])


def p_weighted(risk, losses, weights, **more):
    """Every sample has weights of its own, as it has losses of its own."""
    parts = [
        p_at(risk, losses[i : i + 1], w=weights[i], **{k: v(i) for k, v in more.items()})
        for i in range(len(losses))
    ]
    return np.concatenate(parts)


def at_limit(rng, m, rates):
    """0/1 losses whose rate depends on the weight."""
    weights = heavy(rng, (SAMPLES, m))
    return rng.random((SAMPLES, m)) < np.asarray(rates)[np.searchsorted(WEIGHTS, weights)], weights


def weighted_rate(rates):
    share = WEIGHTS * [0.6, 0.3, 0.1]
    return float((share * rates).sum() / share.sum())


RATES = [(0.2, 0.2, 0.2), (0.0, 0.1, 0.5), (0.6, 0.1, 0.05), (0.0, 0.0, 1.0)]


@pytest.mark.parametrize("rates", RATES)
def test_a_weighted_mean_at_its_limit(rates, effort):
    rng = np.random.default_rng(11)
    risk = rp.Risk("e", weighted_rate(rates), weights="w", largest_weight=4.0)
    for _ in range(effort):
        assert_super_uniform(p_weighted(risk, *at_limit(rng, 120, rates)))


@pytest.mark.parametrize("rates", RATES[1:3])
def test_a_weighted_conditional_mean_at_its_limit(rates, effort):
    rng = np.random.default_rng(12)
    risk = rp.Risk("e", weighted_rate(rates), conditional=True, weights="w", largest_weight=5.0)
    for _ in range(effort):
        losses, weights = at_limit(rng, 160, rates)
        losses = np.where(rng.random(losses.shape) < 0.6, losses, np.nan)
        assert_super_uniform(p_weighted(risk, losses, weights))


@pytest.mark.parametrize("rates", RATES[1:3])
def test_a_weighted_worst_group_at_its_limit(rates, effort):
    rng = np.random.default_rng(13)
    groups = np.repeat(["a", "b"], [60, 80])
    limit = weighted_rate(rates)
    risk = rp.Risk("e", limit, statistic=WorstGroup(), weights="w", largest_weight=4.0)
    for _ in range(effort):
        losses, weights = at_limit(rng, 140, rates)
        losses[:, groups == "b"] &= rng.random((SAMPLES, 80)) < 0.3  # one group alone is at it
        assert_super_uniform(p_weighted(risk, losses, weights, groups=lambda i: groups))


@pytest.mark.parametrize("rates", RATES[1:3])
def test_a_weighted_quantile_just_above_its_limit(rates, effort):
    rng = np.random.default_rng(14)
    level = 1 - weighted_rate(rates)
    risk = rp.Risk("e", 0.5, statistic=Quantile(level), weights="w", largest_weight=4.0)
    for _ in range(effort):
        above, weights = at_limit(rng, 120, rates)
        losses = np.where(above, 0.51, 0.5 * rng.random(above.shape))
        assert_super_uniform(p_weighted(risk, losses, weights))


@pytest.mark.parametrize("rates", RATES[1:3])
@pytest.mark.parametrize("start", [0.0, 0.3])
def test_a_weighted_tail_mean_at_its_limit(rates, start, effort):
    rng = np.random.default_rng(15)
    limit = weighted_rate(rates) / 0.5  # of 0/1 losses, at level 0.5
    risk = rp.Risk("e", limit, statistic=CVaR(0.5), weights="w", largest_weight=4.0)
    for _ in range(effort):
        losses, weights = at_limit(rng, 120, rates)
        found = p_weighted(risk, losses * 1.0, weights, thresholds=lambda i: np.array([start]))
        assert_super_uniform(found)


def test_weights_divided_by_their_sample_mean_would_not_hold_delta():
    # What the bound is for: one example of a great weight is missing in most samples.
    rng = np.random.default_rng(16)
    big = rng.random((R, 40)) < 0.01
    weights = np.where(big, 50.0, 0.5)
    mean = (weights * big).sum(axis=1) / weights.sum(axis=1)  # of losses that are 1 where it is big
    assert shows_rate_above(0.1, (mean < 0.2).sum(), R)  # the truth is 0.5
