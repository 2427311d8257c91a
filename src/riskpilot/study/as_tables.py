"""The losses of a study as a table: to verify a certificate, or to hand to those who will."""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from riskpilot.common import Array, shown_safely
from riskpilot.errors import StudyError
from riskpilot.study.creation import load_study
from riskpilot.study.kept.attributes import problem_of
from riskpilot.study.kept.foretold import evaluated_of
from riskpilot.study.kept.trial_losses import joined, read_calibration, read_validation
from riskpilot.study.kept.trials import Finished, considered, finished
from riskpilot.study.questions.question_ledger import ledger
from riskpilot.study.storages import clear_errors, existing_storage, hide_password, is_storage
from riskpilot.tables import LossTable, save_losses

__all__ = [
    "export_losses",
    "hide_password",
    "is_storage",
    "open_study",
    "study_losses",
]


def open_study(
    address: str, study_name: str | None = None, artifacts: str | Path | None = None
) -> optuna.Study:
    """Open the study at a storage address, or in a SQLite or journal file.

    ``artifacts``: the folder of its losses, where it is not the one beside the file.
    """
    named = hide_password(address)
    with clear_errors(address):
        storage = existing_storage(address)
        names = optuna.get_all_study_names(storage)
    if study_name is None and len(names) == 1:
        study_name = names[0]
    if study_name not in names:
        way_out = (
            "Name one of them with --study-name."
            if names
            else "Make one with riskpilot.create_study(problem, storage=...)."
        )
        asked = "one study" if study_name is None else f"the study {shown_safely(study_name)}"
        raise StudyError(
            f"The storage {named!r} was to hold {asked}, but it holds "
            f"{', '.join(map(shown_safely, sorted(names))) or 'none'}. {way_out}"
        )
    return load_study(storage=storage, study_name=study_name, artifact_store=artifacts)


def study_losses(
    study: optuna.Study,
    trials: Collection[int] | None = None,
    tested: Sequence[int] | None = None,
) -> LossTable:
    """Read the losses of a study whose calibration data a selection has opened.

    ``trials``: the numbers of the trials among which a question of the ledger chose; the study may
    have gone on since. ``tested``: the rows, in testing order, whose calibration losses are asked
    for; all by default, and all where one of the rows is not there. Other rows may have none, where
    `select` made the losses of candidates.
    """
    if not ledger(study):
        raise StudyError(
            f"The calibration losses of the study {study.study_name!r} are sealed: nothing has "
            f"been selected from it yet. Select first, riskpilot.select(study), then export."
        )
    problem = problem_of(study)
    found = finished(study) if trials is None else considered(study, trials)
    opened = chosen = found.trials
    if tested is not None and all(row < len(chosen) for row in tested):
        opened = [chosen[row] for row in tested]
    return LossTable(
        validation_table(study, chosen),
        joined(problem, (read_calibration(study, problem, t) for t in opened), len(opened)),
        tuple(dict(trial.params) for trial in chosen),
        n_evaluated=_n_evaluated(found),
    )


def _n_evaluated(found: Finished) -> Array | None:
    """Count the evaluated validation examples of each trial; None where no race ended one."""
    ended = evaluated_of(found.trials)
    if not ended:
        return None
    counts = [ended.get(row, record.n_validation) for row, record in enumerate(found.records)]
    return np.array(counts, dtype=np.int64)


def validation_table(study: optuna.Study, trials: Sequence[FrozenTrial]) -> dict[str, Array]:
    """Read the validation losses of some trials."""
    problem = problem_of(study)
    return joined(problem, (read_validation(study, problem, t) for t in trials), len(trials))


def export_losses(study: optuna.Study, path: str | Path) -> Path:
    """Write the losses of a study as an .npz table, with which others can verify its certificate.

    This works after `select` alone: until then the calibration losses are sealed. Where a race
    ended evaluations, the validation losses of the other examples are written as they were
    foretold, and the array ``n_evaluated`` says how many of the examples each row was evaluated on.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`, from which something was selected.
    path : str or Path
        The file to write.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    StudyError
        If nothing has been selected yet, or the losses of a trial are gone.
    TableError
        If the file cannot be written.

    Examples
    --------
    >>> import numpy as np, riskpilot as rp, tempfile
    >>> study = rp.create_study(rp.Problem([rp.Risk("error", 0.2)], "cost"), seed=0)
    >>> draws = np.random.default_rng(0).random((2, 500)) < 0.1
    >>> evaluation = rp.Evaluation({"error": draws[0], "cost": 1.0}, {"error": draws[1]})
    >>> study.optimize(rp.objective(study, lambda trial: evaluation), n_trials=1)
    >>> certificate = rp.select(study).certificate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_losses(study, f"{folder}/losses.npz").name
    'losses.npz'
    """
    table = study_losses(study)
    return save_losses(
        path,
        validation=table.validation,
        calibration=table.calibration,
        configs=table.configs,
        n_evaluated=table.n_evaluated,
    )
