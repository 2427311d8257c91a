"""The reference point of the paper, and what happens where it leaves a choice open."""

from types import SimpleNamespace

import numpy as np
import pytest

from riskpilot.acquisition import fixed_reference, guided_reference, one_sided_reference

REGION = [
    SimpleNamespace(alpha_max=0.2, low=0.15, high=0.25),
    SimpleNamespace(alpha_max=0.4, low=0.3, high=0.5),
]
OBSERVED = np.array([[0.1, 0.2, 7.0], [0.9, 0.9, 0.5]])


def test_the_free_axis_ends_at_the_best_overly_safe_configuration():
    # eq:ref_point: columns are two risks and the free objective.
    means = np.array(
        [
            [0.10, 0.20, 5.0],  # overly safe
            [0.14, 0.29, 4.0],  # overly safe and better: the reference
            [0.14, 0.35, 3.0],  # safe in one risk only
            [0.20, 0.40, 1.0],
            [0.90, 0.90, 0.0],
        ]
    )
    np.testing.assert_array_equal(guided_reference(REGION, means, OBSERVED), [0.25, 0.5, 4.0])


def test_where_nothing_is_overly_safe_the_region_is_bounded_by_the_worst_free_value():
    means = np.array([[0.20, 0.40, 3.0], [0.24, 0.49, 2.0], [0.90, 0.90, 99.0]])
    reference = guided_reference(REGION, means, OBSERVED)
    np.testing.assert_array_equal(reference, one_sided_reference(REGION, means, OBSERVED))
    np.testing.assert_array_equal(reference, [0.25, 0.5, 7.0])


def test_the_one_sided_reference_keeps_what_is_overly_safe():
    means = np.array([[0.10, 0.20, 9.0], [0.20, 0.40, 1.0]])
    np.testing.assert_array_equal(one_sided_reference(REGION, means, OBSERVED), [0.25, 0.5, 9.0])


def test_a_one_sided_reference_exists_where_no_configuration_is_inside():
    means = np.full((3, 3), 0.9)
    assert np.isfinite(one_sided_reference(REGION, means, OBSERVED)).all()


def test_the_fixed_reference_is_the_worst_seen_and_knows_no_region():
    for region in (REGION, REGION[::-1]):
        np.testing.assert_array_equal(
            fixed_reference(region, OBSERVED * 3, OBSERVED), [0.9, 0.9, 7.0]
        )


@pytest.mark.parametrize("reference", [guided_reference, one_sided_reference])
def test_the_risks_of_the_reference_are_the_upper_edges_of_the_region(reference):
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert reference(REGION, rng.random((30, 3)), OBSERVED)[:2].tolist() == [0.25, 0.5]
