"""Losses of trials in and out of the artifact store, validation and calibration apart."""

from collections.abc import Iterable, Mapping
from numbers import Number

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from riskpilot.common import Array, ShapeError, optional
from riskpilot.errors import LossError, StudyError, shown
from riskpilot.losses import (
    ANY_FREE,
    Evaluation,
    ExampleIds,
    LossMapping,
    as_given,
    calibration_losses,
    check_disjoint,
    check_fresh,
    check_names,
    check_unseen,
    number_array,
    text_array,
    validation_losses,
)
from riskpilot.problem import Problem, Risk
from riskpilot.study.kept.attributes import CALIBRATION_KEY, attributes_of, changed
from riskpilot.study.kept.earlier import Earlier, earlier_of
from riskpilot.study.kept.judges import JUDGE, judge_blob
from riskpilot.study.kept.loss_bytes import decode, encode
from riskpilot.study.kept.loss_store import get, put, store_of
from riskpilot.study.kept.records import (
    ARTIFACT,
    Record,
    SplitName,
    any_record_of,
    check_size,
    record_from,
    record_of,
    validation_of,
)
from riskpilot.study.kept.seen_ids import earlier_ids


def store_evaluation(
    study: optuna.Study,
    problem: Problem,
    evaluation: Evaluation,
    ids: ExampleIds,
    n_validation: int | None = None,
    n_calibration: int | None = None,
    earlier: Earlier | None = None,
) -> Record:
    """Check and store the losses of one configuration, and return their record.

    Every number of the record is computed from the stored losses. ``ids``: of the examples, as far
    as they are known. ``n_validation``, ``n_calibration``: how many examples there must be, where
    that is known. ``earlier``: what the search knew before, which calibration must not be.
    """
    store = store_of(study)
    validation_table = one_row(problem, evaluation.validation, "validation")
    validation_losses(problem, validation_table)
    validation_blob = _encode(problem, validation_table)
    validation = validation_losses(problem, decode(validation_blob, is_own=True))
    check_size("validation", n_validation, validation.n_examples)
    ids.check_size("validation", validation.n_examples)
    calibration_blob = found = None
    if evaluation.calibration is not None:
        calibration_table = one_row(problem, evaluation.calibration, "calibration")
        calibration_losses(problem, calibration_table)
        calibration_blob = _encode(problem, calibration_table)
        calibration = calibration_losses(problem, decode(calibration_blob, is_own=True))
        check_size("calibration", n_calibration, calibration.n_examples)
        ids.check_size("calibration", calibration.n_examples)
        check_disjoint(validation, calibration)
        if earlier is not None:
            check_unseen(calibration, earlier.digests, earlier.evaluated)
        found = calibration.n_examples
    scores_blob = judge_blob(problem, evaluation, found)
    check_fresh(evaluation.judge, evaluation.validation, validation, ids, earlier_ids(study))
    # Nothing is written before everything is known to be in order.
    artifacts = {"validation": put(store, validation_blob)}
    if calibration_blob is not None:
        artifacts["calibration"] = put(store, calibration_blob)
    if scores_blob is not None:
        artifacts[JUDGE] = put(store, scores_blob)
    return record_from(validation, found, artifacts)


def record_again(
    study: optuna.Study, problem: Problem, trial: FrozenTrial, written: Record
) -> Record:
    """Compute the record of a trial again from the losses that it says are stored.

    Only `verify` calls this, after the plan: of calibration losses the examples are counted.
    """
    n_calibration = None
    if "calibration" in written.artifacts:
        sealed = read_calibration(study, problem, trial)
        n_calibration = calibration_losses(problem, sealed, ANY_FREE).n_examples
    validation = validation_losses(problem, read_validation(study, problem, trial), ANY_FREE)
    return record_from(validation, n_calibration, written.artifacts)


def read_calibration(study: optuna.Study, problem: Problem, trial: FrozenTrial) -> LossMapping:
    """Read the sealed losses of a trial. Only `select` and `verify` call this, after the plan."""
    return _read(study, trial, "calibration", problem)


def read_validation(study: optuna.Study, problem: Problem, trial: FrozenTrial) -> LossMapping:
    """Read the validation losses of a trial."""
    return _read(study, trial, "validation", problem)


def _read(
    study: optuna.Study, trial: FrozenTrial, split: SplitName, problem: Problem
) -> dict[str, Array]:
    """Read the losses of a trial on one split; an error where there are none."""
    entry = _entry(study, trial, split)
    if entry is None:
        raise StudyError(
            f"Trial {trial.number} has no {split} losses. Return them from the evaluation, "
            f"Evaluation(validation=..., calibration=...), or give select a calibrate function."
        )
    return decode(get(store_of(study), dict(entry), f"Trial {trial.number}: its {split} losses"))


def has_calibration(study: optuna.Study, trial: FrozenTrial) -> bool:
    """Tell whether the calibration losses of a trial are stored, without reading them."""
    return _entry(study, trial, "calibration") is not None


def _entry(study: optuna.Study, trial: FrozenTrial, split: SplitName) -> Mapping[str, str] | None:
    """Find where the losses of a trial are stored; None where there are none."""
    record = any_record_of(trial)
    entry = None if record is None else record.artifacts.get(split)
    if entry is None and split == "calibration":
        entry = attributes_of(study).get(f"{CALIBRATION_KEY}{trial.number}")
        try:
            optional(ARTIFACT)(
                entry, f"the place of the calibration losses of trial {trial.number}"
            )
        except ShapeError as error:
            raise changed(study, "attributes", error) from error
    return entry


def write_calibration(
    study: optuna.Study, problem: Problem, trial: FrozenTrial, losses: LossMapping
) -> None:
    """Check and store calibration losses of a finished trial.

    Only `select` calls this, after the plan.
    """
    table = one_row(problem, losses, "calibration")
    calibration_losses(problem, table)
    blob = _encode(problem, table)
    stored = decode(blob)
    record = record_of(trial)
    assert record is not None
    calibration = calibration_losses(problem, stored)
    check_disjoint(validation_of(problem, [record]), calibration)
    if (earlier := earlier_of(study)) is not None:
        check_unseen(calibration, earlier.digests, earlier.evaluated)
    study.set_user_attr(f"{CALIBRATION_KEY}{trial.number}", put(store_of(study), blob))


def forget_calibration(study: optuna.Study, trial: FrozenTrial) -> None:
    """Forget calibration losses that were made after the end of a trial, if there are any."""
    if attributes_of(study).get(f"{CALIBRATION_KEY}{trial.number}") is not None:
        study.set_user_attr(f"{CALIBRATION_KEY}{trial.number}", None)


def _encode(problem: Problem, table: Mapping[str, Array]) -> bytes:
    """Turn losses into bytes, with the declared ranges of the risks."""
    return encode(table, {risk.name: (risk.low, risk.high) for risk in problem.risks})


def one_row(problem: Problem, losses: LossMapping, split: str) -> dict[str, Array]:
    """Make a table of one row of one configuration's losses; a free objective may be a number."""
    check_names(losses, split)
    conditional = {risk.name for risk in problem.risks if risk.conditional}
    table: dict[str, Array] = {}
    for name, values in losses.items():
        what = f"{split}: the values of {name!r}"
        if name == problem.minimize and _is_no_value(values):
            raise LossError(
                f"{split}: the free objective {name!r} is a number, or one number per example, but "
                f"it is {shown(values)}. Give it as a float."
            )
        if name in problem.labels:
            array: Array = text_array(values, what)
        else:
            array = number_array(values, what, missing_as_nan=name in conditional)
        if (name in problem.names or name in problem.beside) and array.ndim != 1:
            raise LossError(
                f"{split}: the losses of {name!r} must be one number per example, shape (examples,)"
                f", but their shape is {array.shape}. Give the loss of every example."
            )
        if array.ndim > 1:
            raise LossError(
                f"{split}: {name!r} must be a number or one number per example, "
                f"but its shape is {array.shape}. Give its mean, or one number per example."
            )
        table[name] = array[None]
    return table


def _is_no_value(values: object) -> bool:
    """Tell whether one thing was given that is no number, such as None or a text, or an empty list.

    Whatever else is wrong with values shows when they are read.
    """
    if isinstance(values, list | tuple):
        return not values
    no_number = values is None or isinstance(values, str | bytes | Mapping | Number)
    return no_number and not isinstance(values, int | float | np.generic)


def joined(problem: Problem, tables: Iterable[LossMapping], n: int) -> dict[str, Array]:
    """Join ``n`` tables of one row each.

    The tables may come one by one, and none is kept after its row was copied. What stands beside
    the losses is the same for all of them and stays one row.
    """
    known = [*problem.names, problem.minimize, *problem.beside]
    risks = {risk.name: risk for risk in problem.risks}
    result: dict[str, Array] = {}
    for row, table in enumerate(tables):
        arrays = {name: np.asarray(table[name]) for name in known if name in table}
        if row == 0:
            result = {
                name: values[0] if name in problem.beside else _room(values, n)
                for name, values in arrays.items()
            }
        result = {name: column for name, column in result.items() if name in arrays}
        for name, column in result.items():
            if name in problem.beside:
                _check_same(name, column, arrays[name][0])
            else:
                result[name] = _with_row(name, column, row, arrays[name], risks.get(name))
    return result


def _room(values: Array, n: int) -> Array:
    """Make an empty column for ``n`` rows like the given one."""
    return np.empty((n, *values.shape[1:]), values.dtype)


def _with_row(name: str, column: Array, row: int, values: Array, risk: Risk | None) -> Array:
    """Write one more row into a column, in a type that holds both.

    Losses at an end of their range stay there when single precision becomes double.
    """
    if values.shape[1:] != column.shape[1:]:
        sizes = sorted((column.shape[1:], values.shape[1:]))
        raise LossError(
            f"Every configuration must be tested on the same examples, but the number of "
            f"losses of {name!r} differs: {sizes[0]} and {sizes[1]}. Evaluate all trials on "
            f"one calibration set; for examples that do not count use NaN and "
            f"Risk(..., conditional=True)."
        )
    kind = np.result_type(column, values)
    if column.dtype != kind:
        wider = np.empty(column.shape, kind)
        wider[:row] = column[:row] if risk is None else as_given(risk, column[:row])
        column = wider
    column[row] = values[0] if risk is None or values.dtype == kind else as_given(risk, values)[0]
    return column


def _check_same(name: str, column: Array, values: Array) -> None:
    """Refuse groups or weights that differ between trials."""
    if not np.array_equal(column, values, equal_nan=column.dtype.kind == "f"):
        raise LossError(
            f"What stands beside the losses must be the same for every configuration, but "
            f"{name!r} differs between trials. Evaluate all trials on the same examples, in the "
            f"same order."
        )
