"""Races: evaluations in blocks that stop where their side is clear, and what is never touched."""

import threading

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import riskpilot as rp
from riskpilot.study import study_status
from riskpilot.study.kept.stopped import COURSE_KEY, STOPPED_KEY, stopped_of

PROBLEM = rp.Problem([rp.Risk("error", 0.2)], minimize="cost")
K = 1_000
RNG = np.random.default_rng(0)
LUCK, TURN = RNG.random((2, K)), RNG.normal(scale=0.3, size=(2, K))
BLOCK = 100


def errors(x, luck=LUCK):
    return (luck + TURN * x) % 1.0 < 0.02 + 0.48 * x


def race(trial, *, closed=None, luck=LUCK, cost=lambda x, rows: np.full(len(rows), 1 - x)):
    """Yield blocks of losses at x; the risk is 0.02 + 0.48 x, the cost 1 - x."""
    x = trial.suggest_float("x", 0, 1)
    lost = errors(x, luck)
    try:
        for rows in np.split(np.arange(K), K // BLOCK):
            yield {"error": lost[0, rows], "cost": cost(x, rows)}
    finally:
        if closed is not None:
            closed.append(trial.number)
    return {"error": lost[1]}


def raced(n_trials=12, problem=PROBLEM, evaluate=race, **settings):
    study = rp.create_study(problem, seed=0, safe={"x": 0.0}, **settings)
    study.optimize(rp.objective(study, evaluate), n_trials=n_trials)
    return study


def states(study):
    return [trial.state for trial in study.trials]


def test_a_trial_whose_side_is_clear_is_stopped_and_a_promising_one_is_evaluated_in_full():
    study, closed = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0}), []
    for x in (0.2, 0.9, 0.1):
        study.enqueue_trial({"x": x})
    study.optimize(rp.objective(study, lambda trial: race(trial, closed=closed)), n_trials=4)
    _, good, risky, dear = study.trials
    assert [t.state.name for t in study.trials] == ["COMPLETE", "COMPLETE", "PRUNED", "PRUNED"]
    assert closed == [0, 1, 2, 3]  # a stopped generator is closed: its `finally` has run
    for trial in (risky, dear):
        stopped = stopped_of(trial)
        assert stopped.n_evaluated < stopped.n_examples == K
        truth = [0.02 + 0.48 * trial.params["x"], 1 - trial.params["x"]]
        assert (np.abs(np.subtract(stopped.values, truth)) <= 3 * np.array(stopped.errors)).all()
    assert good.values[0] == errors(0.2)[0].mean()


def test_a_stopped_trial_is_never_a_candidate():
    study = raced()
    assert TrialState.PRUNED in states(study)
    complete = {t.number for t in study.trials if t.state == TrialState.COMPLETE}
    selection = rp.select(study)
    considered = selection.certificate.trials  # runs of numbers
    assert {n for first, last in considered for n in range(first, last + 1)} == complete
    assert selection.config in [study.trials[number].params for number in complete]
    assert rp.verify(selection.certificate, study=study).ok


def test_calibration_losses_have_no_say_in_what_is_stopped():
    other = np.stack([LUCK[0], 1 - LUCK[1] / 2])
    one, two = raced(), raced(evaluate=lambda trial: race(trial, luck=other))
    assert states(one) == states(two)
    assert [t.params for t in one.trials] == [t.params for t in two.trials]


def test_the_search_learns_from_stopped_trials_as_much_as_they_show():
    study = raced(15)
    tried = [t.params["x"] for t in study.trials]
    assert min(np.diff(sorted(tried))) > 1e-4  # nothing is tried twice
    assert study.trials[study.sampler.outlook(study).trial].state == TrialState.COMPLETE
    chosen = rp.select(study).config["x"]
    whole = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0})

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation({"error": errors(x)[0], "cost": 1 - x}, {"error": errors(x)[1]})

    whole.optimize(rp.objective(whole, evaluate), n_trials=15)
    assert chosen == pytest.approx(rp.select(whole).config["x"], abs=0.03)


@pytest.mark.parametrize(
    "cost", [lambda x, rows: 1 - x, lambda x, rows: 1 - x + 1 / (rows[-1] + 1)]
)
def test_a_free_objective_may_be_a_number_that_settles_as_examples_are_seen(cost):
    study = raced(20, evaluate=lambda trial: race(trial, cost=cost))
    complete = [t for t in study.trials if t.state == TrialState.COMPLETE]
    assert 4 <= len(complete) < 20
    assert [n for n, _ in complete[0].user_attrs[COURSE_KEY]] == list(range(BLOCK, K + 1, BLOCK))
    assert complete[0].values[1] == pytest.approx(cost(0.0, [K - 1]))


def test_what_is_known_at_the_end_alone_may_be_returned_and_is_never_stopped():
    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        for rows in np.split(np.arange(K), 4):
            yield {"error": errors(x)[0, rows]}
        return rp.Evaluation({"cost": 1 - x}, {"error": errors(x)[1]})

    study = raced(6, evaluate=evaluate)
    assert set(states(study)) == {TrialState.COMPLETE}
    assert study.trials[0].values == [errors(0.0)[0].mean(), 1.0]


@pytest.mark.parametrize(
    "risk",
    [
        rp.Risk("error", 0.2, statistic=rp.WorstGroup()),
        rp.Risk("error", 0.2, statistic=rp.CVaR(0.9)),
        rp.Risk("error", 0.2, weights="w", largest_weight=2.0),
        rp.Risk("error"),
        rp.Risk("error", 1e-4),  # nothing can pass with so few examples
    ],
)
def test_what_cannot_be_judged_on_some_examples_is_evaluated_in_full(risk):
    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        beside = {"groups": np.arange(K) % 2, "w": np.ones(K)}
        names = {name: beside[name] for name in rp.Problem([risk], "cost").beside}
        for rows in np.split(np.arange(K), 4):
            block = {name: values[rows] for name, values in names.items()}
            yield {"error": errors(x)[0, rows], "cost": 1 - x, **block}
        return {"error": errors(x)[1], **names}

    study = raced(5, rp.Problem([risk], "cost"), evaluate)
    assert set(states(study)) == {TrialState.COMPLETE}


def test_nothing_is_stopped_where_the_first_examples_are_not_like_the_others():
    in_order = np.sort(LUCK, axis=1)[:, ::-1]  # those that are lost come last

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        lost = in_order < 0.5 * x
        for rows in np.split(np.arange(K), 10):
            yield {"error": lost[0, rows], "cost": 1 - x}
        return {"error": lost[1]}

    study = rp.create_study(PROBLEM, seed=0)
    for x in (0.5, 0.9, 0.05):
        study.enqueue_trial({"x": x})
    study.optimize(rp.objective(study, evaluate), n_trials=3)
    assert set(states(study)) == {TrialState.COMPLETE}


def test_a_trial_that_a_dead_worker_had_stopped_is_not_evaluated_again():
    study = raced()
    stopped = next(t for t in study.trials if t.state == TrialState.PRUNED)
    attributes = {STOPPED_KEY: stopped.user_attrs[STOPPED_KEY]}
    study.enqueue_trial(stopped.params, user_attrs=attributes)
    study.optimize(rp.objective(study, lambda trial: pytest.fail("evaluated")), n_trials=1)
    assert study.trials[-1].state == TrialState.PRUNED


def test_status_says_what_was_saved():
    study = raced()
    stopped = [stopped_of(t) for t in study.trials if t.state == TrialState.PRUNED]
    saved = sum(K - each.n_evaluated for each in stopped) / (K * len(study.trials))
    found = study_status(study).racing
    assert (found.stopped, found.saved) == (len(stopped), pytest.approx(saved))
    assert study_status(raced(1)).racing is None


def blocks(*found, returned=None):
    def evaluate(trial):
        trial.suggest_float("x", 0, 1)
        yield from found
        return returned

    return evaluate


LOST = {"error": LUCK[0, :500] < 0.1, "cost": 1.0}


@pytest.mark.parametrize(
    ("evaluate", "said"),
    [
        (blocks([0.1, 0.2]), "A generator yields mappings"),
        (blocks(LOST, {"error": LOST["error"]}), "under the same names"),
        (blocks({"error": [1, 0], "cost": [1.0]}), "one loss per example"),
        (blocks({"cost": 1.0}), "one loss per example"),
        (blocks({"error": 1.0, "cost": 1.0}), "one number per example"),
        (blocks({"error": [[1], 0], "cost": 1.0}), "rectangle"),
        (blocks({"error": np.ma.masked_equal([1, 0], 0), "cost": 1.0}), "are masked"),
        (blocks({**LOST, "cost": "cheap"}), "'cost' is a number, or one number per example"),
        (blocks(LOST, LOST, returned=[0, 1]), "returned a list"),
        (blocks(LOST, LOST, LOST), "have 1,500 so far where the first trial had 1,000"),
        (blocks(LOST), "this one has 500 where the first had 1,000"),
        (blocks(), "at least one block of losses, but that of trial 1 ended before"),
        (blocks(returned=LOST), "at least one block of losses"),
        (
            blocks(LOST, LOST, returned=rp.Evaluation({}, LOST, judge={})),
            "Scores of a judge come with an evaluation that is returned whole",
        ),
    ],
)
def test_blocks_that_do_not_go_together_are_refused(evaluate, said):
    study = raced(1)
    with pytest.raises(rp.LossError, match=said):
        study.optimize(rp.objective(study, evaluate), n_trials=1)
    assert states(study)[-1] == TrialState.FAIL


def test_the_time_limit_is_that_of_all_blocks_together():
    never = threading.Event()

    def evaluate(trial):
        trial.suggest_float("x", 0, 1)
        yield LOST
        never.wait(60)
        yield LOST

    study = rp.create_study(PROBLEM)
    run = rp.objective(study, evaluate, on_error="record", time_limit=0.2)
    study.optimize(run, n_trials=1)
    never.set()
    assert "may take 0.2 seconds" in study.trials[0].user_attrs["riskpilot:error"]


def test_the_time_limit_ends_a_generator_whose_every_step_is_short():
    closed = []

    def evaluate(trial):
        trial.suggest_float("x", 0, 1)
        try:
            for _ in range(100_000):  # for ever, but for a test that fails
                yield LOST
        finally:
            closed.append(trial.number)

    study = rp.create_study(PROBLEM)
    run = rp.objective(study, evaluate, on_error="record", time_limit=0.05)
    study.optimize(run, n_trials=1)
    assert "may take 0.05 seconds" in study.trials[0].user_attrs["riskpilot:error"]
    assert closed == [0]


def stubborn(trial):
    """Yield on after it was stopped."""
    try:
        yield from race(trial)
    except GeneratorExit:
        yield LOST


def unclean(trial):
    """Raise when it is closed."""
    try:
        yield from race(trial)
    finally:
        raise OSError("the cleaning up")


@pytest.mark.parametrize(
    ("evaluate", "error", "said"),
    [
        (stubborn, rp.StudyError, r"comes to its end, but that of trial 1 yielded once more\. Let"),
        (unclean, OSError, "the cleaning up"),
    ],
)
def test_a_generator_that_does_not_end_well_when_it_is_stopped_fails_its_trial(
    evaluate, error, said
):
    study = raced(1)
    study.enqueue_trial({"x": 0.9})  # which is stopped
    with pytest.raises(error, match=said):
        study.optimize(rp.objective(study, evaluate), n_trials=1)
    assert states(study)[-1] == TrialState.FAIL
    study.optimize(rp.objective(study, race), n_trials=2)  # and the study goes on


def test_an_error_while_a_generator_is_closed_does_not_hide_what_was_wrong_before():
    def evaluate(trial):
        try:
            yield [0.1, 0.2]
        finally:
            raise OSError("the cleaning up")

    with pytest.raises(rp.LossError, match="A generator yields mappings") as caught:
        raced(1, evaluate=evaluate)
    assert "the cleaning up" in caught.value.__notes__[0]


def test_a_trial_that_names_its_parameters_late_is_evaluated_in_full():
    def late(trial):
        lost = errors(0.9)
        yield {"error": lost[0, :500], "cost": 1.0}
        trial.suggest_float("x", 0, 1)
        yield {"error": lost[0, 500:], "cost": 1.0}
        return {"error": lost[1]}

    study = raced(4)
    study.optimize(rp.objective(study, late), n_trials=4)
    assert states(study)[4:] == [TrialState.COMPLETE] * 4
    assert all(trial.params for trial in study.trials)


@pytest.mark.filterwarnings("error")
def test_an_evaluation_that_nobody_awaits_is_named():
    async def whole(trial):
        return rp.Evaluation(LOST)

    async def in_blocks(trial):
        yield LOST

    for evaluate in (whole, in_blocks):
        study = rp.create_study(PROBLEM)
        with pytest.raises(rp.LossError, match=r"must be an Evaluation.* async def, and asyncio"):
            study.optimize(rp.objective(study, evaluate), n_trials=1)


def test_an_error_inside_a_generator_fails_its_trial():
    def evaluate(trial):
        yield LOST
        raise OSError("the disk is full")

    study = rp.create_study(PROBLEM)
    study.optimize(rp.objective(study, evaluate, on_error="record"), n_trials=1)
    assert "the disk is full" in study.trials[0].user_attrs["riskpilot:error"]


def test_a_race_with_more_trials_than_are_fitted_is_searched_on():
    study = raced(12)
    others = [t for t in study.trials if t.number != 11]
    space = rp.study.Space(study.trials[0].distributions)
    cover = space.cover(np.random.default_rng(0))
    fitted = study.sampler._survey(study, others, PROBLEM, space, cover, most=6)
    assert len(fitted.model.observations.x) == 6
    assert len(fitted.tried) == 11


@pytest.mark.parametrize("n_studies", [60, pytest.param(600, marks=pytest.mark.long)])
def test_false_certificates_stay_below_delta_with_races(n_studies):
    """Every configuration has a risk just above its limit; whatever is certified is false."""
    rng = np.random.default_rng(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    k, limit, wrong, stopped = 120, 0.2, 0, 0
    problem = rp.Problem([rp.Risk("error", limit)], "cost", delta=0.1)
    for seed in range(n_studies):
        losses = rng.random((2, 8, k)) < limit + 1e-9

        def evaluate(trial, losses=losses):
            x = trial.suggest_int("x", 0, 7)
            for rows in np.split(np.arange(k), 4):
                yield {"error": losses[0, x, rows], "cost": float(8 - x)}
            return {"error": losses[1, x]}

        study = rp.create_study(problem, sampler=optuna.samplers.RandomSampler(seed=seed))
        study.optimize(rp.objective(study, evaluate), n_trials=6)
        stopped += sum(state == TrialState.PRUNED for state in states(study))
        wrong += rp.select(study).config is not None
    assert stopped > n_studies  # races were run
    assert wrong / n_studies <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / n_studies)


def test_safe_trials_are_finished_where_the_first_whole_ones_break_the_limit():
    study = rp.create_study(PROBLEM, seed=0)
    for x in (0.9, 0.8, 0.1, 0.2):
        study.enqueue_trial({"x": x})
    study.optimize(rp.objective(study, race), n_trials=4)
    assert study.trials[2].state == TrialState.COMPLETE  # it costs most, and alone may pass
    assert rp.select(study).config is not None


def test_a_generator_may_fill_one_array_again_and_again():
    def evaluate(trial):
        x, buffer = trial.suggest_float("x", 0, 1), np.empty(BLOCK, dtype=bool)
        for rows in np.split(np.arange(K), K // BLOCK):
            buffer[:] = errors(x)[0, rows]
            yield {"error": buffer, "cost": 1 - x}
        return {"error": errors(x)[1]}

    (trial,) = raced(1, evaluate=evaluate).trials
    assert trial.values[0] == errors(0.0)[0].mean()


@pytest.mark.parametrize(
    ("costs", "returned", "says"),
    [
        ([np.ones(500), 1.0], None, "yields both"),
        ([1.0, np.ones(500)], None, "yields both"),
        ([1.0, 1.0], rp.Evaluation({"error": np.zeros(1_000)}), "not returned again"),
    ],
)
def test_a_generator_says_one_thing(costs, returned, says):
    def evaluate(trial):
        trial.suggest_float("x", 0, 1)
        for cost in costs:
            yield {"error": np.zeros(500), "cost": cost}
        return returned

    with pytest.raises(rp.LossError, match=says):
        raced(1, evaluate=evaluate)
