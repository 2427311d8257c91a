"""Tests that may be looked at after every label keep delta, whenever one stops."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from exact import assert_rate_at_most, assert_super_uniform, shows_rate_above

from riskpilot.statistics import streams
from riskpilot.statistics.boundary import allowed_errors, exact_boundary, quadratic
from riskpilot.statistics.capital import add_losses, log_anytime_betting, start_capital
from riskpilot.statistics.p_values import log_binomial
from riskpilot.statistics.sequential import log_boundary

STREAMS = 10_000
SAMPLES = 3_000


def linear(share):
    return share


def late(share):
    return np.where(share < 0.5, 0.0, share**4)


def two_values(low, high, mean):
    share = (mean - low) / (high - low)
    return lambda rng, shape: np.where(rng.random(shape) < share, high, low)


# The boundary.


def walked(alive, limit, counts):
    """One label more. Masses are whole numbers, to be divided by the denominator each time."""
    part, whole = float(limit).as_integer_ratio()
    if not counts:
        return {count: mass * whole for count, mass in alive.items()}
    moved = {}
    for count, mass in alive.items():
        moved[count] = moved.get(count, 0) + mass * (whole - part)
        moved[count + 1] = moved.get(count + 1, 0) + mass * part
    return moved


def brute_boundary(limit, allowed, counts=None):
    """The largest critical counts within ``allowed``, in exact arithmetic and plain loops."""
    whole = float(limit).as_integer_ratio()[1]
    alive, spent, unit, bound, critical, errors = {0: 1}, 0, 1, -1, [], []
    for t, budget in enumerate(allowed):
        alive = walked(alive, limit, counts is None or counts[t])
        spent, unit = spent * whole, unit * whole
        while alive and Fraction(spent + alive.get(bound + 1, 0), unit) <= Fraction(budget):
            spent += alive.pop(bound + 1, 0)
            bound += 1
        critical.append(bound)
        errors.append(Fraction(spent, unit))
    return critical, errors


def crossing_probability(limit, critical, counts=None):
    """P(crossed by each label) of given critical counts, in exact arithmetic."""
    whole = float(limit).as_integer_ratio()[1]
    alive, crossed, unit, result = {0: 1}, 0, 1, []
    for t, bound in enumerate(critical):
        alive = walked(alive, limit, counts is None or counts[t])
        crossed, unit = crossed * whole, unit * whole
        for count in [count for count in alive if count <= bound]:
            crossed += alive.pop(count)
        result.append(Fraction(crossed, unit))
    return result


@pytest.mark.parametrize("limit", [0.03, 0.11, 0.5, 0.87])
@pytest.mark.parametrize("delta", [0.013, 0.1, 0.4])
@pytest.mark.parametrize("spending", [quadratic, linear, late])
def test_the_boundary_is_the_largest_within_its_budget(limit, delta, spending):
    m = 40
    found = exact_boundary(limit, delta, m, spending=spending)
    allowed = allowed_errors(delta, m, spending)
    critical, errors = brute_boundary(limit, allowed.tolist())
    np.testing.assert_array_equal(found.critical, critical)
    np.testing.assert_allclose(found.spent, [float(error) for error in errors], rtol=1e-12)


@pytest.mark.parametrize("limit", [0.2, 0.35])
def test_no_path_is_forgotten(limit):
    # All 2^14 paths one by one, without any recursion.
    m = 14
    boundary = exact_boundary(limit, 0.3, m)
    allowed = allowed_errors(0.3, m)
    crossed = np.zeros(m)
    for path in product((0, 1), repeat=m):
        below = np.cumsum(path) <= boundary.critical
        if below.any():
            crossed[below.argmax() :] += limit ** sum(path) * (1 - limit) ** (m - sum(path))
    np.testing.assert_allclose(crossed, boundary.spent, atol=1e-12)
    assert (crossed <= allowed).all()


@pytest.mark.parametrize(("limit", "m"), [(0.05, 400), (0.3, 300), (0.9, 200)])
def test_the_error_spent_never_exceeds_what_is_allowed(limit, m):
    # In exact arithmetic: rounding and cuts are on the safe side.
    boundary = exact_boundary(limit, 0.1, m)
    exactly = crossing_probability(limit, boundary.critical)
    allowed = allowed_errors(0.1, m)
    for error, budget, told in zip(exactly, allowed, boundary.spent, strict=True):
        assert error <= Fraction(budget)
        assert abs(float(error) - told) <= 1e-11 * told + 1e-290


def test_the_error_is_kept_for_every_pattern_of_labels_that_count():
    rng = np.random.default_rng(0)
    m = 60
    allowed = allowed_errors(0.1, m)
    for share in (0.05, 0.3, 0.9):
        for _ in range(5):
            counts = rng.random(m) < share
            found = exact_boundary(0.2, 0.1, m, counts=counts)
            critical, _ = brute_boundary(0.2, allowed.tolist(), counts)
            np.testing.assert_array_equal(found.critical, critical)
            errors = crossing_probability(0.2, found.critical, counts)
            assert all(e <= Fraction(a) for e, a in zip(errors, allowed, strict=True))


@pytest.mark.parametrize("risk", [0.1001, 0.11, 0.2, 0.9])
def test_above_the_limit_crossing_is_rarer(risk):
    critical = exact_boundary(0.1, 0.1, 150).critical
    at_limit = crossing_probability(0.1, critical)
    above = crossing_probability(risk, critical)
    assert all(a <= b for a, b in zip(above, at_limit, strict=True))


def test_a_long_boundary_spends_no_more_than_delta():
    boundary = exact_boundary(0.1, 0.1, 100_000)
    assert (boundary.spent <= allowed_errors(0.1, 100_000)).all()
    assert boundary.spent[-1] > 0.0999
    assert (np.diff(boundary.critical) >= 0).all()


@pytest.mark.parametrize("limit", [0.02, 0.1, 0.5])
def test_streams_at_the_limit_rarely_cross_whenever_one_stops(limit, effort):
    rng = np.random.default_rng(1)
    for _ in range(effort):
        losses = rng.random((STREAMS, 300)) < limit
        # The p-value falls once, at the crossing: stopping at the best moment is stopping last.
        assert_super_uniform(log_boundary(losses, limit, 0.1, 300))


def test_dependent_losses_that_are_never_safer_than_the_limit_rarely_cross(effort):
    rng = np.random.default_rng(2)
    for _ in range(effort):
        losses = np.zeros((STREAMS, 200))
        for t in range(200):  # bad after a good stretch, at the limit otherwise
            risk = np.where(losses[:, :t].sum(axis=1) < 0.05 * t, 0.3, 0.1)
            losses[:, t] = rng.random(STREAMS) < risk
        assert_super_uniform(log_boundary(losses, 0.1, 0.1, 200))


def test_looking_at_the_fixed_test_after_every_label_would_not_hold_delta():
    rng = np.random.default_rng(3)
    counts = np.cumsum(rng.random((2_000, 300)) < 0.1, axis=1)
    looks = log_binomial(counts, np.arange(1, 301), 0.1)
    assert shows_rate_above(0.1, (looks.min(axis=1) < math.log(0.1)).sum(), 2_000)


def test_a_sequence_of_candidates_with_a_bad_one_in_it_rarely_certifies_it(effort):
    rng = np.random.default_rng(4)
    for _ in range(effort):
        difficulty = rng.random((1_000, 1, 300))
        risks = np.array([0.02, 0.05, 0.1, 0.04])[:, None]  # the third is at its limit
        losses = (difficulty < risks).reshape(4_000, 300)
        crossed = log_boundary(losses, 0.1, 0.1, 300).reshape(1_000, 4) < 0
        certified = np.logical_and.accumulate(crossed, axis=1)
        assert_rate_at_most(0.1, certified[:, 2].sum(), 1_000)
        assert certified[:, 1].mean() > 0.9


# The capital.

GRADED = {
    "0/1": (0.1, two_values(0, 1, 0.1)),
    "just below, rarely far above": (0.1, two_values(0.09, 1.0, 0.1)),
    "just above, rarely at zero": (0.1, two_values(0.0, 0.105, 0.1)),
    "tiny variance": (0.3, two_values(0.299, 0.301, 0.3)),
    "constant": (0.3, lambda rng, shape: np.full(shape, 0.3)),
    "beta": (0.2, lambda rng, shape: rng.beta(0.4, 1.6, shape)),
    "beta, narrow": (0.2, lambda rng, shape: rng.beta(40, 160, shape)),
    "near one": (0.97, two_values(0.95, 1.0, 0.97)),
}


@pytest.mark.parametrize("case", GRADED)
@pytest.mark.parametrize("power", [2.0, 8.0])
def test_capital_at_the_limit_is_rarely_large_whenever_one_stops(case, power, effort):
    limit, draw = GRADED[case]
    rng = np.random.default_rng(5)
    for _ in range(effort):
        losses = draw(rng, (STREAMS, 120))
        # One over the largest capital after any label: nobody can stop at a better moment.
        assert_super_uniform(log_anytime_betting(losses, limit, 0.1, 120, power=power))


@pytest.mark.parametrize("low", [0.0, 0.15])
@pytest.mark.parametrize("horizon", [5, 12, 30])
def test_capital_is_fair_over_all_paths(low, horizon):
    # Every path of 12 losses that are low or high, with its probability: no sampling.
    limit, high, m = 0.3, 0.9, 12
    share = (limit - low) / (high - low)
    paths = np.array(list(product((0, 1), repeat=m)))
    chances = share ** paths.sum(axis=1) * (1 - share) ** (m - paths.sum(axis=1))
    state = start_capital(len(paths), limit, 0.1, horizon)
    state = add_losses(state, np.where(paths == 1, high, low))
    assert chances @ np.exp(state.log_capital) == pytest.approx(1.0, abs=1e-9)
    for level in (0.01, 0.05, 0.1, 0.2, 0.5, 0.9):
        assert chances[state.log_p <= math.log(level)].sum() <= level + 1e-12


@pytest.mark.parametrize("horizon", [30, 120, 1000])
def test_capital_is_valid_for_any_horizon_it_was_made_for(horizon, effort):
    rng = np.random.default_rng(6)
    for _ in range(effort):
        losses = two_values(0, 1, 0.1)(rng, (STREAMS, 120))
        assert_super_uniform(log_anytime_betting(losses, 0.1, 0.1, horizon))


# Every statistic, at its limit.


def some_count(rng, losses, share=0.4):
    return np.where(rng.random(losses.shape) < share, losses, np.nan)


def test_a_conditional_risk_at_its_limit(effort):
    rng = np.random.default_rng(7)
    for _ in range(effort):
        losses = some_count(rng, (rng.random((SAMPLES, 100)) < 0.2) * 1.0)
        assert_super_uniform(log_boundary(losses, 0.2, 0.1, 100))
        graded = some_count(rng, rng.beta(0.4, 1.6, (SAMPLES, 100)))
        assert_super_uniform(log_anytime_betting(graded, 0.2, 0.1, 100))


def test_bets_on_losses_that_stop_counting_after_bad_ones_stay_fair(effort):
    # Whether the next label counts depends on the losses before: bets allow that.
    rng = np.random.default_rng(8)
    for _ in range(effort):
        losses = (rng.random((SAMPLES, 80)) < 0.2) * 1.0
        for t in range(1, 80):
            behind = np.nansum(losses[:, :t], axis=1) > 0.2 * t
            losses[behind & (rng.random(SAMPLES) < 0.8), t] = np.nan
        assert_super_uniform(log_anytime_betting(losses, 0.2, 0.1, 80))


def test_the_worst_group_at_its_limit(effort):
    rng = np.random.default_rng(9)
    for _ in range(effort):
        groups = rng.integers(0, 3, (SAMPLES, 150))
        losses = rng.random(groups.shape) < np.array([0.05, 0.2, 0.15])[groups]
        by_group = [
            log_boundary(np.where(groups == g, losses, np.nan), 0.2, 0.1, 150) for g in range(3)
        ]
        assert_super_uniform(np.max(by_group, axis=0))
        assert_super_uniform(by_group[1])


def test_a_quantile_just_above_its_limit(effort):
    rng = np.random.default_rng(10)
    for _ in range(effort):
        above = rng.random((SAMPLES, 150)) < 0.1
        losses = np.where(above, 0.51, 0.5 * rng.random(above.shape))
        assert_super_uniform(log_boundary(streams.exceedances(losses, 0.5), 0.1, 0.1, 150))


@pytest.mark.parametrize(("worse", "better"), [(0.1, 0.1), (0.01, 0.01), (0.45, 0.45)])
def test_changes_that_are_as_often_worse_as_better(worse, better, effort):
    rng = np.random.default_rng(11)
    for _ in range(effort):
        draw = rng.random((SAMPLES, 150))
        ours, theirs = draw < worse, (draw >= worse) & (draw < worse + better)
        assert_super_uniform(log_boundary(streams.changes(ours, theirs), 0.5, 0.1, 150))


@pytest.mark.parametrize(("worse", "better"), [(0.05, 0.0), (0.15, 0.1), (0.5, 0.45)])
def test_a_difference_at_its_limit(worse, better, effort):
    rng = np.random.default_rng(12)
    for _ in range(effort):
        draw = rng.random((SAMPLES, 150))
        ours, theirs = draw < worse, (draw >= worse) & (draw < worse + better)
        limit = (1 + 0.05) / 2
        found = log_anytime_betting(streams.differences(ours, theirs), limit, 0.1, 150)
        assert_super_uniform(found)


def test_a_weighted_mean_at_its_limit(effort):
    rng = np.random.default_rng(13)
    for _ in range(effort):
        heavy = rng.random((SAMPLES, 150)) < 0.2
        weights = np.where(heavy, 1.0, 0.1)  # shares of the largest
        losses = rng.random(heavy.shape) < np.where(heavy, 0.3, 0.05)
        limit = (0.2 * 0.3 + 0.8 * 0.1 * 0.05) / (0.2 + 0.8 * 0.1)
        values = streams.weighted(losses, weights, limit)
        assert_super_uniform(log_anytime_betting(values, limit, 0.1, 150))
        level = streams.weighted(streams.exceedances(losses, 0.5), weights, limit)
        assert_super_uniform(log_anytime_betting(level, limit, 0.1, 150))


@pytest.mark.parametrize("start", [0.7, 0.9, 0.93])
def test_a_mean_of_the_tail_at_its_limit(start, effort):
    rng = np.random.default_rng(14)
    for _ in range(effort):
        losses = rng.random((SAMPLES, 150))  # the mean of the worst tenth is 0.95
        excess, limits = streams.tail_excess(losses, np.full(SAMPLES, start), 0.9, 0.95)
        assert_super_uniform(log_anytime_betting(excess, limits, 0.1, 150))


@pytest.mark.parametrize("sizes", [(1, 1), (1, 3)])
def test_a_gap_and_a_ratio_of_groups_at_their_limits(sizes, effort):
    rng = np.random.default_rng(15)
    for _ in range(effort):
        codes = (rng.random(200) < 0.75) * 1
        losses = rng.random((SAMPLES, 200)) < np.array([0.4, 0.3])[codes]
        gap, limit = streams.contrasts(
            losses, codes, groups=(0, 1), factors=(1, -1), bound=0.1, sizes=sizes
        )
        assert_super_uniform(log_anytime_betting(gap, limit, 0.1, 60))
        ratio, limit = streams.contrasts(  # "the second rate is at least 3/4 of the first"
            losses, codes, groups=(1, 0), factors=(-1, 0.75), bound=0.0, sizes=sizes[::-1]
        )
        assert_super_uniform(log_anytime_betting(ratio, limit, 0.1, 60))
