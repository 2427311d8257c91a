"""After an alarm: the candidates of a study again, on fresh labelled examples."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy.typing as npt
import optuna
from optuna.trial import FrozenTrial

from riskpilot.common import canonical, plain_configs
from riskpilot.errors import LossError, ProblemError, StudyError, shown
from riskpilot.guarantee import Procedure, fixed_sequence, is_whole
from riskpilot.losses import (
    Evaluation,
    ExampleIds,
    LossMapping,
    check_unseen_ids,
    read_example_ids,
)
from riskpilot.problem import Problem
from riskpilot.selection import Selection
from riskpilot.study.adopting import add_copy
from riskpilot.study.creation import create_study
from riskpilot.study.kept.attributes import problem_of
from riskpilot.study.kept.earlier import copy_earlier
from riskpilot.study.kept.foretold import FORETOLD_KEY, foretold_of
from riskpilot.study.kept.loss_store import store_of
from riskpilot.study.kept.seen_ids import copy_seen, keep_seen, seen_ids
from riskpilot.study.kept.trial_losses import read_validation
from riskpilot.study.kept.trials import finished
from riskpilot.study.questions.asking import answer, settle
from riskpilot.study.questions.question_ledger import ledger
from riskpilot.study.questions.unshared import check_given
from riskpilot.study.questions.used_ids import ORIGIN_KEY, check_unwatched
from riskpilot.study.storages import storage_of
from riskpilot.study.telling import LARGEST_NUMBER, Recorder

Fresh = Callable[[FrozenTrial], LossMapping] | Mapping[int, LossMapping]
"""The losses of a finished trial on new examples: a function, or a mapping by trial number."""


def recertify(
    study: optuna.Study,
    calibration: Fresh,
    *,
    validation: Fresh | None = None,
    calibration_ids: Sequence[Any] | npt.NDArray[Any] | None = None,
    problem: Problem | None = None,
    config: Mapping[str, Any] | None = None,
    trial: int | None = None,
    procedure: Procedure = fixed_sequence,
    study_name: str | None = None,
    seed: int = 0,
    smooth: bool = True,
) -> Selection:
    """Select again among the finished trials of a study, on fresh labelled examples.

    The trials, with their recorded validation losses, become a study of their own in the same
    storage, so that the new sample has a ledger of its own, and this is the first question to it.
    Where the examples are not fresh after all, because a study of the storage was asked about them
    before, the ledger and the certificate say so: by the losses of all of them, and by the ids of
    any. Those that the study searched by are refused: by the ids of any, by the losses of all of
    them, and by the losses of half of them where these tell, as real numbers and the 0/1 losses of
    many trials do. Nothing tells 0/1 losses of few trials from fresh ones once a row is added or
    missing. No example may be given that made somebody look: the labels that raised the alarm are
    spent; those whose ids the watch in the study counted are refused.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`, with finished trials.
    calibration : callable, or mapping of int to mapping
        Makes the losses of a finished trial on the fresh examples, ``{"error": array}``; or these
        losses by trial number. The function is called for the few candidates only.
    validation : callable, or mapping of int to mapping, optional
        The same for validation losses, with the free objective, on other fresh examples. By default
        the recorded ones decide which trials are tested, in which order: the promise holds all the
        same, but where the world has changed, they may order badly.
    calibration_ids : sequence, optional
        The identities of the fresh examples: one for each, no two alike, in the order of the
        losses. None of them may be a validation example of the study, or have been counted by the
        watch in it. Where one is of an earlier question, this is a further question.
    problem : Problem, optional
        The study's problem with other limits or another delta.
    config : mapping, optional
        The parameters of the one trial to certify again; by default all trials are candidates.
        Where several finished trials have them, ``trial`` says which of these models is meant.
    trial : int, optional
        The number of the one trial to certify again, such as ``certificate.trial``.
    procedure : Procedure, default fixed_sequence
        How several candidates are tested.
    study_name : str, optional
        The name of the new study; by default that of the given one with a number.
    seed : int, default 0
        The seed of the order in which the betting test sees the examples.
    smooth : bool, default True
        Whether risks are smoothed over neighbouring configurations, as in `select`.

    Returns
    -------
    Selection
        What was chosen, with a certificate that ``verify(certificate, study=...)`` checks against
        the new study.

    Raises
    ------
    StudyError
        If there is nothing to select from, or no trial or several have this configuration.
    ProblemError
        If the problem is about other quantities than the study.
    LossError
        If losses are missing or cannot be used.
    LeakageError
        If the examples are those by which the study searched, or that its watch counted.

    Examples
    --------
    >>> import numpy as np, riskpilot as rp
    >>> study = rp.create_study(rp.Problem([rp.Risk("error", 0.2)], "cost"), seed=0)
    >>> rng = np.random.default_rng(0)
    >>> def evaluate(trial):
    ...     rate = 0.25 * trial.suggest_float("x", 0, 1)
    ...     errors = rng.random((2, 800)) < rate
    ...     return rp.Evaluation({"error": errors[0], "cost": -rate}, {"error": errors[1]})
    >>> study.optimize(rp.objective(study, evaluate), n_trials=6)
    >>> before = rp.select(study).config["x"]
    >>> def fresh(trial):  # errors have become more frequent
    ...     return {"error": rng.random(800) < 0.3 * trial.params["x"]}
    >>> rp.recertify(study, fresh).config["x"] < before
    True
    """
    stored = problem_of(study)
    asked = _checked_problem(stored, problem)
    n_trials = len(study.get_trials(deepcopy=False))
    fresh = _losses_of(calibration, n_trials, "calibration")
    seen = None if validation is None else _losses_of(validation, n_trials, "validation")
    ids = read_example_ids(calibration_ids, "calibration_ids")
    check_unseen_ids(ids, seen_ids(study), "Fresh examples")
    check_unwatched(study, ids)
    trials = _candidates(study, config, trial)
    if isinstance(calibration, Mapping):
        check_given(study, stored, calibration)
    name = _free_name(study) if study_name is None else study_name
    again = create_study(
        asked, storage=storage_of(study), study_name=name, artifact_store=store_of(study)
    )
    try:
        again.set_user_attr(
            ORIGIN_KEY, {"study": study.study_name, "questions": len(ledger(study))}
        )
        copy_earlier(study, again)
        copy_seen(study, again)
        recorder = Recorder(again, asked)
        for each in trials:
            table = _recorded(study, stored, each) if seen is None else seen(each)
            notes = {} if seen is not None or foretold_of(each) is None else _note_of(each)
            add_copy(study, each, Evaluation(validation=table), again, recorder, notes)
        settled = settle(again, procedure, None, 1.0, seed, smooth)
        keep_seen(again, ExampleIds(calibration=ids))

        def searched(copies: Sequence[FrozenTrial]) -> list[tuple[optuna.Study, list[FrozenTrial]]]:
            """Find the trials by whose validation losses the study searched."""
            return [] if seen is None else [(study, [trials[copy.number] for copy in copies])]

        selection = answer(
            again, settled, procedure, _by_copy(fresh, trials), _say_nothing, ids, searched
        )
    except BaseException:
        if not ledger(again):  # nothing was asked: no trace is needed
            optuna.delete_study(study_name=name, storage=storage_of(study))
        raise
    return selection


def _say_nothing(*words: str) -> None:
    """Show no steps."""


def _checked_problem(stored: Problem, problem: Problem | None) -> Problem:
    """Return the problem that is asked, if it is about the quantities of the study."""
    if problem is None:
        return stored
    if not isinstance(problem, Problem) or not problem.has_quantities_of(stored):
        raise ProblemError(
            f"A study can be certified again with other limits or another delta, not with other "
            f"quantities. The study has: {stored} Asked: {shown(problem)}. Write "
            f"problem.with_limits({stored.names[0]}=...)."
        )
    return problem


def _losses_of(fresh: Fresh, n_trials: int, split: str) -> Callable[[FrozenTrial], LossMapping]:
    """Make a function of what was given, which says what is missing; losses of trials that the
    study does not have are refused."""
    if callable(fresh):
        return fresh
    if not isinstance(fresh, Mapping):
        raise LossError(
            f"{split} is a function of a finished trial that returns its losses on fresh examples, "
            f"or these losses by trial number, but it is {shown(fresh)}. Write "
            f'{split}={{0: {{"error": array}}, ...}}.'
        )
    unknown = next((number for number in fresh if number not in range(n_trials)), None)
    if unknown is not None:
        raise LossError(
            f"{split}: losses are given by the numbers of the study's trials, 0 to {n_trials - 1}, "
            f"but one number is {shown(unknown)}. Correct it, or remove the losses of other models."
        )

    def find(trial: FrozenTrial) -> LossMapping:
        if trial.number not in fresh:
            raise LossError(
                f"{split}: the losses of trial {trial.number}, which is a candidate, are missing; "
                f"there are those of {shown(sorted(fresh), 80)}. Give the losses of every trial, "
                f"or a function that makes them."
            )
        return fresh[trial.number]

    return find


def _candidates(
    study: optuna.Study, config: Mapping[str, Any] | None, number: int | None
) -> Sequence[FrozenTrial]:
    """Find the trials to choose among: all that are finished, or the one that was named."""
    if config is not None and not isinstance(config, Mapping):
        raise StudyError(
            f"config is the configuration of one trial, a mapping of its parameters, but it is "
            f'{shown(config)}. Write config={{"depth": 3}}, or leave it out.'
        )
    if number is not None and not is_whole(number, 0, LARGEST_NUMBER):
        raise StudyError(
            f"trial is the number of one trial of the study, but it is {shown(number)}. Write "
            f"trial=certificate.trial, or leave it out."
        )
    trials = [one for one in finished(study).trials if number is None or one.number == number]
    if config is not None:
        (wanted,) = plain_configs([config], StudyError)
        every = plain_configs([one.params for one in trials], StudyError)
        pairs = zip(trials, every, strict=True)
        trials = [one for one, params in pairs if canonical(params) == canonical(wanted)]
    if not trials:
        which = "" if config is None else f" with the configuration {shown(dict(config))}"
        which += "" if number is None else f" with the number {number}"
        raise StudyError(
            f"There is nothing to certify again: no finished trial of the study "
            f"{study.study_name!r} with its losses{which}. Name one of its trials, or leave that "
            f"out."
        )
    if config is not None and len(trials) > 1:
        numbers = shown([one.number for one in trials], 80)
        raise StudyError(
            f"A promise is about one model, but several trials of the study {study.study_name!r} "
            f"have the configuration {shown(dict(config))}: {numbers}. Say which: "
            f"trial={trials[0].number}, or trial=certificate.trial; on the command line, --trial "
            f"{trials[0].number}."
        )
    return trials


def _free_name(study: optuna.Study) -> str:
    """Find a name for the study of a new sample."""
    taken = set(optuna.get_all_study_names(storage_of(study)))
    names = (f"{study.study_name}, recertified {number}" for number in count(1))
    return next(name for name in names if name not in taken)


def _recorded(study: optuna.Study, problem: Problem, trial: FrozenTrial) -> LossMapping:
    """Read the validation losses of a trial, in the form of an evaluation."""
    return {name: values[0] for name, values in read_validation(study, problem, trial).items()}  # type: ignore[index]


def _note_of(trial: FrozenTrial) -> dict[str, Any]:
    """Return the note that some of the recorded validation losses of a trial are foretold."""
    return {FORETOLD_KEY: trial.user_attrs[FORETOLD_KEY]}


def _by_copy(
    fresh: Callable[[FrozenTrial], LossMapping], trials: Sequence[FrozenTrial]
) -> Callable[[FrozenTrial], LossMapping]:
    """Ask for the losses of the trials that the copies, in the same order, were made of."""
    return lambda copy: fresh(trials[copy.number])
