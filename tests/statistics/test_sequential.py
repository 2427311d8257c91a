"""Boundaries, capitals and streams: batches, looks, planning and what is refused."""

import math
import time

import numpy as np
import pytest
from scipy.stats import binom

from riskpilot.errors import LossError, LossRangeError, ProblemError
from riskpilot.statistics import Difference, TestSettings
from riskpilot.statistics.samples import Limit
from riskpilot.statistics.sequential import streams
from riskpilot.statistics.sequential.bets import slope
from riskpilot.statistics.sequential.boundary import (
    advance,
    allowed_errors,
    exact_boundary,
    largest_critical,
    start_walk,
)
from riskpilot.statistics.sequential.capital import add_losses, log_anytime_betting, start_capital
from riskpilot.statistics.sequential.counts import add_counts, log_boundary, start_counts
from riskpilot.statistics.sequential.following import Labels
from riskpilot.statistics.sequential.operating import crossing_chances, outlook, simulate_sequence

LOG_DELTA = math.log(0.1)


def in_batches(rng, m):
    """Edges of batches of random sizes, empty ones among them."""
    edges = np.sort(rng.integers(0, m + 1, rng.integers(1, 12)))
    return zip(np.r_[0, edges], np.r_[edges, m], strict=True)


def test_half_the_labels_at_a_margin():
    found = outlook(limit=0.1, risk=0.07, delta=0.1, horizon=1000)
    assert found.power >= 0.975
    assert found.mean_labels <= 480
    assert found.fixed_power == pytest.approx(0.983, abs=0.001)
    assert found.mean_labels_decided <= found.mean_labels


@pytest.mark.parametrize("limit", [0.02, 0.1, 0.5])
def test_a_long_boundary_takes_seconds(limit):
    start = time.perf_counter()
    exact_boundary(limit, 0.1, 100_000)
    assert time.perf_counter() - start < 20  # about 0.5 on an idle machine


def test_the_boundary_of_all_labels_is_computed_once(monkeypatch):
    walked = []

    def counted(walk, allowed, counts=None):
        walked.append(len(allowed))
        return advance(walk, allowed, counts)

    monkeypatch.setattr("riskpilot.statistics.sequential.boundary.advance", counted)
    states = [start_counts(2, 0.0777, 0.1, 5000) for _ in range(3)]
    critical = exact_boundary(0.0777, 0.1, 5000).critical
    assert walked == [5000]
    assert {int(walk.most) for state in states for walk in state.walks} == {int(critical[-1])}
    with pytest.raises(ValueError, match="read-only"):
        critical[0] = 3  # other calibrations read it


def test_groups_share_the_errors_that_are_allowed():
    one, other = (start_counts(1, limit, 0.1, 900, conditional=True) for limit in (0.1, 0.2))
    assert one.allowed is other.allowed


def test_too_few_labels_that_count_are_hopeless():
    state = start_counts(1, 0.1, 0.1, 30, conditional=True)
    assert not state.hopeless[0]
    state = add_counts(state, np.full((1, 8), np.nan))
    assert not state.hopeless[0]  # 22 labels without a loss are enough
    state = add_counts(state, [[np.nan]])
    assert state.hopeless[0]
    rest = np.zeros((1, 21))
    assert not add_counts(state, rest).crossed[0]


def test_boundaries_rise_with_labels_limit_and_delta():
    boundary = exact_boundary(0.1, 0.1, 500)
    assert (np.diff(boundary.critical) >= 0).all()
    assert (np.diff(boundary.spent) >= 0).all()
    assert (exact_boundary(0.15, 0.1, 500).critical >= boundary.critical).all()
    assert (exact_boundary(0.1, 0.2, 500).critical >= boundary.critical).all()
    assert boundary.critical[-1] <= largest_critical(0.1, 0.1, 500)


def test_a_boundary_walked_in_steps_is_the_boundary():
    rng = np.random.default_rng(0)
    whole = exact_boundary(0.07, 0.1, 700)
    walk, parts = start_walk(0.07, 0.1, 700), []
    allowed = allowed_errors(0.1, 700)
    for start, stop in in_batches(rng, 700):
        walk, critical, _ = advance(walk, allowed[start:stop])
        parts.append(critical)
    np.testing.assert_array_equal(np.concatenate(parts), whole.critical)
    assert walk.spent == whole.spent[-1]


@pytest.mark.parametrize("conditional", [False, True])
def test_batches_of_counts_do_not_matter(conditional):
    rng = np.random.default_rng(1)
    losses = (rng.random((6, 300)) < [[0.02], [0.05], [0.08], [0.1], [0.2], [0.5]]) * 1.0
    if conditional:
        losses[rng.random(losses.shape) < 0.3] = np.nan
    whole = add_counts(start_counts(6, 0.1, 0.1, 300, conditional=conditional), losses)
    for _ in range(5):
        state = start_counts(6, 0.1, 0.1, 300, conditional=conditional)
        for start, stop in in_batches(rng, 300):
            state = add_counts(state, losses[:, start:stop])
        np.testing.assert_array_equal(state.log_p, whole.log_p)
        np.testing.assert_array_equal(state.counts, whole.counts)
        np.testing.assert_array_equal(state.counted, whole.counted)
        np.testing.assert_array_equal(state.hopeless, whole.hopeless)
    assert whole.crossed[0]
    assert not whole.crossed[-1]


def test_p_is_the_error_spent_at_the_crossing():
    boundary = exact_boundary(0.1, 0.1, 200)
    first = int(np.argmax(boundary.critical >= 0))
    found = log_boundary(np.zeros((1, 200)), 0.1, 0.1, 200)
    assert found[0] == pytest.approx(math.log(boundary.spent[first]))
    assert log_boundary(np.zeros((1, first)), 0.1, 0.1, 200)[0] == 0.0


def test_a_candidate_that_was_evaluated_later_is_judged_by_its_path():
    # Good at first, bad afterwards: it crossed on the way, whenever somebody looks.
    losses = np.r_[np.zeros(80), np.ones(120)][None]
    assert log_boundary(losses, 0.1, 0.1, 200)[0] < LOG_DELTA


def test_hopeless_means_that_nothing_can_help_any_more():
    rng = np.random.default_rng(2)
    for conditional in (False, True):
        state = start_counts(200, 0.1, 0.1, 150, conditional=conditional)
        losses = (rng.random((200, 100)) < 0.1) * 1.0
        if conditional:
            losses[rng.random(losses.shape) < 0.2] = np.nan
        state = add_counts(state, losses)
        best = add_counts(state, np.zeros((200, 50)))
        assert state.hopeless.any()
        assert not (state.hopeless & best.crossed).any()
        if not conditional:
            np.testing.assert_array_equal(state.hopeless, ~best.crossed)


def test_labels_beyond_the_horizon_change_nothing():
    state = add_counts(start_counts(1, 0.1, 0.1, 50), np.ones((1, 50)))
    assert state.hopeless.all()
    assert not add_counts(state, np.zeros((1, 10_000))).crossed.any()


def test_groups_share_one_walk():
    # Rows with the same labels that count are walked once: 2,000 candidates take no longer than 1.
    rng = np.random.default_rng(3)
    counts = rng.random(200) < 0.5
    losses = np.where(counts, rng.random((2_000, 200)) < 0.05, np.nan)
    state = add_counts(start_counts(2_000, 0.1, 0.1, 200, conditional=True), losses)
    assert len({id(walk) for walk in state.walks}) == 1


def test_chances_agree_with_simulated_paths():
    rng = np.random.default_rng(4)
    boundary = exact_boundary(0.1, 0.1, 200)
    crossed, undecided = crossing_chances(boundary.critical, 0.06)
    counts = np.cumsum(rng.random((20_000, 200)) < 0.06, axis=1)
    below = np.logical_or.accumulate(counts <= boundary.critical, axis=1)
    error = 4 * np.sqrt(0.25 / 20_000)
    np.testing.assert_allclose(below.mean(axis=0), crossed, atol=error)
    still = ~below & (counts <= boundary.critical[-1])
    np.testing.assert_allclose(still.mean(axis=0), undecided, atol=error)


def test_chances_from_here_add_up_to_the_chances_at_the_start():
    boundary = exact_boundary(0.1, 0.1, 120)
    whole = crossing_chances(boundary.critical, 0.05)[0][-1]
    t = int(np.argmax(boundary.critical >= 0))  # nobody has crossed after t labels
    parts = [
        binom.pmf(count, t, 0.05)
        * crossing_chances(boundary.critical, 0.05, labels=t, count=count)[0][-1]
        for count in range(t + 1)
    ]
    assert sum(parts) == pytest.approx(whole, abs=1e-12)


def test_at_the_limit_the_chance_is_the_error_spent():
    boundary = exact_boundary(0.2, 0.1, 300)
    crossed, _ = crossing_chances(boundary.critical, 0.2)
    np.testing.assert_allclose(crossed, boundary.spent, atol=1e-10)


def test_a_sequence_is_certified_from_the_front():
    boundary = exact_boundary(0.1, 0.1, 300)
    rng = np.random.default_rng(5)
    found = simulate_sequence([0.04, 0.07, 0.12], boundary, rng, runs=2_000)
    assert (np.diff(found.certified) <= 0).all()
    alone = outlook(0.1, 0.04, 0.1, 300)
    assert found.certified[0] == pytest.approx(alone.power, abs=0.03)
    assert found.mean_labels_first == pytest.approx(alone.mean_labels, rel=0.05)
    assert found.certified[2] < 0.05
    assert found.mean_labels_first <= found.mean_labels_best <= found.mean_labels_done <= 300


@pytest.mark.parametrize("share_that_counts", [1.0, 0.6])
def test_batches_of_losses_do_not_matter(share_that_counts):
    rng = np.random.default_rng(6)
    losses = rng.beta(1, 5, (5, 400))
    losses[rng.random(losses.shape) > share_that_counts] = np.nan
    limits = np.array([0.1, 0.15, 0.2, 0.3, 0.6])
    whole = add_losses(start_capital(5, limits, 0.1, 400), losses)
    for _ in range(5):
        state = start_capital(5, limits, 0.1, 400)
        for start, stop in in_batches(rng, 400):
            state = add_losses(state, losses[:, start:stop])
        np.testing.assert_array_equal(state.log_p, whole.log_p)
        np.testing.assert_array_equal(state.bet, whole.bet)


def test_p_never_rises():
    rng = np.random.default_rng(7)
    state, last = start_capital(50, 0.3, 0.1, 200), np.zeros(50)
    for _ in range(20):
        state = add_losses(state, rng.beta(1, 3, (50, 10)))
        assert (state.log_p <= last).all()
        last = state.log_p


def test_losses_that_do_not_count_change_nothing():
    losses = np.full((1, 100), np.nan)
    assert log_anytime_betting(losses, 0.1, 0.1, 100)[0] == 0.0


def test_betting_stops_early_without_losing_much_at_the_end():
    rng = np.random.default_rng(8)
    losses = rng.beta(0.28 * 5, 0.72 * 5, (400, 1000))
    early = start_capital(400, 0.3, 0.1, 1000)
    half = add_losses(early, losses[:, :500])
    whole = add_losses(half, losses[:, 500:])
    late = log_anytime_betting(losses, 0.3, 0.1, 1000, power=8.0) < LOG_DELTA
    assert half.crossed.mean() > 0.5
    assert whole.crossed.mean() > 0.95
    assert whole.crossed.mean() > late.mean() - 0.03


def test_labels_beyond_the_horizon_are_bet_on():
    rng = np.random.default_rng(9)
    state = add_losses(start_capital(1, 0.3, 0.1, 50), rng.beta(4, 12, (1, 50)))
    assert add_losses(state, rng.beta(4, 12, (1, 300))).log_p[0] < state.log_p[0]


def test_bets_rise_with_what_is_missing_and_with_time():
    missing = np.linspace(math.log(10), 40, 100)
    early, half, late = (slope(0.1, 2.0, np.full(100, share), missing) for share in (0, 0.5, 0.99))
    for bets in (early, half, late):
        assert (bets > 0).all()
        assert (np.diff(bets) > 0).all()
    assert (early < half).all()
    assert (half < late).all()


@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("power", [1.0, 2.0, 8.0])
def test_bets_exist_for_any_level(delta, power):
    bets = slope(delta, power, np.linspace(0, 1, 50), np.full(50, math.log(1 / delta)))
    assert np.isfinite(bets).all()
    assert (bets >= 0).all()


def test_pairs_only_grow_in_number():
    rng = np.random.default_rng(10)
    losses, codes = rng.random((3, 90)), rng.integers(0, 3, 90)
    settings = {"groups": (0, 2), "factors": (1, -1), "bound": 0.1, "sizes": (1, 2)}
    whole, _ = streams.contrasts(losses, codes, **settings)
    for t in range(0, 90, 7):
        part, limit = streams.contrasts(losses[:, :t], codes[:t], **settings)
        np.testing.assert_array_equal(part, whole[:, : part.shape[1]])
        assert limit == pytest.approx(0.55)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: exact_boundary(0.0, 0.1, 10), ProblemError, "limit in"),
        (lambda: exact_boundary(0.1, 1.0, 10), ProblemError, "delta"),
        (lambda: exact_boundary(0.1, 0.1, 0), ProblemError, "horizon"),
        (lambda: exact_boundary(0.1, 0.1, 10**7), ProblemError, "2,000,000"),
        (lambda: exact_boundary(0.1, 0.1, True), ProblemError, "horizon"),
        (lambda: allowed_errors(0.1, 9, lambda s: 1 - s), ProblemError, "never falls"),
        (lambda: allowed_errors(0.1, 9, lambda s: 2 * s), ProblemError, "spending"),
        (lambda: add_counts(start_counts(2, 0.1, 0.1, 9), np.zeros((3, 4))), LossError, "shape"),
        (lambda: add_counts(start_counts(1, 0.1, 0.1, 9), [[np.nan]]), LossError, "conditional"),
        (lambda: crossing_chances(np.zeros(3, int), 1.5), ProblemError, "true risk"),
        (lambda: start_capital(1, 0.0, 0.1, 9), ProblemError, "unit scale"),
        (lambda: start_capital(1, 0.1, 0.1, 0), ProblemError, "horizon"),
        (lambda: log_anytime_betting([[1.5]], 0.1, 0.1, 9), LossRangeError, "1.5"),
        (lambda: log_anytime_betting([0.5], 0.1, 0.1, 9), LossError, "shape"),
        (lambda: streams.changes([[0.5]], [[0]]), LossError, "0 or 1"),
        (lambda: streams.differences([[np.nan]], [[0]]), LossError, "one side alone"),
        (lambda: streams.weighted([[0.5]], [2.0], 0.1), LossError, "largest weight"),
        (
            lambda: streams.contrasts([[np.nan]], [0], groups=(0, 1), factors=(1, -1), bound=0.1),
            LossError,
            "Groups are compared",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_labels_at_which_a_configuration_is_as_good_as_the_reference_do_not_count():
    settings = TestSettings("sequential_boundary", 0.1, 0)
    (stream,) = Difference().streams(settings, Limit(0.5, 0.0), 0, False)
    own = np.array([[-1.0, 0.0, 1.0, np.nan, -0.5, 0.5]])
    found = stream.values(Labels(own, (own + 1) / 2, lowest=-1.0), np.array([0]))
    np.testing.assert_array_equal(found, [[0.0, np.nan, 1.0, np.nan, np.nan, 1.0]])
