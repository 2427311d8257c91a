"""What is foretold of an evaluation from its first examples, and whether it is worth finishing."""

import math

import numpy as np
import pytest

from riskpilot.guarantee import Interval
from riskpilot.search import (
    Guess,
    filled,
    foretold,
    foretold_number,
    is_known_well,
    is_odd_order,
    is_worth_finishing,
)


def draws(rng, k=800, turn=0.03, means=(0.2, 0.18, 0.22)):
    """0/1 losses of configurations on the same examples, alike as those of neighbours are."""
    luck = rng.random(k)
    return np.array([(luck + turn * rng.normal(size=k)) % 1.0 < mean for mean in means], float)


@pytest.mark.parametrize("n_neighbours", [0, 2])
def test_a_foretold_mean_is_right_on_average_and_its_error_honest(n_neighbours):
    rng = np.random.default_rng(0)
    z = []
    for _ in range(400):
        losses = draws(rng)
        guess = foretold(losses[0, :200], losses[1 : 1 + n_neighbours])
        z.append((losses[0].mean() - guess.value) / guess.error)
    assert abs(np.mean(z)) < 0.15
    assert 0.75 < np.std(z) < 1.1


def selective(rng, k=800):
    """0/1 losses of neighbours that answer different shares of the same examples, NaN elsewhere."""
    luck, doubt = rng.random(k), rng.random(k)
    lost = np.array([luck < 0.2 + 0.2 * doubt, luck < 0.18 + 0.2 * doubt, luck < 0.2 * doubt + 0.2])
    answered = np.array([doubt < 0.7, doubt < 0.6, doubt < 0.8])
    return np.where(answered, lost.astype(float), np.nan)


def test_a_mean_over_examples_that_count_is_foretold_and_filled_in_rightly():
    rng = np.random.default_rng(0)
    z, errors, plain = [], [], []
    for _ in range(400):
        losses = selective(rng)
        seen, whole = losses[0, :200], losses[1:]
        guess = foretold(seen, whole)
        z.append((np.nanmean(losses[0]) - guess.value) / guess.error)
        errors.append(guess.error)
        plain.append(foretold(seen, whole[:0]).error)
        found = filled(seen, whole)
        assert np.nanmean(found) == pytest.approx(guess.value, abs=1 / 400)
        assert np.array_equal(found[:200], seen, equal_nan=True)
        assert abs(np.isnan(found).mean() - np.isnan(losses[0]).mean()) < 0.08
    assert abs(np.mean(z)) < 0.15
    assert 0.7 < np.std(z) < 1.15
    assert np.mean(errors) < 0.7 * np.mean(plain)


def test_caution_fills_in_more_losses_by_as_many_errors():
    losses = draws(np.random.default_rng(0))
    seen, whole = losses[0, :200], losses[1:]
    guess = foretold(seen, whole)
    cautious = filled(seen, whole, caution=1.0).mean()
    assert cautious == pytest.approx(guess.value + guess.error, abs=1 / 800)


def test_neighbours_make_what_is_foretold_more_certain():
    losses = draws(np.random.default_rng(0))
    alone = foretold(losses[0, :200], np.empty((0, 800)))
    assert foretold(losses[0, :200], losses[1:]).error < 0.8 * alone.error


def test_losses_that_do_not_count_are_left_out():
    losses = draws(np.random.default_rng(0))
    losses[:, ::2] = np.nan
    with_some = foretold(losses[0, :200], losses[1:])
    without = foretold(losses[0, 1:200:2], losses[1:, 1::2])
    assert with_some.value == pytest.approx(without.value, abs=0.1 * without.error)
    assert with_some.error == pytest.approx(without.error, rel=0.1)
    never = foretold(np.full(200, np.nan), losses[1:])
    assert never.error == math.inf


def test_equal_losses_do_not_make_certain():
    assert foretold(np.zeros(100), np.zeros((0, 400))).error == 0.0  # nothing was ever lost
    seen = draws(np.random.default_rng(0))
    assert foretold(np.zeros(100), seen).error > 0.005


def test_a_number_is_foretold_by_how_it_moved_in_neighbours():
    assert foretold_number(0.4, np.array([0.1, 0.2])) == pytest.approx((0.55, 0.1))
    assert foretold_number(0.4, np.array([0.1])) == (0.4, math.inf)


def test_an_order_by_difficulty_is_noticed_and_a_random_one_is_not():
    losses = draws(np.random.default_rng(0))
    assert not is_odd_order(losses, 100)
    assert is_odd_order(np.sort(losses, axis=1), 100)
    assert not is_odd_order(np.full((1, 800), np.nan), 100)  # none of them counts


REGION = [Interval(0.2, 0.15, 0.25, 10, True, noise=0.01)]
KNOWN = np.array([[0.05, 1.0], [0.15, 0.5]])


@pytest.mark.parametrize(
    ("risk", "free", "worth"),
    [
        (Guess(0.18, 0.01), Guess(0.4, 0.0), True),
        (Guess(0.3, 0.01), Guess(0.1, 0.0), False),  # too risky
        (Guess(0.3, 0.06), Guess(0.1, 0.0), True),  # not yet clear
        (Guess(0.05, 0.01), Guess(0.6, 0.0), False),  # an earlier one is better
        (Guess(0.05, 0.01), Guess(0.6, 0.1), True),
        (Guess(0.3, math.inf), Guess(0.6, 0.1), True),
        (Guess(0.18, 0.01), Guess(0.6, math.inf), True),
        (Guess(0.3, 0.01), Guess(0.6, math.inf), False),
    ],
)
def test_an_evaluation_is_finished_while_it_may_become_the_choice(risk, free, worth):
    assert is_worth_finishing([risk, free], KNOWN, REGION) is worth


def test_until_something_is_likely_to_pass_what_may_pass_is_finished_however_dear_it_is():
    broken = np.array([[0.4, 0.1], [0.5, 0.05]])
    assert is_worth_finishing([Guess(0.1, 0.01), Guess(1.0, 0.0)], broken, REGION)
    assert not is_worth_finishing([Guess(0.4, 0.01), Guess(1.0, 0.0)], broken, REGION)
    one_price = np.array([[0.4, 0.1], [0.5, 0.1]])
    assert is_worth_finishing([Guess(0.1, 0.01), Guess(0.1, 0.0)], one_price, REGION)


def test_where_nothing_was_named_as_safe_a_safer_and_dearer_evaluation_is_finished():
    region = [Interval(0.17, 0.15, 0.19, 20, feasible=True, noise=0.01)]
    known = np.array([[0.16, 0.5], [0.3, 0.1]])  # the first one passes with a chance of 0.84
    safer = [Guess(0.1, 0.005), Guess(0.7, 0.0)]
    assert is_worth_finishing(safer, known, region, has_safe=False)
    assert not is_worth_finishing(safer, known, region, has_safe=True)


def test_beside_a_penalty_a_better_evaluation_is_still_worth_finishing():
    """One free objective of 1e30 does not make all others look equal."""
    region = [Interval(0.17, 0.15, 0.19, 20, feasible=True, noise=0.01)]
    better = [Guess(0.02, 0.017), Guess(0.927, 0.0)]
    for penalty in (10.0, 1e4, 1e30):
        known = np.array([[0.0, 1.0], [0.25, penalty]])
        assert is_worth_finishing(better, known, region)
        # One that breaks its limit is stopped all the same.
        assert not is_worth_finishing([Guess(0.4, 0.01), Guess(0.6, 0.0)], known, region)


@pytest.mark.parametrize("penalty", [100.0, 1e3, 1e6, 1e30])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("risk", [0.0, 0.1])
def test_a_penalty_that_is_likely_to_pass_does_not_hide_what_is_better(penalty, times, risk):
    """It may have been given to the safest of all, and more often than any other number."""
    region = [Interval(0.17, 0.15, 0.19, 20, feasible=True, noise=0.01)]
    known = np.array([[0.05, 1.0], *[[risk, penalty]] * times])
    assert is_worth_finishing([Guess(0.1, 0.01), Guess(0.85, 0.0)], known, region)
    assert not is_worth_finishing([Guess(0.1, 0.01), Guess(1.1, 0.0)], known, region)
    assert not is_worth_finishing([Guess(0.1, 0.01), Guess(penalty, 0.0)], known, region)


def test_a_gain_counts_beside_what_is_still_possible_where_costs_span_decades():
    """A gain of a fifth of the best one is little beside where the search began, and much now."""
    region = [Interval(0.17, 0.15, 0.19, 20, feasible=True, noise=0.01)]
    risks = np.array([0.0, 0.03, 0.06, 0.09, 0.12, 0.135])
    known = np.column_stack([risks, 10 ** (6 - 25 * risks)])
    best = known[-1, 1]
    assert best < 0.001 * known[0, 1]
    assert is_worth_finishing([Guess(0.135, 0.005), Guess(0.8 * best, 0.0)], known, region)
    assert not is_worth_finishing([Guess(0.135, 0.005), Guess(1.2 * best, 0.0)], known, region)


@pytest.mark.parametrize("values", [(0.0, 1.0), (-1.0, 0.0, 1.0), tuple(np.linspace(0, 1, 50))])
def test_filled_losses_have_the_mean_that_is_foretold_and_are_losses_that_were_shown(values):
    rng = np.random.default_rng(3)
    levels = np.array(values)
    luck = rng.random(800)
    losses = np.array(
        [levels[np.minimum((luck**p * len(levels)).astype(int), len(levels) - 1)] for p in (2, 3)]
    )
    seen, whole = losses[0, :200], losses[1:]
    found = filled(seen, whole)
    assert (found[:200] == seen).all()
    assert set(found) <= set(seen)
    assert found.mean() == pytest.approx(foretold(seen, whole).value, abs=1 / 800)
    hard = np.argsort(whole[0, 200:], kind="stable")
    assert found[200:][hard[300:]].mean() > found[200:][hard[:300]].mean()  # hard ones lose more


def test_losses_that_nothing_so_far_has_shown_are_filled_in_from_neighbours():
    rng = np.random.default_rng(0)
    luck = rng.random(1_000)
    luck[:100] = 0.4 + luck[:100] / 2  # the first examples are easy
    whole = np.array([luck < 0.2, luck < 0.9], dtype=float)
    seen = (luck[:100] < 0.85).astype(float)
    found = filled(seen, whole)
    assert found.mean() == pytest.approx(foretold(seen, whole).value, abs=1e-3)
    # One cost for all examples stays one cost, whatever neighbours cost.
    same = filled(np.full(100, 0.3), np.array([np.full(400, 0.1), np.full(400, 0.7)]))
    assert (same == 0.3).all()


def test_more_is_filled_in_than_any_loss_so_far_where_neighbours_say_so():
    luck = np.arange(1_000) / 1_000
    whole = np.array([luck > 0.5, luck > 0.6], dtype=float)
    seen = np.append(np.zeros(30), 1.0)  # foretold: more than all that is left
    assert set(filled(seen, whole[:, :100])) <= {0.0, 1.0}
    assert (filled(np.ones(50), np.ones((2, 100))) == 1).all()


def test_a_risk_is_known_well_when_little_is_left_to_be_seen_beside_its_noise():
    known = np.array([[0.1, 1.0], [0.3, 0.0]])
    of_sample = np.array([0.01, 0.0])
    free = Guess(0.5, 0.0)
    assert is_known_well([Guess(0.2, 0.019), free], of_sample, known, 0.3)
    assert not is_known_well([Guess(0.2, 0.021), free], of_sample, known, 0.3)
    assert is_known_well([Guess(0.2, 0.0), Guess(0.5, 0.009)], of_sample, known, 0.3)
    assert not is_known_well([Guess(0.2, 0.0), Guess(0.5, 0.011)], of_sample, known, 0.3)
    assert not is_known_well(
        [Guess(0.2, 0.0), Guess(0.01, 0.001)], of_sample, known, 0.3
    )  # near zero
    assert not is_known_well([Guess(0.2, 0.0), Guess(0.5, math.inf)], of_sample, known, 0.3)
    assert not is_known_well([Guess(0.2, 0.0), free], of_sample, known, 0.09)
    many = np.tile(known, (20, 1))  # of forty evaluations twice as much has to be known
    assert is_known_well([Guess(0.2, 0.0099), free], of_sample, many, 0.3)
    assert not is_known_well([Guess(0.2, 0.0101), free], of_sample, many, 0.3)
