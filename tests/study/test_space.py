"""Parameters as coordinates of a unit cube, and back."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.tree import DecisionTreeClassifier

import riskpilot as rp
from riskpilot.sklearn import RiskControlledSearch
from riskpilot.study.proposals import best_new_point, part_of_the_way
from riskpilot.study.space import Space, from_unit, n_values, to_unit

DISTRIBUTIONS = {
    "float": FloatDistribution(-3.0, 5.0),
    "log float": FloatDistribution(1e-6, 1e2, log=True),
    "step float": FloatDistribution(0.0, 1.0, step=0.1),
    "int": IntDistribution(-4, 11),
    "step int": IntDistribution(0, 21, step=7),
    "log int": IntDistribution(1, 300, log=True),
    "one int": IntDistribution(5, 5),
    "one float": FloatDistribution(2.0, 2.0),
    "choice": CategoricalDistribution(["a", 1, None, 2.5, "b"]),
}


@pytest.fixture(params=DISTRIBUTIONS)
def distribution(request):
    return DISTRIBUTIONS[request.param]


def test_every_place_is_an_allowed_value(distribution):
    for u in np.linspace(0, 1, 401):
        value = from_unit(distribution, float(u))
        assert distribution._contains(distribution.to_internal_repr(value))
        assert 0 <= to_unit(distribution, value) <= 1


def test_a_value_comes_back_from_its_place(distribution):
    for u in np.linspace(0, 1, 201):
        value = from_unit(distribution, float(u))
        again = from_unit(distribution, to_unit(distribution, value))
        assert again == value or math.isclose(again, value, rel_tol=1e-9)


def test_every_value_can_be_reached(distribution):
    reached = {repr(from_unit(distribution, float(u))) for u in np.linspace(0, 1, 20_001)}
    assert len(reached) == min(n_values(distribution), 20_001)


def test_a_small_discrete_space_is_covered_once_each():
    space = Space({name: DISTRIBUTIONS[name] for name in ("step int", "choice", "one int")})
    cover = space.cover(np.random.default_rng(0))
    configs = {repr(space.config(point)) for point in cover}
    assert len(cover) == len(configs) == 4 * 5


@pytest.mark.parametrize("names", [["float"], ["float", "log float"], ["float", "int", "choice"]])
def test_a_continuous_space_is_covered_to_its_corners(names):
    space = Space({name: DISTRIBUTIONS[name] for name in names})
    cover = space.cover(np.random.default_rng(0))
    assert cover.shape[1] == len(names)
    assert cover.min() >= 0
    assert cover.max() <= 1
    for column, name in zip(cover.T, names, strict=True):
        if name != "choice":
            assert column.min() == 0.0
            assert column.max() == 1.0
    gaps = np.diff(np.sort(cover[:, 0]))
    assert gaps.max() < 0.01


def test_neighbours_lie_in_the_space_and_sometimes_change_the_choice():
    space = Space({"x": DISTRIBUTIONS["float"], "c": DISTRIBUTIONS["choice"]})
    start = space.point({"x": 1.0, "c": None})[None]
    near = space.near(start, 0.01, 200, np.random.default_rng(0), 3)
    assert np.abs(near[:, 0] - start[0, 0]).max() < 0.1
    choices = {space.config(point)["c"] for point in near}
    assert len(choices) > 2
    same = (near[:, 1] == start[0, 1]).mean()
    assert 0.4 < same < 0.95


def test_choices_are_encoded_at_equal_distances():
    space = Space({"c": DISTRIBUTIONS["choice"], "x": DISTRIBUTIONS["float"]})
    points = np.array([[(i + 0.5) / 5, 0.25] for i in range(5)])
    encoded = space.encode(points)
    assert encoded.shape == (5, 6)
    distances = np.linalg.norm(encoded[:, None] - encoded[None], axis=2)
    np.testing.assert_allclose(distances[~np.eye(5, dtype=bool)], 1.0)


def test_a_value_outside_the_range_is_moved_to_its_end():
    assert to_unit(DISTRIBUTIONS["float"], 99.0) == 1.0
    assert to_unit(DISTRIBUTIONS["float"], -99.0) == 0.0


ALIKE = [(1, 1.0), (0, False), (True, 1), (0.0, -0.0), ([1], [1.0]), ((1,), [1])]


@pytest.mark.parametrize("choices", ALIKE, ids=str)
@pytest.mark.filterwarnings("ignore:Choices for a categorical")
def test_choices_that_optuna_cannot_tell_apart_are_refused_before_losses_are_stored(choices):
    """Optuna stores the first equal one: the certificate would name what nobody evaluated."""
    study = rp.create_study(rp.Problem([rp.Risk("error", 0.9)], "cost"), seed=0)

    def evaluate(trial):
        trial.suggest_categorical("kind", ["other", *choices])
        return rp.Evaluation({"error": np.zeros(9), "cost": 1.0}, {"error": np.zeros(9)})

    with pytest.raises(rp.StudyError, match="'kind' must differ in more than their type"):
        study.optimize(rp.objective(study, evaluate), n_trials=1)
    search = RiskControlledSearch(
        DecisionTreeClassifier(),
        {"max_depth": list(choices)},
        risks={"error": 0.9},
        minimize="false_negative_rate",
    )
    X = np.random.default_rng(0).random((90, 2))
    with pytest.raises(rp.ProblemError, match="'max_depth' must differ"):
        search.fit(X, X[:, 0] > 0.5)


def test_a_value_is_stored_as_the_choice_that_was_evaluated_or_refused():
    study = rp.create_study(rp.Problem([rp.Risk("error", 0.9)], "cost"), seed=0)

    def evaluate(trial):
        trial.suggest_categorical("kind", [1, 2, "1", None, 2])
        return rp.Evaluation({"error": np.zeros(9), "cost": 1.0}, {"error": np.zeros(9)})

    study.enqueue_trial({"kind": 1})
    study.enqueue_trial({"kind": True})
    study.optimize(rp.objective(study, evaluate), n_trials=1)
    with pytest.raises(rp.StudyError, match=r"'kind' is True, .* the choices 1, 2, '1', None, 2"):
        study.optimize(rp.objective(study, evaluate), n_trials=1)
    study.sampler = optuna.samplers.GridSampler({"kind": [True, 2]}, seed=1)
    with pytest.raises(rp.StudyError, match="kind = True, but Optuna stores the choice 1"):
        study.optimize(rp.objective(study, evaluate), n_trials=2)
    assert [trial.state.name for trial in study.trials][:2] == ["COMPLETE", "FAIL"]


def test_of_many_parameters_few_move_and_at_least_one():
    space = Space({f"x{i}": FloatDistribution(0.0, 1.0) for i in range(20)})
    start = np.full((1, 20), 0.5)
    moved = (space.near(start, 0.1, 4_000, np.random.default_rng(0), 3) != 0.5).sum(axis=1)
    assert moved.min() == 1
    assert moved.mean() == pytest.approx(3 + (1 - 3 / 20), abs=0.1)


def test_among_many_parameters_a_place_near_an_evaluation_is_found():
    """A cover of twenty dimensions has no point within a step of the best place."""
    space = Space({f"x{i}": FloatDistribution(0.0, 1.0) for i in range(20)})
    evaluated = np.full((1, 20), 0.3)
    best = evaluated[0] + np.where(np.arange(20) == 4, 0.35, 0.0)

    def value(points):
        return -np.linalg.norm(points - best, axis=1)

    rng = np.random.default_rng(0)
    cover = space.cover(rng)
    found = best_new_point(value, space, cover, value(cover), evaluated, rng, evaluated)
    without = best_new_point(value, space, cover, value(cover), evaluated, rng)
    assert value(cover).max() < -0.4
    assert value(found[None])[0] > -0.1
    assert value(without[None])[0] < -0.3


def test_part_of_the_way_is_part_of_every_number_and_the_whole_of_a_choice():
    space = Space({name: DISTRIBUTIONS[name] for name in ("float", "int", "choice")})
    near, far = space.point({"float": -3.0, "int": 1, "choice": "a"}), np.array([1.0, 1.0, 0.9])
    taken = np.vstack([near, [0.0, 0.0, 0.1]])
    assert space.config(part_of_the_way(far, space, taken)) == {
        "float": pytest.approx(-3.0 + 0.6 * 8.0),
        "int": 7,  # 0.6 of the way from 1 to 11
        "choice": "b",
    }


def test_a_bold_step_that_would_end_where_something_was_tried_goes_all_the_way():
    space = Space({"int": IntDistribution(0, 2)})
    taken = np.array([[to_unit(space.distributions["int"], value)] for value in (0, 1)])
    far = np.array([to_unit(space.distributions["int"], 2)])
    assert space.config(part_of_the_way(far, space, taken)) == {"int": 2}


@pytest.mark.parametrize(("tried", "goes_to"), [(0.5, 0.8), (0.8, 0.92), (0.92, 1.0)])
def test_a_bold_step_that_is_short_goes_all_the_way(tried, goes_to):
    space = Space({"x": FloatDistribution(0.0, 1.0)})
    found = part_of_the_way(np.array([1.0]), space, np.array([[0.0], [tried]]))
    assert found == pytest.approx(goes_to)


def test_what_decides_on_a_branch_is_not_moved_and_what_the_nearest_lacks_is_kept():
    dists = {"layers": IntDistribution(1, 3), "width": FloatDistribution(0.0, 1.0)}
    points = np.array([[0.2, np.nan], [0.5, 0.1], [0.9, 0.4]])  # one layer has no width
    space = Space(dists).learned_from(points)
    far = np.array([to_unit(dists["layers"], 3), 0.8])
    assert space.config(space.between(points[0], far, 0.6)) == {"layers": 3, "width": 0.8}
    half_way = space.config(space.between(points[1], far, 0.5))
    assert half_way == {"layers": 3, "width": pytest.approx(0.45)}


@pytest.mark.parametrize("risk", [0.0, 0.05])
@pytest.mark.parametrize("cost", [lambda x: 1 - x, lambda x: x, lambda x: (x - 0.4) ** 2])
def test_a_search_that_can_gain_no_more_spreads(risk, cost):
    draws = np.random.default_rng(0).random((2, 2000))

    def evaluate(trial):
        errors = draws < risk
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation({"error": errors[0], "cost": cost(x)}, {"error": errors[1]})

    study = rp.create_study(rp.Problem([rp.Risk("error", 0.2)], minimize="cost"), seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=25)
    places = np.sort([trial.params["x"] for trial in study.trials])
    best = min(cost(x) for x in np.linspace(0, 1, 1025))
    assert min(cost(x) for x in places) <= best + 1e-3
    assert np.diff(places).max() < 0.15  # no part of the range is left out
    assert (np.diff(places) < 0.005).sum() <= 8  # what is near an optimum inside is refined


@pytest.mark.parametrize(
    "risk",
    [
        lambda x: 0.05 if 0.05 < x < 0.45 else 1.0,
        lambda x: 0.05 if 0.05 < x < 0.45 else 0.3 - 0.05 * x,
        lambda x: 0.05 if 0.6 < x < 0.7 else 0.3,
    ],
    ids=["it fails elsewhere", "risks fall towards one end", "a small window"],
)
def test_a_search_without_a_safe_start_finds_what_its_surrogates_do_not_show(risk):
    """All evaluations at first have about the same risk, and the cost falls towards one end."""
    draws = np.random.default_rng(0).random(1000)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation({"error": draws < risk(x), "cost": 1 - x})

    problem = rp.Problem([rp.Risk("error", 0.15)], minimize="cost")
    study = rp.create_study(problem, seed=0, n_calibration=1000)
    study.optimize(rp.objective(study, evaluate), n_trials=20)
    assert any(risk(trial.params["x"]) == 0.05 for trial in study.trials[:15])


def test_a_search_of_what_cannot_be_found_looks_everywhere():
    study = rp.create_study(
        rp.Problem([rp.Risk("error", 0.15)], minimize="cost"), seed=0, n_calibration=1000
    )

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation({"error": np.arange(1000) % 10 < 3, "cost": 1 - x})

    study.optimize(rp.objective(study, evaluate), n_trials=20)
    places = np.sort([trial.params["x"] for trial in study.trials])
    assert np.diff(places).max() < 0.2


@pytest.mark.filterwarnings("ignore:The distribution is specified by")
def test_a_step_that_is_too_large_for_any_number_leaves_one_value():
    study = rp.create_study(rp.Problem([rp.Risk("error", 0.9)], "cost"), seed=0)

    def evaluate(trial):
        trial.suggest_int("n", 3, 9, step=10**400)
        x = trial.suggest_float("x", 0.0, 1.0)
        draws = np.random.default_rng(trial.number).random((2, 50))
        return rp.Evaluation({"error": draws[0] < x, "cost": 1 - x}, {"error": draws[1] < x})

    study.optimize(rp.objective(study, evaluate), n_trials=4)
    assert [trial.params["n"] for trial in study.trials] == [3] * 4
