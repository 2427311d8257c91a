"""Labels that arrive: whatever is limited and whenever one stops, delta is kept.

One calibration has many candidates that sit at their limit, with losses of their own. All labels up
to the horizon come in one batch, and what is looked at is the smallest p-value up to then: that of
a person who stops at the best moment.
"""

import numpy as np
import pytest
from exact import assert_rate_at_most, assert_super_uniform

import riskpilot as rp

CANDIDATES = 500
STREAMS = 1_000  # 20,000 in the long run
FIRST_CERTIFICATES = 10_000
HORIZON = 150
DELTA = 0.1


def graded(rng, shape, mean=0.3):
    return rng.beta(5 * mean, 5 * (1 - mean), shape)


def two_values(rng, shape, mean=0.3):
    """The loss that is hardest for bets: rarely large, else just below the limit."""
    return np.where(rng.random(shape) < 0.02, 1.0, (mean - 0.02) / 0.98)


def zero_one(rng, shape, mean=0.1):
    return rng.random(shape) < mean


def some_count(rng, shape):
    """Of 40 % of the labels, 10 % are losses."""
    return np.where(rng.random(shape) < 0.4, rng.random(shape) < 0.1, np.nan)


def with_groups(rng, shape):
    """Group a is at the limit, group b far below it."""
    group = rng.choice(["a", "b"], shape[1])
    return {"error": rng.random(shape) < np.where(group == "a", 0.1, 0.02), "groups": group}


def with_weights(rng, shape):
    """E[w L] = 0.1 E[w]: heavier examples are lost less often."""
    weight = rng.choice([1.0, 3.0], shape[1])
    return {"error": rng.random(shape) < np.where(weight == 3, 0.08, 0.16), "weights": weight}


def with_reference(worse, better):
    """The candidate is worse on a share of the examples and better on another."""

    def draw(rng, shape):
        reference = rng.random(shape[1]) < 0.4
        # P(L=1, R=0) = worse and P(L=0, R=1) = better, whatever the reference is.
        change = rng.random(shape)
        lost = np.where(reference, change >= better / 0.4, change < worse / 0.6)
        return {"error": lost, "reference": reference}

    return draw


def alone(draw):
    return lambda rng, shape: {"error": draw(rng, shape)}


# Every statistic with losses at its limit, and the test that is used for it.
AT_THE_LIMIT = {
    "mean of 0/1 losses": (rp.Risk("error", 0.1), alone(zero_one), "sequential_boundary"),
    "mean of graded losses": (rp.Risk("error", 0.3), alone(graded), "sequential_betting"),
    "mean of two values": (rp.Risk("error", 0.3), alone(two_values), "sequential_betting"),
    "mean given a condition": (
        rp.Risk("error", 0.1, conditional=True),
        alone(some_count),
        "sequential_boundary",
    ),
    "worst group": (
        rp.Risk("error", 0.1, statistic=rp.WorstGroup()),
        with_groups,
        "sequential_boundary",
    ),
    "quantile": (
        rp.Risk("error", 0.9, statistic=rp.Quantile(0.9)),
        alone(lambda rng, shape: rng.random(shape)),
        "sequential_boundary",
    ),
    "mean of the tail": (
        # The worst 20 % of uniform losses have a mean of 0.9.
        rp.Risk("error", 0.9, statistic=rp.CVaR(0.8)),
        alone(lambda rng, shape: rng.random(shape)),
        "sequential_betting",
    ),
    "difference, limit 0": (
        rp.Risk("error", 0.0, statistic=rp.Difference()),
        with_reference(0.1, 0.1),
        "sequential_boundary",
    ),
    "difference": (
        rp.Risk("error", 0.05, statistic=rp.Difference()),
        with_reference(0.1, 0.05),
        "sequential_betting",
    ),
    "weighted mean": (
        rp.Risk("error", 0.1, weights="weights", largest_weight=3.0),
        with_weights,
        "sequential_betting",
    ),
}


def frozen(risks, draw, rng, n):
    """A plan in which n configurations trade risk for cost, so that most of them are tested."""
    validation = dict(draw(rng, (1, 2 * n)))
    steps = np.arange(n)[:, None]
    for risk in risks:
        losses = validation[risk.name]
        if losses.dtype == bool or np.isnan(losses).any():
            validation[risk.name] = np.arange(2 * n) < steps
        else:
            validation[risk.name] = np.clip(losses * 0.99 + 1e-6 * steps, 0, 1)
    if "reference" in validation:
        validation["reference"] = np.zeros(2 * n, dtype=bool)
    validation["cost"] = -np.arange(n)
    return rp.freeze(rp.Problem(risks, "cost", delta=DELTA), validation=validation)


@pytest.mark.parametrize("what", AT_THE_LIMIT)
def test_p_is_super_uniform_at_the_limit_whenever_one_stops(what, effort):
    risk, draw, test = AT_THE_LIMIT[what]
    rng = np.random.default_rng(0)
    plan = frozen([risk], draw, rng, CANDIDATES)
    found = []
    for _ in range(effort * STREAMS // CANDIDATES):
        calibration = rp.Calibration(plan, horizon=HORIZON)
        calibration.add(draw(rng, (len(plan.candidates), HORIZON)))
        selection = calibration.select()
        found.append(selection.p_values)
    assert selection.certificate.families == {"error": test}
    assert len(selection.p_values) > CANDIDATES / 2
    log_p = np.log(np.concatenate(found))
    assert_super_uniform(log_p)
    assert (log_p < np.log(DELTA)).mean() > 0.005  # the boundary and the bets are not idle


@pytest.mark.long
@pytest.mark.parametrize("what", AT_THE_LIMIT)
def test_who_stops_at_the_first_certificate_is_wrong_in_at_most_delta_of_the_runs(what):
    """Every stream is a calibration of its own, with a look after every tenth of the horizon."""
    risk, draw, _ = AT_THE_LIMIT[what]
    rng = np.random.default_rng(1)
    problem = rp.Problem([risk], "cost", delta=DELTA)
    plan = rp.freeze(problem, validation={**draw(rng, (1, 200)), "cost": [1.0]})
    wrong, drawn = 0, 500
    for _ in range(FIRST_CERTIFICATES // drawn):
        losses = draw(rng, (drawn, HORIZON))
        for row in range(drawn):
            calibration = rp.Calibration(plan, horizon=HORIZON)
            for start in range(0, HORIZON, HORIZON // 10):
                part = slice(start, start + HORIZON // 10)
                own = {
                    name: values[part] if values.ndim == 1 else values[row : row + 1, part]
                    for name, values in losses.items()
                }
                calibration.add(own)
                if calibration.done:
                    break
            wrong += bool(calibration.certified)
    assert_rate_at_most(DELTA, wrong, FIRST_CERTIFICATES)
    assert wrong > 0.005 * FIRST_CERTIFICATES


def test_of_two_risks_the_one_that_is_broken_decides(effort):
    def draw(rng, shape):
        return {"error": zero_one(rng, shape, 0.1), "harm": zero_one(rng, shape, 0.01)}

    risks = [rp.Risk("error", 0.1), rp.Risk("harm", 0.1)]
    rng = np.random.default_rng(1)
    plan = frozen(risks, draw, rng, CANDIDATES)
    calibration = rp.Calibration(plan, horizon=HORIZON)
    calibration.add(draw(rng, (len(plan.candidates), HORIZON)))
    p = calibration.select().p_values
    assert_rate_at_most(DELTA, (p < DELTA).sum(), len(p))
    assert p.min() < DELTA  # the test has some power, or nothing would be shown here


@pytest.mark.parametrize("batch", [1, 7, HORIZON])
def test_a_sequence_rarely_certifies_its_first_bad_candidate(batch, effort):
    """Safe candidates stand before one at the limit; one stops once that one is certified."""
    rng = np.random.default_rng(batch)
    risks = np.array([[0.01], [0.02], [0.1], [0.4]])
    plan = rp.freeze(
        rp.Problem([rp.Risk("error", 0.1)], "cost", delta=DELTA),
        validation={"error": rng.random((4, 500)) < risks, "cost": np.array([4.0, 3, 2, 1])},
    )
    assert [config["index"] for config in plan.candidates] == [0, 1, 2, 3]
    runs, wrong = (20 if batch == 1 else 100) * effort, 0
    for _ in range(runs):
        difficulty = rng.random((1, HORIZON))  # the same examples are hard for all of them
        losses = difficulty < risks
        calibration = rp.Calibration(plan, horizon=HORIZON)
        for start in range(0, HORIZON, batch):
            calibration.add({"error": losses[:, start : start + batch]})
            if {"index": 2} in calibration.certified or calibration.done:
                break
        wrong += {"index": 2} in calibration.certified
    assert_rate_at_most(DELTA, wrong, runs)
