"""The scale of the default search: hypervolume that is the expected gain of the final choice."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from riskpilot.guarantee.region import Interval, WithoutLoss, interval
from riskpilot.problem.problem import Risk
from riskpilot.search.choices import as_they_are, chance_to_pass
from riskpilot.search.hypervolume import hypervolume_improvement


@pytest.mark.parametrize("n_risks", [1, 2])
def test_improvement_on_the_passing_scale_is_the_mean_gain_over_the_threshold(n_risks):
    rng = np.random.default_rng(n_risks)
    region = [Interval(0.2, 0.1, 0.3, 10, True, noise=0.05)] * n_risks
    front = rng.uniform(0.05, 0.4, size=(6, n_risks + 1))
    new = np.array([[0.19] * n_risks + [0.03]])
    worst = 0.5
    transform = chance_to_pass(region, 0.0)
    reference = np.append(np.ones(n_risks), worst)
    gain = hypervolume_improvement(transform(new), transform(front), reference)[0]

    thresholds = rng.normal(0.2, 0.05, size=(200_000, n_risks))

    def outcome(points):
        passing = (points[:, None, :-1] <= thresholds).all(axis=2)  # (points, draws)
        return np.where(passing, points[:, -1:], worst).min(axis=0)

    expected = (outcome(front) - outcome(np.vstack([front, new]))).mean()
    assert gain == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(200_000))
    assert gain > 0.01


def test_a_lift_moves_the_threshold_up_by_standard_errors():
    region = [Interval(0.2, 0.1, 0.3, 10, True, noise=0.05)]
    at = np.array([[0.25, 1.0]])
    assert chance_to_pass(region, 1.0)(at)[0, 0] == pytest.approx(0.5)
    assert chance_to_pass(region, 0.0)(at)[0, 0] > 0.8


def test_the_papers_scale_changes_nothing():
    points = np.random.default_rng(0).random((5, 3))
    region = [Interval(0.2, 0.1, 0.3, 10, True)] * 2
    assert (as_they_are(region, 1.0)(points) == points).all()


def test_noise_is_the_standard_error_between_validation_and_calibration_means():
    rng = np.random.default_rng(0)
    part = interval(
        Risk("cost", 0.5, low=0, high=2),
        "betting",
        n_validation=400,
        n_calibration=100,
        delta=0.1,
        std=0.1,
    )
    gaps = rng.normal(0, 0.2, (4000, 400)).mean(1) - rng.normal(0, 0.2, (4000, 100)).mean(1)
    assert part.noise == pytest.approx(gaps.std(), rel=0.05)


@pytest.mark.parametrize("doubt", [0.0, 1e-5, 0.01, 0.05, 0.5])
def test_doubt_averages_over_all_that_validation_may_be_too_low_by(doubt):
    region = [Interval(0.2, 0.1, 0.3, 10, True, noise=0.05, trust=0.0, doubt=doubt)]
    risks = np.array([-np.inf, -1e6, 0.0, 0.1, 0.18, 0.2, 0.22, 0.3, 5.0, np.inf])
    missed = chance_to_pass(region, 0.0)(np.column_stack([risks, np.zeros(10)]))[:, 0]
    too_low_by = doubt * (np.arange(2_000) + 0.5) / 2_000
    true = norm(scale=0.05).cdf(risks[:, None] + too_low_by - 0.2).mean(axis=1)
    assert missed == pytest.approx(true, abs=1e-4)
    assert missed[-1] == 1
    assert (np.diff(missed) >= 0).all()


def test_the_hedge_averages_over_trust_and_doubt():
    def missed(trust):
        region = [Interval(0.2, 0.1, 0.3, 10, True, noise=0.05, trust=trust, doubt=0.1)]
        return chance_to_pass(region, 0.0)(np.array([[0.1, 0.0], [0.19, 0.0], [0.3, 0.0]]))[:, 0]

    assert missed(0.7) == pytest.approx(0.7 * missed(1.0) + 0.3 * missed(0.0))
    assert (missed(0.0) > missed(1.0)).all()


def test_trust_in_validation_leaves_noise_alone():
    trusting = [Interval(0.2, 0.1, 0.3, 10, True, noise=0.05, trust=1.0, doubt=0.1)]
    noise_alone = [Interval(0.2, 0.1, 0.3, 10, True, noise=0.05)]
    points = np.random.default_rng(0).uniform(0, 0.5, (50, 2))
    missed = chance_to_pass(trusting, 0.5)(points)
    assert (missed == chance_to_pass(noise_alone, 0.5)(points)).all()
    assert (missed[:, 0] == ndtr(-(0.225 / 0.05 - points[:, 0] / 0.05))).all()


def test_doubt_is_a_share_of_what_passes():
    risk, sizes = Risk("cost", 0.5, low=0, high=2), {"n_validation": 400, "n_calibration": 100}
    trusted, doubted = (
        interval(risk, "hoeffding", **sizes, delta=0.1, doubt=share) for share in (0.0, 0.1)
    )
    assert trusted.doubt == 0
    assert doubted.doubt == pytest.approx(0.1 * doubted.alpha_max)
    assert doubted.high == trusted.high


@pytest.mark.parametrize("m", [11, 13, 30])
@pytest.mark.parametrize("losses", [0, 2])
def test_the_chance_of_a_sample_without_loss_is_a_mean_over_likely_risks(m, losses):
    rng = np.random.default_rng(0)
    true = rng.beta(losses + 0.5, 200 - losses + 0.5, size=400_000)
    expected = (rng.binomial(m, true) == 0).mean()
    found = WithoutLoss(200, m, 2.0).chance(np.array([2.0 * losses / 200]))[0]
    assert found == pytest.approx(expected, abs=0.005)


def test_where_only_a_sample_without_loss_passes_its_chance_takes_the_place_of_the_edge():
    risk, sizes = Risk("error", 0.2), {"n_validation": 2000, "delta": 0.1}
    part = interval(risk, "binomial", n_calibration=12, **sizes, std=0.4, binary=True)
    assert part.alpha_max == 0
    missed = chance_to_pass([part], 1.0)(np.array([[-0.01, 0.0], [0.0, 0.0], [0.05, 0.0]]))[:, 0]
    assert missed == pytest.approx([0.003, 0.003, 1 - 0.95**12], abs=0.003)


@pytest.mark.parametrize("m", [10, 20, 200])
def test_elsewhere_an_interval_does_not_depend_on_losses_being_binary(m):
    """With 10 nothing can pass, with 20 one loss may."""
    risk, sizes = Risk("error", 0.2), {"n_validation": 2000, "n_calibration": m, "delta": 0.1}
    any_loss, binary = (
        interval(risk, "binomial", **sizes, std=0.4, trust=0.7, doubt=0.2, binary=is_binary)
        for is_binary in (False, True)
    )
    assert any_loss == binary
