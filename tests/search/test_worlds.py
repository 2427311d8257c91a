"""The hedge against validation that is too optimistic, where there are two risks."""

from dataclasses import replace

import numpy as np
import pytest

from riskpilot.guarantee import Interval
from riskpilot.search import GUIDED, Observations, fit_model, score
from riskpilot.search.choices import as_they_are, chance_to_pass, posterior_front
from riskpilot.search.hypervolume import improvement_over
from riskpilot.search.worlds import passing_chances, volume_added, worlds

ERROR = Interval(
    alpha_max=0.2, low=0.18, high=0.22, needs=1, feasible=True, noise=0.01, trust=0.7, doubt=0.04
)
LEFT = replace(ERROR, alpha_max=0.05, low=0.04, high=0.06, noise=0.004, doubt=0.01)
REFERENCE = np.array([np.inf, np.inf, 1.0])


def passing(points, n=40_000):
    """Draw what passes: validation is right, or too optimistic about both risks by one share."""
    rng = np.random.default_rng(0)
    off = np.where(rng.random(n) < ERROR.trust, 0.0, rng.random(n))[:, None]
    limits = np.array([ERROR.alpha_max, LEFT.alpha_max])
    doubts, noise = np.array([ERROR.doubt, LEFT.doubt]), np.array([ERROR.noise, LEFT.noise])
    limits = limits - off * doubts + noise * rng.standard_normal((n, 2))
    return (points[:, None, :-1] <= limits).all(axis=2)


POINTS = np.array([[0.15, 0.03, 0.8], [0.19, 0.045, 0.5], [0.2, 0.03, 0.4], [0.16, 0.049, 0.3]])


def test_chances_to_pass_are_those_of_one_optimism_for_both_risks():
    chances = passing_chances([ERROR, LEFT], POINTS)
    np.testing.assert_allclose(chances, passing(POINTS).mean(axis=1), atol=0.01)
    apart = np.prod(1 - chance_to_pass([ERROR, LEFT], 0.0)(POINTS)[:, :-1], axis=1)
    assert np.abs(chances - apart).max() > 0.02  # each for itself is something else


def test_improvements_are_what_the_choice_gains_on_average():
    front, new = POINTS[:2], POINTS[2:]
    added, _ = volume_added(front, REFERENCE, [ERROR, LEFT])

    def best(points):
        free = np.where(passing(points), points[:, -1:], 1.0)
        return free.min(axis=0)

    gains = [(best(front) - best(np.vstack([front, point]))).mean() for point in new]
    # Noise of the two risks is independent in both; the passing of neighbours is not.
    np.testing.assert_allclose(added(new), gains, atol=0.006)


def test_weights_sum_to_one_and_every_world_trusts_validation():
    weights, regions = zip(*worlds([ERROR, LEFT]), strict=True)
    assert sum(weights) == pytest.approx(1)
    assert weights[0] == ERROR.trust
    assert regions[0][0].alpha_max == ERROR.alpha_max
    assert all(part.trust == 1 for region in regions for part in region)
    for region in regions:
        error, left = region
        share = (ERROR.alpha_max - error.alpha_max) / ERROR.doubt
        assert 0 <= share < 1
        assert LEFT.alpha_max - left.alpha_max == pytest.approx(share * LEFT.doubt)


@pytest.mark.parametrize(
    "region",
    [
        [ERROR],
        [ERROR, LEFT, LEFT],
        [replace(ERROR, trust=1.0), replace(LEFT, trust=1.0)],
    ],
)
def test_one_risk_three_risks_and_trust_are_as_they_are(region):
    assert worlds(region) == [(1.0, region)]
    points = np.column_stack([np.tile([0.19, 0.045, 0.04], (3, 1))[:, : len(region)], [0.5] * 3])
    front = points.copy()
    front[:, -1] = 0.9
    reference = np.append(np.full(len(region), np.inf), 1.0)
    added, largest = volume_added(front, reference, region)
    transform = chance_to_pass(region, 0.0)
    plain = improvement_over(transform(front), transform(reference[None])[0])
    np.testing.assert_allclose(added(points), plain(transform(points)))
    box = np.prod(1 - transform(front)[:, :-1].min(axis=0)) * (1.0 - 0.9)
    assert largest == pytest.approx(box)


def test_a_scale_without_chances_adds_the_same_in_every_world():
    reference = np.array([0.25, 0.08, 1.0])
    added, _ = volume_added(POINTS[:2], reference, [ERROR, LEFT], as_they_are)
    plain = improvement_over(POINTS[:2], reference)
    np.testing.assert_allclose(added(POINTS[2:]), plain(POINTS[2:]))


def test_a_fallback_keeps_both_limits_with_a_margin():
    # Both evaluations have a margin on one risk alone: if validation errs, both fail together.
    front = np.array([[0.14, 0.049, 0.4], [0.198, 0.03, 0.4], [0.1, 0.02, 1.0]])
    fallback = np.array([[0.15, 0.035, 0.6]])
    together, _ = volume_added(front, REFERENCE, [ERROR, LEFT])
    transform = chance_to_pass([ERROR, LEFT], 0.0)
    apart = improvement_over(transform(front), transform(REFERENCE[None])[0])
    assert together(fallback)[0] > 1.1 * apart(transform(fallback))[0]


def test_proposals_among_two_risks_go_by_it():
    x = np.array([[0.0, 0.0], [0.5, 0.5], [0.9, 0.1]])
    values = np.column_stack([0.1 + 0.1 * x[:, 0], 0.01 + 0.1 * x[:, 1], 1 - x[:, 0]])
    seen = Observations(x, values, np.full(values.shape, 1e-6), np.empty((0, 2)))
    model, cover = fit_model(seen), np.random.default_rng(0).random((50, 2))
    found, _ = score(model, [ERROR, LEFT], cover, replace(GUIDED, exploration=0.0))
    reference = np.array([np.inf, np.inf, values[:, -1].max()])
    added, _ = volume_added(posterior_front(model), reference, [ERROR, LEFT])
    np.testing.assert_allclose(found, added(model.means(cover)))
    assert found.max() > 0
