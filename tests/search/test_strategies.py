"""Presets, pools, and what a search does without limits."""

from dataclasses import replace

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.search.choices import as_they_are, fixed_reference
from riskpilot.search.pools import default_pool_size, ends_and_latin_hypercube, uniform
from riskpilot.search.strategies import without_limits


@pytest.mark.parametrize("size", [3, 5, 15])
def test_the_default_pool_visits_both_ends_and_every_place_between_once(size):
    places = [ends_and_latin_hypercube(i, size, np.random.default_rng(3)) for i in range(size)]
    assert places[:2] == [0.0, 1.0]
    np.testing.assert_allclose(sorted(places), np.linspace(0, 1, size))


def test_a_pool_of_two_has_the_lowest_value_and_the_middle():
    places = [ends_and_latin_hypercube(i, 2, np.random.default_rng(0)) for i in range(2)]
    assert places == [0.0, 0.5]


def test_slots_of_the_random_pool_do_not_depend_on_who_fills_them():
    together = np.random.default_rng(1).random(4)
    alone = [uniform(slot, 4, np.random.default_rng(1)) for slot in range(4)]
    assert alone == together.tolist()


def test_two_evaluations_begin_a_search_among_few_numbers():
    assert [default_pool_size(d) for d in range(6)] == [2, 2, 2, 2, 8, 8]


def test_choices_are_seen_before_a_search_begins():
    assert [default_pool_size(d, has_choices=True) for d in range(6)] == [2, 2, 7, 8, 8, 8]


@pytest.mark.parametrize("strategy", [rp.GUIDED, rp.PAPER, rp.ONE_SIDED, rp.HVI])
def test_without_limits_a_strategy_keeps_its_pool_and_its_front(strategy):
    expected = replace(
        strategy,
        reference=fixed_reference,
        scale=as_they_are,
        safe_first=False,
        bold=False,
        fallback=0.0,
    )
    assert without_limits(strategy) == expected
