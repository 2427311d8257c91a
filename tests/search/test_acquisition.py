"""The reference point of the paper, and what happens where it leaves a choice open."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.search import Observations
from riskpilot.search.acquisition import is_bold_step
from riskpilot.search.choices import fixed_reference, guided_reference, one_sided_reference
from riskpilot.search.prospects import novelty

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


def test_the_fixed_reference_is_the_worst_observed_value_and_knows_no_region():
    for region in (REGION, REGION[::-1]):
        np.testing.assert_array_equal(
            fixed_reference(region, OBSERVED * 3, OBSERVED), [0.9, 0.9, 7.0]
        )


@pytest.mark.parametrize("reference", [guided_reference, one_sided_reference])
def test_the_risks_of_the_reference_are_the_upper_edges_of_the_region(reference):
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert reference(REGION, rng.random((30, 3)), OBSERVED)[:2].tolist() == [0.25, 0.5]


def observed_at(x, values, pending=()):
    pending = np.array(pending, float).reshape(-1, x.shape[1])
    return Observations(x, values, np.full(values.shape, np.nan), pending)


def test_where_every_result_differs_everything_may_be_new():
    x = np.linspace(0, 1, 5)[:, None]
    chance = novelty(observed_at(x, np.column_stack([x, -x])))
    np.testing.assert_array_equal(chance(np.random.default_rng(0).random((50, 1))), 1.0)


def test_the_width_of_steps_is_learned_from_repeats():
    """Objectives with ten steps: the chance of news must tell new steps from known ones."""
    rng = np.random.default_rng(0)
    x = rng.random((40, 2)) * [1.0, 0.3]
    steps = np.floor(10 * x)
    values = np.column_stack([steps @ [1.0, 0.1], -steps @ [0.1, 1.0]])
    chance = novelty(observed_at(x, values))
    fresh = rng.random((2_000, 2))
    known = (np.floor(10 * fresh)[:, None] == steps[None]).all(axis=2).any(axis=1)
    assert 0 < known.mean() < 1
    assert chance(fresh)[~known].mean() > 0.9
    assert chance(fresh)[known].mean() < 0.5
    np.testing.assert_allclose(chance(x), 0.0)


def test_what_others_evaluate_is_no_news_either():
    x = np.array([[0.10], [0.12], [0.5]])
    chance = novelty(observed_at(x, np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]), [[0.8]]))
    assert chance(np.array([[0.8]]))[0] == 0.0
    assert chance(np.array([[0.95]]))[0] == 1.0


def flat_then_steep(trial):
    """Harmless up to 0.8, with a shallow best place half way; all there is to gain lies beyond."""
    x = trial.suggest_float("x", 0, 1)
    risk = 0.1 + 0.6 * max(x - 0.8, 0.0)
    free = 0.42 + 0.3 * (x - 0.5) ** 2 - 3.0 * max(x - 0.8, 0.0)
    errors = np.random.default_rng(0).random(1_000) < risk
    return rp.Evaluation({"error": errors, "cost": free})


@pytest.mark.parametrize("bold", [True, False])
def test_a_search_that_saw_only_what_passes_goes_on_to_where_it_does_not(bold):
    problem = rp.Problem([rp.Risk("error", 0.17)], "cost")
    strategy = replace(rp.GUIDED, bold=bold)
    sampler = rp.GuidedSampler(problem, seed=0, strategy=strategy, n_calibration=1_000)
    study = rp.create_study(problem, sampler=sampler, safe={"x": 0.0})
    study.optimize(rp.objective(study, flat_then_steep), n_trials=5)
    furthest = max(trial.params["x"] for trial in study.trials)
    assert (furthest > 0.85) == bold


@pytest.mark.parametrize("exploration", [4.0, 0.0])
def test_a_search_that_gains_nothing_any_more_finds_another_region_that_passes(exploration):
    """Risks are low at 0, at 0.5 and at 1, where the free objective is best, and high between."""
    draws = np.random.default_rng(0).random(1_000)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation({"error": draws < 0.2 - 0.17 * np.cos(4 * np.pi * x), "cost": 1 - x})

    problem = rp.Problem([rp.Risk("error", 0.1)], "cost")
    strategy = replace(rp.GUIDED, exploration=exploration)
    sampler = rp.GuidedSampler(problem, seed=0, strategy=strategy, n_calibration=2_000)
    study = rp.create_study(problem, sampler=sampler, safe={"x": 0.0})
    study.optimize(rp.objective(study, evaluate), n_trials=30)
    best = max(trial.params["x"] for trial in study.trials if trial.values[0] < 0.1)
    assert (best > 0.9) == (exploration > 0)


def seen(*risks):
    """A model that knows one risk of some evaluations, in standard errors around what passes."""
    return earlier_and_seen([], risks)


def earlier_and_seen(earlier, risks):
    """The same after an earlier study, whose places are numbers: the risks expected there."""

    def means(places):
        return np.column_stack([0.2 + 0.01 * places, places])

    return SimpleNamespace(
        evaluated=means(np.array(risks)), earlier_places=np.array(earlier, float), means=means
    )


ONE = [SimpleNamespace(alpha_max=0.2, noise=0.01)]


def test_a_step_is_bold_while_everything_would_pass():
    assert is_bold_step(seen(-9, -1), ONE, rp.GUIDED)
    assert not is_bold_step(seen(-9, 1), ONE, rp.GUIDED)
    assert not is_bold_step(seen(-9, -1), ONE, replace(rp.GUIDED, bold=False))


def test_an_earlier_study_that_saw_what_does_not_pass_leaves_no_bold_step():
    assert is_bold_step(earlier_and_seen([-9, -2], [-9, -1]), ONE, rp.GUIDED)
    assert not is_bold_step(earlier_and_seen([-9, 2], [-9, -1]), ONE, rp.GUIDED)


def test_a_first_bold_step_stays_well_inside_the_range():
    problem = rp.Problem([rp.Risk("error", 0.17)], "cost")
    sampler = rp.GuidedSampler(problem, seed=0, n_calibration=1_000)
    study = rp.create_study(problem, sampler=sampler, safe={"x": 0.0})
    study.optimize(rp.objective(study, flat_then_steep), n_trials=3)
    assert [trial.params["x"] for trial in study.trials[:2]] == [0.0, 0.5]
    assert 0.6 < study.trials[2].params["x"] < 0.85


@pytest.mark.parametrize("n_parameters", [1, 2])
def test_no_search_stays_at_the_corner_to_which_risks_fall_that_never_pass(n_parameters):
    """Risks fall to the origin, where they are too large, and are low in one other place."""
    draws = np.random.default_rng(0).random((2, 500))
    low = np.array([0.69, 0.62])[:n_parameters]

    def evaluate(trial):
        x = np.array([trial.suggest_float(f"x{i}", 0, 1) for i in range(n_parameters)])
        risk = 0.28 + 0.3 * x.mean() - 0.45 * np.exp(-((x - low) ** 2).sum() / 0.03**2)
        errors = draws < risk
        return rp.Evaluation({"error": errors[0], "cost": x.mean()}, {"error": errors[1]})

    study = rp.create_study(rp.Problem([rp.Risk("error", 0.15)], minimize="cost"), seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=16)
    places = np.array([list(trial.params.values()) for trial in study.trials])
    assert (places.max(axis=1) < 0.02).sum() <= 2


def test_a_narrow_region_in_which_no_mean_foretells_safety_is_found():
    """The risk goes by the worst coordinate, and is low near one corner alone; nothing is named.

    A search that takes what nearly passes for its target stays there, and certifies nothing.
    """
    n_certified = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        corner, draws = rng.integers(0, 2, 3), rng.random((2, 1_000))
        problem = rp.Problem([rp.Risk("error", 0.1)], minimize="cost")
        study = rp.create_study(problem, seed=seed)

        def evaluate(trial, corner=corner, draws=draws):
            away = np.abs([trial.suggest_float(name, 0, 1) for name in "xyz"] - corner)
            risk = 0.06 + 0.08 * float(away.max())
            losses = {"error": draws[0] < risk, "cost": 1 - float(away.mean())}
            return rp.Evaluation(losses, {"error": draws[1] < risk})

        study.optimize(rp.objective(study, evaluate), n_trials=20)
        n_certified += rp.select(study).config is not None
    assert n_certified >= 5


def test_what_nearly_passes_keeps_no_search_from_what_passes_elsewhere():
    """Risks fall to a wide place where nothing passes, and are low in a smaller one far from it."""
    n_certified = 0
    for seed in range(6):
        draws = np.random.default_rng(seed).random((2, 1_000))
        problem = rp.Problem([rp.Risk("error", 0.1)], minimize="cost")
        study = rp.create_study(problem, seed=seed)

        def evaluate(trial, draws=draws):
            x = np.array([trial.suggest_float(name, 0, 1) for name in "xy"])
            nearly = 0.115 + 0.5 * ((x - [0.7, 0.3]) ** 2).sum()
            passing = 0.03 + 3 * ((x - [0.2, 0.8]) ** 2).sum()
            risk = min(nearly, passing)
            return rp.Evaluation(
                {"error": draws[0] < risk, "cost": x[0]}, {"error": draws[1] < risk}
            )

        study.optimize(rp.objective(study, evaluate), n_trials=30)
        n_certified += rp.select(study).config is not None
    assert n_certified >= 5
