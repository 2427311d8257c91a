"""A certificate in a file, checked against a table of losses or a study's storage."""

from dataclasses import replace
from pathlib import Path

from riskpilot.common import how_many, parse, signed_files
from riskpilot.errors import CertificateError, LossError
from riskpilot.guarantee import SCHEMA, Certificate, Seal
from riskpilot.problem import Problem
from riskpilot.selection import (
    Verification,
    checked_evaluated,
    differing_marks,
    ledger_beside,
    whole_table,
)
from riskpilot.study.as_tables import is_storage, open_study
from riskpilot.study.questions.differences import differences_from_file_ledger
from riskpilot.study.questions.trusting import FILE_LEDGER_IS_OLD, FILE_LEDGER_KNOWS
from riskpilot.study.questions.verifying import verify
from riskpilot.tables import Columns, LossTable, is_archive, open_table, wanted_columns


def audit(
    path: Path,
    losses: str,
    study_name: str | None = None,
    artifacts: Path | None = None,
    seal: Path | None = None,
) -> Verification:
    """Compute the certificate in a file again from a table of losses, or from a study's storage.

    A certificate that was edited does not hold; a file that never was one raises an error.
    """
    sealed = None if seal is None else Seal.load(seal)
    text = signed_files.load(path, "certificate")
    try:
        certificate = Certificate.from_json(text)
    except CertificateError as error:
        if not _was_certificate(text):
            raise
        return Verification((str(error),))  # it was edited, so that no losses can confirm it
    if is_storage(losses):
        study = open_study(losses, study_name, artifacts)
        return verify(certificate, study=study, seal=sealed)
    problem = Problem.from_dict(certificate.problem)
    if certificate.table is not None and certificate.table["kind"] == "counts":
        raise CertificateError(
            "The certificate was made of counts, which no file of losses holds. Check it against "
            "the counts: riskpilot.verify(certificate, validation=..., calibration=...)."
        )
    if certificate.table is not None and not is_archive(losses):
        found = _audit_long_table(certificate, problem, losses, sealed)
    else:
        table = whole_table(problem, losses, again=True)
        found = verify(
            certificate,
            validation=table.validation,
            calibration=table.calibration,
            configs=table.configs,
            seal=sealed,
        )
        found = _with_marks(found, certificate, table)
    return _with_ledger(found, certificate, ledger_beside(losses))


def _audit_long_table(
    certificate: Certificate, problem: Problem, losses: str, seal: Seal | None
) -> Verification:
    """Compute a certificate again from a long table, read as it was when the question was asked."""
    assert certificate.table is not None
    columns = Columns.from_dict(certificate.table)
    rows = [candidate["row"] for candidate in certificate.candidates]
    with open_table(losses, columns, wanted_columns(problem)) as table:
        if rows and max(rows) >= len(table.configs):
            return Verification(
                (
                    f"the table has {how_many(len(table.configs), 'configuration')}, the "
                    f"certificate says that {certificate.n_configs:,} were considered",
                )
            )
        return verify(
            certificate,
            validation=table.read("validation"),
            calibration=table.read("calibration", rows=rows),
            configs=table.configs,
            seal=seal,
        )


def _with_marks(found: Verification, certificate: Certificate, table: LossTable) -> Verification:
    """Compare what a table says of rows that a race ended with what the certificate says of them.

    One that says nothing, as an array that was put together by hand, is taken to agree.
    """
    if table.n_evaluated is None:
        return found
    n, k = certificate.n_configs, certificate.n_validation
    try:
        ended = checked_evaluated(table.n_evaluated, n, k)
    except LossError as error:
        return replace(found, differences=(*found.differences, str(error)))
    if ended == certificate.evaluated:
        return found
    return replace(found, differences=(*found.differences, differing_marks(ended, certificate)))


def _with_ledger(found: Verification, certificate: Certificate, path: Path) -> Verification:
    """Compare a certificate with the ledger beside the table, where it names one that is there."""
    if FILE_LEDGER_KNOWS not in found.trusted or not path.exists():
        return found
    differences = differences_from_file_ledger(certificate, path)
    trusted = [FILE_LEDGER_IS_OLD if one == FILE_LEDGER_KNOWS else one for one in found.trusted]
    return Verification((*found.differences, *differences), tuple(trusted))


def _was_certificate(text: str) -> bool:
    """Tell whether a text that cannot be read as a certificate was one before it was changed."""
    try:
        data = parse(text)
    except ValueError:
        return False
    return isinstance(data, dict) and data.get("schema") == SCHEMA
