"""What goes wrong in risk control elsewhere, one test each; where it is cheap, the naive way fails
beside ours."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from exact import assert_rate_at_most, assert_super_uniform, shows_rate_above
from scipy.stats import binom

import riskpilot as rp
from riskpilot.guarantee.dominance import non_dominated
from riskpilot.guarantee.region import interval
from riskpilot.guarantee.testing import freeze_plan
from riskpilot.losses import validation_losses
from riskpilot.search.surrogate import fit
from riskpilot.statistics import families

ERROR = rp.Problem([rp.Risk("error", 0.05)], "cost")


def test_01_counts_are_counted_not_recovered_from_means():
    n = 10_000
    counts = np.arange(0, n, 7)
    naive = np.ceil(n * (counts / n))
    assert (naive > counts).mean() > 0.03
    table = np.arange(n)[None, :] < counts[:, None]
    for dtype in (bool, np.uint8, np.int64, np.float32, np.float64):
        losses = validation_losses(
            ERROR, {"error": table.astype(dtype), "cost": np.zeros(len(counts))}
        )
        summary = losses.risks["error"].summary
        assert summary.binary
        np.testing.assert_array_equal(summary.total, counts)
        np.testing.assert_array_equal(summary.above_zero, counts)
    assert 5000 * 0.035 > 175  # 175.00000000000003
    assert families.log_hoeffding_bentkus(5000 * 0.035, 5000, 0.05) == pytest.approx(
        float(families.log_hoeffding_bentkus(175, 5000, 0.05)), rel=1e-12
    )


def test_02_a_zero_loss_keeps_the_hoeffding_part_of_hoeffding_bentkus():
    assert math.exp(families.log_hoeffding_bentkus(0, 45, 0.05)) == pytest.approx(0.95**45)
    assert families.smallest_n("hoeffding_bentkus", 0.05, 0.1) == 45
    bentkus_alone = next(n for n in range(1, 100) if math.e * binom.cdf(0, n, 0.05) < 0.1)
    assert bentkus_alone == 65


@pytest.mark.parametrize("p_value", ["binomial", "betting", "hoeffding", "hoeffding_bentkus"])
def test_03_an_empty_condition_gives_p_of_one_and_spoils_no_other(p_value):
    problem = rp.Problem([rp.Risk("miss", 0.1, conditional=True, p_value=p_value)], "cost")
    validation = np.zeros((2, 500))
    validation[0, :15] = validation[1, :10] = 1.0  # riskier and cheaper: both are on the front
    calibration = np.roll(validation, 100, axis=1)
    calibration[0] = np.nan
    selection = rp.select_from_losses(
        problem,
        validation={"miss": validation, "cost": [0.0, 1.0]},
        calibration={"miss": calibration},
        procedure=rp.holm,
    )
    by_row = dict(zip(selection.plan.order, selection.p_values, strict=True))
    assert by_row[0] == 1.0
    assert selection.config == {"index": 1}


def test_04_betting_is_one_sided():
    rng = np.random.default_rng(0)
    losses = (rng.random((500, 1000)) < 0.15) * 1.0
    assert_rate_at_most(1e-3, (families.log_betting(losses, 0.10) < np.log(0.1)).sum(), 500)
    # Naive: capital that also bets on losses above the limit.
    against = np.cumsum(np.log(1 + 0.5 * (losses - 0.10)), axis=1).max(axis=1)
    assert (against > np.log(2 / 0.1)).mean() > 0.99


def test_05_betting_is_one_process_over_the_whole_sample():
    rng = np.random.default_rng(1)
    losses = (rng.random((4000, 400)) < 0.2) * 1.0
    assert_super_uniform(families.log_betting(losses, 0.2))
    halves = [families.log_betting(half, 0.2) for half in np.split(losses, 2, axis=1)]
    added = np.exp(-halves[0]) + np.exp(-halves[1])
    assert shows_rate_above(0.1, (added >= 1 / 0.1).sum(), 4000)


def test_06_bets_are_predictable_and_capital_stays_positive():
    rng = np.random.default_rng(2)
    losses = rng.random((4000, 100)) * 0.4
    assert_super_uniform(families.log_betting(losses, 0.2))
    # Naive: the bet sees the loss that it bets on.
    peeking = np.where(losses < 0.2, 1.0, 0.5) / (1 - 0.2)
    capital = np.cumsum(np.log(1 + peeking * (0.2 - losses)), axis=1).max(axis=1)
    assert shows_rate_above(0.1, (capital >= np.log(1 / 0.1)).sum(), 4000)
    # Ours: the last loss changes the last factor alone. It is linear in that loss, so that the
    # capital after the loss at the limit is the capital before.
    base = np.zeros((1, 30))
    capitals = []
    for last in (0.0, 0.1, 0.2):
        base[0, -1] = last
        capitals.append(math.exp(-families.log_betting(base, 0.2)[0]))
    assert capitals[1] == pytest.approx((capitals[0] + capitals[2]) / 2, rel=1e-12)
    assert capitals[0] > capitals[2]
    for limit in (0.01, 0.5, 0.99):
        assert families.log_betting(np.ones((1, 2000)), limit)[0] == 0.0


def test_07_the_order_is_frozen_before_calibration_is_seen():
    n, m, replications = 20, 200, 600
    rng = np.random.default_rng(3)
    problem = rp.Problem([rp.Risk("error", 0.2)], "cost")
    wrong = wrong_sorted = 0
    for _ in range(replications):
        validation = rng.random((n, m)) < 0.2001
        calibration = rng.random((n, m)) < 0.2001
        selection = rp.select_from_losses(
            problem,
            validation={"error": validation, "cost": -validation.mean(axis=1)},
            calibration={"error": calibration},
        )
        wrong += selection.config is not None
        log_p = families.log_binomial(calibration.sum(axis=1), m, 0.2)
        wrong_sorted += bool(rp.fixed_sequence(np.sort(log_p), 0.1).any())
    assert_rate_at_most(0.1, wrong, replications)
    assert wrong_sorted / replications > 0.5


@pytest.mark.parametrize("share", [0.25, 0.05, 0.01])
def test_08_signed_losses_are_refused_or_tested_on_their_declared_range(share):
    limit, m = 0.1, 200
    rng = np.random.default_rng(4)
    losses = rng.choice(
        [-1.0, 0.0, 1.0], (4000, m), p=[share, 1 - limit - 2 * share, limit + share]
    )
    with pytest.raises(rp.LossRangeError, match="one is -1"):
        validation_losses(ERROR, {"error": losses, "cost": np.zeros(4000)})
    declared = rp.Risk("difference", limit, low=-1, high=1)
    unit = (losses + 1) / 2
    assert declared.unit_limit == pytest.approx(0.55)
    assert_super_uniform(families.log_betting(unit, declared.unit_limit))
    assert_super_uniform(families.log_hoeffding_bentkus(unit.sum(axis=1), m, declared.unit_limit))
    if share == 0.25:  # Naive: the [0, 1] formula on signed losses.
        total = np.clip(losses.sum(axis=1), 0, None)
        naive = families.log_hoeffding_bentkus(total, m, limit)
        assert shows_rate_above(0.1, (naive < np.log(0.1)).sum(), 4000)


def test_09_where_nothing_can_pass_that_is_said_with_the_number_that_would_do():
    part = interval(
        rp.Risk("error", 0.05), "binomial", n_validation=100, n_calibration=40, delta=0.1
    )
    assert not part.feasible
    assert part.needs == 45
    (told,) = rp.plan_calibration(ERROR, 40)
    assert told.just_passes is None
    assert "at least 45" in str(told)
    selection = rp.select_from_losses(
        ERROR,
        validation={"error": np.zeros((1, 100), bool), "cost": [1.0]},
        calibration={"error": np.zeros((1, 40), bool)},
    )
    assert selection.config is None
    assert "about 45 examples" in selection.message
    enough = rp.select_from_losses(
        ERROR,
        validation={"error": np.zeros((1, 100), bool), "cost": [1.0]},
        calibration={"error": np.zeros((1, 45), bool)},
    )
    assert enough.config == {"index": 0}


@pytest.mark.parametrize("limit", [1e-3, 1e-6, 1e-9, 1e-11])
def test_10_no_clamp_stands_between_a_tiny_limit_and_its_p_value(limit):
    n = round(2.19 / limit)
    with mpmath.workdps(40):
        exact = float((1 - mpmath.mpf(limit)) ** n)
    assert exact == pytest.approx(0.112, rel=0.01)
    for function in (families.log_binomial, families.log_hoeffding_bentkus):
        assert math.exp(function(0, n, limit)) == pytest.approx(exact, rel=1e-3)


def test_11_p_values_below_the_smallest_float_still_order_the_test():
    counts = np.arange(80)[::-1]  # the safest comes last in the table
    table = np.arange(20_000)[None, :] < counts[:, None]
    problem = rp.Problem([rp.Risk("error", 0.1)], "cost")
    plan = freeze_plan(validation_losses(problem, {"error": table, "cost": -counts * 1.0}))
    assert set(np.exp(plan.log_p_validation)) == {0.0}
    assert plan.order == tuple(range(79, -1, -1))
    assert len(set(plan.log_p_validation)) == 80


def test_12_a_point_that_is_worse_in_one_objective_and_equal_in_the_other_is_dominated():
    assert non_dominated([[1, 1], [1, 0]]).tolist() == [False, True]
    assert non_dominated([[0, 1], [1, 1]]).tolist() == [True, False]
    assert non_dominated([[1, 0], [1, 0]]).tolist() == [True, False]


def test_13_the_order_follows_evidence_not_the_smallest_loss():
    problem = rp.Problem([rp.Risk("miss", 0.1, conditional=True)], "cost")
    rng = np.random.default_rng(5)
    validation = (rng.random((2, 2000)) < 0.03) * 1.0
    validation[0] = np.nan
    validation[0, :5] = 0.0  # a loss of zero on five examples
    assert np.nanmean(validation[1]) > 0
    plan = freeze_plan(validation_losses(problem, {"miss": validation, "cost": [1.0, 0.0]}))
    assert plan.order == (1, 0)


def test_14_a_graph_is_fixed_before_calibration():
    graph = rp.Graphical((0.5, 0.5), ((0, 1), (1, 0)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.weights = (1.0, 0.0)
    with pytest.raises(TypeError):
        graph.edges[0][1] = 0.5
    with pytest.raises(rp.ProblemError, match="made for 2 candidates, but 3"):
        graph(np.zeros(3), 0.1)
    # Naive: all weight goes to the smallest p-value.
    rng = np.random.default_rng(6)
    log_p = np.log(rng.random((2000, 4)))
    chosen = [
        rp.Graphical(np.eye(4)[np.argmin(row)], np.zeros((4, 4)))(row, 0.1).any() for row in log_p
    ]
    assert shows_rate_above(0.1, sum(chosen), 2000)


def test_15_the_deviation_of_a_surrogate_scales_and_does_not_shift():
    rng = np.random.default_rng(7)
    x, at = rng.random((12, 1)), rng.random((30, 1))
    y = np.sin(5 * x[:, 0]) + 0.1 * rng.standard_normal(12)
    noise = np.full(12, 0.01)
    mean, std = fit(x, y, noise).mean_and_std(at)
    shifted_mean, shifted = fit(x, y + 100, noise).mean_and_std(at)
    scaled_mean, scaled = fit(x, 10 * y, 100 * noise).mean_and_std(at)
    np.testing.assert_allclose(shifted, std, rtol=1e-4)
    np.testing.assert_allclose(shifted_mean, mean + 100, atol=1e-4)
    np.testing.assert_allclose(scaled, 10 * std, rtol=1e-4)
    np.testing.assert_allclose(scaled_mean, 10 * mean, atol=1e-3)
