"""Races that end an evaluation because enough is known of it: a candidate on fewer examples."""

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import riskpilot as rp
from riskpilot.errors import LeakageError, StudyError
from riskpilot.study import study_status
from riskpilot.study.kept.foretold import FORETOLD_KEY, foretold_of
from riskpilot.study.kept.trial_losses import read_validation
from riskpilot.study.rivals import Rivals, rivals_of

PROBLEM = rp.Problem([rp.Risk("error", 0.2)], minimize="cost")
K, BLOCK = 2_000, 100
RNG = np.random.default_rng(0)
LUCK, TURN = RNG.random((2, K)), RNG.normal(scale=0.05, size=(2, K))


def errors(x, luck=LUCK):
    return (luck + TURN * x) % 1.0 < 0.02 + 0.48 * x


def race(trial, *, more=0, luck=LUCK, heeds=True):
    """Yield blocks until enough is known, and ``more`` blocks after that."""
    x = trial.suggest_float("x", 0, 1)
    lost, left = errors(x, luck), None
    for rows in np.split(np.arange(K), K // BLOCK):
        enough = yield {"error": lost[0, rows], "cost": 1 - x}
        if enough and heeds:
            left = more if left is None else left - 1
        if left == 0:
            break
    return {"error": lost[1]}


def raced(n_trials=12, evaluate=race, problem=PROBLEM, **settings):
    study = rp.create_study(problem, seed=0, safe={"x": 0.0}, **settings)
    study.optimize(rp.objective(study, evaluate), n_trials=n_trials)
    return study


def ended(study):
    return [t for t in study.trials if t.state == TrialState.COMPLETE and foretold_of(t)]


def test_what_is_promising_ends_when_enough_is_known_and_is_a_candidate(tmp_path):
    study = raced()
    assert len(ended(study)) >= 4
    for trial in ended(study):
        note = foretold_of(trial)
        assert note.n_evaluated < note.n_examples == K
        truth = errors(trial.params["x"])[0].mean()
        assert abs(note.values[0] - truth) <= 4 * note.errors[0]
        # What is tested in which order goes by a risk that is half a standard error above it.
        assert trial.values[0] == pytest.approx(note.values[0] + note.errors[0] / 2, abs=1 / K)
        kept = np.asarray(read_validation(study, PROBLEM, trial)["error"])[0]
        assert (kept[: note.n_evaluated] == errors(trial.params["x"])[0, : note.n_evaluated]).all()
        assert kept.shape == (K,)
    selection = rp.select(study)
    assert any(trial.params in selection.valid for trial in ended(study))
    complete = [t for t in study.trials if t.state == TrialState.COMPLETE]
    assert len(complete) < len(study.trials)  # the others were stopped
    said = (
        f"Of {len(complete)} configurations that were considered, races ended the evaluation of "
        f"{len(ended(study))} when"
    )
    assert said in selection.message
    assert said in selection.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert rp.verify(selection.certificate, study=study).ok


def test_fewer_examples_lead_to_about_the_same_choice():
    whole = raced(evaluate=lambda trial: race(trial, heeds=False))
    assert not ended(whole)
    assert "races ended" not in rp.select(whole).message
    short = raced()
    apart = rp.select(whole).config["x"] - rp.select(short).config["x"]
    assert abs(apart) < 0.05
    assert study_status(short).racing.saved > study_status(whole).racing.saved + 0.2


def test_calibration_losses_have_no_say_in_what_is_ended():
    other = np.stack([LUCK[0], 1 - LUCK[1] / 2])
    one, two = raced(), raced(evaluate=lambda trial: race(trial, luck=other))
    assert [t.user_attrs.get(FORETOLD_KEY) for t in one.trials] == [
        t.user_attrs.get(FORETOLD_KEY) for t in two.trials
    ]
    assert [t.params for t in one.trials] == [t.params for t in two.trials]


def test_a_generator_may_end_at_a_later_block():
    study = raced(evaluate=lambda trial: race(trial, more=2))
    first = ended(raced())[0]
    later = ended(study)[0]
    assert later.params == first.params
    kept = np.asarray(read_validation(study, PROBLEM, later)["error"])[0]
    n = foretold_of(first).n_evaluated + 2 * BLOCK
    assert (kept[:n] == errors(later.params["x"])[0, :n]).all()


@pytest.mark.parametrize("of_examples", [True, False])
def test_what_is_foretold_is_of_all_blocks_also_where_the_last_one_is_less_clear(
    of_examples, monkeypatch
):
    """Half a block comes behind the one after which enough was known, and its side is not clear.

    Neighbours have had no free objective that is a number after so many examples.
    """
    judged, half, given = Rivals.judged, BLOCK // 2, {}

    def after_whole_blocks(rivals, seen, free):
        return None if seen.n_examples % BLOCK else judged(rivals, seen, free)

    monkeypatch.setattr(Rivals, "judged", after_whole_blocks)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        lost = errors(x)

        def block(rows):
            return {"error": rows, "cost": np.full(len(rows), 1 - x) if of_examples else 1 - x}

        for n in range(BLOCK, K + 1, BLOCK):
            given[trial.number] = n
            if (yield block(lost[0, n - BLOCK : n])):
                given[trial.number] = n + half
                yield block(~lost[0, n : n + half])
                break
        return {"error": lost[1]}

    study = raced(evaluate=evaluate)
    assert len(ended(study)) >= 2
    for trial in ended(study):
        note = foretold_of(trial)
        assert note.n_evaluated == given[trial.number]
        assert np.isfinite(note.errors).all()
        assert trial.values[0] == pytest.approx(note.values[0] + note.errors[0] / 2, abs=1 / K)
        assert trial.values[1] == pytest.approx(note.values[1])
    complete = [t for t in study.trials if t.state == TrialState.COMPLETE]
    evaluated = {row: given[t.number] for row, t in enumerate(complete) if foretold_of(t)}
    selection = rp.select(study)
    assert selection.certificate.evaluated == evaluated
    assert rp.verify(selection.certificate, study=study).ok


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e9, 1e14])
def test_one_whole_evaluation_stops_nothing_whatever_the_free_objective_is_measured_in(scale):
    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        for rows in np.split(np.arange(K), K // BLOCK):
            if (yield {"error": errors(x)[0, rows], "cost": scale * (1.5 - x)}):
                break
        return {"error": errors(x)[1]}

    assert rp.select(raced(evaluate=evaluate)).config["x"] > 0.2


@pytest.mark.parametrize("penalty", [1e3, 1e30])
def test_penalties_that_are_likely_to_pass_do_not_stop_what_is_better(penalty):
    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        for rows in np.split(np.arange(K), K // BLOCK):
            yield {"error": errors(x)[0, rows], "cost": penalty if x > 0.25 else 1 - x}
        return {"error": errors(x)[1]}

    study = rp.create_study(PROBLEM, seed=0, safe={"x": 0.0})
    for x in (0.3, 0.29, 0.1, 0.2, 0.4):
        study.enqueue_trial({"x": x})
    study.optimize(rp.objective(study, evaluate), n_trials=6)
    assert [t.number for t in study.trials if t.state == TrialState.PRUNED] == [2, 5]
    assert rp.select(study).config == {"x": 0.2}


def test_examples_that_a_race_evaluated_are_not_fresh_ones():
    study = raced()
    trial = ended(study)[0]
    losses = {"error": errors(trial.params["x"])[0]}
    with pytest.raises(LeakageError, match="not have been seen"):
        rp.recertify(study, {trial.number: losses}, trial=trial.number)
    fresh = RNG.random(K) < 0.05
    selection = rp.recertify(study, {trial.number: {"error": fresh}}, trial=trial.number)
    assert selection.config == trial.params
    said = "Of 1 configuration that was considered, races ended the evaluation of 1 when enough"
    assert said in selection.message


def test_a_generator_that_ends_before_enough_is_known_is_refused():
    def hasty(trial):
        x = trial.suggest_float("x", 0, 1)
        n = K if trial.number == 0 else BLOCK
        yield {"error": errors(x)[0, :n], "cost": 1 - x}  # one neighbour says nothing of a number
        return {"error": errors(x)[1]}

    with pytest.raises(rp.errors.LossError, match="same validation examples"):
        raced(2, evaluate=hasty)


def test_the_search_takes_what_is_foretold_for_less_certain():
    study = raced()
    space = rp.study.Space(study.trials[0].distributions)
    cover = space.cover(np.random.default_rng(0))
    fitted = study.sampler._survey(study, study.trials, PROBLEM, space, cover)
    variances = fitted.model.observations.variances[:, 0]
    of_risk = dict(zip(fitted.whole.numbers, variances, strict=False))
    notes = {t.number: foretold_of(t) for t in study.trials if t.state == TrialState.COMPLETE}
    for number, note in notes.items():
        own = 0.0 if note is None else note.errors[0] ** 2
        assert own <= of_risk[number] < own + study.trials[number].values[0] / K


def test_status_counts_what_was_ended():
    study = raced()
    racing = study_status(study).racing
    stopped = [t for t in study.trials if t.state == TrialState.PRUNED]
    assert (racing.stopped, racing.ended) == (len(stopped), len(ended(study)))
    assert f"{racing.ended} ended when enough was known" in str(racing)
    assert 0.3 < racing.saved < 1


def test_status_reports_risks_without_the_caution_that_losses_are_filled_in_with():
    study = raced()
    status = study_status(study)
    (risk,) = status.risks
    complete = [t for t in study.trials if t.state == TrialState.COMPLETE]
    notes = {t.number: foretold_of(t) for t in complete}
    known = [(notes[t.number] or t).values[0] for t in complete]
    assert (risk.lowest_loss, risk.highest_loss) == (min(known), max(known))
    assert max(known) < max(t.values[0] for t in complete)
    assert risk.n_below_limit == sum(value <= 0.2 for value in known)
    of_trials = f", foretold of {len(ended(study))} trials"
    assert status.range_in_words(risk).endswith(of_trials)
    whole = study_status(raced(3, evaluate=lambda trial: race(trial, heeds=False)))
    assert "foretold" not in whole.range_in_words(whole.risks[0])


def test_only_whole_evaluations_tell_how_examples_differ():
    """Losses that are foretold follow from others, and would only repeat what these say."""
    study = raced(9)
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    known = rivals_of(study, PROBLEM, trial)
    complete = [t for t in study.trials if t.state == TrialState.COMPLETE]
    whole = {errors(t.params["x"])[0].tobytes() for t in complete if foretold_of(t) is None}
    assert len(whole) < len(complete) == len(known.known)
    assert {row.astype(bool).tobytes() for row in known.losses["error"]} <= whole


@pytest.mark.parametrize(
    "note",
    [
        {"errors": [0.1, 0.1]},
        {"values": [], "errors": [], "n_evaluated": 5, "n_examples": 5},
        {"values": [0.1], "errors": [], "n_evaluated": 5, "n_examples": 9},
        {"values": [0.1], "errors": [0.1], "n_evaluated": 5, "n_examples": 9},
        [1],
    ],
)
def test_a_note_that_was_changed_from_outside_is_refused(note):
    study = raced(3)
    study.enqueue_trial({"x": 0.3}, user_attrs={FORETOLD_KEY: note})

    def whole(trial):
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation({"error": errors(x)[0], "cost": 1 - x}, {"error": errors(x)[1]})

    study.optimize(rp.objective(study, whole), n_trials=1)
    with pytest.raises(StudyError, match="What a race noted on trial 3 must be as riskpilot"):
        rp.select(study)


def test_the_note_of_a_worker_that_died_does_not_outlive_another_evaluation():
    study = raced(8)
    note = ended(study)[0].user_attrs[FORETOLD_KEY]
    study.enqueue_trial({"x": 0.31}, user_attrs={FORETOLD_KEY: note})
    study.optimize(rp.objective(study, lambda t: race(t, heeds=False)), n_trials=1)
    assert study.trials[-1].state == TrialState.COMPLETE
    assert foretold_of(study.trials[-1]) is None


def test_examples_that_do_not_count_are_foretold_as_well():
    problem = rp.Problem([rp.Risk("error", 0.2, conditional=True)], minimize="cost")
    answered = RNG.random(K)

    def lost(x):
        return np.where(answered < 0.9 - 0.3 * x, errors(x).astype(float), np.nan)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        for rows in np.split(np.arange(K), K // BLOCK):
            if (yield {"error": lost(x)[0, rows], "cost": 1 - x}):
                break
        return {"error": lost(x)[1]}

    study = raced(evaluate=evaluate, problem=problem)
    assert ended(study)
    for trial in ended(study):
        truth, note = lost(trial.params["x"])[0], foretold_of(trial)
        assert abs(note.values[0] - np.nanmean(truth)) <= 4 * note.errors[0]
        kept = np.asarray(read_validation(study, problem, trial)["error"])[0]
        assert abs(np.isnan(kept).mean() - np.isnan(truth).mean()) < 0.05
    selection = rp.select(study)
    assert selection.config is not None
    assert rp.verify(selection.certificate, study=study).ok


def test_losses_in_single_precision_may_reach_the_end_of_their_range():
    problem = rp.Problem([rp.Risk("error", 0.09, high=0.1)], minimize="cost")
    draws = np.random.default_rng(1).random((2, K))

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        losses = np.minimum(0.1 * draws * (0.2 + 2 * x), 0.1).astype(np.float32)
        for rows in np.split(np.arange(K), K // BLOCK):
            if (yield {"error": losses[0, rows], "cost": 1 - x}):
                break
        return {"error": losses[1]}

    study = raced(evaluate=evaluate, problem=problem)
    assert ended(study)
    assert rp.select(study).config is not None


def test_an_evaluation_of_which_no_example_counts_breaks_no_later_one():
    problem = rp.Problem([rp.Risk("error", 0.2, conditional=True)], minimize="cost")

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        answered = RNG.random(K) < 1.1 - x if x < 1 else np.zeros(K, dtype=bool)
        lost = np.where(answered, errors(x).astype(float), np.nan)
        for rows in np.split(np.arange(K), K // BLOCK):
            if (yield {"error": lost[0, rows], "cost": 1 - x}):
                break
        return {"error": lost[1]}

    study = rp.create_study(problem, seed=0, safe={"x": 0.0})
    study.enqueue_trial({"x": 1.0})
    study.optimize(rp.objective(study, evaluate), n_trials=6)
    assert TrialState.FAIL not in [t.state for t in study.trials]
    assert study.trials[1].state == TrialState.COMPLETE
    assert rp.select(study).config is not None


@pytest.mark.parametrize("n_studies", [60, pytest.param(600, marks=pytest.mark.long)])
def test_false_certificates_stay_below_delta_when_evaluations_are_ended(n_studies):
    """Every configuration has a risk just above its limit; whatever is certified is false."""
    rng = np.random.default_rng(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    k, limit, wrong, n_ended = 400, 0.2, 0, 0
    problem = rp.Problem([rp.Risk("error", limit)], "cost", delta=0.1)
    for seed in range(n_studies):
        luck = rng.random((2, 1, k)) + 0.02 * rng.random((2, 8, k))  # neighbours are alike
        losses = luck % 1.0 < limit + 1e-9

        def evaluate(trial, losses=losses):
            x = trial.suggest_int("x", 0, 7)
            for rows in np.split(np.arange(k), 8):
                if (yield {"error": losses[0, x, rows], "cost": float(8 - x)}):
                    break
            return {"error": losses[1, x]}

        study = rp.create_study(problem, sampler=optuna.samplers.RandomSampler(seed=seed))
        study.optimize(rp.objective(study, evaluate), n_trials=6)
        n_ended += len(ended(study))
        wrong += rp.select(study).config is not None
    assert n_ended > n_studies  # evaluations were ended
    assert wrong / n_studies <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / n_studies)
