"""Finished studies of plain Optuna, taken over with the losses of their trials."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from riskpilot.common import ShapeError, digest, digest_of, plain, record, whole
from riskpilot.errors import StudyError, shown
from riskpilot.losses import Evaluation
from riskpilot.problem import Problem
from riskpilot.study.creation import create_study
from riskpilot.study.kept.attributes import PROBLEM_KEY, attributes_of, problem_of
from riskpilot.study.kept.records import RECORD_KEY
from riskpilot.study.kept.trials import trials_of
from riskpilot.study.storages import exclusive
from riskpilot.study.telling import Recorder, optuna_values

# Which trial of which study an adopted trial was: its number there, and a digest.
ADOPTED_KEY = "riskpilot:adopted"
_ADOPTED = record(number=whole(), digest=digest)


def adopt(
    study: optuna.Study,
    problem: Problem,
    losses: Callable[[FrozenTrial], Evaluation],
    *,
    storage: str | Path | BaseStorage | None = None,
    study_name: str | None = None,
    seed: int | None = None,
    artifact_store: Any = None,
) -> optuna.Study:
    """Make a study for `select` out of one that plain Optuna searched.

    Every finished trial is copied with the losses that ``losses`` makes of it; the given study is
    read and not changed. What is promised of the choice rests on one condition: **the search must
    not have seen the calibration examples**. Its objective, its pruning and its early stopping may
    have used the validation examples, or others, but none on which the calibration losses are
    computed.

    Parameters
    ----------
    study : optuna.Study
        A study of any sampler, storage and number of objectives.
    problem : Problem
        What is limited, and what is minimised.
    losses : callable
        A function of a finished trial (`optuna.trial.FrozenTrial`) that returns its `Evaluation`,
        for example from a model or from arrays on disk that bear the trial's number.
    storage : str, Path or optuna storage, optional
        Where the new study goes, as `create_study` takes it; memory by default. Where it holds a
        part of the trials already, because an earlier call was interrupted or the given study went
        on, the rest is added.
    study_name : str, optional
        The name of the new study; by default that of the given one.
    seed : int, optional
        The seed of a search that goes on from here. One is drawn by default.
    artifact_store : str, Path or optuna artifact store, optional
        Where losses go, as `create_study` takes it.

    Returns
    -------
    optuna.Study
        The new study, ready for `select`, and for more trials by `objective` or `tell`.

    Raises
    ------
    StudyError
        If the given study has no finished trial, or riskpilot made it; or if the storage has a
        study of this name that was adopted from another one.
    LossError
        If ``losses`` does not return an `Evaluation`, or one that cannot be used.

    Examples
    --------
    >>> import numpy as np, optuna, riskpilot as rp
    >>> plain = optuna.create_study(direction="maximize")
    >>> plain.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    >>> rng = np.random.default_rng(0)
    >>> def losses(trial):
    ...     errors = rng.random((2, 400)) < 0.05
    ...     return rp.Evaluation({"error": errors[0], "cost": trial.value}, {"error": errors[1]})
    >>> study = rp.adopt(plain, rp.Problem([rp.Risk("error", 0.1)], minimize="cost"), losses)
    >>> sorted(rp.select(study).config)
    ['x']
    """
    _check(study, losses)
    done = trials_of(study, (TrialState.COMPLETE,))
    if not done:
        raise StudyError(
            f"adopt takes over finished trials, but the study {study.study_name!r} has none. "
            f"Finish its search first, or begin with riskpilot.create_study(problem)."
        )
    adopted = create_study(
        problem,
        storage=storage,
        study_name=study.study_name if study_name is None else study_name,
        seed=seed,
        artifact_store=artifact_store,
        load_if_exists=True,
    )
    recorder = Recorder(adopted, problem)
    made: dict[int, Evaluation] = {}  # the evaluation that is not stored yet, by its trial

    def copy_rest() -> bool:
        """Copy the trials that are missing; tell whether that was done under one lock."""
        # Others who adopt the same study wait, and find its trials there.
        with exclusive(adopted, "adoption") as is_held:
            there = _adopted_before(study, done, adopted)
            for trial in done:
                if trial.number in there:
                    continue
                if trial.number not in made:
                    made.clear()
                    made[trial.number] = losses(trial)
                if not is_held():
                    return False
                add_copy(study, trial, made[trial.number], adopted, recorder)
        return True

    while not copy_rest():  # the lock is free when the connection that holds it was cut
        pass
    return adopted


def add_copy(
    source: optuna.Study,
    trial: FrozenTrial,
    evaluation: object,
    study: optuna.Study,
    recorder: Recorder,
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Add a finished trial of another study, with the losses that it has in this one.

    ``notes``: what else the copy says about itself.
    """
    record = recorder.store(trial, evaluation)
    mark = {"number": trial.number, "digest": _digest(source, trial)}
    study.add_trial(
        optuna.trial.create_trial(
            params=trial.params,
            distributions=trial.distributions,
            values=optuna_values(problem_of(study), record),
            user_attrs={RECORD_KEY: record.to_json(), ADOPTED_KEY: mark, **(notes or {})},
        )
    )


def _adopted_before(
    study: optuna.Study, done: Sequence[FrozenTrial], adopted: optuna.Study
) -> set[int]:
    """Return the numbers of trials that were adopted before, if all of them are this study's."""
    theirs = {trial.number: trial for trial in done}
    there = set()
    for trial in trials_of(adopted):
        mark = trial.user_attrs.get(ADOPTED_KEY)
        if mark is None:
            continue
        try:
            _ADOPTED(mark, "the mark of an adopted trial")
        except ShapeError as error:
            raise StudyError(
                f"The study {adopted.study_name!r} was changed from outside, or another version of "
                f"riskpilot adopted its trials: {error}. Restore the storage from a copy, or adopt "
                f"into a new study: adopt(..., study_name=...)."
            ) from None
        source = theirs.get(mark["number"])
        if source is None or _digest(study, source) != mark["digest"]:
            raise StudyError(
                f"The study {adopted.study_name!r} in this storage was adopted from another study "
                f"than the given one: trial {mark['number']} of the given study "
                f"{study.study_name!r} is not the one that was adopted. Adopt it under a name of "
                f"its own: adopt(..., study_name=...)."
            )
        there.add(mark["number"])
    return there


def _digest(study: optuna.Study, trial: FrozenTrial) -> str:
    """Compute a digest that tells a finished trial from those of other studies."""
    params = {}
    for name, value in trial.params.items():
        drawn_from = trial.distributions[name]
        # A storage hands out 1.0 where memory keeps the 1 that was given.
        params[name] = plain(drawn_from.to_external_repr(drawn_from.to_internal_repr(value)))
    values = [repr(float(value)) for value in trial.values or ()]
    return digest_of(
        {"study": study.study_name, "number": trial.number, "params": params, "values": values}
    )


def _check(study: object, losses: object) -> None:
    """Refuse what is no study of Optuna's, or no function."""
    if not isinstance(study, optuna.Study):
        raise StudyError(
            f"adopt takes a study of Optuna's, but got {shown(study)}. "
            f"Load it first: optuna.load_study(study_name=..., storage=...)."
        )
    if PROBLEM_KEY in attributes_of(study):
        raise StudyError(
            f"adopt takes over studies of plain Optuna, but riskpilot made the study "
            f"{study.study_name!r}. Go on with it: riskpilot.load_study(storage=...)."
        )
    if not callable(losses):
        raise StudyError(
            f"losses is a function of a finished trial that returns an Evaluation, but it is "
            f"{shown(losses)}. Write adopt(study, problem, losses)."
        )
