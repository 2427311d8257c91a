"""Labels that arrive with a judge's scores: whatever it is worth, delta is kept whenever one stops.

One calibration has many candidates that sit at their limit, each with losses, scores and fresh
examples of its own. All labels up to the horizon come in one batch, and what is looked at is the
smallest p-value up to then: that of a person who stops at the best moment.
"""

import numpy as np
import pytest
from exact import assert_rate_at_most, assert_super_uniform
from test_calibration_valid import DELTA, frozen, zero_one
from test_judged_valid import JUDGES, binary

import riskpilot as rp

CANDIDATES = 500
STREAMS = 1_000  # 20,000 in the long run
HORIZON, PER_LABEL = 80, 4
RISK = rp.Risk("error", 0.1)
# The hardest ones for a short run; the long run has them all.
SOME = ("constant", "noise", "perfect", "anti-correlated", "far too low", "far too high", "good")


def alone(rng, shape):
    return {"error": zero_one(rng, shape)}


def p_values(plan, judge, rng, *, stored=lambda scores: scores):
    """Of many candidates at their limit; ``stored``: the order in which fresh scores are kept."""
    n = len(plan.candidates)
    u, losses = binary(rng, (n, HORIZON))
    fresh, _ = binary(rng, (n, HORIZON * PER_LABEL))
    pool = stored(np.asarray(judge(fresh, rng), dtype=float))
    calibration = rp.Calibration(plan, horizon=HORIZON, judge={"unlabelled": {"error": pool}})
    calibration.add({"error": losses}, judge={"labelled": {"error": judge(u, rng)}})
    return calibration.select().p_values


@pytest.mark.parametrize("name", JUDGES)
def test_p_is_super_uniform_at_the_limit_whenever_one_stops(name, effort):
    if effort == 1 and name not in SOME:
        pytest.skip("in the long run")
    rng = np.random.default_rng(0)
    plan = frozen([RISK], alone, rng, CANDIDATES)
    rounds = effort * STREAMS // CANDIDATES
    found = [p_values(plan, JUDGES[name], rng) for _ in range(rounds)]
    log_p = np.log(np.concatenate(found))
    assert len(log_p) > STREAMS / 2
    assert_super_uniform(log_p)


def test_fresh_scores_may_be_stored_in_any_order(effort):
    """Sorted scores are put in an order that does not depend on them before they are used."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(effort):
        plan = frozen([RISK], alone, rng, CANDIDATES // 2)
        for stored in (lambda scores: np.sort(scores, axis=1), lambda s: -np.sort(-s, axis=1)):
            found.append(p_values(plan, JUDGES["good"], rng, stored=stored))
    assert_super_uniform(np.log(np.concatenate(found)))


def by_hindsight(u, rng):
    """A judge that is perfect on most examples, and opposite on those that decide."""
    return np.where(u < 0.05, 0.0, np.where(u < 0.15, 1.0, rng.random(u.shape) < 0.02))


@pytest.mark.parametrize("judge", [JUDGES["perfect"], by_hindsight], ids=["perfect", "adversarial"])
def test_who_stops_at_the_first_certificate_is_rarely_wrong(judge, effort):
    """A safe candidate stands before one at the limit; labels come one by one."""
    rng = np.random.default_rng(2)
    risks = np.array([[0.01], [0.1]])
    plan = rp.freeze(
        rp.Problem([RISK], "cost", delta=DELTA),
        validation={"error": rng.random((2, 500)) < risks, "cost": np.array([2.0, 1.0])},
    )
    assert [config["index"] for config in plan.candidates] == [0, 1]
    runs, wrong = 10 * effort, 0
    for _ in range(runs):
        u, fresh = rng.random((1, HORIZON)), rng.random((1, HORIZON * PER_LABEL))
        losses, scores = u < risks, judge(u, rng)
        pool = {"unlabelled": {"error": judge(fresh, rng)}}
        calibration = rp.Calibration(plan, horizon=HORIZON, judge=pool)
        for t in range(HORIZON):
            one = slice(t, t + 1)
            labelled = {"labelled": {"error": scores[:, one]}}
            calibration.add({"error": losses[:, one]}, judge=labelled)
            if {"index": 1} in calibration.certified or calibration.done:
                break
        wrong += {"index": 1} in calibration.certified
    assert_rate_at_most(DELTA, wrong, runs)
