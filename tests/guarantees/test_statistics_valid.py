"""Every statistic's p-value is super-uniform where the statistic sits exactly at its limit."""

import numpy as np
import pytest
from exact import assert_super_uniform, shows_rate_above

import riskpilot as rp
from riskpilot.evidence import Settings, log_p
from riskpilot.losses import calibration_losses
from riskpilot.measures import CVaR, GroupGap, Quantile, Ratio, WorstGroup

R = 3000


def p_at(risk, losses, *, groups=None, family="betting", thresholds=None, seed=0):
    """log p of every row of ``losses``, each an independent draw of the calibration data."""
    table = {risk.name: losses} | ({} if groups is None else {"groups": groups})
    read = calibration_losses(rp.Problem([risk], "cost"), table).risks[risk.name]
    settings = Settings(family, 0.1, seed)
    return log_p(risk, read, range(len(losses)), settings, thresholds=thresholds)


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


def test_weighted_losses_at_their_limit(effort):
    rng = np.random.default_rng(8)
    risk = rp.Risk("error", 0.2, high=4.0)
    for _ in range(effort):
        heavy = rng.random((R, 100)) < 0.1  # weights of mean 1: 4 for a tenth, 2/3 for the others
        weights = np.where(heavy, 4.0, 2 / 3)
        losses = weights * (rng.random((R, 100)) < 0.2)
        assert_super_uniform(p_at(risk, losses))
