"""Estimates lie between their bounds, and the bounds are neither wrong nor idle."""

import numpy as np
import pytest

from riskpilot.watch import (
    begin,
    lower_bound,
    make_rule,
    segment_estimates,
    since_begin,
    since_change,
    update,
    upper_bound,
)


def both_bounds(n, total):
    return [bound([n], [total], None, 0.05)[0] for bound in (lower_bound, upper_bound)]


def test_nothing_is_known_before_the_first_label():
    rule = make_rule([0.1])
    (whole,) = since_begin(rule, begin(rule))
    ((segment, recent),) = since_change(rule, begin(rule))
    assert whole == recent
    assert (whole.count, whole.mean, whole.lower, whole.upper) == (0, None, 0.0, 1.0)
    assert (segment.row, segment.count) == (0, 0)


def test_bounds_close_in_on_the_mean():
    widths = []
    for n in (100, 1_000, 10_000, 100_000):
        low, high = (
            lower_bound([n], [0.1 * n], None, 0.05)[0],
            upper_bound([n], [0.1 * n], None, 0.05)[0],
        )
        assert low < 0.1 < high
        widths.append(high - low)
    # A mean of n losses has the standard error 0.3 / sqrt(n).
    ratios = np.array(widths) / (0.6 / np.sqrt([100, 1_000, 10_000, 100_000]))
    assert (ratios < 4.6).all()


def test_a_known_spread_sharpens_the_bounds_of_losses_that_vary_little():
    n = 2_000
    plain = lower_bound([n], [0.1 * n], None, 0.05)[0]
    sharp = lower_bound([n], [0.1 * n], [1e-4 * n], 0.05)[0]
    assert plain < 0.09
    assert 0.096 < sharp < 0.1


@pytest.mark.parametrize(("total", "end"), [(0.0, 0.0), (500.0, 1.0)])
def test_bounds_at_the_ends_of_the_range(total, end):
    low, high = (
        lower_bound([500], [total], None, 0.05)[0],
        upper_bound([500], [total], None, 0.05)[0],
    )
    assert min(abs(low - end), abs(high - end)) < 1e-9
    assert high - low < 0.02


def test_an_alarm_tells_the_risk_since_the_change():
    rule, rng = make_rule([0.1]), np.random.default_rng(0)
    x = rng.random((3_000, 1)) < np.where(np.arange(3_000) < 2_000, 0.05, 0.25)[:, None]
    state = update(rule, begin(rule), x)
    alarm = state.alarms[0]
    (then,) = segment_estimates(rule, 0, [alarm.segment])
    ((segment, now),) = since_change(rule, state)
    (whole,) = since_begin(rule, state)
    assert then.count == alarm.row - alarm.segment.row
    assert then.lower < then.mean < then.upper
    assert segment.row == pytest.approx(2_000, abs=60)
    assert now.mean == pytest.approx(0.25, abs=0.05)
    assert now.lower > 0.1  # more labels later, the risk is known to be above the limit
    assert now.lower > then.lower
    assert whole.mean == pytest.approx(x.mean())
    assert whole.lower < whole.mean < whole.upper


def test_a_weighted_estimate_is_the_weighted_mean():
    rule, rng = make_rule([0.1], weighted=[True]), np.random.default_rng(1)
    w, x = rng.random((500, 1)), rng.random((500, 1))
    (found,) = since_begin(rule, update(rule, begin(rule), x, w))
    assert found.mean == pytest.approx((w * x).sum() / w.sum())
    assert 0 < found.lower < found.mean < found.upper <= 1


def test_bounds_of_weights_that_are_all_zero_say_nothing():
    rule = make_rule([0.1], weighted=[True])
    (found,) = since_begin(rule, update(rule, begin(rule), np.ones((5, 1)), np.zeros((5, 1))))
    assert (found.mean, found.lower, found.upper) == (None, 0.0, 1.0)
