"""The capital is the sum over all restarts, whatever the batches, and its state survives JSON."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riskpilot.errors import CertificateError, LossError, LossRangeError, ProblemError
from riskpilot.watch import begin, from_dict, make_rule, to_dict, update, wealth


def broken(rng, n, change, before=0.06, after=0.3):
    return (rng.random(n) < np.where(np.arange(n) < change, before, after)) + 0.0


def text(rule, state):
    return json.dumps(to_dict(rule, state), allow_nan=False)


def by_every_restart(rule, x):
    """The capital after each label from the definition: one product for each restart and bet."""
    limit, bets, prior = rule.limits[0], rule.bet_array[0], rule.prior_array[0]
    weights, products, restarts, recent = [1 - rule.reserve], [np.ones(len(bets))], 0, limit
    for value in x:
        products = [product * (1 + bets * (value - limit)) for product in products]
        recent += (value - recent) / rule.memory[0]
        if recent > limit:
            before, after = rule.reserve_after([restarts, restarts + 1])
            restarts += 1
            weights.append(before - after)
            products.append(np.ones(len(bets)))
        accounts = sum(
            weight * (prior * product).sum()
            for weight, product in zip(weights, products, strict=True)
        )
        yield accounts + rule.reserve_after(restarts), math.fsum(weights)


def test_the_capital_is_the_sum_over_every_restart():
    rule, rng = make_rule([0.1]), np.random.default_rng(0)
    x = broken(rng, 400, 200)
    state = begin(rule)
    for value, (expected, weights) in zip(x, by_every_restart(rule, x), strict=True):
        state = update(rule, state, [[value]])
        assert wealth(rule, state)[0] == pytest.approx(expected, rel=1e-9)
        assert weights < 1
    assert state.restarts[0] > 50


def test_all_weights_together_never_exceed_one():
    rule = make_rule([0.1])
    left = rule.reserve_after(10.0 ** np.arange(0, 300, 10))
    assert (left > 0).all()
    assert (np.diff(left) < 0).all()
    assert rule.reserve_after(0) == rule.reserve
    spent = sum(rule.start_share(start) for start in range(2_000))
    assert spent + rule.reserve_after(1_999) == pytest.approx(1)


@pytest.mark.parametrize("limit", [1e-6, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_no_label_can_make_the_capital_negative(limit):
    rule = make_rule([limit])
    assert (rule.bet_array * limit < 1).all()
    assert (rule.bet_array > 0).all()
    assert math.fsum(rule.prior[0]) == pytest.approx(1)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(0, 2**31), st.booleans())
def test_batches_change_nothing(sizes, seed, weighted):
    rng = np.random.default_rng(seed)
    rule = make_rule([0.1, 0.02, 0.6], weighted=[weighted] * 3)
    n = sum(sizes)
    x = np.where(rng.random((n, 3)) < 0.2, np.nan, rng.beta(0.3, 1.5, (n, 3)))
    w = [rng.random((n, 3))] if weighted else []
    one = batches = begin(rule)
    for t in range(n):
        one = update(rule, one, x[t : t + 1], *[part[t : t + 1] for part in w])
    for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
        part = slice(start, start + size)
        batches = update(rule, batches, x[part], *[each[part] for each in w])
    whole = update(rule, begin(rule), x, *w)
    assert text(rule, one) == text(rule, batches) == text(rule, whole)


def test_a_state_goes_through_json_and_on_to_the_last_bit():
    rule, rng = make_rule([0.1, 1 / 3], delta=0.07), np.random.default_rng(1)
    x = rng.random((300, 2)) ** 3
    half = update(rule, begin(rule), x[:200])
    assert half.alarms
    again_rule, again = from_dict(json.loads(text(rule, half)))
    assert again_rule == rule
    assert text(again_rule, again) == text(rule, half)
    assert again.alarms == half.alarms
    assert text(again_rule, update(again_rule, again, x[200:])) == text(
        rule, update(rule, half, x[200:])
    )


def test_a_watch_goes_on_with_the_bets_it_began_with():
    rule = make_rule([0.1])
    old = replace(rule, bets=((5.0, 1.0),), prior=((0.5, 0.5),), reserve=0.5, pace=10.0)
    state = update(old, begin(old), np.ones((3, 1)))
    read, again = from_dict(json.loads(text(old, state)))
    assert read.bets == ((5.0, 1.0),)
    assert wealth(read, again) == wealth(old, state)


@pytest.mark.parametrize(
    "damage",
    [
        {"capital": [[1.0]]},
        {"capital": None},
        {"sums": [[math.nan] * 5]},
        {"rule": {}},
        {"alarms": [{"stream": 0}]},
    ],
)
def test_a_damaged_state_is_an_error(damage):
    rule = make_rule([0.1])
    with pytest.raises(CertificateError, match="watch"):
        from_dict({**to_dict(rule, begin(rule)), **damage})


def test_the_state_does_not_grow():
    rule, rng = make_rule([0.1, 0.2]), np.random.default_rng(2)
    sizes, state = [], begin(rule)
    for _ in range(4):
        state = update(rule, state, rng.random((5_000, 2)) < 0.05)
        sizes.append(len(text(rule, state)))
        # A view would keep the whole batch in memory.
        assert all(array.base is None for array in vars(state).values() if hasattr(array, "base"))
    assert max(sizes) < 1.1 * min(sizes)


def test_a_label_that_does_not_count_changes_only_the_number_of_rows():
    rule = make_rule([0.1, 0.1])
    state = update(rule, begin(rule), [[1.0, 0.0], [0.0, 1.0]])
    after = update(rule, state, [[np.nan, np.nan]])
    assert after.rows == 3
    assert (wealth(rule, after) == wealth(rule, state)).all()
    assert (after.sums[:, 1:] == state.sums[:, 1:]).all()
    assert (after.recent == state.recent).all()


def test_the_state_that_was_passed_in_is_left_as_it_was():
    rule = make_rule([0.1])
    state = update(rule, begin(rule), np.ones((2, 1)))
    before = text(rule, state)
    update(rule, state, np.ones((200, 1)))
    assert text(rule, state) == before


def test_no_labels_change_nothing():
    rule = make_rule([0.1])
    assert text(rule, update(rule, begin(rule), np.empty((0, 1)))) == text(rule, begin(rule))


def test_a_long_broken_stream_stays_finite():
    rule = make_rule([0.001])
    state = update(rule, begin(rule), np.ones((500, 1)))
    assert np.isfinite(wealth(rule, state)).all()
    assert len(state.alarms) == 1
    text(rule, update(rule, state, np.zeros((50, 1))))


def test_a_stream_alarms_once_and_streams_in_the_order_of_their_alarms():
    rule = make_rule([0.1, 0.1])
    x = np.zeros((300, 2))
    x[20:, 1] = 1
    x[40:, 0] = 1
    state = update(rule, begin(rule), x)
    assert [alarm.stream for alarm in state.alarms] == [1, 0]
    assert 20 < state.alarms[0].row < 40 < state.alarms[1].row < 60


def test_the_time_of_the_change_is_found():
    rule, rng = make_rule([0.1]), np.random.default_rng(3)
    found = []
    for _ in range(30):
        state = update(rule, begin(rule), broken(rng, 1_500, 1_000, after=0.2)[:, None])
        found += [alarm.segment.row for alarm in state.alarms if alarm.row > 1_000]
    assert len(found) >= 28
    assert abs(np.median(found) - 1_000) < 25
    assert np.percentile(np.abs(np.array(found) - 1_000), 80) < 100


def test_weights_of_one_are_no_weights():
    plain, weighted = make_rule([0.1]), make_rule([0.1], weighted=[True])
    x = broken(np.random.default_rng(4), 300, 100)[:, None]
    states = update(plain, begin(plain), x), update(weighted, begin(weighted), x, np.ones_like(x))
    assert wealth(plain, states[0])[0] == pytest.approx(wealth(weighted, states[1])[0])
    assert states[0].alarms[0].row == states[1].alarms[0].row


def test_a_weight_of_zero_changes_no_capital():
    rule = make_rule([0.1], weighted=[True])
    state = update(rule, begin(rule), np.ones((5, 1)), np.zeros((5, 1)))
    assert wealth(rule, state) == wealth(rule, begin(rule))


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ([[1.5]], LossRangeError),
        ([[-0.1]], LossRangeError),
        ([[np.inf]], LossRangeError),
        ([0.5], LossError),
        ([[0.5, 0.5]], LossError),
    ],
)
def test_values_that_cannot_be_bet_on_are_errors(values, error):
    rule = make_rule([0.1])
    with pytest.raises(error):
        update(rule, begin(rule), values)


def test_weights_are_there_where_they_were_declared_and_nowhere_else():
    plain, weighted = make_rule([0.1]), make_rule([0.1], weighted=[True])
    with pytest.raises(LossError, match="given"):
        update(plain, begin(plain), [[0.0]], [[1.0]])
    with pytest.raises(LossError, match="missing"):
        update(weighted, begin(weighted), [[0.0]])
    for wrong in ([[1.5]], [[-0.5]], [[np.nan]], [1.0]):
        with pytest.raises(LossError):
            update(weighted, begin(weighted), [[0.0]], wrong)


@pytest.mark.parametrize(
    "arguments",
    [
        {"limits": []},
        {"limits": [0.0]},
        {"limits": [1.0]},
        {"limits": [0.1], "delta": 0.0},
        {"limits": [0.1, 0.1], "shares": [0.7, 0.7]},
        {"limits": [0.1, 0.1], "shares": [1.0, 0.0]},
        {"limits": [0.1, 0.1], "shares": [1.0]},
        {"limits": [0.1], "weighted": [True, False]},
    ],
)
def test_rules_that_cannot_be_meant_are_errors(arguments):
    with pytest.raises(ProblemError):
        make_rule(arguments.pop("limits"), **arguments)


def test_shares_that_sum_to_one_but_for_rounding_are_accepted():
    assert make_rule([0.1] * 10, shares=[0.1] * 10).n_streams == 10


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "riskpilot-watch/9"}, "must be in the format 'riskpilot-watch/1'"),
        ({"format": None}, "must be in the format"),
        ({"from the future": 1}, "see 'from the future'"),
    ],
)
def test_another_format_or_an_unknown_field_is_refused_in_one_sentence(change, says):
    rule = make_rule([0.1])
    with pytest.raises(CertificateError, match=says):
        from_dict({**to_dict(rule, begin(rule)), **change})
    for odd in ([], None, "x", {}):
        with pytest.raises(CertificateError, match="must be in the format"):
            from_dict(odd)
