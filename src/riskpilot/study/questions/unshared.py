"""Calibration losses of candidates are not those of the examples by which a search found them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import optuna
from optuna.trial import FrozenTrial

from riskpilot.errors import LossError, StudyError
from riskpilot.losses import (
    CalibrationLosses,
    LossMapping,
    calibration_losses,
    check_disjoint,
    validation_losses,
)
from riskpilot.problem import Problem
from riskpilot.study.kept.trial_losses import joined, one_row, read_validation
from riskpilot.study.kept.trials import finished

Searched = Callable[[Sequence[FrozenTrial]], Iterable[tuple[optuna.Study, Sequence[FrozenTrial]]]]
"""Finds the trials of other studies, of each as many, whose search led to some candidates."""


def check_unshared(
    study: optuna.Study, trials: Sequence[FrozenTrial], opened: CalibrationLosses, *, needed: bool
) -> None:
    """Refuse calibration losses that are the validation losses of trials, or many of these.

    ``trials``: of the study, in the order of the calibration losses; ``needed``: whether it is an
    error that the losses are no longer at hand.
    """
    problem = opened.problem
    tables = (read_validation(study, problem, trial) for trial in trials)
    try:
        seen = validation_losses(problem, joined(problem, tables, len(trials)))
    except StudyError:
        if needed:
            raise
        return
    check_disjoint(seen, opened)


def check_given(study: optuna.Study, problem: Problem, given: Mapping[int, LossMapping]) -> None:
    """Refuse losses by trial number that are validation losses: of all trials together, of which
    few may be tested, because many losses of an example tell more than few."""
    trials = [trial for trial in finished(study).trials if trial.number in given]
    if not trials:
        return
    tables = (one_row(problem, given[trial.number], "calibration") for trial in trials)
    try:
        opened = calibration_losses(problem, joined(problem, tables, len(trials)))
    except LossError:
        return  # of trials that are not tested nothing is asked; the others are read again
    check_unshared(study, trials, opened, needed=False)
