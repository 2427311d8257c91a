"""What a search expects of configurations that are unlike all evaluated ones."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.bench import cells, tasks
from riskpilot.bench.methods import Assignment, Guided
from riskpilot.search import Observations, fit_model, surrogate
from riskpilot.study.kept.trials import study_space, trials_of
from riskpilot.study.survey import branched_space, survey

X = np.array([[0.0], [0.02], [0.05]])
Y = np.array([0.1, 0.12, 0.16])
FAR = np.array([[1.0]])


def noise(*values):
    return np.full(len(Y), 1e-8) if not values else np.array(values)


@pytest.mark.parametrize("caution", [0.0, 1.0, 2.0])
def test_far_from_all_evaluations_a_value_lies_that_many_deviations_above_their_mean(caution):
    fitted = surrogate.fit(X, Y, noise(), caution=caution)
    near = replace(fitted, lengths=np.array([0.05]))  # nothing is known of the far end then
    assert fitted.offset == pytest.approx(Y.mean() + caution * Y.std())
    assert near.mean(FAR)[0] == pytest.approx(fitted.offset)
    np.testing.assert_allclose(fitted.mean(X), Y, atol=1e-3)


def test_values_that_are_all_the_same_give_no_reason_to_expect_others():
    fitted = surrogate.fit(X, np.full(3, 0.3), noise(), caution=2.0)
    np.testing.assert_allclose(fitted.mean(np.vstack([X, FAR])), 0.3)


def test_caution_is_for_risks_and_not_for_the_free_objective():
    values = np.column_stack([Y, Y, Y])
    seen = Observations(X, values, np.full((3, 3), 1e-8), np.empty((0, 1)))
    *risks, free = fit_model(seen, caution=2.0).surrogates
    assert [each.offset for each in risks] == [pytest.approx(Y.mean() + 2 * Y.std())] * 2
    assert free.offset == pytest.approx(Y.mean())


def test_between_evaluations_on_both_sides_of_a_limit_a_search_does_not_go_to_the_far_end():
    task = tasks.synthetic(seed=1)
    problem = cells.problem_at(task, (0.12,))
    given = Assignment(task, problem, cells.n_calibration(task), 1)

    def farthest(strategy):
        found = Guided(strategy, safe=True, n_trials=5)(given)
        return max(config["x1"] for config in found.configs)

    assert farthest(rp.GUIDED) == 0.5  # the middle, with which it begins, is too risky
    assert farthest(replace(rp.GUIDED, caution=0.0)) > 0.9


def studied(**choices):
    problem = rp.Problem([rp.Risk("error", 0.2)], "cost")
    rng = np.random.default_rng(0)
    luck = rng.random((2, 400))

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation({"error": luck[0] < 0.1 + 0.3 * x, "cost": 1 - x})

    strategy = replace(rp.GUIDED, **choices)
    sampler = rp.GuidedSampler(problem, seed=0, strategy=strategy)
    study = rp.create_study(problem, sampler=sampler)
    study.optimize(rp.objective(study, evaluate), n_trials=4)
    trials = trials_of(study)
    space = branched_space(trials, study_space(study))
    return survey(trials, problem, space, X, sampler._region, strategy).model.observations


def test_a_share_of_the_noise_is_an_evaluations_own():
    # The standard errors of the same four evaluations, squared, as far as each is their own.
    whole, some = studied(own_noise=1.0), studied(own_noise=0.25)
    np.testing.assert_array_equal(whole.x[:2], some.x[:2])
    np.testing.assert_allclose(some.variances[:2, 0], 0.25 * whole.variances[:2, 0])
    exact = studied(own_noise=Fraction(1, 4), caution=Fraction(2))
    np.testing.assert_allclose(exact.variances, some.variances)
    risk = whole.values[0, 0]
    assert whole.variances[0, 0] == pytest.approx(risk * (1 - risk) / 400, rel=0.01)


@pytest.mark.parametrize("name", ["caution", "exploration", "own_noise"])
@pytest.mark.parametrize("value", [-0.1, 1000, float("nan"), "much", None, True])
def test_a_caution_an_exploration_or_a_share_of_noise_that_is_none_is_refused(name, value):
    with pytest.raises(rp.ProblemError, match=f"Strategy: {name} .* but it is .* Use {name}="):
        replace(rp.GUIDED, **{name: value})


def test_the_papers_search_expects_the_mean_and_takes_noise_as_it_is():
    for strategy in (rp.PAPER, rp.ONE_SIDED, rp.HVI):
        assert (strategy.caution, strategy.own_noise) == (0.0, 1.0)


@pytest.mark.parametrize("d", [1, 2])
def test_a_search_without_a_safe_evaluation_looks_where_nothing_was_evaluated(d):
    luck = np.random.default_rng(0).random((2, 400))
    study = rp.create_study(rp.Problem([rp.Risk("error", 0.2)], "cost"), seed=0)

    def evaluate(trial):
        x = np.mean([trial.suggest_float(f"x{i}", 0, 1) for i in range(d)])
        wrong = luck < 0.5 * (1 - x)  # the lowest values and the middle are too risky
        return rp.Evaluation({"error": wrong[0], "cost": x}, {"error": wrong[1]})

    study.optimize(rp.objective(study, evaluate), n_trials=15)
    assert np.mean(list(rp.select(study).config.values())) > 0.6
