"""The record that a finished trial carries openly: sums of its validation losses, no losses.

Validation and calibration losses are two artifacts. A trial carries openly the summary of its
validation losses and the number of its calibration examples, never the losses of these.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from optuna.trial import FrozenTrial

from riskpilot.common import (
    Array,
    ShapeError,
    anything,
    digest,
    digest_of,
    flag,
    integer,
    mapping_of,
    optional,
    real,
    record,
    text,
    whole,
)
from riskpilot.errors import LossError, StudyError, shown
from riskpilot.losses import RiskLosses, ValidationLosses, is_usable_free, summary_of
from riskpilot.problem import Problem
from riskpilot.study.kept.attributes import as_written
from riskpilot.study.kept.remembered import Remembered

RECORD_KEY = "riskpilot:record"
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
            content = as_written(data, _RECORD)
        except ShapeError as error:
            raise _not_whole(error) from error
        risks = {name: RiskRecord(**fields) for name, fields in content["risks"].items()}
        return cls(**{**content, "risks": risks})


ARTIFACT = record(id=text, sha256=digest)
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
    artifacts=mapping_of(ARTIFACT),
    version=integer,
    digest=digest,
)


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


def record_from(
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


def has_record(trial: FrozenTrial) -> bool:
    """Tell whether a trial carries a record that can be searched, without reading it.

    A free objective that is too large is refused today. A study may hold one from before, and such
    a trial is passed over as if it had no losses.
    """
    stored = trial.user_attrs.get(RECORD_KEY)
    if stored is None:
        return False
    free = stored.get("free") if isinstance(stored, Mapping) else None
    return not (isinstance(free, float) and math.isfinite(free)) or bool(is_usable_free(free))


def _read_record(trial: FrozenTrial) -> Record | None:
    """Read the record of a trial; None where it carries none that can be searched."""
    return Record.from_json(trial.user_attrs[RECORD_KEY]) if has_record(trial) else None


record_of = Remembered(_read_record)


def any_record_of(trial: FrozenTrial) -> Record | None:
    """Read the record of a trial, although its free objective may be too large for a search: a
    certificate from before such a one was refused still holds. None where it carries none."""
    written = trial.user_attrs.get(RECORD_KEY)
    return record_of(trial) or (None if written is None else Record.from_json(written))
