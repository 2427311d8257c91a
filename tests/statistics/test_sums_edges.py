"""Estimates of every statistic and their standard errors, against plain numpy on small samples.

They order the candidates and steer the search: a wrong one breaks no promise, and nobody sees it.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.special import log_ndtr

import riskpilot as rp
from riskpilot.guarantee.risk_tests import log_p_for_order
from riskpilot.losses import validation_losses

N, M = 3, 41
RNG = np.random.default_rng(0)
GRADED = RNG.random((N, M))
BINARY = RNG.random((N, M)) < 0.4
SOME = np.where(RNG.random((N, M)) < 0.3, np.nan, GRADED)
GROUPS = np.array(["a", "b", "c"])[np.arange(M) % 3]
WEIGHTS = RNG.random(M) * 3
TABLES = pytest.mark.parametrize("losses", [GRADED, BINARY, SOME], ids=["graded", "0/1", "some"])


def summary(losses, statistic, beside=None, limit=0.3, **risk):
    made = rp.Risk("error", limit, statistic=statistic, conditional=True, **risk)
    table = {"error": losses, "cost": np.zeros(len(losses)), **(beside or {})}
    return validation_losses(rp.Problem([made], "cost"), table).risks["error"].summary


def counted(row, weights=None):
    """The losses of one row that count, as floats, with their weights."""
    kept = ~np.isnan(row.astype(float))
    return row[kept].astype(float), None if weights is None else weights[kept]


def mean_and_error(row, weights=None):
    """Where all losses are equal the error is 1/n: that does not prove that they always are."""
    values, w = counted(row, weights)
    w = np.ones(len(values)) if w is None else w
    mean = np.average(values, weights=w)
    error = math.sqrt((w**2 * (values - mean) ** 2).sum()) / w.sum()
    return mean, error if np.ptp(values) > 1e-9 else 1 / len(values)


@TABLES
def test_a_weighted_mean_and_its_error(losses):
    found = summary(losses, rp.Mean(), {"w": WEIGHTS}, weights="w", largest_weight=3.0)
    expected = [mean_and_error(row, WEIGHTS) for row in losses]
    np.testing.assert_allclose(np.stack([found.mean, found.standard_error], axis=1), expected)
    assert found.n.tolist() == [len(counted(row)[0]) for row in losses]


@TABLES
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_the_worst_group_and_its_error(losses, weights):
    options = {} if weights is None else {"weights": "w", "largest_weight": 3.0}
    beside = {"groups": GROUPS} | ({} if weights is None else {"w": weights})
    found = summary(losses, rp.WorstGroup(("a", "b", "c")), beside, **options)
    for i, row in enumerate(losses):
        by_group = []
        for name in "abc":
            inside = name == GROUPS
            w = None if weights is None else weights[inside]
            by_group.append((*mean_and_error(row[inside], w), len(counted(row[inside])[0])))
        worst = max(by_group)
        assert (found.mean[i], found.standard_error[i]) == pytest.approx(worst[:2])
        assert found.n[i] == worst[2]


def contrasts(row, value):
    """Value, error and size of every ordered pair of groups."""
    parts = {name: row[name == GROUPS] for name in "abc"}
    for one, other in itertools.permutations("abc", 2):
        (x, ex), (y, ey) = mean_and_error(parts[one]), mean_and_error(parts[other])
        yield (*value(x, ex, y, ey), min(len(counted(parts[name])[0]) for name in (one, other)))


@TABLES
@pytest.mark.parametrize("kind", [rp.GroupGap, rp.Ratio])
def test_the_contrast_furthest_from_the_limit_in_standard_errors_orders(losses, kind):
    statistic = kind(("a", "b", "c"))
    risk = rp.Risk("error", 0.3, statistic=statistic, conditional=True)
    found = log_p_for_order(risk, "betting", summary(losses, statistic, {"groups": GROUPS}))
    for i, row in enumerate(losses):
        pairs = contrasts(row, gap if kind is rp.GroupGap else ratio)
        assert found[i] == pytest.approx(log_ndtr(max((v - 0.3) / error for v, error, _ in pairs)))


def gap(x, ex, y, ey):
    return x - y, math.hypot(ex, ey)


def ratio(x, ex, y, ey):
    return 1 - x / y, min(math.hypot(ex, x / y * ey) / y, 1)


@TABLES
@pytest.mark.parametrize(("statistic", "value"), [(rp.GroupGap, gap), (rp.Ratio, ratio)])
def test_the_largest_contrast_and_its_error(losses, statistic, value):
    found = summary(losses, statistic(("a", "b", "c")), {"groups": GROUPS})
    for i, row in enumerate(losses):
        expected = max(contrasts(row, value))
        assert (found.mean[i], found.standard_error[i]) == pytest.approx(expected[:2])
        assert found.n[i] == expected[2]


@TABLES
def test_a_directed_gap_on_its_unit_scale(losses):
    found = summary(losses, rp.GroupGap(("b", "a"), directed=True), {"groups": GROUPS})
    for i, row in enumerate(losses):
        expected, error = gap(
            *mean_and_error(row[GROUPS == "b"]), *mean_and_error(row[GROUPS == "a"])
        )
        assert found.mean[i] == pytest.approx((1 + expected) / 2)
        assert found.standard_error[i] == pytest.approx(error / 2)


def quantile(values, weights, level):
    """The smallest loss that a share ``level`` of the weight stays at or below."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    place = min(int((reached < level - 1e-9).sum()), len(values) - 1)
    return values[order][place]


def tail(level, row, weights):
    """Threshold, and value and error of the mean of the tail."""
    values, w = counted(row, np.ones(len(row)) if weights is None else weights)
    threshold = quantile(values, w, level)
    beyond = threshold + np.maximum(values - threshold, 0) / (1 - level)
    return threshold, mean_and_error(beyond, w)


@pytest.mark.parametrize("losses", [GRADED, SOME], ids=["graded", "some"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.97])
def test_a_tail_and_its_error(losses, weights, level):
    options = {} if weights is None else {"weights": "w", "largest_weight": 3.0}
    beside = {} if weights is None else {"w": weights}
    found = summary(losses, rp.CVaR(level), beside, **options)
    for i, row in enumerate(losses):
        threshold, (mean, error) = tail(level, row, weights)
        assert found.threshold[i] == pytest.approx(threshold)
        assert found.mean[i] == pytest.approx(mean)
        assert found.standard_error[i] == pytest.approx(error)


@pytest.mark.parametrize("losses", [GRADED, SOME], ids=["graded", "some"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.97])
def test_a_quantile_and_half_the_distance_of_its_neighbours(losses, weights, level):
    options = {} if weights is None else {"weights": "w", "largest_weight": 3.0}
    beside = {} if weights is None else {"w": weights}
    found = summary(losses, rp.Quantile(level), beside, **options)
    for i, row in enumerate(losses):
        values, w = counted(row, np.ones(M) if weights is None else weights)
        size = w.sum() ** 2 / (w**2).sum()  # examples that would tell as much with equal weights
        width = math.sqrt(level * (1 - level) / size)
        error = (quantile(values, w, level + width) - quantile(values, w, level - width)) / 2
        assert found.threshold[i] == quantile(values, w, level)
        assert found.mean[i] == pytest.approx(found.threshold[i])
        assert found.standard_error[i] == pytest.approx(error)


def test_where_no_example_counts_the_worst_is_told():
    nothing = np.full((1, M), np.nan)
    beside = {"groups": GROUPS, "w": WEIGHTS}
    for statistic, needs, options in (
        (rp.Mean(), (), {}),
        (rp.Mean(), ("w",), {"weights": "w", "largest_weight": 3.0}),
        (rp.WorstGroup(("a", "b")), ("groups",), {}),
        (rp.GroupGap(("a", "b")), ("groups",), {}),
        (rp.Ratio(("a", "b")), ("groups",), {}),
        (rp.Quantile(0.8), (), {}),
    ):
        given = {name: beside[name] for name in needs}
        assert summary(nothing, statistic, given, **options).mean.tolist() == [1.0], statistic


@pytest.mark.parametrize("value", [0.0, 0.1, 0.7, 1.0])
def test_equal_losses_have_an_error_of_one_by_n(value):
    """Also where sums of them are rounded: 0.1 is no sum of halves."""
    for statistic, beside, options in (
        (rp.Mean(), {}, {}),
        (rp.Mean(), {"w": WEIGHTS}, {"weights": "w", "largest_weight": 3.0}),
        (rp.CVaR(0.8), {}, {}),
        (rp.CVaR(0.8), {"w": WEIGHTS}, {"weights": "w", "largest_weight": 3.0}),
    ):
        found = summary(np.full((1, M), value), statistic, beside, **options)
        assert found.standard_error[0] == pytest.approx(1 / M), statistic


def test_a_tail_that_begins_above_its_limit_shows_nothing():
    rng = np.random.default_rng(0)
    problem = rp.Problem([rp.Risk("error", 0.1, statistic=rp.CVaR(0.5))], "cost")
    selection = rp.select_from_losses(
        problem,
        validation={"error": 0.5 + rng.random((1, 80)) / 2, "cost": [1.0]},
        calibration={"error": rng.random((1, 80)) / 50},
    )
    assert selection.p_values.tolist() == [1.0]


def test_what_bets_on_a_mean_begin_with_is_its_mean_and_variance():
    (start,) = rp.Mean().starts(summary(GRADED, rp.Mean()))
    assert start.mean == pytest.approx(GRADED.mean(axis=1), abs=1e-6)
    assert start.variance == pytest.approx(GRADED.var(axis=1), abs=1e-9)
    assert start.n.tolist() == [M] * N


@pytest.mark.parametrize(("directed", "low"), [(False, 0.0), (True, -2.0)])
def test_a_gap_is_no_larger_than_the_range_of_losses_is_wide(directed, low):
    gap = rp.GroupGap(groups=("a", "b"), directed=directed)
    assert gap.value_range(1.0, 3.0) == (low, 2.0)
