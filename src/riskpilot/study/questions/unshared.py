"""Calibration losses of candidates are not those of the examples by which a search found them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import optuna
from optuna.trial import FrozenTrial

from riskpilot.errors import LossError, StudyError
from riskpilot.losses import (
    CalibrationLosses,
    LossMapping,
    calibration_losses,
    check_disjoint,
    check_evaluated_by_row,
    check_overlap_by_row,
    same_sums,
    validation_losses,
)
from riskpilot.problem import Problem
from riskpilot.study.kept.foretold import foretold_of, n_evaluated_of
from riskpilot.study.kept.records import any_record_of, validation_of
from riskpilot.study.kept.trial_losses import joined, one_row, read_validation
from riskpilot.study.kept.trials import finished

Searched = Callable[[Sequence[FrozenTrial]], Iterable[tuple[optuna.Study, Sequence[FrozenTrial]]]]
"""Finds the trials of other studies, of each as many, whose search led to some candidates."""


def check_unshared(
    study: optuna.Study, trials: Sequence[FrozenTrial], opened: CalibrationLosses
) -> None:
    """Refuse calibration losses that are the validation losses of trials, or many of these.

    ``trials``: of the study, in the order of the calibration losses. Validation losses are read
    one trial after the other, because those of all may not find room; where they are no longer at
    hand, and their sums are others, the records of the trials must do.
    """
    problem = opened.problem
    records = [record for record in map(any_record_of, trials) if record is not None]
    known = validation_of(problem, records)
    check_disjoint(known, opened)
    tables = (read_validation(study, problem, trial) for trial in trials)
    if any(map(foretold_of, trials)):
        _check_race(trials, tables, opened, known.n_examples)
        return
    if same_sums(known, opened, range(len(trials))):
        check_disjoint(validation_losses(problem, joined(problem, tables, len(trials))), opened)
        return
    with suppress(StudyError):
        check_overlap_by_row((validation_losses(problem, table) for table in tables), opened)


def _check_race(
    trials: Sequence[FrozenTrial],
    tables: Iterable[LossMapping],
    opened: CalibrationLosses,
    n_examples: int,
) -> None:
    """Refuse calibration losses that are those of examples on which a race evaluated trials.

    The other validation losses of such trials are foretold: those of no example.
    """
    evaluated = [n_evaluated_of(trial, n_examples) for trial in trials]
    seen = (validation_losses(opened.problem, table) for table in tables)
    with suppress(StudyError):  # the losses may no longer be at hand
        check_evaluated_by_row(seen, evaluated, opened)


def check_given(study: optuna.Study, problem: Problem, given: Mapping[int, LossMapping]) -> None:
    """Refuse losses by trial number that are validation losses: of all trials together, of which
    few may be tested, because many losses of an example tell more than few."""
    trials = [
        trial for trial in finished(study).trials if isinstance(given.get(trial.number), Mapping)
    ]
    if not trials:
        return
    tables = (one_row(problem, given[trial.number], "calibration") for trial in trials)
    try:
        opened = calibration_losses(problem, joined(problem, tables, len(trials)))
    except LossError:
        return  # of trials that are not tested nothing is asked; the others are read again
    check_unshared(study, trials, opened)
