"""A watch raises a false alarm with probability at most delta over all of a stream, however the
losses behave at or below their limit."""

from dataclasses import replace

import numpy as np
import pytest
from exact import assert_rate_at_most, shows_rate_above
from lean_watch import LeanWatches

import riskpilot as rp
from riskpilot.watch import (
    Block,
    begin,
    difference_values,
    fill_blocks,
    gap,
    group_shares,
    lower_bound,
    make_rule,
    quantile_values,
    ratio,
    sampling_weights,
    since_begin,
    since_change,
    tail_values,
    to_unit,
    update,
    upper_bound,
    wealth,
)
from tests.kits.watched import CASES

DELTA = 0.1
CHUNK = 50  # labels that are drawn at a time


@pytest.fixture
def size(effort):
    """(streams, labels of each): 10,000 of 10,000 at length."""
    return (10_000, 10_000) if effort > 1 else (1_500, 1_000)


def rule_of(limits, shares=None, weighted=False):
    """A rule in which every stream, or every set of streams that share delta, is a replication of
    its own: shares do not sum to 1 over replications."""
    n = len(limits)
    made = make_rule(limits[:1], delta=DELTA)
    return replace(
        made,
        limits=tuple(limits),
        shares=(1.0,) * n if shares is None else shares,
        bets=made.bets * n,
        prior=made.prior * n,
        memory=made.memory * n,
        weighted=(weighted,) * n,
        judge=made.judge * n,
    )


def alarms_among(rule, draw, size, seed=0):
    """How many of the streams raise an alarm. ``draw(rng, rows, k)``: values of the labels with
    these row numbers, shape (len(rows), k), or a pair of values and weights."""
    rng, watches = np.random.default_rng(seed), LeanWatches(rule)
    for drawn in batches(rng, draw, size[1], rule.n_streams):
        watches.take(*drawn)
    return set(np.flatnonzero(watches.alarms).tolist())


def batches(rng, draw, labels, k):
    """Draw the labels of k streams, some at a time: values, and weights where there are some."""
    for start in range(0, labels, CHUNK):
        drawn = draw(rng, np.arange(start, start + CHUNK)[:, None], k)
        yield drawn if isinstance(drawn, tuple) else (drawn,)


def bernoulli(mean):
    return lambda rng, rows, k: (rng.random((len(rows), k)) < mean) + 0.0


def two_values(low, high, mean):
    share = (mean - low) / (high - low)
    return lambda rng, rows, k: np.where(rng.random((len(rows), k)) < share, high, low)


def wandering(rng, rows, k):
    mean = 0.1 * np.abs(np.sin(rows / 150 + np.arange(k)))
    return (rng.random((len(rows), k)) < mean) + 0.0


def steps_below(rng, rows, k):
    mean = np.where(rows // 100 % 2, 0.1, 0.06)
    return (rng.random((len(rows), k)) < mean) + 0.0


def changing_spread(rng, rows, k):
    calm, wild = 0.08 + 0.04 * rng.random((len(rows), k)), rng.random((len(rows), k)) < 0.1
    return np.where(rows // 70 % 2, calm, wild)


def returning(rng, rows, k):
    """A bad label is followed by labels that cannot be bad, and the limit is kept at all times."""
    x = (rng.random((len(rows), k)) < 0.1) + 0.0
    x[1:][x[:-1] > 0] = 0.1
    return x


# (limit, draw): the mean given the past is the limit, or below it.
STREAMS = {
    "0/1": (0.1, bernoulli(0.1)),
    "0/1, rare": (0.01, bernoulli(0.01)),
    "0/1, even": (0.5, bernoulli(0.5)),
    "0/1, frequent": (0.9, bernoulli(0.9)),
    "just below, rarely far above": (0.1, two_values(0.09, 1.0, 0.1)),
    "just above, rarely at zero": (0.1, two_values(0.0, 0.105, 0.1)),
    "never large": (0.01, two_values(0.0, 0.04, 0.01)),
    "skewed": (0.1, lambda rng, rows, k: rng.beta(0.2, 1.8, (len(rows), k))),
    "constant": (0.1, lambda rng, rows, k: np.full((len(rows), k), 0.1)),
    "wandering below the limit": (0.1, wandering),
    "steps up to the limit": (0.1, steps_below),
    "changing spread at the limit": (0.1, changing_spread),
    "dependent on the label before": (0.1, returning),
}


def weighted_labels(rng, rows, k):
    """0/1 losses far above the limit, of which some do not count, with weights."""
    x = np.where(rng.random((len(rows), k)) < 0.9, rng.random((len(rows), k)) < 0.2, np.nan)
    return x, rng.choice([0.2, 1.0], x.shape)


@pytest.mark.parametrize(
    ("draw", "weighted"),
    [(bernoulli(0.15), False), (changing_spread, False), (weighted_labels, True)],
    ids=["0/1", "graded", "weighted"],
)
def test_what_is_tested_here_raises_the_alarms_of_the_rule_at_the_same_labels(draw, weighted):
    rule = rule_of([0.1] * 60, weighted=weighted)
    watches, state = LeanWatches(rule), begin(rule)
    for drawn in batches(np.random.default_rng(7), draw, 400, 60):
        watches.take(*drawn)
        state = update(rule, state, *drawn)
    found = np.zeros(60, np.int64)
    for alarm in state.alarms:
        found[alarm.stream] = alarm.row
    assert found.tolist() == watches.alarms.tolist()
    assert watches.wealth.tolist() == wealth(rule, state).tolist()
    assert weighted or draw is changing_spread or found.any()


def test_what_is_tested_here_raises_the_alarms_of_a_watch_at_the_same_labels():
    certificate, rng = CASES["mean"].certificate(), np.random.default_rng(8)
    losses = (rng.random((600, 12)) < 0.16) + 0.0
    watched = [rp.Watch(certificate, delta=DELTA) for _ in range(12)]
    for stream, watch in enumerate(watched):
        watch.update({"error": losses[:, stream]})
    (limit,) = watched[0].record.rule.limits
    lean = LeanWatches(rule_of([limit] * 12))
    lean.take(losses)
    found = [watch.alarms[0].label if watch.alarm else 0 for watch in watched]
    assert found == lean.alarms.tolist()
    assert any(found)


@pytest.mark.parametrize("case", STREAMS)
def test_false_alarms_of_a_mean_over_the_whole_stream(case, size):
    limit, draw = STREAMS[case]
    found = alarms_among(rule_of([limit] * size[0]), draw, size)
    assert_rate_at_most(DELTA, len(found), size[0])


def test_false_alarms_against_an_adversary_who_sees_the_capital(size):
    # Losses are two-valued where the capital is large, and nearly constant where it is small: both
    # have their mean at the limit.
    watches, rng = LeanWatches(rule_of([0.1] * size[0])), np.random.default_rng(1)
    for _ in range(size[1]):
        wild = watches.wealth > 2
        x = np.where(wild, rng.random(size[0]) < 0.1, 0.095 + 0.01 * rng.random(size[0]))
        watches.take(x[None])
    assert_rate_at_most(DELTA, np.count_nonzero(watches.alarms), size[0])


def test_restarts_whose_weights_do_not_sum_to_one_would_break_the_promise():
    # What the reserve is for: the sum of restarts that all begin with the same small weight.
    rng, n = np.random.default_rng(2), 2_000
    capital, reached = np.full(n, 0.05), np.zeros(n, bool)
    for _ in range(1_000):
        capital = capital * (1 + (rng.random(n) < 0.1) - 0.1) + 0.05
        reached |= capital >= 1 / DELTA
    assert shows_rate_above(DELTA, reached.sum(), n)


def test_false_alarms_where_only_some_labels_count(size):
    def draw(rng, rows, k):
        # At random, and none at all for a while.
        x = bernoulli(0.1)(rng, rows, k)
        return np.where((rng.random(x.shape) < 0.5) | (rows // 40 % 3 == 0), np.nan, x)

    found = alarms_among(rule_of([0.1] * size[0]), draw, size)
    assert_rate_at_most(DELTA, len(found), size[0])


@pytest.mark.parametrize("rates", [(0.1, 0.1, 0.1), (0.1, 0.02, 0.06)])
def test_false_alarms_of_any_group(rates, size):
    n = size[0] // 4
    rule = rule_of([0.1] * 4 * n, shares=group_shares(3) * n)

    def draw(rng, rows, k):
        x, group = rng.random((len(rows), n)), rng.choice(3, (len(rows), n), p=(0.7, 0.2, 0.1))
        x = (x < np.asarray(rates)[group]) + 0.0
        mine = np.concatenate(
            (np.ones((*x.shape, 1), bool), group[..., None] == np.arange(3)), axis=2
        )
        return np.where(mine, x[..., None], np.nan).reshape(len(rows), k)

    found = {stream // 4 for stream in alarms_among(rule, draw, size)}
    assert_rate_at_most(DELTA, len(found), n)


def test_false_alarms_of_a_quantile(size):
    def draw(rng, rows, k):
        # P(loss > 0.5) = 0.05, and the losses below wander.
        x = 0.5 * rng.random((len(rows), k)) * np.abs(np.sin(rows / 99))
        x[rng.random(x.shape) < 0.05] = 0.51
        return quantile_values(x, 0.5)

    found = alarms_among(rule_of([0.05] * size[0]), draw, size)
    assert_rate_at_most(DELTA, len(found), size[0])


@pytest.mark.parametrize("limit", [-0.05, 0.0, 0.1])
def test_false_alarms_of_a_difference(limit, size):
    def draw(rng, rows, k):
        # How often the two models differ at all changes; the mean difference does not.
        better = np.where(rows // 90 % 2, 0.05, 0.3) * np.ones((1, k))
        u = rng.random((len(rows), k))
        losses, reference = u < better + limit, (u >= 0.5) & (u < 0.5 + better)
        return difference_values(losses, reference, 0.0, 1.0)

    unit = float(to_unit(limit, -1.0, 1.0))
    found = alarms_among(rule_of([unit] * size[0]), draw, size)
    assert_rate_at_most(DELTA, len(found), size[0])


def test_false_alarms_with_weights(size):
    def draw(rng, rows, k):
        # Half of the examples have weight 1 and the mean 0.15, the others weight 0.2: E[w L] / E[w]
        # is 0.1, while the plain mean is another.
        heavy = rng.random((len(rows), k)) < 0.5
        weights = np.where(heavy, 1.0, 0.2)
        mean = np.where(heavy, 0.115, (0.1 * 0.6 - 0.5 * 0.115) / 0.1)
        return (rng.random(heavy.shape) < mean) + 0.0, weights

    found = alarms_among(rule_of([0.1] * size[0], weighted=True), draw, size)
    assert_rate_at_most(DELTA, len(found), size[0])


def test_false_alarms_of_sampled_labels(size):
    def draw(rng, rows, k, corrected=True):
        # Hard examples are labelled five times as often as easy ones; the traffic is at the limit.
        hard = rng.random((len(rows), k)) < 0.3
        p = np.where(hard, 0.5, 0.1)
        x = (rng.random(hard.shape) < np.where(hard, 0.24, 0.04)) + 0.0
        x[rng.random(hard.shape) >= p] = np.nan
        return (x, sampling_weights(p, 0.1)) if corrected else x

    found = alarms_among(rule_of([0.1] * size[0], weighted=True), draw, size)
    assert_rate_at_most(DELTA, len(found), size[0])
    naive = alarms_among(
        rule_of([0.1] * 300), lambda rng, rows, k: draw(rng, rows, k, False), (300, 1_000)
    )
    assert shows_rate_above(DELTA, len(naive), 300)


# At level 0.9, each of these laws has a CVaR of 0.5.
def rare_ones(rng, shape):
    return (rng.random(shape) < 0.05) + 0.0


def uniform_tail(rng, shape):
    return np.where(rng.random(shape) < 0.1, 0.3 + 0.4 * rng.random(shape), 0.3)


def constant(rng, shape):
    return np.full(shape, 0.5)


TAILS = {
    "rare": lambda rng, rows, k: rare_ones(rng, (len(rows), k)),
    "uniform tail": lambda rng, rows, k: uniform_tail(rng, (len(rows), k)),
    "constant": lambda rng, rows, k: constant(rng, (len(rows), k)),
    "taking turns": lambda rng, rows, k: np.where(
        rows % 2, rare_ones(rng, (len(rows), k)), constant(rng, (len(rows), k))
    ),
}


@pytest.mark.parametrize("case", TAILS)
def test_false_alarms_of_a_tail_mean(case, size):
    def draw(rng, rows, k):
        return tail_values(TAILS[case](rng, rows, k), 0.5)

    found = alarms_among(rule_of([0.1 * 0.5] * size[0]), draw, size)
    assert_rate_at_most(DELTA, len(found), size[0])


def test_a_tail_bound_from_a_fixed_threshold_would_raise_false_alarms():
    # The threshold was the quantile before; then the law moves, and its CVaR stays at the limit.
    def draw(rng, rows, k):
        return np.maximum(constant(rng, (len(rows), k)) - 0.3, 0) / 0.7

    naive = alarms_among(rule_of([(0.5 - 0.3) * 0.1 / 0.7] * 300), draw, (300, 500))
    assert shows_rate_above(DELTA, len(naive), 300)


# (how the claim is made, rates of the groups as functions of a common wandering in [0, 1], share)
CONTRASTS = {
    "gap": (lambda: gap("a", "b", 0.1), lambda c: (0.1 + 0.7 * c, 0.7 * c), 0.5),
    "gap, small group": (lambda: gap("a", "b", 0.1), lambda c: (0.1 + 0.7 * c, 0.7 * c), 0.1),
    "ratio": (lambda: ratio("a", "b", 0.2), lambda c: (0.8 * c, c), 0.5),
}


@pytest.mark.parametrize("case", CONTRASTS)
def test_false_alarms_of_contrasts_while_both_groups_wander(case, effort):
    make, rates, share = CONTRASTS[case]
    contrast, n, m = make(), 150 * effort, 400 * (1 + (effort > 1))
    rule = make_rule([claim.limit for claim in contrast.claims], delta=DELTA)
    rng, alarms = np.random.default_rng(3), 0
    for _ in range(n):
        common = np.abs(np.sin(np.arange(m) / 3 + 6 * rng.random()))
        first = rng.random(m) < share
        losses = rng.random(m) < np.where(first, *rates(common))
        values, _ = fill_blocks([contrast], [Block()], losses, np.where(first, "a", "b").tolist())
        alarms += bool(update(rule, begin(rule), values).alarms)
    assert_rate_at_most(DELTA, alarms, n)


# The mean of m_1, ..., m_n is known at every n, and so is that since any start.
MEANS = {
    "constant": lambda m: np.full(m, 0.1),
    "wandering": lambda m: 0.2 * np.abs(np.sin(np.arange(m) / 40)),
    "a change": lambda m: np.where(np.arange(m) < m // 2, 0.05, 0.4),
}


@pytest.mark.parametrize("case", MEANS)
@pytest.mark.parametrize("kind", ["0/1", "graded"])
def test_bounds_hold_at_all_times_at_once(case, kind, effort):
    m, n = 400, 100 * effort
    means, rng = MEANS[case](m)[:, None], np.random.default_rng(4)
    spread = rng.random((m, n))
    losses = spread < means if kind == "0/1" else means * (0.5 + spread)
    rule, missed = rule_of([0.15] * n), np.zeros(n, bool)
    state, sums = begin(rule), np.concatenate(([0.0], np.cumsum(means)))
    for t in range(20, m + 1, 20):
        state = update(rule, state, losses[t - 20 : t])
        whole = since_begin(rule, state, delta=DELTA / 2)
        recent = since_change(rule, state, delta=DELTA / 2)
        for stream, (segment, since) in enumerate(recent):
            for start, found in ((0, whole[stream]), (segment.row, since)):
                mean = (sums[t] - sums[start]) / max(t - start, 1)
                missed[stream] |= start < t and not found.lower <= mean <= found.upper
    assert_rate_at_most(DELTA, missed.sum(), n)


def test_bounds_on_weighted_means_hold_at_all_times_at_once(effort):
    m, n, rng = 400, 100 * effort, np.random.default_rng(5)
    heavy = rng.random((m, n)) < 0.5
    losses = rng.random((m, n)) < np.where(heavy, 0.3, 0.1)
    true = (0.3 + 0.2 * 0.1) / 1.2  # weights 1 and 0.2
    rule, missed = rule_of([0.1] * n, weighted=True), np.zeros(n, bool)
    state = begin(rule)
    for t in range(0, m, 20):
        part = slice(t, t + 20)
        state = update(rule, state, losses[part], np.where(heavy[part], 1.0, 0.2))
        found = since_begin(rule, state, delta=DELTA)
        missed |= [not each.lower <= true <= each.upper for each in found]
    assert_rate_at_most(DELTA, missed.sum(), n)
    assert max(each.lower for each in found) > 0.15


@pytest.mark.parametrize("mean", [0.02, 0.5, 0.97])
def test_each_side_of_a_bound_holds_on_its_own(mean, effort):
    rng, n, m = np.random.default_rng(6), 300 * effort, 300
    total, above, below = np.zeros(n), np.zeros(n, bool), np.zeros(n, bool)
    for t in range(5, m, 5):
        total += rng.binomial(5, mean, n)
        above |= lower_bound(np.full(n, t), total, None, DELTA) > mean
        below |= upper_bound(np.full(n, t), total, None, DELTA) < mean
    assert_rate_at_most(DELTA, above.sum(), n)
    assert_rate_at_most(DELTA, below.sum(), n)
