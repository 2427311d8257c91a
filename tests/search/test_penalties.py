"""Free objectives that are penalties: which ones are, and that all others stay as they are."""

import math
from dataclasses import replace

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.search import Observations, fit_model
from riskpilot.search.penalties import (
    outlier_line,
    penalised,
    penalty_line,
    without_penalties,
)

NONE_LIKELY = np.zeros(20, dtype=bool)


def with_risks(free):
    return np.column_stack([np.linspace(0, 1, len(free)), free])


@pytest.mark.parametrize("n_penalties", [1, 3])
@pytest.mark.parametrize("penalty", [1e8, 1e30, 1e99])
@pytest.mark.parametrize("add", [-5.0, 0.0, 100.0])
def test_a_penalty_counts_as_the_worst_of_the_others(n_penalties, penalty, add):
    usual = add + np.random.default_rng(0).random(8)
    values = with_risks(np.insert(usual, 2, [penalty] * n_penalties))
    found = without_penalties(values)
    assert (found[:, :-1] == values[:, :-1]).all()
    assert (found[:, -1] == np.insert(usual, 2, [usual.max()] * n_penalties)).all()


ORDINARY = {
    "two": [1.0, 1e30],
    "too few others": [1.0, 2.0, 1e30],
    "a wide range": np.geomspace(1e-3, 1e6, 20),
    "half at the optimum": [0.0] * 6 + [0.5, 1.0, 2.0],
    "half within rounding of each other": [0.1, 0.1 + 1e-17, 0.1 - 1e-17, 0.1 + 2e-17, 0.5],
    "more penalties than others": [1.0, 2.0, 3.0] + [1e30] * 4,
    "a large offset": 1e12 + np.arange(5.0),
    "one far better than all others": [-1e30, 1.0, 2.0, 3.0],
}


@pytest.mark.parametrize("free", ORDINARY.values(), ids=ORDINARY.keys())
def test_other_values_are_left_as_they_are(free):
    values = with_risks(np.array(free))
    assert without_penalties(values) is values


@pytest.mark.parametrize(("penalty", "line"), [(5e5, math.inf), (5e7, 4.0)])
def test_a_penalty_is_a_million_times_as_far_from_the_best_as_all_others(penalty, line):
    assert penalty_line(np.array([1.0, 3.0, penalty, 2.0, 4.0])) == line


# --- smaller penalties that are large beside all others -------------------------------------------


@pytest.mark.parametrize(
    ("free", "is_penalty"),
    [
        ([0.5, 0.9, 0.4, 1e3], True),
        ([0.5, 0.9, 1e3], False),  # too few others
        ([0.5, 0.9, 0.4, 100.0], False),  # not a thousand times as far from the best
        ([0.5, 0.5001, 0.5002, 0.9], False),  # not ten times as large
        ([-0.5, -0.9, -0.4, 1e3], True),
        ([1e3, 0.5, 0.9, 1e3], False),  # as many as the others
    ],
)
def test_a_number_that_is_large_beside_all_others_is_a_penalty(free, is_penalty):
    values = with_risks(np.array(free))
    far = values[:, -1] == 1e3
    assert (penalised(values) == (far if is_penalty else False)).all()
    assert (without_penalties(values) is values) == (not is_penalty)


def test_penalties_say_nothing_of_the_free_objective_of_others():
    x = np.linspace(0, 1, 8)[:, None]
    values = np.column_stack([0.1 * x[:, 0], 1 - x[:, 0]])
    is_penalty = np.arange(8) == 3
    cut = np.where(is_penalty[:, None], [[0.04, 1.0]], values)
    variances = np.full((8, 2), 1e-8)
    model = fit_model(Observations(x, cut, variances, x[:0], penalised=is_penalty))
    np.testing.assert_allclose(model.means(x[[3]]), values[[3]], atol=0.02)
    np.testing.assert_allclose(model.evaluated[3], [0.04, 1.0], atol=0.01)


# --- smaller penalties, given more than once ------------------------------------------------------

USUAL = np.array([1.0, 1.2, 0.7, 0.9, 0.5, 0.8])


@pytest.mark.parametrize("penalty", [10.0, 100.0, 1e4, 5e5])
def test_a_penalty_that_is_repeated_counts_as_the_worst_of_enough_others(penalty):
    values = with_risks(np.insert(USUAL, [3, 3, 5], penalty))
    found = without_penalties(values)
    assert (found[:, :-1] == values[:, :-1]).all()
    assert (found[:, -1] == np.insert(USUAL, [3, 3, 5], 1.2)).all()


@pytest.mark.parametrize(
    "free",
    [
        np.insert(USUAL, [0, 0], 100.0),  # the lowest risk has its price
        np.append(USUAL, 100.0),  # a search may have begun there
        np.append(USUAL, [100.0, 101.0]),  # not one number
        np.append(USUAL, [5.0, 5.0]),  # not far enough from the others
        np.append(USUAL[:4], [100.0, 100.0]),  # too few others
        np.append(USUAL[:5], [100.0] * 6),  # most are far
    ],
    ids=["price of a low risk", "given once", "two numbers", "near", "few", "most"],
)
def test_other_values_far_from_the_rest_are_left_as_they_are(free):
    values = with_risks(free)
    assert without_penalties(values) is values


def test_a_low_value_of_one_of_two_risks_has_its_price():
    risks = np.column_stack([np.linspace(0.2, 0.8, 8), np.linspace(0.8, 0.2, 8)])
    values = np.column_stack([risks, np.append(USUAL, [100.0, 100.0])])
    assert without_penalties(values) is values  # the last two have the lowest second risks
    values[-2:, 1] = 0.9
    assert (without_penalties(values)[-2:, -1] == 1.2).all()


# --- what counts in an outlook -------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [20.0, 1e4, 1e7])
@pytest.mark.parametrize("penalties", [[1.0], [1.0, 1.0], [1.0, 1.5]])
def test_an_outlook_leaves_out_penalties_that_were_given_once(penalty, penalties):
    values = with_risks(np.append(USUAL, penalty * np.array(penalties)))
    assert outlier_line(values, NONE_LIKELY[: len(values)]) == 1.2


@pytest.mark.parametrize(
    "free",
    [
        np.insert(USUAL, 0, 1e4),  # the lowest risk has its price
        np.append(USUAL, 5.0),  # not far enough from the others
        np.append(USUAL[:4], 1e4),  # too few others
        np.append(USUAL[:5], 1e4 * np.arange(1, 7)),  # most are far
    ],
    ids=["price of a low risk", "near", "few", "most"],
)
def test_an_outlook_goes_by_all_other_values(free):
    assert outlier_line(with_risks(free), NONE_LIKELY[: len(free)]) == math.inf


def test_an_outlook_tells_a_penalty_from_the_price_of_low_risks_below_it():
    free = np.append(USUAL, [50.0, 1e4])
    risks = np.append(np.linspace(0.3, 0.4, len(USUAL)), [0.1, 0.2])
    assert outlier_line(np.column_stack([risks, free]), NONE_LIKELY[: len(free)]) == 50.0


@pytest.mark.parametrize("penalties", [[1e3], [1e3, 1e3], [1e3, 2e3]])
def test_an_outlook_leaves_out_the_price_of_low_risks_that_nobody_has_to_pay(penalties):
    values = with_risks(np.append(penalties, USUAL))
    likely = np.zeros(len(values), dtype=bool)
    likely[: len(penalties)] = True  # the penalties alone
    assert outlier_line(values, likely) == math.inf
    likely[-1] = True
    assert outlier_line(values, likely) == 1.2


@pytest.mark.parametrize("seed", [0, 7])
def test_penalties_at_the_start_keep_no_search_at_the_end_of_a_range(seed):
    problem = rp.Problem([rp.Risk("error", 0.2)], minimize="cost")

    def cost_of(config):
        return 1 - config["x"] + 0.5 * (config["y"] - 0.4) ** 2

    def evaluate(trial):
        config = {name: trial.suggest_float(name, 0, 1) for name in "xy"}
        draws = np.random.default_rng([seed, trial.number]).random((2, 1000))
        errors = draws < 0.05 + 0.3 * config["x"] ** 2
        cost = 100.0 if 1 <= trial.number <= 3 else cost_of(config)
        return rp.Evaluation({"error": errors[0], "cost": cost}, {"error": errors[1]})

    study = rp.create_study(problem, seed=seed)
    study.optimize(rp.objective(study, evaluate), n_trials=14)
    assert cost_of(rp.select(study).config) < 0.8


@pytest.mark.parametrize("penalty", [1e7, 1e30])
def test_a_penalty_with_the_lowest_risks_is_worse_than_all_others(penalty):
    """It may be all that passes, and what passes without a penalty is still to be found."""
    values = np.array([[0.4, 0.0], [0.2, 0.5], [0.1, 0.8], [0.02, penalty], [0.3, penalty]])
    found = without_penalties(values)[:, -1]
    assert found.tolist() == pytest.approx([0.0, 0.5, 0.8, 1.6, 0.8])


@pytest.mark.parametrize("fallback", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_search_finds_what_passes_beside_a_penalty_at_the_safest_place(seed, fallback):
    problem = rp.Problem([rp.Risk("error", 0.1)], minimize="cost")
    draws = np.random.default_rng(seed).random((2, 1500))

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        errors = draws < 0.02 + 0.4 * (1 - x)
        return rp.Evaluation(
            {"error": errors[0], "cost": 1e30 if x > 0.95 else x}, {"error": errors[1]}
        )

    sampler = rp.GuidedSampler(problem, seed=seed, strategy=replace(rp.GUIDED, fallback=fallback))
    study = rp.create_study(problem, sampler=sampler)
    study.optimize(rp.objective(study, evaluate), n_trials=10)
    chosen = rp.select(study).config
    assert chosen is not None
    assert chosen["x"] < 0.95
