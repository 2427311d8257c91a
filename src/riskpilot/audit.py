"""Certificates on disk, checked against the losses on disk that they were made of."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from riskpilot.certificate import SCHEMA, Certificate
from riskpilot.errors import CertificateError
from riskpilot.ledger import ledger, trials_of
from riskpilot.long_tables import LossTable
from riskpilot.problem import Problem
from riskpilot.study_tables import is_storage, open_study, study_losses
from riskpilot.tables import read_losses
from riskpilot.verification import Verification, verify


def audit(path: Path, losses: str, study_name: str | None, artifacts: Path | None) -> Verification:
    """Compute the certificate in a file again from a table of losses, or from a study's storage.

    A certificate that was edited does not hold; a file that never was one raises an error.
    """
    try:
        certificate = Certificate.load(path)
    except CertificateError as error:
        if not _was_certificate(path):
            raise
        return Verification((str(error),))  # edited: it says what the losses never said
    problem = Problem.from_dict(certificate.problem)
    differences: list[str] = []
    if is_storage(losses):
        study = open_study(losses, study_name, artifacts)
        entry = _entry_of(certificate, ledger(study))
        if entry is None:
            differences.append("the ledger of the study has no such question: it lost entries")
        trials = None if entry is None else set(trials_of(entry))
        rows = [candidate["row"] for candidate in certificate.candidates]
        table = study_losses(study, trials, rows)
    else:
        table = read_losses(losses, problem.labels)
    table = table.only([*problem.names, *problem.beside], problem.minimize)
    result = verify(certificate, validation=table.validation, calibration=table.calibration)
    differences += [*result.differences, *_other_configs(certificate, table)]
    return Verification(tuple(differences))


def _entry_of(
    certificate: Certificate, entries: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """The entry of the ledger that this certificate answers."""
    return next((e for e in entries if e["digest"] == certificate.use.get("ledger")), None)


def _was_certificate(path: Path) -> bool:
    """Whether a file that cannot be read as a certificate was one before somebody changed it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and data.get("schema") == SCHEMA


def _other_configs(certificate: Certificate, table: LossTable) -> list[str]:
    """Candidates whose configuration is not the one that the table has in their row."""
    if table.configs is None:
        return []
    differences = []
    for candidate in certificate.candidates:
        row = candidate["row"]
        found = table.configs[row] if row < len(table.configs) else None
        if found != candidate["config"]:
            differences.append(
                f"row {row} of the losses is the configuration {found}, "
                f"the certificate has {candidate['config']}"
            )
    return differences
