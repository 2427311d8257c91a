"""A study of many trials: what a proposal and a selection fit, read and hold."""

import gc
import pickle
import shutil
import tracemalloc
from contextlib import contextmanager

import numpy as np
import optuna
import pytest

import riskpilot as rp
from benchmarks.many_trials import NAMES, evaluation, fill
from riskpilot.search import MOST_OBSERVATIONS, surrogate
from riskpilot.study import sampler
from riskpilot.study.kept.remembered import Remembered
from riskpilot.study.kept.trials import space_of, study_space, trials_of
from riskpilot.study.space import Space
from riskpilot.study.survey import branched_space, survey, with_pending

N = 1_500
EXAMPLES = 200


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "study.db"
    fill(path, N, EXAMPLES)
    return path


@pytest.fixture
def study(filled, tmp_path):
    """A copy of the study, whose losses are those of the original."""
    path = tmp_path / "study.db"
    shutil.copy(filled, path)
    return rp.load_study(storage=f"sqlite:///{path}", artifact_store=f"{filled}.losses")


@pytest.fixture
def fitted(monkeypatch):
    """The number of observations of every fit."""
    sizes = []
    fit = surrogate.fit

    def noting(x, *others, **named):
        sizes.append(len(x))
        return fit(x, *others, **named)

    monkeypatch.setattr(surrogate, "fit", noting)
    return sizes


def evaluate(trial):
    config = {name: trial.suggest_float(name, 0.0, 1.0) for name in NAMES}
    return evaluation(config, trial.number, EXAMPLES)


def test_a_proposal_never_fits_more_than_the_bound(study, fitted):
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    assert len(fitted) == 2 * 3  # two risks and the free objective
    assert MOST_OBSERVATIONS / 2 < max(fitted) <= MOST_OBSERVATIONS
    last = study.trials[-1].params
    assert last["z"] < 0.1  # which costs and brings nothing
    assert 0.2 < last["x"] < 0.6  # the error is 0.4 x, and its limit is 0.2


def test_other_workers_wait_for_the_decision_and_not_for_the_fit(study, monkeypatch):
    events = []
    fit, exclusive, decide = surrogate.fit, sampler.exclusive, rp.GuidedSampler._decide

    @contextmanager
    def noting_lock(of):
        with exclusive(of) as is_held:
            events.append("locked")
            yield is_held
            events.append("free")

    def noting_fit(*args, **named):
        events.append("fit")
        return fit(*args, **named)

    def noting_decision(*args):
        events.append("decided")
        return decide(*args)

    monkeypatch.setattr(sampler, "exclusive", noting_lock)
    monkeypatch.setattr(surrogate, "fit", noting_fit)
    monkeypatch.setattr(rp.GuidedSampler, "_decide", noting_decision)
    study.optimize(rp.objective(study, evaluate), n_trials=1)
    assert events == ["fit", "fit", "fit", "locked", "decided", "free"]


def test_a_trial_that_finishes_after_the_fit_counts_as_one_under_way():
    study = rp.create_study(rp.Problem([rp.Risk("error", 0.2), rp.Risk("harm", 0.2)], "cost"))
    study.optimize(rp.objective(study, evaluate), n_trials=6)
    trials = trials_of(study)
    space = Space(study_space(study))
    cover = np.random.default_rng(0).random((50, 3))
    fitted = survey(
        trials[:5], rp.study.problem_of(study), space, cover, study.sampler._region, rp.GUIDED
    )
    later = with_pending(fitted, trials)
    assert len(later.model.observations.x) == 5
    assert later.model.observations.pending[0].tolist() == [trials[5].params[n] for n in "xyz"]
    assert len(later.tried) == 6


def test_a_selection_holds_no_matrix_of_all_trials(study, fitted):
    first = rp.select(study)  # reads the trials, which stay in memory
    assert max(fitted) <= MOST_OBSERVATIONS
    tracemalloc.start()
    again = rp.select(study)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert again.certificate.estimates == first.certificate.estimates
    assert peak < N * N * 8  # one matrix of one risk


def test_the_certificate_of_a_large_study_holds(study):
    selection = rp.select(study)
    assert selection.certificate.estimates is not None
    assert len(selection.certificate.estimates) == N
    assert rp.verify(selection.certificate, study=study).ok


def test_what_was_read_from_a_finished_trial_is_kept_as_long_as_the_trial():
    study = optuna.create_study()
    seen = []

    def note(trial):
        seen.append(trial.number)
        return trial.number + 0.5

    remembered = Remembered(note)
    study.optimize(lambda trial: 0.0, n_trials=2)
    running = study.ask()
    trials = study.get_trials(deepcopy=False)
    assert [remembered(trial) for trial in trials * 2] == [0.5, 1.5, 2.5] * 2
    assert seen == [0, 1, 2, 2]  # the running one may change
    study.tell(running, 0.0)
    assert remembered(study.get_trials(deepcopy=False)[2]) == 2.5
    copies = study.get_trials()
    assert [remembered(trial) for trial in copies] == [0.5, 1.5, 2.5]
    assert len(remembered._known) == 6
    del copies
    assert len(remembered._known) == 3


def test_what_is_remembered_stays_in_its_process():
    study = optuna.create_study()
    study.optimize(lambda trial: 0.0, n_trials=1)
    remembered = Remembered(_number)
    trial = study.get_trials(deepcopy=False)[0]
    assert remembered(trial) == 0
    copy = pickle.loads(pickle.dumps(remembered))
    assert not copy._known
    assert copy(trial) == 0


def _number(trial):
    return trial.number


def test_the_space_of_a_study_follows_its_trials_and_not_another_study():
    def both(trial):
        return trial.suggest_float("y", 0, 1) + trial.suggest_float("x", 0, 1)

    studies = [optuna.create_study(), optuna.create_study()]
    for study in studies:
        study.optimize(both, n_trials=2)
        assert list(study_space(study)) == ["x", "y"]
    running = studies[0].ask()
    running.suggest_float("late", 0, 1)
    studies[0].optimize(lambda trial: trial.suggest_float("z", 0, 1), n_trials=1)
    assert list(study_space(studies[0])) == ["x", "y", "z"]
    studies[0].tell(running, 0.0)  # a trial that ends later than its successors
    for study, names in zip(studies, (["late", "x", "y", "z"], ["x", "y"]), strict=True):
        assert list(study_space(study)) == names
        assert study_space(study) == space_of(study.trials)


def test_a_parameter_whose_range_changes_is_left_out_of_the_space():
    study = optuna.create_study()
    for high in (1, 2, 1):
        trial = study.ask()
        study.tell(trial, trial.suggest_float("x", 0, high) + trial.suggest_int("n", 1, 3))
        study_space(study)
    assert list(study_space(study)) == ["n"]


def test_the_places_of_many_trials_leave_no_garbage_to_collect(study):
    """A full collection looks at every object of every trial, and would take most of a proposal."""
    trials, space = trials_of(study), study_space(study)
    branched_space(trials, space)  # each trial is looked at once
    rounds, limits = [], gc.get_threshold()
    gc.collect()
    gc.callbacks.append(lambda phase, _: rounds.append(phase))
    gc.set_threshold(len(trials) // 2)  # a round begins when so many new objects are there
    try:
        branched_space(trials, space)
    finally:
        gc.set_threshold(*limits)
        gc.callbacks.pop()
    assert rounds == []


def test_trials_of_a_database_share_their_distributions(study):
    first, *others = trials_of(study)
    assert all(trial.distributions["x"] is first.distributions["x"] for trial in others)


def test_workers_do_not_wait_while_one_looks_at_the_whole_space(monkeypatch):
    taking_turns, sizes = [], []

    @contextmanager
    def exclusive(study):
        taking_turns.append(True)
        yield lambda: True
        taking_turns.pop()

    def mean(fitted, x):
        if taking_turns:
            sizes.append(len(x))
        return whole_mean(fitted, x)

    whole_mean = surrogate.Surrogate.mean
    monkeypatch.setattr(sampler, "exclusive", exclusive)
    monkeypatch.setattr(surrogate.Surrogate, "mean", mean)
    draws = np.random.default_rng(0).random((2, 500))

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        error = draws < 0.5 * x
        return rp.Evaluation({"error": error[0], "cost": 1 - x}, {"error": error[1]})

    study = rp.create_study(rp.Problem([rp.Risk("error", 0.2)], "cost"), seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=8)
    assert sizes
    assert max(sizes) <= 256  # the neighbours of the best places; the space is covered by 1,025
