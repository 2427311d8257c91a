"""How a search of two parameters finds out which of them does what."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import riskpilot as rp
from riskpilot.guarantee import Interval
from riskpilot.search import Observations, fit_model, hypervolume_improvement, score
from riskpilot.search.acquisition import is_exploring
from riskpilot.search.choices import chance_to_pass, posterior_front
from riskpilot.study.proposals import off_the_line
from riskpilot.study.space import Space

RISK = Interval(alpha_max=0.15, low=0.13, high=0.17, needs=1, feasible=True, noise=0.01)


def model_of(x, earlier=0):
    x = np.array(x, dtype=float)
    values = np.column_stack([0.02 + 0.3 * x.mean(axis=1), 1 - x[:, 0]])
    seen = Observations(x, values, np.full(values.shape, 1e-6), np.empty((0, x.shape[1])))
    if not earlier:
        return fit_model(seen)
    before = np.random.default_rng(0).random((earlier, x.shape[1]))
    known = np.column_stack([0.02 + 0.3 * before.mean(axis=1), 1 - before[:, 0]])
    places = Observations(before, known, np.full(known.shape, 1e-6), seen.pending)
    return fit_model(seen, fit_model(places).surrogates)


def places(n, d):
    return np.random.default_rng(1).random((n, d))


@pytest.mark.parametrize(("n", "d"), [(2, 2), (7, 2)])
def test_a_search_of_two_parameters_explores_up_to_four_evaluations_of_each(n, d):
    assert is_exploring(model_of(places(n, d)), rp.GUIDED)


@pytest.mark.parametrize(("n", "d"), [(8, 2), (3, 1), (3, 3), (3, 6)])
def test_a_search_that_knows_more_or_has_other_numbers_of_parameters_does_not_explore(n, d):
    assert not is_exploring(model_of(places(n, d)), rp.GUIDED)


def test_evaluations_of_an_earlier_study_count():
    assert is_exploring(model_of(places(3, 2), earlier=4), rp.GUIDED)
    assert not is_exploring(model_of(places(3, 2), earlier=5), rp.GUIDED)


def test_the_papers_search_does_not_explore_and_others_as_long_as_they_are_told():
    seen = model_of(places(3, 2))
    assert not any(is_exploring(seen, each) for each in (rp.PAPER, rp.ONE_SIDED, rp.HVI))
    assert is_exploring(seen, replace(rp.GUIDED, exploration=Fraction(2)))
    assert not is_exploring(seen, replace(rp.GUIDED, exploration=1.5))


def test_improvements_are_those_that_posterior_draws_show_on_average():
    seen = model_of([[0.0, 0.0], [0.5, 0.5], [0.3, 0.1], [0.1, 0.6]])  # the second is too risky
    x = np.random.default_rng(0).random((40, 2))
    values, value = score(seen, [RISK], x, rp.GUIDED)
    means, stds = seen.means_and_stds(x)
    transform = chance_to_pass([RISK], 0.0)
    reference = transform(np.array([[np.inf, seen.observations.values[:, -1].max()]]))[0]
    front = transform(posterior_front(seen))
    draws = np.random.default_rng(5).standard_normal((2000, 2))
    each = [hypervolume_improvement(transform(means + z * stds), front, reference) for z in draws]
    expected = np.mean(each, axis=0)
    best = expected > 0.2 * expected.max()
    np.testing.assert_allclose(values[best], expected[best], rtol=0.25)
    np.testing.assert_allclose(value(x), values)
    by_means = score(seen, [RISK], x, replace(rp.GUIDED, exploration=0.0))[0]
    np.testing.assert_allclose(
        by_means, hypervolume_improvement(transform(means), front, reference), atol=1e-12
    )
    assert np.abs(by_means - expected)[best].max() > 0.3 * expected.max()


def scored(points):
    return points[:, 0]  # larger is better to the right


def test_a_proposal_leaves_the_line_of_the_first_evaluations():
    space = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
    cover = space.cover(np.random.default_rng(0))
    on_a_line = np.array([[0.0, 0.0], [0.5, 0.5], [0.25, 0.25]])
    value, scores = off_the_line(scored, space, cover, scored(cover), on_a_line)
    distance = np.abs(cover[:, 0] - cover[:, 1]) / np.sqrt(2)
    np.testing.assert_array_equal(np.isfinite(scores), distance > 0.2)
    np.testing.assert_array_equal(value(cover), scores)
    assert value(np.array([[0.9, 0.1], [0.6, 0.6]])).tolist() == [0.9, -np.inf]


def test_one_evaluation_that_was_repeated_is_left_in_any_direction():
    space = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
    cover = space.cover(np.random.default_rng(0))
    _, scores = off_the_line(scored, space, cover, scored(cover), np.full((2, 2), 0.5))
    far = np.linalg.norm(cover - 0.5, axis=1) > 0.2
    np.testing.assert_array_equal(np.isfinite(scores), far)


@pytest.mark.parametrize(
    ("distributions", "taken"),
    [
        # They span the plane.
        ((FloatDistribution(0, 1), FloatDistribution(0, 1)), [[0, 0], [0.5, 0.5], [0.5, 0]]),
        # One is a choice.
        ((FloatDistribution(0, 1), CategoricalDistribution("ab")), [[0, 0.25], [0.5, 0.25]]),
        # Nothing lies far enough from the line.
        ((FloatDistribution(0, 1), IntDistribution(3, 3)), [[0, 0.5], [0.5, 0.5]]),
    ],
)
def test_everything_counts_where_there_is_no_line_to_leave(distributions, taken):
    space = Space(dict(zip("ab", distributions, strict=True)))
    cover = space.cover(np.random.default_rng(0))
    before = scored(cover)
    value, scores = off_the_line(scored, space, cover, before, np.array(taken, dtype=float))
    assert value is scored
    assert scores is before


def test_a_branch_that_is_not_active_leaves_no_line():
    space = Space({"layers": IntDistribution(1, 3), "width": FloatDistribution(0, 1)})
    points = np.array([[0.0, np.nan], [0.5, 0.1], [1.0, 0.4]])
    tree = space.learned_from(points)
    cover = tree.cover(np.random.default_rng(0))
    before = scored(cover)
    assert off_the_line(scored, tree, cover, before, points[1:])[1] is before


def third(strategy):
    """Return where the third evaluation goes, after the safe configuration and the middle."""
    luck = np.random.default_rng(0).random((3, 2000))
    problem = rp.Problem([rp.Risk("error", 0.2), rp.Risk("left", 0.05)], "gap")

    def evaluate(trial):
        bold, careful = (trial.suggest_float(name, 0, 1) for name in ("bold", "careful"))
        wrong, left = 0.1 + 0.15 * bold**4, 0.2 * careful
        return rp.Evaluation({"error": luck[0] < wrong, "left": luck[1] < left, "gap": 1 - bold})

    sampler = rp.GuidedSampler(problem, seed=0, strategy=strategy, n_calibration=2000)
    study = rp.create_study(problem, sampler=sampler, safe={"bold": 0.0, "careful": 0.0})
    study.optimize(rp.objective(study, evaluate), n_trials=3)
    assert study.trials[1].params == {"bold": 0.5, "careful": 0.5}
    return study.trials[2].params


def test_the_first_proposal_shows_which_parameter_does_what():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    explored, along = third(rp.GUIDED), third(replace(rp.GUIDED, exploration=0.0))
    assert abs(explored["bold"] - explored["careful"]) > 0.28  # sqrt(2) times 0.2
    assert abs(along["bold"] - along["careful"]) < 0.2
