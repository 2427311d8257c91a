"""A judge helps, and cannot deceive: p-values hold at the limit whatever the judge is worth."""

import math
from itertools import product

import numpy as np
import pytest
from exact import assert_super_uniform, shows_rate_above
from scipy.stats import norm

from riskpilot.statistics.judged import add_judged, log_judged, start_judged

STREAMS = 10_000


def binary(rng, shape):
    """0/1 losses with a mean of 0.1, from a difficulty that a judge can see."""
    difficulty = rng.random(shape)
    return difficulty, (difficulty < 0.1) * 1.0


# What a judge says of a difficulty u in [0, 1]; the loss is 1 where u < 0.1. All are functions of
# the example and of noise, as judges are.
JUDGES = {
    "constant": lambda u, rng: np.full(u.shape, 0.6),
    "constant 0": lambda u, rng: np.zeros(u.shape),
    "constant 1": lambda u, rng: np.ones(u.shape),
    "noise": lambda u, rng: rng.random(u.shape),
    "perfect": lambda u, rng: (u < 0.1) * 1.0,
    "perfect, in a narrow range": lambda u, rng: 0.5 + 0.01 * (u < 0.1),
    "anti-correlated": lambda u, rng: (u >= 0.1) * 1.0,
    "far too low": lambda u, rng: (u < 0.02) * 1.0,
    "far too high": lambda u, rng: (u < 0.6) * 1.0,
    "sees one loss in ten": lambda u, rng: (u < 0.01) * 1.0,
    "wrong where it matters": lambda u, rng: ((u > 0.1) & (u < 0.2)) * 1.0,
    "rarely extreme": lambda u, rng: (rng.random(u.shape) < 0.01) * 1.0,
    "good": lambda u, rng: (np.abs(u + 0.02 * rng.standard_normal(u.shape)) < 0.1) * 1.0,
}


@pytest.mark.parametrize("name", JUDGES)
@pytest.mark.parametrize("per_label", [0.5, 1, 7.3])
def test_p_is_super_uniform_at_the_limit_for_every_judge(name, per_label, effort):
    rng = np.random.default_rng(0)
    m = 60
    for _ in range(effort):
        for first in range(0, STREAMS, 2_500):
            seed = np.random.default_rng([1, first])
            u, losses = binary(rng, (2_500, m))
            fresh, _ = binary(rng, (2_500, int(per_label * m)))
            scores, pool = JUDGES[name](u, seed), JUDGES[name](fresh, seed)
            found = log_judged(losses, scores, pool, 0.1, 0.1, binary=True)
            assert_super_uniform(found)


@pytest.mark.parametrize("power", [2.0, 8.0])
@pytest.mark.parametrize("name", ["noise", "perfect", "good", "anti-correlated"])
def test_stopping_at_the_best_moment_does_not_break_it(name, power, effort):
    rng = np.random.default_rng(2)
    for _ in range(effort):
        u, losses = binary(rng, (STREAMS // 2, 100))
        fresh, _ = binary(rng, (STREAMS // 2, 400))
        scores, pool = JUDGES[name](u, rng), JUDGES[name](fresh, rng)
        state = start_judged(STREAMS // 2, 0.1, 0.1, 100, 400, power=power)
        assert_super_uniform(add_judged(state, losses, scores, pool).log_p)


GRADED = {
    "beta": (0.2, lambda u: u**4),  # mean 1/5
    "tiny variance": (0.3, lambda u: 0.299 + 0.002 * u),
    "mostly small, rarely 1": (0.1, lambda u: np.where(u < 0.06, 1.0, 0.04 / 0.94)),
}


@pytest.mark.parametrize("case", GRADED)
@pytest.mark.parametrize("judge", ["same", "noisy", "opposite"])
def test_p_is_super_uniform_at_the_limit_for_graded_losses(case, judge, effort):
    limit, loss = GRADED[case]
    rng = np.random.default_rng(3)

    def score(u):
        value = loss(u)
        if judge == "noisy":
            value = np.clip(value + 0.1 * rng.standard_normal(u.shape), 0, 1)
        return 1 - value if judge == "opposite" else value

    for _ in range(effort):
        u, fresh = rng.random((STREAMS // 2, 60)), rng.random((STREAMS // 2, 300))
        found = log_judged(loss(u), score(u), score(fresh), limit, 0.1)
        assert_super_uniform(found)


def test_p_is_super_uniform_where_only_some_examples_count(effort):
    rng = np.random.default_rng(4)
    for _ in range(effort):
        u, losses = binary(rng, (1_500, 100))
        fresh, _ = binary(rng, (1_500, 500))
        counts, fresh_counts = rng.random(u.shape) < 0.5, rng.random(fresh.shape) < 0.5
        losses = np.where(counts, losses, np.nan)
        scores = np.where(counts, JUDGES["good"](u, rng), np.nan)
        pool = np.where(fresh_counts, JUDGES["good"](fresh, rng), np.nan)
        assert_super_uniform(log_judged(losses, scores, pool, 0.1, 0.1, binary=True))
        state = start_judged(1_500, 0.1, 0.1, 100, 500)
        assert_super_uniform(add_judged(state, losses, scores, pool).log_p)


# The joint probabilities of (loss, score) = (0, 0), (0, 1), (1, 0), (1, 1); losses have mean 0.3.
TABLES = {
    "perfect": (0.7, 0.0, 0.0, 0.3),
    "opposite": (0.0, 0.7, 0.3, 0.0),
    "independent": (0.35, 0.35, 0.15, 0.15),
    "misses most": (0.7, 0.0, 0.25, 0.05),
    "cries wolf": (0.1, 0.6, 0.05, 0.25),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("per_label", [1, 2])
@pytest.mark.parametrize("horizon", [3, 40])
def test_capital_is_fair_over_all_outcomes(table, per_label, horizon):
    # Three labels and all their unlabelled scores, every outcome with its probability.
    labels = 3
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1)]
    rate = TABLES[table][1] + TABLES[table][3]
    label_outcomes = list(product(range(4), repeat=labels))
    score_outcomes = list(product((0, 1), repeat=labels * per_label))
    losses, scores, pools, chances = [], [], [], []
    for outcome, fresh in product(label_outcomes, score_outcomes):
        losses.append([pairs[i][0] for i in outcome])
        scores.append([pairs[i][1] for i in outcome])
        pools.append(fresh)
        chance = math.prod(TABLES[table][i] for i in outcome)
        chances.append(chance * math.prod(rate if score else 1 - rate for score in fresh))
    n, weights = len(chances), np.array(chances)
    assert weights.sum() == pytest.approx(1.0)
    pool = np.zeros((n, horizon * per_label))
    pool[:, : labels * per_label] = pools
    state = start_judged(n, 0.3, 0.1, horizon, horizon * per_label)
    for t in range(labels):
        state = add_judged(
            state, np.array(losses)[:, t : t + 1], np.array(scores)[:, t : t + 1], pool
        )
        capital = np.exp(state.log_capitals)
        assert (capital @ weights <= 1 + 1e-12).all()
        assert capital.min() > 0
    for level in (0.1, 0.3, 0.5, 0.8):
        assert weights[state.log_p <= math.log(level)].sum() <= level + 1e-12


def test_an_asymptotic_interval_would_not_hold_delta():
    # What the bets are for: prediction-powered estimates with a normal interval, few labels.
    rng = np.random.default_rng(5)
    n, m, fresh_number = 4_000, 30, 300
    u, losses = binary(rng, (n, m))
    fresh, _ = binary(rng, (n, fresh_number))
    scores, pool = (
        JUDGES["sees one loss in ten"](u, rng),
        JUDGES["sees one loss in ten"](fresh, rng),
    )
    estimate = (losses - scores).mean(axis=1) + pool.mean(axis=1)
    error = np.sqrt((losses - scores).var(axis=1) / m + pool.var(axis=1) / fresh_number)
    p = norm.cdf((estimate - 0.1) / np.maximum(error, 1e-9))
    assert shows_rate_above(0.1, (p < 0.1).sum(), n)
