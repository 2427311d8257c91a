"""p-values are super-uniform where the risk sits at its limit, at the hardest distributions."""

import numpy as np
import pytest
from exact import assert_rate_at_most, assert_super_uniform

import riskpilot as rp
from riskpilot.statistics import p_values

SUMS = {
    "hoeffding": p_values.log_hoeffding,
    "hoeffding_bentkus": p_values.log_hoeffding_bentkus,
    "binomial": p_values.log_binomial,
}
FAMILIES = [*SUMS, "betting"]


def log_p(family, losses, limit, delta=0.1):
    if family == "betting":
        return p_values.log_betting(losses, limit, delta)
    n = (~np.isnan(losses)).sum(axis=1)
    total = (losses > 0).sum(axis=1) if family == "binomial" else np.nansum(losses, axis=1)
    return SUMS[family](total, n, limit)


def two_values(low, high, mean):
    share = (mean - low) / (high - low)
    return lambda rng, shape: np.where(rng.random(shape) < share, high, low)


def steps(rng, shape):
    return rng.integers(0, 5, shape) / 4  # 0, 1/4, ..., 1; mean 1/2


# Each has a mean of exactly its limit: (limit, draw).
WORST_CASES = {
    "0/1": (0.1, two_values(0, 1, 0.1)),
    "0/1, rare": (0.01, two_values(0, 1, 0.01)),
    "0/1, frequent": (0.9, two_values(0, 1, 0.9)),
    "heavy at zero": (0.05, two_values(0, 0.5, 0.05)),
    "heavy at zero, never large": (0.01, two_values(0, 0.04, 0.01)),
    "near the bottom": (0.02, two_values(0.015, 0.025, 0.02)),
    "near the top": (0.97, two_values(0.95, 1.0, 0.97)),
    "rarely zero": (0.95, two_values(0, 1, 0.95)),
    "just below, rarely far above": (0.1, two_values(0.09, 1.0, 0.1)),
    "just above, rarely at zero": (0.1, two_values(0.0, 0.105, 0.1)),
    "uniform": (0.3, lambda rng, shape: 0.6 * rng.random(shape)),
    "discrete": (0.5, steps),
    "skewed": (0.1, lambda rng, shape: rng.beta(0.2, 1.8, shape)),
    "constant": (0.3, lambda rng, shape: np.full(shape, 0.3)),
}


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.mark.parametrize("case", WORST_CASES)
@pytest.mark.parametrize("n", [1, 2, 5, 30, 300])
def test_p_is_super_uniform_at_the_limit(family, case, n, effort):
    limit, draw = WORST_CASES[case]
    rng = np.random.default_rng(n)
    for _ in range(effort):
        assert_super_uniform(log_p(family, draw(rng, (4000, n)) + 0.0, limit))


@pytest.mark.parametrize("delta", [0.01, 0.3, 0.9])
def test_p_is_super_uniform_for_bets_made_for_any_delta(delta, effort):
    rng = np.random.default_rng(0)
    for _ in range(effort):
        losses = two_values(0, 1, 0.1)(rng, (4000, 200)) + 0.0
        assert_super_uniform(p_values.log_betting(losses, 0.1, delta), (delta, 0.05, 0.1))


def test_p_is_super_uniform_where_only_some_examples_count(family, effort):
    rng = np.random.default_rng(1)
    for _ in range(effort):
        losses = two_values(0, 1, 0.2)(rng, (6000, 60)) + 0.0
        losses[rng.random(losses.shape) < 0.7] = np.nan
        assert_super_uniform(log_p(family, losses, 0.2))


def test_the_binomial_test_reaches_delta_so_the_criterion_has_teeth():
    # P(Binomial(45, 0.05) = 0) = 0.0994: nearly all of delta = 0.1 is used.
    rng = np.random.default_rng(2)
    losses = two_values(0, 1, 0.05)(rng, (20_000, 45)) + 0.0
    rate = (log_p("binomial", losses, 0.05) < np.log(0.1)).mean()
    assert 0.09 < rate < 0.11


# --- through select_from_losses: ranges, NaN and storage order as users have them ----------------


def p_through_select(risk, calibration, *, binary, seed=0):
    """p-values of independent rows, each a configuration that the Pareto filter keeps."""
    r = len(calibration)
    if binary:  # row i has i losses at the top
        unit = np.arange(r)[None, :] < np.arange(r)[:, None]
    else:
        unit = np.linspace(0.05, 0.95, r)[:, None]
    validation = risk.low + unit * (risk.high - risk.low)
    selection = rp.select_from_losses(
        rp.Problem([risk], "cost"),
        validation={risk.name: validation, "cost": -np.arange(r, dtype=float)},
        calibration={risk.name: calibration},
        seed=seed,
    )
    assert len(selection.candidates) == r
    return selection.result.worst_log_p, selection.certificate.families[risk.name]


@pytest.mark.parametrize("p_value", ["auto", *FAMILIES])
def test_signed_losses_are_tested_on_their_own_range(p_value, effort):
    # Accuracy differences in {-1, 0, 1}: P(-1) = 0.25, mean 0.1 = the limit.
    rng = np.random.default_rng(3)
    risk = rp.Risk("difference", 0.1, low=-1, high=1, p_value=p_value)
    for _ in range(effort):
        losses = rng.choice([-1.0, 0.0, 1.0], (3000, 100), p=[0.25, 0.4, 0.35])
        log, used = p_through_select(risk, losses, binary=False)
        assert used == ("betting" if p_value == "auto" else p_value)
        assert_super_uniform(log)


@pytest.mark.parametrize("p_value", ["auto", *FAMILIES])
def test_integer_losses_up_to_five_are_tested_on_their_own_range(p_value, effort):
    rng = np.random.default_rng(4)
    risk = rp.Risk("stars", 1.0, low=0, high=5, p_value=p_value)
    for _ in range(effort):
        losses = rng.choice([0, 5], (2000, 80), p=[0.8, 0.2])
        log, used = p_through_select(risk, losses, binary=True)
        assert used == ("binomial" if p_value == "auto" else p_value)
        assert_super_uniform(log)


@pytest.mark.parametrize("p_value", ["auto", *FAMILIES])
def test_conditional_losses_are_tested_on_the_examples_that_count(p_value, effort):
    rng = np.random.default_rng(5)
    risk = rp.Risk("miss", 0.2, conditional=True, p_value=p_value)
    for _ in range(effort):
        losses = (rng.random((2000, 80)) < 0.2) * 1.0
        losses[rng.random(losses.shape) < rng.random((2000, 1))] = np.nan
        log, _ = p_through_select(risk, losses, binary=False)
        assert_super_uniform(log)


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("p_value", ["auto", *FAMILIES])
def test_losses_stored_in_sorted_order_are_tested_validly(p_value, direction, effort):
    """Over the shuffles, one seed for each sample: in sorted order a single one proves nothing."""
    rng = np.random.default_rng(6)
    risk = rp.Risk("error", 0.3, p_value=p_value)
    found = []
    for seed in range(200 * effort):
        losses = np.sort(0.6 * rng.random((1, 60)), axis=1)[:, ::direction]
        log, used = p_through_select(risk, losses, binary=False, seed=seed)
        assert used == ("betting" if p_value == "auto" else p_value)
        found.append(log)
    assert_super_uniform(np.concatenate(found))


def test_a_loss_between_the_ends_after_a_binary_validation_keeps_the_binomial_test_valid(effort):
    rng = np.random.default_rng(7)
    risk = rp.Risk("error", 0.1)
    for _ in range(effort):
        losses = two_values(0, 0.5, 0.1)(rng, (2000, 60))
        log, used = p_through_select(risk, losses, binary=True)
        assert used == "binomial"
        assert_super_uniform(log)


def test_of_several_risks_one_at_its_limit_is_enough_to_hold_delta(effort):
    rng = np.random.default_rng(8)
    r, m = 2000, 60
    for _ in range(effort):
        rows = np.arange(r)[None, :] < np.arange(r)[:, None]
        selection = rp.select_from_losses(
            rp.Problem([rp.Risk("a", 0.1), rp.Risk("b", 0.1)], "cost"),
            validation={"a": rows, "b": rows, "cost": -np.arange(r, dtype=float)},
            calibration={"a": rng.random((r, m)) < 0.1, "b": np.zeros((r, m), dtype=bool)},
        )
        passed = selection.result.worst_log_p < np.log(0.1)
        assert_rate_at_most(0.1, passed.sum(), r)
