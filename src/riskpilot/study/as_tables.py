"""The losses of a study as a table: to verify a certificate, or to hand to those who will."""

from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from riskpilot.errors import StudyError, TableError
from riskpilot.study.creation import load_study
from riskpilot.study.question_ledger import ledger
from riskpilot.study.records import joined, problem_of, read_calibration, read_validation, record_of
from riskpilot.study.storages import (
    clear_errors,
    hide_password,
    is_storage,
    open_storage,
    without_password,
)
from riskpilot.tables import LossTable, save_losses

__all__ = [
    "export_losses",
    "hide_password",
    "is_storage",
    "open_study",
    "study_losses",
    "without_password",
]


def open_study(
    address: str, study_name: str | None = None, artifacts: str | Path | None = None
) -> optuna.Study:
    """The study at a storage address, or in a SQLite or journal file.

    ``artifacts``: the folder of its losses, where it is not the one beside the file.
    """
    shown = hide_password(address)
    with clear_errors(address, TableError):
        storage = _storage(address)
        names = optuna.get_all_study_names(storage)
    if study_name is None and len(names) == 1:
        study_name = names[0]
    if study_name not in names:
        asked = "one study" if study_name is None else f"the study {study_name!r}"
        raise StudyError(
            f"The storage {shown!r} was to hold {asked}, but it holds "
            f"{', '.join(sorted(names)) or 'none'}. Name one of them with --study-name."
        )
    return load_study(storage=storage, study_name=study_name, artifact_store=artifacts)


def study_losses(
    study: optuna.Study,
    trials: Collection[int] | None = None,
    tested: Sequence[int] | None = None,
) -> LossTable:
    """The losses of a study whose calibration data a selection has opened.

    ``trials``: only those of these numbers, among which a question of the ledger chose; the study
    may have gone on since. ``tested``: the rows, in testing order, whose calibration losses are
    asked for; all by default, and where a row is not there. Others may have none, where `select`
    made them.
    """
    if not ledger(study):
        raise StudyError(
            f"The calibration losses of the study {study.study_name!r} are sealed: nothing has "
            f"been selected from it yet. Select first, riskpilot.select(study), then export."
        )
    problem = problem_of(study)
    finished = _finished(study)
    if trials is not None:
        finished = [trial for trial in finished if trial.number in trials]
    opened = finished
    if tested is not None and all(row < len(finished) for row in tested):
        opened = [finished[row] for row in tested]
    return LossTable(
        joined(problem, (read_validation(study, problem, t) for t in finished), len(finished)),
        joined(problem, (read_calibration(study, problem, t) for t in opened), len(opened)),
        tuple(dict(trial.params) for trial in finished),
    )


def export_losses(study: optuna.Study, path: str | Path) -> Path:
    """Write the losses of a study as an .npz table, with which others can verify its certificate.

    Works after `select` alone: until then the calibration losses are sealed.
    """
    table = study_losses(study)
    return save_losses(
        path,
        validation=table.validation,
        calibration=table.calibration,
        configs=table.configs,
    )


def _storage(address: str) -> str | BaseStorage:
    if "://" not in address:
        _existing(address, Path(address))
    else:
        try:
            parts = urlsplit(address)
        except ValueError as error:
            raise TableError(
                f"The storage {hide_password(address)!r} cannot be opened: "
                f"{without_password(str(error), address)}. Give an address such as "
                f"sqlite:///study.db."
            ) from None  # the chained error could show the password
        if parts.scheme.startswith("sqlite") and parts.path.strip("/"):
            _existing(address, Path(parts.path[1:]))
    with clear_errors(address, TableError):
        return open_storage(address)


def _existing(address: str, path: Path) -> Path:
    # SQLite would make an empty database of a name with a typing error.
    if not path.is_file():
        raise TableError(
            f"There is no study at {hide_password(address)!r}: the file {str(path)!r} does not "
            f"exist. Give the path relative to the folder in which the command runs."
        )
    return path


def _finished(study: optuna.Study) -> list[FrozenTrial]:
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return [trial for trial in trials if record_of(trial) is not None]
