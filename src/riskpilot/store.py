"""Losses in and out of Optuna: numbers the search may see on the trial, losses in artifacts.

Validation and calibration losses are two artifacts. What a trial carries openly is the summary of
its validation losses and how many calibration examples there are, never what they cost.
"""

import hashlib
import io
import json
import uuid
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt
import optuna
from optuna.artifacts import FileSystemArtifactStore
from optuna.artifacts.exceptions import ArtifactNotFound
from optuna.storages import BaseStorage, JournalStorage
from optuna.trial import FrozenTrial

from riskpilot.errors import LossError, StudyError
from riskpilot.losses import (
    CalibrationLosses,
    Evaluation,
    LossMapping,
    RiskLosses,
    ValidationLosses,
    calibration_losses,
    check_disjoint,
    validation_losses,
)
from riskpilot.problem import Problem
from riskpilot.statistics import Summary

PROBLEM_KEY = "riskpilot:problem"
SETTINGS_KEY = "riskpilot:settings"
LEDGER_KEY = "riskpilot:ledger"
RECORD_KEY = "riskpilot:record"
ERROR_KEY = "riskpilot:error"

SplitName = Literal["validation", "calibration"]
Array = npt.NDArray[Any]

# Where a storage cannot tell by itself where losses go (memory, S3 and so on).
_stores: "weakref.WeakKeyDictionary[BaseStorage, Any]" = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class RiskRecord:
    """The sums of one risk's validation losses (see `Summary`) and the digest of the losses."""

    n: int
    total: float
    squares: float
    above_zero: int
    binary: bool
    digest: str


@dataclass(frozen=True)
class Record:
    """What a finished trial says about itself before calibration is opened."""

    risks: Mapping[str, RiskRecord]
    free: float
    free_error: float | None
    n_validation: int
    n_calibration: int | None
    artifacts: Mapping[str, Mapping[str, str]]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Record":
        risks = {name: RiskRecord(**fields) for name, fields in data["risks"].items()}
        return cls(**{**data, "risks": risks})


def validation_of(problem: Problem, records: Sequence[Record]) -> ValidationLosses:
    """The validation losses of finished trials, as far as search and plan need them: their sums."""
    risks = {}
    for risk in problem.risks:
        rows = [record.risks[risk.name] for record in records]
        summary = Summary(
            n=np.array([row.n for row in rows]),
            total=np.array([row.total for row in rows]),
            squares=np.array([row.squares for row in rows]),
            above_zero=np.array([row.above_zero for row in rows]),
            binary=all(row.binary for row in rows),
        )
        digests = tuple(bytes.fromhex(row.digest) for row in rows)
        risks[risk.name] = RiskLosses(risk, None, records[0].n_validation, summary, digests)
    errors = [record.free_error for record in records]
    known = [error for error in errors if error is not None]
    return ValidationLosses(
        problem,
        risks,
        np.array([record.free for record in records]),
        np.array(known) if len(known) == len(errors) else None,
    )


class MemoryArtifactStore:
    """An artifact store for studies that live in memory."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    def open_reader(self, artifact_id: str) -> BinaryIO:
        if artifact_id not in self._blobs:
            raise ArtifactNotFound("not found")
        return io.BytesIO(self._blobs[artifact_id])

    def write(self, artifact_id: str, content_body: BinaryIO) -> None:
        self._blobs[artifact_id] = content_body.read()

    def remove(self, artifact_id: str) -> None:
        self._blobs.pop(artifact_id, None)


def problem_of(study: optuna.Study) -> Problem:
    """The problem that travels with the study."""
    stored = study.user_attrs.get(PROBLEM_KEY)
    if stored is None:
        raise StudyError(
            f"The study {study.study_name!r} carries no riskpilot problem. "
            f"Make studies with riskpilot.create_study(problem, ...)."
        )
    return Problem.from_dict(stored)


def attach_store(study: optuna.Study, storage: object, artifact_store: Any) -> None:
    """Settle where losses go: the given store, or a folder beside the storage's file."""
    if artifact_store is not None:
        _stores[study._storage] = artifact_store
        return
    if storage is None:
        _stores[study._storage] = MemoryArtifactStore()
        return
    if study._storage in _stores:
        return
    folder = _folder_beside(storage)
    if folder is None:
        raise StudyError(
            "Losses need a place of their own beside this storage, and none was given. Pass one: "
            'create_study(..., artifact_store=FileSystemArtifactStore("losses")).'
        )
    folder.mkdir(parents=True, exist_ok=True)
    _stores[study._storage] = FileSystemArtifactStore(folder)


def store_of(study: optuna.Study) -> Any:
    store = _stores.get(study._storage)
    if store is None:
        folder = _folder_beside(_address(study._storage))
        if folder is None or not folder.exists():
            raise StudyError(
                f"The losses of study {study.study_name!r} are not at hand. Load it with "
                f"riskpilot.load_study(storage=..., artifact_store=...), naming the store it was "
                f"made with."
            )
        store = _stores[study._storage] = FileSystemArtifactStore(folder)
    return store


def _address(storage: object) -> object:
    backend = getattr(storage, "_backend", storage)  # a cached RDB storage wraps the real one
    return getattr(backend, "url", storage)


def _folder_beside(storage: object) -> Path | None:
    if isinstance(storage, JournalStorage):
        path = getattr(getattr(storage, "_backend", None), "_file_path", None)
        return None if path is None else Path(f"{path}.losses")
    address = str(storage if isinstance(storage, str) else _address(storage))
    prefix = "sqlite:///"
    if not address.startswith(prefix):
        return None
    return Path(address.removeprefix(prefix).split("?")[0] + ".losses")


def write_evaluation(
    study: optuna.Study, trial: optuna.Trial, problem: Problem, evaluation: Evaluation
) -> Record:
    """Check, store and read back the losses of one trial; its record goes to the trial last."""
    validation_table = _one_row(problem, evaluation.validation, "validation")
    validation = validation_losses(problem, validation_table)
    artifacts = {"validation": _write(store_of(study), validation_table)}
    n_calibration = None
    if evaluation.calibration is not None:
        calibration_table = _one_row(problem, evaluation.calibration, "calibration")
        calibration = calibration_losses(problem, calibration_table)
        check_disjoint(validation, calibration)
        n_calibration = calibration.n_examples
        artifacts["calibration"] = _write(store_of(study), calibration_table)
    record = Record(
        risks={name: _risk_record(losses) for name, losses in validation.risks.items()},
        free=float(validation.free[0]),
        free_error=None if validation.free_error is None else float(validation.free_error[0]),
        n_validation=validation.n_examples,
        n_calibration=n_calibration,
        artifacts=artifacts,
    )
    trial.set_user_attr(RECORD_KEY, record.to_json())
    return record


def _risk_record(losses: RiskLosses) -> RiskRecord:
    summary = losses.summary
    return RiskRecord(
        n=int(summary.n[0]),
        total=float(summary.total[0]),
        squares=float(summary.squares[0]),
        above_zero=int(summary.above_zero[0]),
        binary=summary.binary,
        digest=losses.row_digests[0].hex(),
    )


def record_of(trial: FrozenTrial) -> Record | None:
    stored = trial.user_attrs.get(RECORD_KEY)
    return None if stored is None else Record.from_json(stored)


def read_calibration(study: optuna.Study, problem: Problem, trial: FrozenTrial) -> LossMapping:
    """The sealed losses of one trial. Only `select` and `verify` call this, after the plan."""
    return _read(study, trial, "calibration", problem)


def read_validation(study: optuna.Study, problem: Problem, trial: FrozenTrial) -> LossMapping:
    return _read(study, trial, "validation", problem)


def _read(
    study: optuna.Study, trial: FrozenTrial, split: SplitName, problem: Problem
) -> dict[str, Array]:
    record = record_of(trial)
    entry = None if record is None else record.artifacts.get(split)
    if entry is None:
        raise StudyError(
            f"Trial {trial.number} has no {split} losses. Return them from the evaluation, "
            f"Evaluation(validation=..., calibration=...), or give select a calibrate function."
        )
    try:
        with store_of(study).open_reader(entry["id"]) as reader:
            blob = reader.read()
    except ArtifactNotFound as error:
        raise StudyError(
            f"Trial {trial.number}: its {split} losses are gone from the artifact store. "
            f"Restore the folder of losses that belongs to the storage."
        ) from error
    if hashlib.sha256(blob).hexdigest() != entry["sha256"]:
        raise StudyError(
            f"Trial {trial.number}: its {split} losses were changed after they were recorded "
            f"(their digest differs). Restore them from a copy, or evaluate the trial again."
        )
    return decode(blob)


def _write(store: Any, table: Mapping[str, Array]) -> dict[str, str]:
    blob = encode(table)
    artifact_id = str(uuid.uuid4())
    store.write(artifact_id, io.BytesIO(blob))
    with store.open_reader(artifact_id) as reader:
        if reader.read() != blob:
            raise StudyError(
                "The artifact store did not give back the losses that were written to it. "
                "Check the disk or the bucket behind it."
            )
    return {"id": artifact_id, "sha256": hashlib.sha256(blob).hexdigest()}


def encode(table: Mapping[str, Array]) -> bytes:
    """Losses of one configuration as bytes: 0/1 losses in bits, others as they are. No pickles."""
    arrays: dict[str, Array] = {}
    names = {}
    for i, (name, values) in enumerate(table.items()):
        binary = values.ndim == 2 and bool(((values == 0) | (values == 1)).all())
        arrays[f"a{i}"] = np.packbits(values != 0, axis=1) if binary else values
        names[f"a{i}"] = {"name": name, "length": values.shape[1] if binary else None}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, names=np.array(json.dumps(names)), **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def decode(blob: bytes) -> dict[str, Array]:
    with np.load(io.BytesIO(blob), allow_pickle=False) as arrays:
        names = json.loads(str(arrays["names"]))
        return {
            entry["name"]: arrays[key]
            if entry["length"] is None
            else np.unpackbits(arrays[key], axis=1, count=entry["length"]).astype(bool)
            for key, entry in names.items()
        }


def _one_row(problem: Problem, losses: LossMapping, split: str) -> dict[str, Array]:
    """One configuration's losses as a table of one row; a free objective may be a number."""
    table: dict[str, Array] = {}
    for name, values in losses.items():
        array = np.asarray(values)
        if name in problem.names and array.ndim != 1:
            raise LossError(
                f"{split}: the losses of {name!r} must be one number per example, shape (examples,)"
                f", but their shape is {array.shape}. Give the loss of every example."
            )
        if array.ndim > 1:
            raise LossError(
                f"{split}: {name!r} must be a number or one number per example, "
                f"but its shape is {array.shape}. Give its mean, or one number per example."
            )
        table[str(name)] = array[None]
    return table


def joined(problem: Problem, tables: list[LossMapping]) -> dict[str, Array]:
    """Tables of one row each as one table."""
    names = [name for name in [*problem.names, problem.minimize] if all(name in t for t in tables)]
    for name in names:
        sizes = sorted({np.shape(table[name])[1:] for table in tables})
        if len(sizes) > 1:
            raise LossError(
                f"Every configuration must be tested on the same examples, but the number of "
                f"losses of {name!r} differs: {sizes[0]} and {sizes[-1]}. Evaluate all trials on "
                f"one calibration set; for examples that do not count use NaN and "
                f"Risk(..., conditional=True)."
            )
    return {name: np.concatenate([np.asarray(t[name]) for t in tables]) for name in names}


def calibration_of(problem: Problem, tables: list[LossMapping]) -> CalibrationLosses:
    return calibration_losses(problem, joined(problem, tables))


def one_row_calibration(problem: Problem, losses: LossMapping) -> dict[str, Array]:
    """Losses that a calibrate function returned for one configuration, as a table of one row."""
    return _one_row(problem, losses, "calibration")
