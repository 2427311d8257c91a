"""What every p-value family must do, and what an independent computation says of each."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

import riskpilot as rp
from riskpilot.statistics import families
from riskpilot.statistics.families import betting
from tests.kits.families import FROM_SUMS, OFFERED, log_p, log_p_of_sum


@pytest.fixture(params=OFFERED)
def family(request):
    return request.param


# --- behaviour of every family -------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0.003, 0.1, 0.5, 0.9, 0.997])
@pytest.mark.parametrize("n", [1, 2, 7, 100, 3000])
def test_log_p_is_finite_and_p_lies_in_the_unit_interval(family, limit, n):
    rng = np.random.default_rng(n)
    shape = (20, n)
    samples = [rng.random(shape), (rng.random(shape) < limit) * 1.0, rng.beta(0.2, 2, shape)]
    ends = np.stack([np.zeros(n), np.ones(n), np.full(n, limit)])
    log = log_p(family, np.vstack([*samples, ends]), limit)
    assert np.isfinite(log).all()
    assert (log <= 0).all()


def test_nothing_observed_gives_p_of_one(family):
    losses = np.vstack([np.full(6, np.nan), [np.nan] * 5 + [0.0]])
    log = log_p(family, losses, 0.5)
    assert log[0] == 0.0
    assert log[1] < 0.0


def test_examples_that_do_not_count_change_nothing(family):
    rng = np.random.default_rng(3)
    losses = (rng.random((5, 40)) < 0.3) * rng.choice([0.5, 1.0], (5, 40))
    padded = np.insert(losses, 20, np.full((30, 1), np.nan), axis=1)
    np.testing.assert_array_equal(log_p(family, padded, 0.4), log_p(family, losses, 0.4))
    # Nor do the rows beside a row, of which other examples count, or none.
    others = np.where(rng.random(padded.shape) < 0.3, np.nan, rng.random(padded.shape))
    others[0] = np.nan
    together = log_p(family, np.vstack([padded[:3], others, padded[3:]]), 0.4)
    alone = log_p(family, losses, 0.4)
    np.testing.assert_array_equal(np.delete(together, range(3, 8)), alone)


def test_many_configurations_at_once_equal_one_by_one(family):
    rng = np.random.default_rng(5)
    losses = rng.beta(0.3, 2, (600, 50))  # more than one block of the batched betting test
    together = log_p(family, losses, 0.2)
    alone = np.concatenate([log_p(family, row[None], 0.2) for row in losses])
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-12)


def test_conditional_configurations_at_once_equal_one_by_one(family):
    rng = np.random.default_rng(6)
    losses = rng.beta(0.3, 2, (300, 50))
    losses[rng.random(losses.shape) < 0.4] = np.nan
    losses[:10] = np.nan
    together = log_p(family, losses, 0.2)
    alone = np.concatenate([log_p(family, row[None], 0.2) for row in losses])
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("limit", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("delta", [0.01, 0.1])
def test_a_constant_loss_passes_wherever_a_larger_one_does(family, limit, delta):
    constants = np.linspace(0, 1, 41)
    log = log_p(family, np.repeat(constants[:, None], 3000, axis=1), limit, delta)
    passed = log < math.log(delta)
    assert passed[0]
    assert not passed[-1]
    assert (np.diff(passed.astype(int)) <= 0).all()


@pytest.mark.parametrize("limit", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("n", [1, 10, 500])
def test_p_never_falls_as_the_sum_grows(limit, n):
    for name in FROM_SUMS:
        totals = np.arange(n + 1.0) if name == "binomial" else np.linspace(0, n, 2001)
        assert (np.diff(log_p_of_sum(name, totals, n, limit)) >= 0).all(), name


def test_losses_at_or_above_the_limit_are_no_evidence_for_it(family):
    rng = np.random.default_rng(0)
    losses = 0.3 + 0.7 * rng.random((10, 200))
    assert (log_p(family, losses, 0.3) > math.log(0.5)).all()


def test_p_values_too_small_for_a_float_are_still_ordered():
    counts = np.arange(0, 900)
    for name in FROM_SUMS:
        log = log_p_of_sum(name, counts, 10_000, 0.1)
        assert np.isfinite(log).all(), name
        assert (np.diff(log) > 0).all(), name
        assert np.exp(log[0]) < 1e-80


def test_betting_against_a_limit_near_one_stays_finite():
    factors = np.full((400, 2), 950.0)
    np.testing.assert_allclose(betting._log_product(factors), 400 * math.log(950.0))
    assert np.isfinite(families.log_betting(np.zeros((1, 20_000)), 0.9999, 1e-9)).all()


# --- against independent computations ------------------------------------------------------------


@pytest.mark.parametrize(("n", "limit"), [(1, 0.2), (12, 0.05), (300, 0.1), (5000, 0.05)])
def test_binomial_is_scipys_tail(n, limit):
    counts = np.unique(np.linspace(0, n, 50).astype(int))
    np.testing.assert_allclose(
        families.log_binomial(counts, n, limit),
        binom.logcdf(counts, n, limit),
        rtol=1e-9,
        atol=1e-14,
    )


@pytest.mark.parametrize(
    ("count", "n", "limit"),
    [(0, 20_000, 0.1), (10, 10_000, 0.1), (700, 20_000, 0.2), (1500, 10_000, 0.9), (3, 900, 0.95)],
)
def test_binomial_tails_below_the_smallest_float_match_arbitrary_precision(count, n, limit):
    with mpmath.workdps(60):
        p = mpmath.mpf(limit)
        term = (1 - p) ** n
        total = term
        for k in range(count):
            term *= mpmath.mpf(n - k) / (k + 1) * p / (1 - p)
            total += term
        exact = float(mpmath.log(total))
    assert exact < math.log(1e-280)
    assert float(families.log_binomial(count, n, limit)) == pytest.approx(exact, rel=1e-10)


def test_binomial_of_a_tiny_sample_is_the_enumerated_probability():
    limit, n = 0.3, 6
    for count in range(n + 1):
        exact = sum(
            math.prod(limit if bit else 1 - limit for bit in bits)
            for bits in itertools.product((0, 1), repeat=n)
            if sum(bits) <= count
        )
        assert math.exp(families.log_binomial(count, n, limit)) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("limit", [0.05, 0.4])
@pytest.mark.parametrize("n", [1, 30, 2000])
def test_hoeffding_and_hoeffding_bentkus_match_their_formulas(n, limit):
    for mean in np.linspace(0, 1, 23):
        total = mean * n
        hoeffding = math.exp(-2 * n * max(limit - mean, 0) ** 2)
        assert math.exp(families.log_hoeffding(total, n, limit)) == pytest.approx(hoeffding)
        with mpmath.workdps(40):
            a, b = mpmath.mpf(min(mean, limit)), mpmath.mpf(limit)
            h1 = (a * mpmath.log(a / b) if a else 0) + (1 - a) * mpmath.log((1 - a) / (1 - b))
            chernoff = float(mpmath.exp(-n * h1))
        bentkus = math.e * binom.cdf(math.ceil(round(total, 9)), n, limit)
        expected = min(chernoff, bentkus, 1.0)
        found = math.exp(families.log_hoeffding_bentkus(total, n, limit))
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-290)


def plain_betting(losses, limit, delta, known=None):
    """The betting test with plain floats, one loss after the other; ``known``: mean, variance and
    number of the validation losses."""
    losses = [loss for loss in losses if not math.isnan(loss)]
    m = len(losses)
    level = math.log(1 / delta)
    wealth, best, goal = 0.0, 0.0, level
    gains_seen, gain_sum = 0, 0.0
    squares = limit * (1 - limit)
    time = 0
    while time < m:
        stop = time + max(1, min(time // 4, (m - time) // 50))
        variance = squares / (gains_seen + 1)
        if known is not None:
            mean, spread, n = known
            size = min((spread + mean**2) / mean, 1.0) if mean else 0.0
            at_limit = limit * (size - limit)
            n = min(n, 200)
            pooled = (squares + n * max(spread, at_limit)) / (gains_seen + 1 + n)
            variance = max(variance, pooled)
        bet = math.sqrt(2 * (goal - wealth) / ((m - time) * variance))
        bet = min(bet, families.LARGEST_BET / (1 - limit))
        centre = gain_sum / (gains_seen + 1)
        for loss in losses[time:stop]:
            gain = limit - loss
            wealth += math.log(1 + bet * gain)
            squares += (gain - centre) ** 2
            gain_sum += gain
            gains_seen += 1
        best = max(best, wealth)
        if wealth >= goal:
            goal = wealth + level
        time = stop
    return -best


@pytest.mark.parametrize("m", [1, 3, 60, 1000, 4000])
@pytest.mark.parametrize("limit", [0.05, 0.5, 0.95])
def test_betting_is_the_plain_loop(m, limit):
    rng = np.random.default_rng(m)
    losses = np.vstack(
        [
            rng.random((3, m)) * 2 * min(limit, 0.5),
            rng.random((3, m)) < 0.7 * limit,
            np.zeros((1, m)),
            np.where(rng.random((2, m)) < 0.3, np.nan, 0.5 * limit),
            np.where(rng.random((2, m)) < 0.3, np.nan, rng.random((2, m)) < 0.7 * limit),
        ]
    )
    expected = [plain_betting(row, limit, 0.1) for row in losses]
    np.testing.assert_allclose(families.log_betting(losses, limit, 0.1), expected, atol=1e-9)
    # A level, and what validation data says, for each row.
    deltas = np.geomspace(1e-4, 0.3, len(losses))
    known = np.column_stack(
        [
            rng.random(len(losses)) * limit,
            rng.random(len(losses)) * limit * (1 - limit),
            rng.integers(0, 900, len(losses)),
        ]
    )
    known[2] = 0.0
    start = families.Start(*known.T)
    expected = list(map(plain_betting, losses, [limit] * len(losses), deltas, known))
    found = families.log_betting(losses, limit, deltas, start)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("n", [2**31 - 1, 2**31, 3 * 10**9, 2**32 + 7])
def test_binomial_is_exact_for_billions_of_examples(n):
    limit = 1e-9
    with mpmath.workdps(40):
        p = mpmath.mpf(limit)
        terms = [mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(8)]
        exact = [float(mpmath.log(sum(terms[: k + 1]))) for k in range(8)]
    np.testing.assert_allclose(families.log_binomial(np.arange(8), n, limit), exact, rtol=1e-6)


# --- inverses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["binomial", "hoeffding_bentkus"])
@pytest.mark.parametrize("delta", [0.01, 0.1, 0.4])
@pytest.mark.parametrize(("n", "limit"), [(45, 0.05), (100, 0.3), (1000, 0.02), (5000, 0.05)])
def test_largest_passing_count_is_found_by_direct_search(name, delta, n, limit):
    counts = np.arange(n + 1)
    passing = counts[log_p_of_sum(name, counts, n, limit) < math.log(delta)]
    found = families.largest_passing_mean(name, limit, n, delta)
    if not len(passing):
        assert found is None or name == "hoeffding_bentkus"
        return
    largest = passing.max()
    assert found * n >= largest - 1e-6
    assert found * n < largest + 1


@pytest.mark.parametrize("name", ["hoeffding", "hoeffding_bentkus"])
@pytest.mark.parametrize(("n", "limit"), [(60, 0.2), (1000, 0.1), (5000, 0.05)])
def test_largest_passing_mean_divides_what_passes_from_what_fails(name, n, limit):
    largest = families.largest_passing_mean(name, limit, n, 0.1)
    below, above = (largest - 1e-7) * n, (largest + 1e-7) * n
    assert log_p_of_sum(name, below, n, limit) < math.log(0.1)
    assert log_p_of_sum(name, above, n, limit) >= math.log(0.1)


@pytest.mark.parametrize("std", [0.02, 0.1, None])
@pytest.mark.parametrize(("n", "limit"), [(500, 0.1), (5000, 0.05)])
def test_about_half_of_the_samples_pass_the_betting_test_at_its_largest_mean(n, limit, std):
    mean = families.largest_passing_mean("betting", limit, n, 0.1, std)
    rng = np.random.default_rng(0)
    if std is None:
        losses = (rng.random((400, n)) < mean) * 1.0
    else:
        size = mean * (1 - mean) / std**2 - 1
        losses = rng.beta(mean * size, (1 - mean) * size, (400, n))
    passed = (families.log_betting(losses, limit, 0.1) < math.log(0.1)).mean()
    assert 0.3 < passed < 0.75


@pytest.mark.parametrize("delta", [0.01, 0.1])
@pytest.mark.parametrize("limit", [0.01, 0.05, 0.3, 0.9])
def test_smallest_n_is_the_first_at_which_zeros_pass(family, limit, delta):
    n = families.smallest_n(family, limit, delta)
    assert log_p(family, np.zeros((1, n)), limit, delta)[0] < math.log(delta)
    if n > 1:
        assert log_p(family, np.zeros((1, n - 1)), limit, delta)[0] >= math.log(delta)


def test_smallest_n_ends_at_limits_that_need_billions(family):
    limit = 1e-4 if family == "hoeffding" else 1e-9
    n = families.smallest_n(family, limit, 0.1)
    rate = {"hoeffding": 2 * limit**2, "betting": families.LARGEST_BET * limit}.get(family, limit)
    assert n == pytest.approx(math.log(10) / rate, rel=1e-6)


def test_an_unknown_family_is_an_error():
    with pytest.raises(rp.ProblemError, match="no p-value family 'clt'"):
        families.largest_passing_mean("clt", 0.1, 100, 0.1)
    with pytest.raises(rp.ProblemError, match="no p-value family 'clt'"):
        families.smallest_n("clt", 0.1, 0.1)
    with pytest.raises(rp.ProblemError, match="no p-value family 'clt'"):
        families.log_p_from_sums("clt", None, 0.1)


def test_a_family_that_lacks_something_says_so():
    with pytest.raises(rp.ProblemError, match="'normal' has no test"):
        families.smallest_n("normal", 0.1, 0.1)
    with pytest.raises(rp.ProblemError, match="'trinomial' has no largest passing mean"):
        families.largest_passing_mean("trinomial", 0.1, 100, 0.1)
    with pytest.raises(rp.ProblemError, match="'betting' has no p-value from sums"):
        families.log_p_from_sums("betting", None, 0.1)


def test_every_family_has_a_name_of_its_own():
    names = [family.name for family in families.FAMILIES]
    assert len(set(names)) == len(names)
    assert set(families.P_VALUES) == {"auto", *OFFERED} <= {"auto", *names}
