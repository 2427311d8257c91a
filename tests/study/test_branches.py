"""Tree-shaped spaces: parameters that exist under a condition, from trials to certificates."""

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import riskpilot as rp
from riskpilot.plots import search_plane
from riskpilot.study import search_so_far
from riskpilot.study.as_tables import study_losses
from riskpilot.study.kept.trials import study_space, trials_of
from riskpilot.study.proposals import best_new_point, unlike_tried
from riskpilot.study.smoothing import smoothed_risks
from riskpilot.study.space import Space, with_numbers
from riskpilot.study.survey import branched_space, survey, with_pending

PROBLEM = rp.Problem([rp.Risk("error", 0.2)], "cost")
SPACE = {
    "depth": IntDistribution(1, 9),
    "model": CategoricalDistribution(["line", "tree", "kernel"]),
    "penalty": FloatDistribution(1e-3, 1e3, log=True),
    "shape": CategoricalDistribution(["round", "sharp"]),
    "share": FloatDistribution(0.0, 1.0),
    "width": FloatDistribution(0.0, 2.0),
}


def suggest(trial):
    """A tree of two levels, and one parameter that every configuration has."""
    trial.suggest_float("share", 0, 1)
    model = trial.suggest_categorical("model", ["line", "tree", "kernel"])
    if model == "tree":
        trial.suggest_int("depth", 1, 9)
    elif model == "kernel":
        trial.suggest_float("penalty", 1e-3, 1e3, log=True)
        if trial.suggest_categorical("shape", ["round", "sharp"]) == "round":
            trial.suggest_float("width", 0, 2)
    return trial.params


def names_in(params):
    """The parameters that the objective asks for in a configuration."""
    names = {"share", "model"}
    names |= {"line": set(), "tree": {"depth"}, "kernel": {"penalty", "shape"}}[params["model"]]
    return names | ({"width"} if params.get("shape") == "round" else set())


def evaluate(trial):
    """The kernel is best where it is round and of width 1; the others are much worse."""
    params = suggest(trial)
    flaw = {"line": 0.6, "tree": 0.5, "kernel": 0.4}[params["model"]]
    if "width" in params:
        flaw = 0.15 + 0.6 * (params["width"] - 1) ** 2
    rng = np.random.default_rng(trial.number)
    losses = [rng.random(2_000) < 0.01 + 0.98 * flaw * params["share"] for _ in range(2)]
    return rp.Evaluation({"error": losses[0], "cost": 1 - params["share"]}, {"error": losses[1]})


def searched(n_trials, **settings):
    study = rp.create_study(PROBLEM, seed=0, safe={"share": 0.0, "model": "line"}, **settings)
    study.optimize(rp.objective(study, evaluate), n_trials=n_trials)
    return study


@pytest.fixture(scope="module")
def study():
    return searched(40)


def random_configs(n, suggest, seed=0):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    configs = []
    for _ in range(n):
        trial = study.ask()
        suggest(trial)
        configs.append(trial.params)
        study.tell(trial, 0.0)
    return configs, study_space(study)


def learned(configs, space):
    flat = Space(space)
    return flat.learned_from(np.array([flat.point(config) for config in configs]))


def test_conditions_are_learned_from_which_trials_have_which_parameters():
    configs, distributions = random_configs(25, suggest)
    assert distributions == SPACE
    space = learned(configs, SPACE)
    made = [space.config(point) for point in space.cover(np.random.default_rng(1))]
    assert len(made) > 1_000
    assert all(config.keys() == names_in(config) for config in made)
    assert {config["model"] for config in made} == {"line", "tree", "kernel"}


def layers(trial):
    for i in range(trial.suggest_int("layers", 1, 4)):
        trial.suggest_int(f"units{i}", 8, 512)


def two_parents(trial):
    inputs = trial.suggest_categorical("inputs", ["words", "vectors"])
    model = trial.suggest_categorical("model", ["line", "network"])
    trial.suggest_int("epochs", 1, 1_000)  # hardly ever repeats, and decides nothing
    if inputs == "vectors":
        trial.suggest_float("size", 0, 1)
    if inputs == "vectors" and model == "network":
        trial.suggest_float("rate", 0, 1)


@pytest.mark.parametrize("suggest", [layers, two_parents])
def test_numbers_and_several_parents_may_decide_what_is_active(suggest):
    configs, distributions = random_configs(30, suggest)
    space = learned(configs, distributions)
    for point in space.cover(np.random.default_rng(0))[::40]:
        config = space.config(point)
        suggested = optuna.trial.FixedTrial({**dict.fromkeys(distributions, 0.5), **config})
        suggest(suggested)
        assert suggested.params.keys() == config.keys()


def test_where_all_trials_have_all_parameters_there_are_no_branches():
    configs = [{"x": 0.1, "y": 0.2}, {"x": 0.5, "y": 0.9}]
    space = dict.fromkeys("xy", FloatDistribution(0.0, 1.0))
    assert learned(configs, space).branches is None


@pytest.mark.parametrize(
    ("configs", "names"),
    [
        ([{"x": 0.1}, {"x": 0.5}, {"x": 0.3, "y": 0.5}], {"x", "y"}),
        ([{"x": 0.1, "y": 0.5}, {"x": 0.5, "y": 0.2}, {"x": 0.3}], {"x"}),
    ],
    ids=["a parameter was added", "a parameter was removed"],
)
def test_an_objective_that_was_changed_goes_on_as_it_was_at_last(configs, names):
    space = learned(configs, dict.fromkeys("xy", FloatDistribution(0.0, 1.0)))
    made = space.cover(np.random.default_rng(0))
    assert {frozenset(space.config(point)) for point in made} == {frozenset(names)}


def test_a_small_tree_is_covered_once():
    space = {"kind": CategoricalDistribution(["a", "b"]), "n": IntDistribution(1, 5)}
    tree = learned([{"kind": "a", "n": 2}, {"kind": "b"}], space)
    made = [tree.config(point) for point in tree.cover(np.random.default_rng(0))]
    assert made == [*({"kind": "a", "n": n} for n in range(1, 6)), {"kind": "b"}]


def test_neighbours_may_lie_in_another_branch_and_are_whole_there():
    configs, _ = random_configs(25, suggest)
    space = learned(configs, SPACE)
    start = space.point({"share": 0.5, "model": "line"})[None]
    moved = [space.config(p) for p in space.near(start, 0.01, 300, np.random.default_rng(0), 3)]
    assert {config["model"] for config in moved} == {"line", "tree", "kernel"}
    assert all(config.keys() == names_in(config) for config in moved)
    assert all(abs(config["share"] - 0.5) < 0.06 for config in moved)


def test_configurations_of_one_branch_differ_in_their_active_parameters_alone():
    space = Space(SPACE)
    at = [
        {"share": 0.5, "model": "tree", "depth": 1},
        {"share": 0.5, "model": "tree", "depth": 9},
        {"share": 0.5, "model": "line"},
        {"share": 0.1, "model": "line"},
    ]
    x = space.encode(np.array([space.point(config) for config in at]))
    assert np.isfinite(x).all()
    assert np.linalg.norm(x[0] - x[1]) == pytest.approx(1.0)
    assert np.linalg.norm(x[2] - x[3]) == pytest.approx(0.4)
    assert np.flatnonzero(x[2] != x[3]).size == 1


def test_a_configuration_that_was_tried_is_not_proposed_again_in_its_branch():
    space = {"kind": CategoricalDistribution(["a", "b"]), "n": IntDistribution(1, 3)}
    tree = learned([{"kind": "a", "n": 2}, {"kind": "b"}], space)
    cover = tree.cover(np.random.default_rng(0))
    left = cover[2]
    tried = cover[(with_numbers(cover) != with_numbers(left)).any(axis=1)]

    def propose(taken):
        rng = np.random.default_rng(0)
        return best_new_point(
            lambda p: np.ones(len(p)), tree, cover, np.ones(len(cover)), taken, rng
        )

    assert tree.config(propose(tried)) == tree.config(left)
    assert propose(cover) is None


def test_proposals_set_every_parameter_of_their_branch(study, monkeypatch):
    drawn = []
    independent = rp.GuidedSampler.sample_independent

    def noting(self, study, trial, name, distribution):
        drawn.append((trial.number, name))
        return independent(self, study, trial, name, distribution)

    monkeypatch.setattr(rp.GuidedSampler, "sample_independent", noting)
    again = searched(40)
    assert [trial.params for trial in again.trials] == [trial.params for trial in study.trials]
    assert {number for number, _ in drawn if number >= 15} == set()


def test_the_search_finds_the_best_branch_and_its_best_place(study):
    late = [trial.params for trial in study.trials[25:]]
    round_kernels = [params for params in late if params.get("shape") == "round"]
    assert len(round_kernels) >= 10
    best = min(
        (trial for trial in study.trials if trial.values[0] < 0.19), key=lambda t: t.values[1]
    )
    assert abs(best.params["width"] - 1) < 0.25


def test_a_branch_that_no_trial_has_seen_is_drawn_as_it_is_asked_for():
    study = rp.create_study(PROBLEM, seed=0)
    for model in ["line", "tree"] * 10:
        study.enqueue_trial({"model": model})
    study.optimize(rp.objective(study, evaluate), n_trials=20)
    study.enqueue_trial({"model": "kernel"})
    study.optimize(rp.objective(study, evaluate), n_trials=1)
    assert study.trials[-1].params.keys() == names_in(study.trials[-1].params)
    study.optimize(rp.objective(study, evaluate), n_trials=10)
    assert all(trial.params.keys() == names_in(trial.params) for trial in study.trials)


def test_a_search_that_is_resumed_goes_on_as_if_it_had_not_been_interrupted(study, tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    searched(20, storage=storage, study_name="tree")
    again = rp.load_study(storage=storage, study_name="tree")
    again.optimize(rp.objective(again, evaluate), n_trials=4)
    assert [t.params for t in again.trials] == [t.params for t in study.trials[:24]]


def test_what_others_try_in_a_branch_is_kept_away_from():
    study = searched(20)
    fitted = surveyed(study)
    study.sampler = optuna.samplers.RandomSampler(seed=0)
    whole = {"share": 0.25, "model": "tree", "depth": 9}
    for config in (whole, {"model": "kernel", "share": 0.5}):  # the second has just begun
        study.enqueue_trial(config)
        trial = study.ask()
        trial.suggest_float("share", 0, 1)
        if trial.suggest_categorical("model", SPACE["model"].choices) == "tree":
            trial.suggest_int("depth", 1, 9)
    known = with_pending(fitted, trials_of(study))
    assert len(known.tried) == len(fitted.tried) + 1
    assert known.space.config(known.tried[-1]) == whole
    assert known.model.observations.pending.shape == (1, fitted.model.observations.x.shape[1])
    assert np.isfinite(known.model.observations.pending).all()


def surveyed(study):
    trials = trials_of(study)
    space = branched_space(trials, study_space(study))
    cover = space.cover(np.random.default_rng(0))
    return survey(trials, PROBLEM, space, cover, study.sampler._region, rp.GUIDED)


def test_workers_at_the_same_time_try_different_configurations():
    study = searched(16)
    trials = [study.ask() for _ in range(8)]
    for trial in trials:
        suggest(trial)
    tried = [repr(sorted(trial.params.items())) for trial in trials]
    assert len(set(tried)) == 8
    assert all(trial.params.keys() == names_in(trial.params) for trial in trials)


def test_the_plan_of_a_tree_is_smoothed_and_its_certificate_can_be_computed_again(study):
    certificate = rp.select(study).certificate
    assert certificate.estimates is not None
    assert list(certificate.space) == sorted(SPACE)
    assert rp.verify(certificate, study=study).ok
    table = study_losses(study)
    again = rp.Certificate.from_json(certificate.to_json())
    assert rp.verify(again, validation=table.validation, calibration=table.calibration).ok


def test_configurations_are_smoothed_within_their_branch():
    rng = np.random.default_rng(0)
    configs = [{"share": 0.5, "model": "line"}] * 10
    configs += [{"share": 0.5, "model": "tree", "depth": 1 + i % 9} for i in range(10)]
    truth = np.repeat([0.1, 0.5], 10)
    losses = {"error": rng.random((20, 2_000)) < truth[:, None], "cost": np.zeros(20)}
    estimates = smoothed_risks(SPACE, configs, rp.losses.validation_losses(PROBLEM, losses))
    np.testing.assert_allclose(estimates[:, 0], truth, atol=0.03)


def test_status_and_pictures_know_a_tree(study, tmp_path):
    ahead = rp.study.study_status(study).outlook
    assert ahead is not None
    assert ahead.chance > 0.5
    outline = study.sampler.snapshot(study, PROBLEM)
    assert outline is not None
    assert sum(outline.pool) == 8
    drawn = {trace.name for trace in search_plane(*search_so_far(study)).data}
    assert {"region of interest", "initial", "proposed", "reference point"} <= drawn
    report = rp.select(study).report(tmp_path / "report.html").read_text()
    assert "smoothed over neighbouring configurations" in report


@pytest.mark.parametrize("seed", range(3))
def test_a_bold_step_in_a_small_tree_leaves_out_what_is_not_active(seed):
    draws = np.random.default_rng(0).random((2, 300)) < 0.05
    study = rp.create_study(rp.Problem([rp.Risk("error", 0.2)], minimize="cost"), seed=seed)

    def evaluate(trial):
        if trial.suggest_categorical("model", ["linear", "trees"]) == "linear":
            cost = trial.suggest_float("penalty", 0, 1)
        else:
            cost = trial.suggest_int("depth", 1, 9) / 9
        return rp.Evaluation({"error": draws[0], "cost": cost}, {"error": draws[1]})

    study.optimize(rp.objective(study, evaluate), n_trials=18)
    assert len(study.trials) == 18


def deep(trial):
    """A tree of three choices, one below the other; each is asked for under the last value."""
    if trial.suggest_categorical("model", ["c", "b", "a"]) != "a":
        return
    if trial.suggest_categorical("kernel", ["y", "z", "x"]) != "x":
        return
    if trial.suggest_categorical("kind", ["u", "v", "w"]) == "w":
        trial.suggest_float("p", 0, 1)


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_every_value_of_a_choice_at_any_depth_is_tried_early(seed):
    """The initial pool alone may leave values out, and nothing known would lead to them."""

    def evaluate_deep(trial):
        share = trial.suggest_float("share", 0, 1)
        deep(trial)
        luck = np.random.default_rng(trial.number).random((2, 500))
        flaw = 0.2 if trial.params["model"] == "a" else 0.1  # the branch looks bad from outside
        return rp.Evaluation(
            {"error": luck[0] < flaw * share, "cost": 1 - share + flaw},
            {"error": luck[1] < flaw * share},
        )

    study = rp.create_study(PROBLEM, seed=seed, safe={"model": "b", "share": 0.0})
    study.optimize(rp.objective(study, evaluate_deep), n_trials=24)
    tried = {value for trial in study.trials for value in trial.params.values()}
    assert tried >= set("abcuvwxyz")
    assert any("p" in trial.params for trial in study.trials)


def test_only_choices_under_a_condition_are_looked_for_unless_all_are_asked_for():
    space = {"model": CategoricalDistribution("abc"), "x": FloatDistribution(0, 1)}
    flat = Space(space)
    assert flat.untried_choices(np.array([[1 / 6, 0.5]])) == {}
    (places,) = flat.untried_choices(np.array([[1 / 6, 0.5]]), everywhere=True).values()
    assert places == pytest.approx([0.5, 5 / 6])
    configs = [{"model": "a", "kernel": "x"}, {"model": "b"}, {"model": "b"}]
    tree = learned(configs, {**space, "kernel": CategoricalDistribution("xyz")})
    points = np.array([tree.point(config) for config in configs])
    (column,) = found = tree.untried_choices(points)
    assert column == list(tree.distributions).index("kernel")
    assert found[column] == pytest.approx([0.5, 5 / 6])


def chain(trial):
    """Five switches, each of which ends the configuration where it is off."""
    for level in range(5):
        if trial.suggest_categorical(f"c{level}", [0, 1]) == 0:
            break
    return trial.params


def switch(trial):
    """A number that exists where a switch is on."""
    if trial.suggest_categorical("on", [False, True]):
        trial.suggest_float("x", 0, 1)
    return trial.params


def levels(trial):
    """A whole number with few values under one of three choices."""
    if trial.suggest_categorical("kind", ["a", "b", "c"]) == "c":
        trial.suggest_int("n", 1, 4)
    return trial.params


def three_levels(trial):
    """Branches that are soon used up, and one that is not: a number below three choices."""
    model = trial.suggest_categorical("model", ["line", "tree", "kernel"])
    if model == "tree" and trial.suggest_categorical("pruned", [False, True]):
        trial.suggest_int("depth", 1, 2)
    if model == "kernel":
        is_round = trial.suggest_categorical("round", [False, True])
        if is_round and trial.suggest_categorical("open", [False, True]):
            trial.suggest_float("width", 0, 1)
    return trial.params


def both_sides(trial):
    """Two branches of several levels, one of which has six configurations."""
    if trial.suggest_categorical("side", ["left", "right"]) == "left":
        if trial.suggest_categorical("kind", ["whole", "choice"]) == "whole":
            trial.suggest_int("n", 1, 3)
        else:
            trial.suggest_categorical("q", [(1, 2), None, "text"])
    elif trial.suggest_categorical("on", [False, True]):
        trial.suggest_float("x", 0, 1)
    return trial.params


@pytest.mark.parametrize(
    ("suggest", "distinct"),
    [(chain, 6), (switch, 7), (levels, 6), (three_levels, 15), (both_sides, 15)],
)
@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
@pytest.mark.parametrize("seed", range(4))
def test_the_initial_pool_repeats_no_configuration_while_there_are_others(suggest, distinct, seed):
    study = rp.create_study(PROBLEM, seed=seed)

    def evaluate(trial):
        suggest(trial)
        losses = np.random.default_rng(trial.number).random((2, 100)) < 0.1
        return rp.Evaluation({"error": losses[0], "cost": 1.0}, {"error": losses[1]})

    study.optimize(rp.objective(study, evaluate), n_trials=distinct)
    tried = [tuple(trial.params.items()) for trial in study.trials]
    assert len(set(tried)) == distinct


def test_a_branch_is_not_used_up_while_a_value_or_a_range_of_it_may_be_new():
    def left(**ranges):
        params = {"side": "left", **{name: dist.low for name, dist in ranges.items()}}
        distributions = {"side": sides, **ranges}
        return optuna.trial.create_trial(params=params, distributions=distributions, value=0.0)

    def drawn(*tried):
        return unlike_tried("left", "side", sides, {}, tried, np.random.default_rng(0))

    sides = CategoricalDistribution(["left", "right"])
    one, two, other = (IntDistribution(low, high) for low, high in ((1, 1), (1, 2), (3, 3)))
    assert drawn() == drawn(left(n=two)) == drawn(left(n=FloatDistribution(0, 1))) == "left"
    assert drawn(left(n=one), left(n=other)) == "left"  # the range changes
    assert drawn(left(n=one), left(m=one)) == "left"  # nobody knows what is asked for
    assert drawn(left(n=one)) == drawn(left()) == "right"
