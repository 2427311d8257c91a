"""Losses in and out of Optuna: sums that the search may see on the trial, losses in artifacts.

Validation and calibration losses are two artifacts. A trial carries openly the summary of its
validation losses and the number of its calibration examples, never the losses of these.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from riskpilot.common import (
    Array,
    Shape,
    ShapeError,
    anything,
    digest,
    digest_of,
    flag,
    integer,
    list_of,
    mapping_of,
    optional,
    real,
    record,
    text,
    whole,
)
from riskpilot.errors import LossError, RiskpilotError, StudyError, shown
from riskpilot.losses import (
    Evaluation,
    ExampleIds,
    LossMapping,
    RiskLosses,
    ValidationLosses,
    as_given,
    calibration_losses,
    check_disjoint,
    check_names,
    number_array,
    summary_of,
    text_array,
    validation_losses,
)
from riskpilot.problem import Problem, Risk
from riskpilot.study.kept.judges import JUDGE, judge_blob
from riskpilot.study.kept.loss_bytes import decode, encode
from riskpilot.study.kept.loss_store import MemoryArtifactStore, get, put, store_of
from riskpilot.study.kept.remembered import Remembered

__all__ = [
    "ERROR_KEY",
    "LABELS_KEY",
    "LEDGER_KEY",
    "PROBLEM_KEY",
    "RECORD_KEY",
    "SAFE_KEY",
    "SETTINGS_KEY",
    "MemoryArtifactStore",
    "Record",
    "RiskRecord",
    "check_same_ids",
    "check_size",
    "decode",
    "encode",
    "forget_calibration",
    "has_calibration",
    "joined",
    "keep_ids",
    "one_row",
    "problem_of",
    "read_calibration",
    "read_validation",
    "record_again",
    "record_of",
    "store_evaluation",
    "validation_of",
    "write_calibration",
]

PROBLEM_KEY = "riskpilot:problem"
SETTINGS_KEY = "riskpilot:settings"
LEDGER_KEY = "riskpilot:ledger"
# With a question and a number behind it: where a batch of labels is that arrived for the question.
LABELS_KEY = "riskpilot:labels:"
RECORD_KEY = "riskpilot:record"
ERROR_KEY = "riskpilot:error"
SAFE_KEY = "riskpilot:safe"
# With the number of a trial behind it: where calibration losses are that were made after the end of
# that trial. A finished trial takes no more attributes, so that the study keeps them.
CALIBRATION_KEY = "riskpilot:calibration:"
# With the name of a split behind it: the digest of the ids of its examples, as the first trial that
# had ids had them.
IDS_KEY = "riskpilot:ids:"
# The format in which a study keeps its problem and its settings; another one is not read.
STUDY_FORMAT = 2
# The format in which records are written; another one is not read.
RECORD_VERSION = 3

SplitName = Literal["validation", "calibration"]


@dataclass(frozen=True)
class RiskRecord:
    """The sums of one risk's validation losses (see `Summary`) and the digest of the losses.

    ``changes``: how often a loss differs from the one before it.
    """

    n: int
    total: float
    squares: float
    above_zero: int
    binary: bool
    digest: str
    changes: int
    threshold: float | None = None
    groups: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class Record:
    """What a finished trial says about itself before calibration is opened."""

    risks: Mapping[str, RiskRecord]
    free: float
    free_error: float | None
    n_validation: int
    n_calibration: int | None
    artifacts: Mapping[str, Mapping[str, str]]
    version: int = RECORD_VERSION

    def to_json(self) -> dict[str, Any]:
        """Write the record as plain JSON, with its digest."""
        data = asdict(self)
        return {**data, "digest": digest_of(data)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Record":
        """Read what `to_json` wrote; a record in another format is refused."""
        version = data.get("version") if isinstance(data, Mapping) else None
        if version != RECORD_VERSION:
            raise StudyError(
                f"The record of a trial must be in format {RECORD_VERSION}, but one is in format "
                f"{shown(version)}. Read the study with the version of riskpilot that wrote it."
            )
        try:
            content = _as_written(data, _RECORD)
        except ShapeError as error:
            raise _not_whole(error) from error
        risks = {name: RiskRecord(**fields) for name, fields in content["risks"].items()}
        return cls(**{**content, "risks": risks})


_ARTIFACT = record(id=text, sha256=digest)
_RISK_RECORD = record(
    n=real,
    total=real,
    squares=real,
    above_zero=real,
    binary=flag,
    digest=digest,
    changes=real,
    threshold=optional(real),
    groups=anything,
)
_RECORD = record(
    risks=mapping_of(_RISK_RECORD),
    free=real,
    free_error=optional(real),
    n_validation=whole(1),
    n_calibration=optional(whole(1)),
    artifacts=mapping_of(_ARTIFACT),
    version=integer,
    digest=digest,
)
_PROBLEM = record(risks=list_of(anything), minimize=text, delta=real, digest=digest)
_SETTINGS = record(
    format=integer,
    seed=whole(),
    n_calibration=optional(whole(1)),
    entropy=whole(),
    digest=digest,
)


def _as_written(data: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """Return stored values without their digest; `ShapeError` where they were changed."""
    shape(data, "")
    content = {name: value for name, value in data.items() if name != "digest"}
    try:
        found = digest_of(content)
    except (RecursionError, TypeError, ValueError):  # what JSON does not hold was never written
        found = None
    if found != data["digest"]:
        raise ShapeError("its digest does not match its content")
    return content


def _not_whole(reason: object) -> StudyError:
    """Make the error that says why the record of a trial cannot be used."""
    return StudyError(
        f"The record of a trial must be whole, but one is not: {reason}. The storage was changed "
        f"from outside; restore it from a copy."
    )


def check_size(split: SplitName, expected: int | None, found: int) -> None:
    """Refuse a trial with another number of examples than the first; None where that is open."""
    if expected is not None and found != expected:
        raise LossError(
            f"Every trial of a study is evaluated on the same {split} examples, but this one "
            f"has {found:,} where the first had {expected:,}. Use one {split} set; for examples "
            f"that do not count use NaN and Risk(..., conditional=True)."
        )


def validation_of(problem: Problem, records: Sequence[Record]) -> ValidationLosses:
    """Collect the sums of validation losses of finished trials: all that search and plan need."""
    risks = {}
    for risk in problem.risks:
        if not all(risk.name in record.risks for record in records):
            raise _not_whole(f"it knows nothing of the risk {risk.name!r}")
        rows = [record.risks[risk.name] for record in records]
        summary = summary_of(risk, rows)
        digests = tuple(bytes.fromhex(row.digest) for row in rows)
        changes = max(row.changes for row in rows)
        risks[risk.name] = RiskLosses(
            risk, None, records[0].n_validation, summary, digests, known_changes=changes
        )
    errors = [record.free_error for record in records]
    known = [error for error in errors if error is not None]
    return ValidationLosses(
        problem,
        risks,
        np.array([record.free for record in records]),
        np.array(known) if len(known) == len(errors) else None,
    )


def require_study(study: object) -> None:
    """Refuse what is no study."""
    if not isinstance(study, optuna.Study):
        raise StudyError(
            f"A study made by riskpilot.create_study is needed, but this is {shown(study)}. "
            f"Load one from its storage: riskpilot.load_study(storage=...)."
        )


def problem_of(study: optuna.Study, otherwise: Problem | None = None) -> Problem:
    """Return the problem that travels with the study, or the other one where it carries none."""
    require_study(study)
    attributes = attributes_of(study)
    stored = attributes.get(PROBLEM_KEY)
    if stored is None and otherwise is not None:
        return otherwise
    if stored is None:
        raise StudyError(
            f"The study {study.study_name!r} carries no riskpilot problem. "
            f"Make studies with riskpilot.create_study(problem, ...)."
        )
    if not _settings(study, attributes):
        raise _other_format(study, None)
    try:
        content = _as_written(stored, _PROBLEM)
        return Problem.from_dict(content)
    except (ShapeError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _changed(study, "problem", error) from error


def attributes_of(study: optuna.Study) -> dict[str, Any]:
    """Read the attributes of a study, or refuse a storage in which one of them is damaged."""
    try:
        return study.user_attrs
    except RiskpilotError:
        raise
    except (RecursionError, TypeError, ValueError) as error:
        raise _changed(study, "attributes", error) from error


def _changed(study: optuna.Study, what: str, reason: object) -> StudyError:
    """Make the error that says why what a study keeps cannot be used."""
    return StudyError(
        f"The {what} of the study {study.study_name!r} must be as riskpilot wrote it, but it "
        f"cannot be used: {reason}. The storage was changed from outside; restore it from a copy."
    )


def _other_format(study: optuna.Study, found: object) -> StudyError:
    """Make the error that says that a study is in a format that this version does not read."""
    return StudyError(
        f"A study must be in format {STUDY_FORMAT}, but the study {study.study_name!r} is in "
        f"format {shown(found)}. Read it with the version of riskpilot that wrote it."
    )


def write_problem(study: optuna.Study, problem: Problem) -> None:
    """Store the problem that travels with the study."""
    content = problem.to_dict()
    study.set_user_attr(PROBLEM_KEY, {**content, "digest": digest_of(content)})


def settings_of(study: optuna.Study) -> Mapping[str, Any]:
    """Return the stored settings of a study, or nothing where it has none.

    They are its format, the seed of its search, the stated number of calibration examples, and
    the randomness that the order of bets is drawn from.
    """
    return _settings(study, attributes_of(study))


def _settings(study: optuna.Study, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings among the attributes of a study, as they were written."""
    stored = attributes.get(SETTINGS_KEY)
    if stored is None:
        return {}
    found = stored.get("format") if isinstance(stored, Mapping) else None
    if found != STUDY_FORMAT:
        raise _other_format(study, found)
    try:
        return _as_written(stored, _SETTINGS)
    except ShapeError as error:
        raise _changed(study, "settings", error) from error


def write_settings(study: optuna.Study, seed: int, n_calibration: int | None) -> None:
    """Store the settings of a study."""
    settings = {
        "format": STUDY_FORMAT,
        "seed": seed,
        "n_calibration": n_calibration,
        # Drawn once: it makes the order of bets random, and the same for the same question.
        "entropy": secrets.randbits(53),
    }
    study.set_user_attr(SETTINGS_KEY, {**settings, "digest": digest_of(settings)})


def store_evaluation(
    study: optuna.Study,
    problem: Problem,
    evaluation: Evaluation,
    ids: ExampleIds,
    n_validation: int | None = None,
    n_calibration: int | None = None,
) -> Record:
    """Check and store the losses of one configuration, and return their record.

    Every number of the record is computed from the stored losses. ``ids``: of the examples, as far
    as they are known. ``n_validation``, ``n_calibration``: how many examples there must be, where
    that is known.
    """
    store = store_of(study)
    validation_table = one_row(problem, evaluation.validation, "validation")
    validation_losses(problem, validation_table)
    validation_blob = _encode(problem, validation_table)
    validation = validation_losses(problem, decode(validation_blob))
    check_size("validation", n_validation, validation.n_examples)
    ids.check_size("validation", validation.n_examples)
    calibration_blob = found = None
    if evaluation.calibration is not None:
        calibration_table = one_row(problem, evaluation.calibration, "calibration")
        calibration_losses(problem, calibration_table)
        calibration_blob = _encode(problem, calibration_table)
        calibration = calibration_losses(problem, decode(calibration_blob))
        check_size("calibration", n_calibration, calibration.n_examples)
        ids.check_size("calibration", calibration.n_examples)
        check_disjoint(validation, calibration)
        found = calibration.n_examples
    scores_blob = judge_blob(problem, evaluation, found)
    # Nothing is written before everything is known to be in order.
    artifacts = {"validation": put(store, validation_blob)}
    if calibration_blob is not None:
        artifacts["calibration"] = put(store, calibration_blob)
    if scores_blob is not None:
        artifacts[JUDGE] = put(store, scores_blob)
    return _record(validation, found, artifacts)


def check_same_ids(study: optuna.Study, ids: ExampleIds) -> None:
    """Refuse a trial whose examples have other ids than those of the first trial that had ids."""
    if not ids.digests:
        return
    attributes = attributes_of(study)
    for split, found in ids.digests.items():
        if attributes.get(f"{IDS_KEY}{split}", found) != found:
            raise LossError(
                f"Every trial of a study is evaluated on the same {split} examples, in the same "
                f"order, but {split}_ids are not those of an earlier trial. Use one {split} set."
            )


def keep_ids(study: optuna.Study, ids: ExampleIds) -> None:
    """Keep the digests of the ids of a trial's examples, where no earlier trial had any."""
    if not ids.digests:
        return
    attributes = attributes_of(study)
    for split, found in ids.digests.items():
        if f"{IDS_KEY}{split}" not in attributes:
            study.set_user_attr(f"{IDS_KEY}{split}", found)


def record_again(
    study: optuna.Study, problem: Problem, trial: FrozenTrial, written: Record
) -> Record:
    """Compute the record of a trial again from the losses that it says are stored.

    Only `verify` calls this, after the plan: of calibration losses the examples are counted.
    """
    n_calibration = None
    if "calibration" in written.artifacts:
        sealed = read_calibration(study, problem, trial)
        n_calibration = calibration_losses(problem, sealed).n_examples
    validation = validation_losses(problem, read_validation(study, problem, trial))
    return _record(validation, n_calibration, written.artifacts)


def _record(
    validation: ValidationLosses,
    n_calibration: int | None,
    artifacts: Mapping[str, Mapping[str, str]],
) -> Record:
    """Make the record of one configuration from its losses."""
    return Record(
        risks={name: _risk_record(losses) for name, losses in validation.risks.items()},
        free=float(validation.free[0]),
        free_error=_finite(validation.free_error),
        n_validation=validation.n_examples,
        n_calibration=n_calibration,
        artifacts=artifacts,
    )


def _finite(errors: Array | None) -> float | None:
    """Return the standard error of one configuration; None where it is unknown or overflows."""
    return None if errors is None or not np.isfinite(errors[0]) else float(errors[0])


def _risk_record(losses: RiskLosses) -> RiskRecord:
    """Make the record of one risk from the losses of one configuration."""
    digest, changes = losses.row_digests[0].hex(), losses.most_changes()
    return RiskRecord(digest=digest, changes=changes, **losses.summary.record(0))


def _read_record(trial: FrozenTrial) -> Record | None:
    """Read the record of a trial; None where it carries no losses."""
    stored = trial.user_attrs.get(RECORD_KEY)
    return None if stored is None else Record.from_json(stored)


record_of = Remembered(_read_record)


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
    record = record_of(trial)
    entry = None if record is None else record.artifacts.get(split)
    if entry is None and split == "calibration":
        entry = attributes_of(study).get(f"{CALIBRATION_KEY}{trial.number}")
        try:
            optional(_ARTIFACT)(
                entry, f"the place of the calibration losses of trial {trial.number}"
            )
        except ShapeError as error:
            raise _changed(study, "attributes", error) from error
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
    check_disjoint(validation_of(problem, [record]), calibration_losses(problem, stored))
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
