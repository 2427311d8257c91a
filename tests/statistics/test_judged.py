"""What a judge is worth, in batches and with conditions, and what is refused."""

import math

import numpy as np
import pytest

from riskpilot.errors import LossError, LossRangeError, ProblemError
from riskpilot.statistics.families import log_binomial
from riskpilot.statistics.judged.testing import add_judged, log_judged, start_judged
from riskpilot.statistics.judged.worth import judged_power, labels_worth

LOG_DELTA = math.log(0.1)


def judged_losses(rng, n, m, pool, risk, correlation):
    """0/1 losses, and scores of 0 or 1 at the same rate with this correlation."""
    losses = (rng.random((n, m)) < risk) * 1.0
    rate = np.where(losses == 1, risk + correlation * (1 - risk), risk - correlation * risk)
    scores = (rng.random((n, m)) < rate) * 1.0
    return losses, scores, (rng.random((n, pool)) < risk) * 1.0


def power(limit, losses, scores, pool, **keywords):
    return (log_judged(losses, scores, pool, limit, 0.1, **keywords) < LOG_DELTA).mean()


def test_a_good_judge_is_worth_twice_the_labels():
    rng = np.random.default_rng(0)
    alone = (rng.random((500, 1000)) < 0.0725).sum(axis=1)
    without = (log_binomial(alone, 1000, 0.1) < LOG_DELTA).mean()
    with_judge = power(0.1, *judged_losses(rng, 500, 500, 5000, 0.0725, 0.8), binary=True)
    assert with_judge > without - 0.04


def test_a_useless_judge_costs_little():
    rng = np.random.default_rng(1)
    losses, scores, pool = judged_losses(rng, 800, 500, 5000, 0.065, 0.0)
    without = (log_binomial(losses.sum(axis=1), 500, 0.1) < LOG_DELTA).mean()
    assert power(0.1, losses, scores, pool, binary=True) > without - 0.03


def test_a_judge_that_is_always_wrong_helps_as_much_as_one_that_is_right():
    rng = np.random.default_rng(2)
    losses, scores, pool = judged_losses(rng, 300, 400, 4000, 0.07, 0.9)
    right = power(0.1, losses, scores, pool, binary=True)
    wrong = power(0.1, losses, 1 - scores, 1 - pool, binary=True)
    assert wrong > right - 0.08
    assert wrong > power(0.1, losses, 0 * scores, 0 * pool, binary=True) + 0.05


def test_batches_do_not_matter():
    rng = np.random.default_rng(3)
    losses, scores, pool = judged_losses(rng, 20, 150, 500, 0.1, 0.6)
    counts = rng.random(losses.shape) < 0.8
    losses, scores = np.where(counts, losses, np.nan), np.where(counts, scores, np.nan)
    whole = add_judged(start_judged(20, 0.15, 0.1, 150, 500), losses, scores, pool)
    for step in (1, 7, 64):
        state = start_judged(20, 0.15, 0.1, 150, 500)
        for start in range(0, 150, step):
            batch = slice(start, start + step)
            state = add_judged(state, losses[:, batch], scores[:, batch], pool)
        np.testing.assert_array_equal(state.log_p, whole.log_p)


def test_scores_may_be_shared_by_all_candidates():
    rng = np.random.default_rng(4)
    losses, scores, pool = judged_losses(rng, 1, 100, 300, 0.1, 0.6)
    several = np.repeat(losses, 3, axis=0)
    shared = log_judged(several, scores, pool, [0.1, 0.2, 0.3], 0.1)
    own = log_judged(several, np.repeat(scores, 3, 0), np.repeat(pool, 3, 0), [0.1, 0.2, 0.3], 0.1)
    np.testing.assert_array_equal(shared, own)
    assert (np.diff(shared) <= 0).all()


def test_examples_that_do_not_count_leave_their_scores_to_those_that_do():
    rng = np.random.default_rng(5)
    losses, scores, pool = judged_losses(rng, 200, 800, 8000, 0.06, 0.8)
    counts, fresh = rng.random((200, 800)) < 0.5, rng.random((200, 8000)) < 0.5
    some = [np.where(c, v, np.nan) for c, v in ((counts, losses), (counts, scores), (fresh, pool))]
    half = power(0.1, losses[:, :400], scores[:, :400], pool[:, :4000], binary=True)
    assert power(0.1, *some, binary=True) > half - 0.08


def test_without_unlabelled_scores_the_judge_is_left_out():
    rng = np.random.default_rng(6)
    losses, scores, _ = judged_losses(rng, 5, 100, 0, 0.05, 0.8)
    none = np.empty((5, 0))
    found = log_judged(losses, scores, none, 0.1, 0.1)
    np.testing.assert_array_equal(found, log_judged(losses, 0 * scores, none, 0.1, 0.1))


def test_nothing_counts_is_no_evidence():
    nothing = np.full((2, 10), np.nan)
    assert log_judged(nothing, nothing, np.zeros((2, 50)), 0.1, 0.1) == pytest.approx(0, abs=1e-12)
    none = np.empty((2, 0))
    assert log_judged(none, none, np.zeros((2, 5)), 0.1, 0.1) == pytest.approx(0, abs=1e-12)


def test_early_bets_stop_early():
    rng = np.random.default_rng(7)
    losses, scores, pool = judged_losses(rng, 200, 600, 6000, 0.06, 0.8)
    state = start_judged(200, 0.1, 0.1, 600, 6000, binary=True)
    half = add_judged(state, losses[:, :300], scores[:, :300], pool)
    assert half.crossed.mean() > 0.6
    assert add_judged(half, losses[:, 300:], scores[:, 300:], pool).crossed.mean() > 0.95


def test_worth_grows_with_correlation_and_scores():
    assert labels_worth(0.0, 10) == 1.0
    assert labels_worth(0.8, 0) == 1.0
    assert labels_worth(1.0, 4) == pytest.approx(5.0)
    worth = [labels_worth(r, 10) for r in (0.2, 0.5, 0.8, 0.95)]
    assert worth == sorted(worth)
    assert labels_worth(-0.8, 10) == labels_worth(0.8, 10)


def test_planned_power_is_about_what_comes():
    rng = np.random.default_rng(8)
    for correlation in (0.0, 0.8):
        found = power(0.1, *judged_losses(rng, 500, 500, 5000, 0.075, correlation), binary=True)
        planned = judged_power(0.1, 0.075, 500, 0.1, correlation=correlation, per_label=10)
        assert found == pytest.approx(planned, abs=0.07)


def call(losses, scores, pool):
    return log_judged(losses, scores, pool, 0.1, 0.1)


@pytest.mark.parametrize(
    ("run", "error", "says"),
    [
        (lambda: call([[0.5]], [[0.5, 0.5]], [[0.5]]), LossError, "same labels"),
        (lambda: call([[0.5]], [[0.5]], [[0.5], [0.5]]), LossError, "unlabelled scores"),
        (lambda: call([[1.5]], [[0.5]], [[0.5]]), LossRangeError, "1.5"),
        (lambda: call([[0.5]], [[-0.5]], [[0.5]]), LossRangeError, "judge"),
        (lambda: call([[0.5]], [[0.5]], [[7.0]]), LossRangeError, "7"),
        (lambda: call([[np.nan]], [[0.5]], [[0.5]]), LossError, "exactly where"),
        (lambda: start_judged(1, 1.0, 0.1, 5, 5), ProblemError, "unit scale"),
        (lambda: start_judged(1, 0.1, 0.1, 0, 5), ProblemError, "horizon"),
        (lambda: start_judged(1, 0.1, 0.1, 5, -1), ProblemError, "pool"),
        (
            lambda: add_judged(start_judged(1, 0.1, 0.1, 2, 2), [[0, 0, 0]], [[0, 0, 0]], [[0, 0]]),
            LossError,
            "Leave the later labels out",
        ),
        (lambda: labels_worth(1.5, 1), ProblemError, "correlation"),
    ],
)
def test_what_cannot_be_meant_is_refused(run, error, says):
    with pytest.raises(error, match=says):
        run()
