"""What every search strategy must do, whatever the space and whatever happens to its trials."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState

import riskpilot as rp

STRATEGIES = {"GUIDED": rp.GUIDED, "PAPER": rp.PAPER, "ONE_SIDED": rp.ONE_SIDED, "HVI": rp.HVI}

FLOAT = FloatDistribution(-1.0, 2.0)
LOG = FloatDistribution(1e-4, 10.0, log=True)
STEP = FloatDistribution(0.0, 1.0, step=0.25)
INT = IntDistribution(2, 9)
LOG_INT = IntDistribution(1, 1000, log=True)
STEP_INT = IntDistribution(0, 100, step=10)
CHOICE = CategoricalDistribution(["a", "b", None])

SPACES = {
    "float": {"x": FLOAT},
    "log float": {"x": LOG},
    "step float": {"x": STEP},
    "int": {"x": INT},
    "log int": {"x": LOG_INT},
    "step int": {"x": STEP_INT},
    "choice": {"x": CHOICE},
    "one value": {"x": FLOAT, "y": IntDistribution(3, 3)},
    "two floats": {"x": FLOAT, "y": LOG},
    "float and choice": {"x": FLOAT, "y": CHOICE},
    "three mixed": {"x": LOG, "y": INT, "z": CHOICE},
    "four mixed": {"w": FLOAT, "x": LOG_INT, "y": STEP, "z": CHOICE},
}


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    return STRATEGIES[request.param]


def suggest(trial, space):
    for name, d in space.items():
        if isinstance(d, CategoricalDistribution):
            trial.suggest_categorical(name, d.choices)
        elif isinstance(d, IntDistribution):
            trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
        else:
            trial.suggest_float(name, d.low, d.high, step=d.step, log=d.log)
    return trial.params


def unit(space, params):
    """A rough place in [0, 1] for each parameter."""
    places = []
    for name, d in space.items():
        if isinstance(d, CategoricalDistribution):
            places.append(d.choices.index(params[name]) / len(d.choices))
        elif d.log:
            places.append(math.log(params[name] / d.low) / math.log(d.high / d.low))
        else:
            places.append((params[name] - d.low) / max(d.high - d.low, 1e-12))
    return places


def losses_of(risk, m, rng):
    return {"error": rng.random(m) < risk}


def evaluate_in(space, risk_of=None, cost_of=None, m=200):
    """Error grows and cost falls along the mean of the parameters, unless told otherwise."""

    def evaluate(trial):
        t = float(np.mean(unit(space, suggest(trial, space))))
        rng = np.random.default_rng(trial.number)
        risk = 0.02 + 0.4 * t if risk_of is None else risk_of(t)
        cost = 1 - t if cost_of is None else cost_of(t)
        return rp.Evaluation(
            {**losses_of(risk, m, rng), "cost": cost}, calibration=losses_of(risk, m, rng)
        )

    return evaluate


def make_study(strategy, *, limit=0.25, seed=0, n_startup_trials=None, **kwargs):
    problem = rp.Problem([rp.Risk("error", limit)], "cost")
    sampler = rp.GuidedSampler(
        problem, seed=seed, strategy=strategy, n_startup_trials=n_startup_trials
    )
    return rp.create_study(problem, seed=seed, sampler=sampler, **kwargs)


def run(study, evaluate, n_trials):
    study.optimize(rp.objective(study, evaluate), n_trials=n_trials)
    return [trial.params for trial in study.trials]


@pytest.mark.parametrize("name", SPACES)
def test_every_proposal_lies_in_the_space(strategy, name):
    space = SPACES[name]
    study = make_study(strategy, n_startup_trials=4)
    for params in run(study, evaluate_in(space), 7):
        assert params.keys() == space.keys()
        for key, d in space.items():
            assert d._contains(d.to_internal_repr(params[key]))


@pytest.mark.parametrize("name", ["float", "float and choice", "four mixed"])
def test_the_same_seed_makes_the_same_proposals(strategy, name):
    space = SPACES[name]
    one, two, other = (
        run(make_study(strategy, seed=seed, n_startup_trials=4), evaluate_in(space), 7)
        for seed in (1, 1, 2)
    )
    assert one == two
    assert one != other


@pytest.mark.parametrize("name", ["float", "three mixed"])
def test_a_resumed_search_goes_on_as_if_it_had_not_stopped(strategy, name, tmp_path):
    space = SPACES[name]
    whole = run(make_study(strategy, n_startup_trials=4), evaluate_in(space), 8)
    url = f"sqlite:///{tmp_path}/study.db"
    problem = rp.Problem([rp.Risk("error", 0.25)], "cost")
    parts = None
    for n_trials in (3, 3, 2):  # stopped in the pool, and after it
        sampler = rp.GuidedSampler(problem, seed=0, strategy=strategy, n_startup_trials=4)
        study = rp.create_study(
            problem, storage=url, study_name="s", sampler=sampler, seed=0, load_if_exists=True
        )
        parts = run(study, evaluate_in(space), n_trials)
    assert parts == whole


@pytest.mark.parametrize("constant", ["risk", "cost", "both"])
def test_constant_objectives_are_searched_without_complaint(strategy, constant):
    study = make_study(strategy, n_startup_trials=4)
    evaluate = evaluate_in(
        SPACES["two floats"],
        risk_of=(lambda t: 0.0) if constant != "cost" else None,
        cost_of=(lambda t: 3.0) if constant != "risk" else None,
    )
    params = run(study, evaluate, 9)
    assert len({tuple(p.values()) for p in params}) == 9


def test_failed_trials_are_left_out_and_the_search_goes_on(strategy):
    space = SPACES["float"]
    inner = evaluate_in(space)

    def evaluate(trial):
        if trial.number % 3 == 1:
            suggest(trial, space)
            raise RuntimeError("no luck")
        return inner(trial)

    study = make_study(strategy, n_startup_trials=4)
    study.optimize(rp.objective(study, evaluate), n_trials=10, catch=(RuntimeError,))
    states = [trial.state for trial in study.trials]
    assert states.count(TrialState.FAIL) == 3
    assert states.count(TrialState.COMPLETE) == 7
    assert "no luck" in study.trials[1].user_attrs["riskpilot:error"]


def test_a_search_whose_whole_pool_failed_goes_on(strategy):
    space = SPACES["float"]
    inner = evaluate_in(space)

    def evaluate(trial):
        if trial.number < 5:
            raise RuntimeError("not yet")
        return inner(trial)

    study = make_study(strategy, n_startup_trials=4)
    study.optimize(rp.objective(study, evaluate), n_trials=10, catch=(RuntimeError,))
    assert [t.state for t in study.trials[5:]] == [TrialState.COMPLETE] * 5


@pytest.mark.parametrize("name", ["float", "float and choice"])
def test_points_under_way_are_not_proposed_again(strategy, name):
    space = SPACES[name]
    study = make_study(strategy, n_startup_trials=4)
    run(study, evaluate_in(space), 6)
    pending = [dict(suggest(study.ask(), space)) for _ in range(4)]
    everything = [t.params for t in study.trials]
    assert len(everything) == 10
    assert pending == everything[6:]
    assert len({tuple(params.values()) for params in everything}) == 10


def test_points_that_were_evaluated_are_not_proposed_again(strategy):
    space = SPACES["float"]
    params = run(make_study(strategy, n_startup_trials=4), evaluate_in(space), 16)
    x = np.sort([p["x"] for p in params[4:]])
    assert np.diff(x).min() > 1e-4


@pytest.mark.parametrize("name", ["step float", "choice", "int"])
def test_a_small_space_is_covered_before_anything_repeats_and_then_goes_on(strategy, name):
    space = SPACES[name]
    size = {"step float": 5, "choice": 3, "int": 8}[name]
    study = make_study(strategy, n_startup_trials=2)
    params = run(study, evaluate_in(space), 2 + size + 3)
    assert len({p["x"] for p in params[: 2 + size]}) == size
    assert len(params) == size + 5


def test_nothing_overly_safe_is_needed_for_a_proposal(strategy):
    # R_low is empty: every risk lies above the region's lower edge.
    study = make_study(strategy, n_startup_trials=4)
    evaluate = evaluate_in(SPACES["float"], risk_of=lambda t: 0.24 + 0.1 * t)
    assert len(run(study, evaluate, 8)) == 8


def test_a_flat_acquisition_still_gives_new_points(strategy):
    # The best of everything is known at once: nothing can improve on it.
    study = make_study(strategy, n_startup_trials=4)
    evaluate = evaluate_in(SPACES["float"], risk_of=lambda t: 0.0, cost_of=lambda t: t)
    params = run(study, evaluate, 10)
    assert len({p["x"] for p in params}) == 10


def test_a_limit_that_nothing_can_keep_is_searched_and_certifies_nothing(strategy):
    study = make_study(strategy, limit=0.001, n_startup_trials=4)
    assert len(run(study, evaluate_in(SPACES["float"]), 7)) == 7
    assert rp.select(study).config is None


def test_an_open_limit_is_searched_and_selection_waits_for_it(strategy):
    study = make_study(strategy, limit=None, n_startup_trials=4)
    assert len(run(study, evaluate_in(SPACES["float"]), 7)) == 7
    with pytest.raises(rp.ProblemError, match="still open"):
        rp.select(study)
    rp.set_limits(study, error=0.6)
    run(study, evaluate_in(SPACES["float"]), 2)
    assert rp.select(study).config is not None


def test_parameters_that_depend_on_a_choice_are_handled(strategy):
    def evaluate(trial):
        kind = trial.suggest_categorical("kind", ["linear", "tree"])
        if kind == "linear":
            t = trial.suggest_float("penalty", 0, 1)
        else:
            t = trial.suggest_int("depth", 1, 8) / 8
        rng = np.random.default_rng(trial.number)
        return rp.Evaluation(
            {**losses_of(0.4 * t, 100, rng), "cost": 1 - t}, losses_of(0.4 * t, 100, rng)
        )

    study = make_study(strategy, n_startup_trials=4)
    run(study, evaluate, 12)
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 12
    rp.select(study)


def test_a_study_without_any_parameter_can_be_selected_from(strategy):
    rng = np.random.default_rng(0)
    study = make_study(strategy)
    run(
        study,
        lambda t: rp.Evaluation(
            {**losses_of(0.1, 200, rng), "cost": 1.0}, losses_of(0.1, 200, rng)
        ),
        4,
    )
    assert rp.select(study).config == {}


def test_the_safe_configuration_is_evaluated_first(strategy):
    space = SPACES["two floats"]
    study = make_study(strategy, safe={"x": 0.125, "y": 0.5}, n_startup_trials=4)
    params = run(study, evaluate_in(space), 3)
    assert params[0] == {"x": 0.125, "y": 0.5}
    assert params[1] != params[0]


def test_two_risks_are_searched_and_selected(strategy):
    problem = rp.Problem([rp.Risk("error", 0.75), rp.Risk("miss", 0.75)], "cost")
    sampler = rp.GuidedSampler(problem, seed=0, strategy=strategy, n_startup_trials=4)
    study = rp.create_study(problem, sampler=sampler)

    def evaluate(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        rng = np.random.default_rng(trial.number)
        parts = [
            {"error": rng.random(200) < 0.6 * x, "miss": rng.random(200) < 0.6 * y}
            for _ in range(2)
        ]
        return rp.Evaluation({**parts[0], "cost": 2 - x - y}, parts[1])

    assert len({tuple(p.values()) for p in run(study, evaluate, 9)}) == 9
    assert rp.select(study).config is not None


def test_proposals_never_depend_on_calibration_losses(strategy):
    space = SPACES["two floats"]
    inner = evaluate_in(space)

    def other_calibration(trial):
        return rp.Evaluation(inner(trial).validation, {"error": np.ones(200, dtype=bool)})

    one = run(make_study(strategy, n_startup_trials=4), inner, 8)
    assert run(make_study(strategy, n_startup_trials=4), other_calibration, 8) == one


def test_the_guided_search_looks_where_the_test_is_decided():
    """Against plain random search it puts more of its proposals into the region of interest."""
    space = SPACES["float"]
    shares = []
    for sampler in (None, optuna.samplers.RandomSampler(seed=0)):
        problem = rp.Problem([rp.Risk("error", 0.15)], "cost")
        study = rp.create_study(problem, sampler=sampler, seed=0)
        run(study, evaluate_in(space, m=2000), 15)
        errors = np.array([trial.values[0] for trial in study.trials[5:]])
        shares.append(((errors > 0.10) & (errors < 0.17)).mean())
    assert shares[0] > 2 * shares[1]
