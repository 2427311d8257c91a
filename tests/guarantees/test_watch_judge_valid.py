"""A watch that a judge helps raises a false alarm with probability at most delta."""

from dataclasses import replace

import numpy as np
import pytest
from exact import assert_rate_at_most, shows_rate_above
from lean_watch import LeanWatches
from test_judged_valid import JUDGES

import riskpilot as rp
from riskpilot.watch import begin, make_rule, update
from tests.kits.watched import CASES

DELTA = 0.1
PER_LABEL = 4
CHUNK = 50  # labels that are drawn at a time


@pytest.fixture
def size(effort):
    """(streams, labels of each)."""
    return (10_000, 2_000) if effort > 1 else (600, 400)


def rule_of(limit, n):
    """A rule in which every stream is a replication of its own."""
    made = make_rule([limit], delta=DELTA, judged=[True])
    many = {name: getattr(made, name) * n for name in ("limits", "shares", "bets", "prior")}
    rest = {name: getattr(made, name) * n for name in ("memory", "weighted", "judge")}
    return replace(made, **many, **rest)


def alarms_among(draw, size, limit=0.1, per_label=PER_LABEL):
    """How many streams raise an alarm. ``draw(rng, rows, shape)``: losses and scores of examples at
    these moments, of which only the scores of fresh ones are known."""
    n, labels = size
    watches, rng = LeanWatches(rule_of(limit, n)), np.random.default_rng(0)
    for start in range(0, labels, CHUNK):
        rows = np.arange(start, start + CHUNK)[:, None]
        losses, scores = draw(rng, rows, (CHUNK, n))
        fresh = np.zeros((CHUNK, n))
        for _ in range(per_label):
            fresh += draw(rng, rows, (CHUNK, n))[1] / per_label
        watches.take(losses, None, scores - fresh)
    return np.count_nonzero(watches.alarms)


def test_what_is_tested_here_raises_the_alarms_of_the_rule_at_the_same_labels():
    rule, rng = rule_of(0.1, 60), np.random.default_rng(1)
    u, fresh = rng.random((300, 60)), rng.random((300, 60))
    losses, scores = (u < 0.15) + 0.0, (u < 0.13) * 1.0 - (fresh < 0.13)
    watches, state = LeanWatches(rule), update(rule, begin(rule), losses, None, scores)
    watches.take(losses, None, scores)
    found = np.zeros(60, np.int64)
    for alarm in state.alarms:
        found[alarm.stream] = alarm.row
    assert found.tolist() == watches.alarms.tolist()
    assert found.any()


@pytest.mark.parametrize("name", JUDGES)
def test_false_alarms_at_the_limit_for_every_judge(name, size):
    def draw(rng, rows, shape):
        u = rng.random(shape)
        return (u < 0.1) + 0.0, JUDGES[name](u, rng) + 0.0

    assert_rate_at_most(DELTA, alarms_among(draw, size), size[0])


@pytest.mark.parametrize("per_label", [1, 10])
def test_false_alarms_while_losses_and_judge_wander(per_label, size):
    """The judge becomes worse and its bias changes; the limit is kept at every moment."""

    def draw(rng, rows, shape):
        u = rng.random(shape)
        loss = u < 0.1 * np.abs(np.sin(rows / 150))
        bias = 0.2 * np.abs(np.cos(rows / 90))
        return loss + 0.0, np.where(rows // 100 % 2, u < bias, rng.random(shape) < bias) + 0.0

    assert_rate_at_most(DELTA, alarms_among(draw, size, per_label=per_label), size[0])


@pytest.mark.parametrize("limit", [0.02, 0.3])
def test_false_alarms_of_graded_losses(limit, size):
    def draw(rng, rows, shape):
        losses = rng.beta(2 * limit, 2 * (1 - limit), shape)
        return losses, np.clip(losses + 0.1 * rng.standard_normal(shape), 0, 1)

    assert_rate_at_most(DELTA, alarms_among(draw, size, limit), size[0])


def test_fresh_scores_of_another_time_would_break_the_promise():
    """What is assumed: fresh examples come from where and when the labelled ones come from."""

    def draw(rng, rows, shape):
        u = rng.random(shape)
        losses = (u < 0.1) + 0.0
        return losses, losses * (rng.random(shape) < 0.5)

    def apart(rng, rows, shape):
        losses, scores = draw(rng, rows, shape)
        apart.calls += 1
        return losses, scores if apart.calls % (PER_LABEL + 1) == 1 else np.minimum(scores + 0.3, 1)

    apart.calls = 0
    assert shows_rate_above(DELTA, alarms_among(apart, (300, 400)), 300)


def test_through_the_watch_itself(effort):
    """Sorted fresh scores, labels in batches: as often as a person would do it."""
    certificate, alarms, runs = CASES["mean"].certificate(), 0, 60 * effort
    for seed in range(runs):
        rng, watch = np.random.default_rng(seed), rp.Watch(certificate, delta=DELTA, judge="error")
        limit = watch.risks["error"].limit
        for _ in range(2):
            u, fresh = rng.random(200), rng.random(800)
            watch.update(
                {"error": u < limit},
                judge={
                    "labelled": {"error": u < 1.1 * limit},
                    "unlabelled": {"error": np.sort(fresh < 1.1 * limit)},
                },
            )
        alarms += watch.alarm
    assert_rate_at_most(DELTA, alarms, runs)
