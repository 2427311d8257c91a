"""One kit for every baseline: a short study gives valid, reproducible proposals that resume."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

import riskpilot as rp
from riskpilot.bench.baselines import (
    ConstrainedSampler,
    GridSampler,
    LatinHypercubeSampler,
    RandomSampler,
    best_feasible,
)
from riskpilot.bench.baselines.ehvi import EHVISampler
from riskpilot.bench.baselines.grid import even_sides
from riskpilot.bench.baselines.parego import ParEGOSampler
from riskpilot.guarantee.pareto import hypervolume

# Third-party code under two samplers: torch's JIT, and a search that starts near a flat maximum.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.BotorchWarning"),
]

N_TRIALS, POOL = 6, 4
PROBLEM = rp.Problem([rp.Risk("error", limit=0.3)], minimize="cost")
CONTINUOUS = {"x": FloatDistribution(0.0, 1.0), "rate": FloatDistribution(1e-4, 1.0, log=True)}
MIXED = {
    "x": FloatDistribution(0.0, 1.0),
    "layers": IntDistribution(1, 8),
    "width": IntDistribution(8, 64, step=8),
    "kind": CategoricalDistribution(("a", "b", "c")),
    "fixed": FloatDistribution(0.5, 0.5),
}


def ehvi(seed):
    return EHVISampler(n_startup_trials=POOL, seed=seed, restarts=2, raw_samples=32)


MAKERS = {
    "grid": lambda space, seed: GridSampler(space, N_TRIALS, seed=seed),
    "random": lambda space, seed: RandomSampler(seed=seed),
    "latin": lambda space, seed: LatinHypercubeSampler(N_TRIALS, seed=seed),
    "practice": lambda space, seed: ConstrainedSampler(n_startup_trials=POOL, seed=seed),
    "ehvi": lambda space, seed: ehvi(seed),
    "parego": lambda space, seed: ParEGOSampler(n_startup_trials=POOL, seed=seed),
}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def evaluate_in(space, failing=()):
    def evaluate(trial):
        config = {name: trial._suggest(name, dist) for name, dist in space.items()}
        if trial.number in failing:
            raise RuntimeError("training broke")
        rng = np.random.default_rng(trial.number)
        risk = 0.05 + 0.5 * config["x"] ** 2
        cost = (1 - config["x"]) ** 2 + 0.01 * config.get("layers", 1)
        return rp.Evaluation({"error": rng.random(200) < risk, "cost": cost})

    return evaluate


def run(sampler, space, n_trials=N_TRIALS, failing=(), study=None):
    study = study or rp.create_study(PROBLEM, sampler=sampler)
    objective = rp.objective(study, evaluate_in(space, failing))
    study.optimize(objective, n_trials=n_trials, catch=(RuntimeError,))
    return study


def params_of(study):
    return [trial.params for trial in study.trials]


@pytest.mark.parametrize("space", [CONTINUOUS, MIXED], ids=["continuous", "mixed"])
def test_proposals_lie_in_the_space_and_failed_trials_do_not_stop_the_search(make, space):
    study = run(make(space, 0), space, failing=(1,))
    assert len(study.trials) == N_TRIALS
    assert study.trials[1].state == TrialState.FAIL
    for trial in study.trials:
        assert trial.params.keys() == space.keys()
        for name, distribution in space.items():
            assert distribution._contains(distribution.to_internal_repr(trial.params[name]))


def test_the_same_seed_gives_the_same_search_and_another_seed_another(make, request):
    first, again = (params_of(run(make(CONTINUOUS, 3), CONTINUOUS)) for _ in range(2))
    assert first == again
    if "grid" not in request.node.callspec.id:
        assert params_of(run(make(CONTINUOUS, 4), CONTINUOUS)) != first


def test_a_search_that_was_interrupted_goes_on_as_if_it_had_not_been(make):
    whole = run(make(CONTINUOUS, 5), CONTINUOUS)
    study = run(make(CONTINUOUS, 5), CONTINUOUS, n_trials=5)
    study.sampler = make(CONTINUOUS, 5)
    run(None, CONTINUOUS, n_trials=N_TRIALS - 5, study=study)
    assert params_of(study) == params_of(whole)


@pytest.mark.parametrize("name", ["practice", "ehvi", "parego"])
def test_the_initial_pool_is_the_same_for_every_sequential_sampler(name):
    pool = params_of(run(MAKERS[name](CONTINUOUS, 6), CONTINUOUS, n_trials=POOL))
    assert pool == params_of(run(RandomSampler(seed=6), CONTINUOUS, n_trials=POOL))


@pytest.mark.parametrize("name", ["ehvi", "parego"])
def test_proposals_are_not_repeats(name):
    study = run(MAKERS[name](CONTINUOUS, 0), CONTINUOUS)
    points = np.array([[t.params["x"], math.log10(t.params["rate"])] for t in study.trials])
    gaps = np.abs(points[:, None] - points[None]).max(axis=2)
    assert gaps[~np.eye(len(points), dtype=bool)].min() > 1e-6


@pytest.mark.parametrize("name", ["ehvi", "parego"])
def test_a_constant_objective_is_no_obstacle(name):
    study = rp.create_study(PROBLEM, sampler=MAKERS[name](CONTINUOUS, 0))
    space = {"x": CONTINUOUS["x"]}

    def evaluate(trial):
        evaluation = evaluate_in(space)(trial)
        return rp.Evaluation({**evaluation.validation, "cost": 1.0})

    study.optimize(rp.objective(study, evaluate), n_trials=POOL + 2)
    assert all(0 <= t.params["x"] <= 1 for t in study.trials)


def test_ehvi_takes_a_running_trial_into_account():
    space = {"x": CONTINUOUS["x"]}
    study = run(ehvi(0), space, n_trials=POOL)
    one, other = (study.ask().suggest_float("x", 0, 1) for _ in range(2))
    assert abs(one - other) > 1e-3


def test_ehvi_improves_on_its_initial_pool():
    space = {"x": CONTINUOUS["x"]}
    study = run(ehvi(1), space, n_trials=POOL + 4)
    values = np.array([t.values for t in study.trials])
    worst = values[:POOL].max(axis=0)
    assert hypervolume(values, worst) > hypervolume(values[:POOL], worst)


def test_a_grid_in_one_dimension_holds_every_step_once():
    study = run(GridSampler({"x": CONTINUOUS["x"]}, 5), {"x": CONTINUOUS["x"]}, n_trials=6)
    xs = [trial.params["x"] for trial in study.trials]
    assert xs[:5] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert 0 < xs[5] < 1


@pytest.mark.parametrize("n", [1, 7, 12, 50])
@pytest.mark.parametrize("most", [[math.inf], [math.inf] * 3, [2, math.inf], [2, 3]])
def test_a_grid_never_has_more_points_than_asked_for_nor_more_values_than_there_are(n, most):
    sides = even_sides(n, most)
    assert math.prod(sides) <= n
    assert all(side <= top for side, top in zip(sides, most, strict=True))


def test_grid_points_over_discrete_parameters_are_distinct():
    space = {"layers": IntDistribution(1, 4), "kind": CategoricalDistribution(("a", "b", "c"))}
    study = rp.create_study(PROBLEM, sampler=GridSampler(space, 12))
    trials = [study.ask(space) for _ in range(12)]
    assert len({(t.params["layers"], t.params["kind"]) for t in trials}) == 12


def test_a_grid_refuses_a_parameter_it_does_not_know():
    study = rp.create_study(PROBLEM, sampler=GridSampler(CONTINUOUS, 5))
    with pytest.raises(rp.StudyError, match="asks for 'y'"):
        study.ask().suggest_float("y", 0, 1)


@pytest.mark.parametrize("make_bad", [lambda: GridSampler({}, 5), lambda: LatinHypercubeSampler(0)])
def test_empty_designs_are_refused(make_bad):
    with pytest.raises(rp.StudyError, match="Give"):
        make_bad()


def test_a_latin_hypercube_visits_each_part_of_each_range_once():
    study = rp.create_study(PROBLEM, sampler=LatinHypercubeSampler(10, seed=0))
    space = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
    trials = [study.ask(space) for _ in range(10)]
    for name in space:
        assert sorted(int(10 * t.params[name]) for t in trials) == list(range(10))


def test_an_enqueued_configuration_does_not_cost_the_grid_a_point():
    study = rp.create_study(PROBLEM, sampler=GridSampler({"x": CONTINUOUS["x"]}, 3), safe={"x": 0})
    xs = [study.ask().suggest_float("x", 0, 1) for _ in range(4)]
    assert xs == pytest.approx([0, 0, 0.5, 1])


def test_best_feasible_is_the_cheapest_that_keeps_its_limits_on_validation():
    study = run(RandomSampler(seed=0), CONTINUOUS, n_trials=12)
    feasible = [t for t in study.trials if t.values[0] <= 0.3]
    assert best_feasible(study) == min(feasible, key=lambda t: t.values[1]).params
    assert best_feasible(study, PROBLEM.with_limits(error=1e-6)) is None


def test_practice_spends_its_trials_where_the_limit_allows():
    study = run(ConstrainedSampler(n_startup_trials=POOL, seed=0), CONTINUOUS, n_trials=30)
    feasible = [trial.values[0] <= 0.3 for trial in study.trials]
    assert np.mean(feasible[POOL:]) > np.mean(feasible[:POOL])


def test_practice_proposals_can_come_from_another_sampler():
    sampler = ConstrainedSampler(
        n_startup_trials=2, seed=0, inner=lambda seed: optuna.samplers.RandomSampler(seed=seed)
    )
    study = run(sampler, CONTINUOUS, n_trials=4)
    assert len({t.params["x"] for t in study.trials}) == 4
