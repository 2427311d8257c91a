"""Certificates computed again from losses, or from the study that they were made of."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from riskpilot.common import unwarned
from riskpilot.common.arrays import FloatArray
from riskpilot.errors import CertificateError, RiskpilotError, StudyError, type_in_words
from riskpilot.guarantee import (
    Certificate,
    Procedure,
    Seal,
    check_certificate,
    check_procedure,
    differences_from_seal,
    from_description,
)
from riskpilot.losses import JudgeMapping, LossMapping, ValidationLosses
from riskpilot.selection import Brought, Configs, Verification, compare
from riskpilot.study.as_tables import study_losses, validation_table
from riskpilot.study.kept.attributes import problem_of
from riskpilot.study.kept.foretold import evaluated_of
from riskpilot.study.kept.stored_space import space_as_json, space_from_json
from riskpilot.study.kept.trials import considered, space_of
from riskpilot.study.labels.kept import KeptLabels, kept_labels
from riskpilot.study.questions.asking import judges_of
from riskpilot.study.questions.differences import (
    differences_from_entry,
    differences_from_looks,
    differences_from_outcome,
    differences_from_records,
    differences_from_sealed_study,
    differences_from_settings,
)
from riskpilot.study.questions.question_ledger import (
    entry_of,
    ledger,
    losses_behind,
    outcomes,
    trials_of,
    use_of,
)
from riskpilot.study.questions.trusting import trusted_parts
from riskpilot.study.smoothing import smoothed_risks
from riskpilot.tables import LossTable


def verify(
    certificate: Certificate,
    *,
    validation: LossMapping | None = None,
    calibration: LossMapping | None = None,
    configs: Configs | None = None,
    study: optuna.Study | None = None,
    seal: Seal | None = None,
    procedure: Procedure | None = None,
    judge: JudgeMapping | None = None,
) -> Verification:
    """Recompute a certificate and say what differs.

    Everything that the losses determine is computed again. With ``study``, the certificate is also
    compared with the study's ledger, field by field, and with the trials in its storage.

    Parameters
    ----------
    certificate : Certificate
        The certificate to check.
    validation : mapping, optional
        The validation losses, as `select_from_losses` takes them.
    calibration : mapping, optional
        The calibration losses of all configurations, or of the candidates alone in testing order.
    configs : sequence of mapping, optional
        What the rows of the losses stand for. Without them the certificate's names are trusted.
    study : optuna.Study, optional
        The study that the certificate was made of, in place of losses and configs.
    seal : Seal, optional
        What was sealed before the question was asked.
    procedure : Procedure, optional
        Needed where the certificate was made with one of the user's own.
    judge : mapping, optional
        The scores of a judge, as `select_from_losses` takes them, where one helped.

    Returns
    -------
    Verification
        Whether the certificate holds, every difference, and what had to be trusted.

    Raises
    ------
    CertificateError
        If the certificate or the seal is not one, or what is needed to check it is missing.

    Examples
    --------
    >>> import numpy as np, riskpilot as rp
    >>> rng = np.random.default_rng(0)
    >>> validation = {"error": rng.random((2, 900)) < 0.1, "cost": np.array([2.0, 1.0])}
    >>> calibration = {"error": rng.random((2, 900)) < 0.1}
    >>> problem = rp.Problem([rp.Risk("error", limit=0.2)], minimize="cost")
    >>> made = rp.select_from_losses(problem, validation=validation, calibration=calibration)
    >>> rp.verify(made.certificate, validation=validation, calibration=calibration).ok
    True
    """
    _check_arguments(certificate, validation, calibration, configs, study, seal)
    _check_judge(certificate, study, judge)
    chosen = _procedure(certificate, procedure)
    brought: Brought | None
    differences: list[str] = []
    if study is not None:
        brought, differences = _from_study(certificate, study)
    else:
        assert validation is not None
        assert calibration is not None
        brought = Brought(validation, calibration, configs, judge=judge)
    if brought is not None:
        differences += _recomputed(certificate, brought, chosen)
    if seal is not None:
        differences += differences_from_seal(seal, certificate)
        if study is not None:
            differences += differences_from_sealed_study(seal, certificate, study)
    return Verification(tuple(differences), tuple(trusted_parts(certificate, configs, study, seal)))


def _check_arguments(
    certificate: Certificate,
    validation: LossMapping | None,
    calibration: LossMapping | None,
    configs: Configs | None,
    study: optuna.Study | None,
    seal: Seal | None,
) -> None:
    """Refuse arguments of `verify` that are not of their kind, or that do not go together."""
    if not isinstance(certificate, Certificate):
        raise CertificateError(
            f"verify takes a Certificate, but got {type_in_words(certificate)}. "
            f"Load it first: riskpilot.Certificate.load(path)."
        )
    if seal is not None and not isinstance(seal, Seal):
        raise CertificateError(
            f"seal is a Seal, but it is {type_in_words(seal)}. "
            f"Load it first: riskpilot.Seal.load(path)."
        )
    if study is not None and not isinstance(study, optuna.Study):
        raise CertificateError(
            f"study is an Optuna study, but it is {type_in_words(study)}. "
            f"Load it first: riskpilot.load_study(storage=...)."
        )
    given = [one is not None for one in (validation, calibration)]
    if not all(given) if study is None else any(given) or configs is not None:
        raise CertificateError(
            "A certificate is checked against validation= and calibration=, or against study=, but "
            "not against both or a part. Give the losses, or the study that holds them."
        )
    check_certificate(certificate)


def _check_judge(
    certificate: Certificate, study: optuna.Study | None, judge: JudgeMapping | None
) -> None:
    """Refuse to check a judge's help without the scores; a study has its own."""
    if study is None and (judge is None) != (certificate.judge is None):
        helped = "with" if certificate.judge is not None else "without"
        raise CertificateError(
            f"The certificate was made {helped} the help of a judge, and is checked in the same "
            f"way. {'Give its scores: judge=...' if judge is None else 'Leave judge= out'}."
        )


def _procedure(certificate: Certificate, given: Procedure | None) -> Procedure:
    """Return the procedure that was given, else the one that the certificate names."""
    if given is not None:
        check_procedure(given)
        return given
    try:
        known = from_description(certificate.procedure)
    except RiskpilotError as error:
        raise CertificateError(
            f"The procedure of the certificate cannot be made again: {error} "
            f"Take an untouched copy."
        ) from error
    if known is None:
        raise CertificateError(
            f"The certificate was made with the procedure {certificate.procedure['name']!r}, which "
            f"riskpilot does not have. Pass it: verify(..., procedure=...)."
        )
    return known


def _smooth(
    space: Mapping[str, Any], configs: Configs, validation: ValidationLosses
) -> FloatArray | None:
    """Smooth the risks over a search space as JSON."""
    try:
        with unwarned():  # Optuna warns of choices that are lists
            read = space_from_json(space)
        # Not inside: a proposal reads ranges in its turn at linear algebra, and would wait for the
        # filters of warnings while this waits for the turn.
        return smoothed_risks(read, configs, validation)
    except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise CertificateError(
            f"The certificate is malformed: its configurations do not fit its search space "
            f"({type(error).__name__}: {error}). Take an untouched copy."
        ) from None


def _recomputed(certificate: Certificate, brought: Brought, procedure: Procedure) -> list[str]:
    """Compute a certificate again; losses that do not fit it are a difference, too."""
    try:
        with np.errstate(all="ignore"):  # a made-up range may overflow, and then differs
            return compare(certificate, brought, procedure, _smooth)
    except CertificateError:
        raise
    except RiskpilotError as error:
        return [f"the losses cannot be used: {error}"]


def _from_study(certificate: Certificate, study: optuna.Study) -> tuple[Brought | None, list[str]]:
    """Read what a study's storage says: losses, configurations, search space, and the ledger.

    None in place of losses where it cannot be the study of this certificate.
    """
    try:
        entry, answers = entry_of(certificate, ledger(study)), outcomes(study)
    except StudyError as error:
        return None, [f"the ledger cannot be relied on: {error}"]
    if entry is None:
        return None, ["the ledger has no such question: it is another study's, or it lost entries"]
    differences = differences_from_entry(entry, certificate)
    differences += differences_from_outcome(answers.get(entry["use"], []), certificate)
    differences += differences_from_settings(study, certificate)
    wanted = set(trials_of(entry))
    done = considered(study, wanted)
    trials = done.trials
    gone = sorted(wanted - {trial.number for trial in trials})
    if gone:
        lost = f"trial {gone[0]} was considered, and is not among the study's finished trials"
        return None, [*differences, lost]
    rows = [candidate["row"] for candidate in certificate.candidates]
    try:
        if certificate.sequential is None:
            table = study_losses(study, wanted, rows)
        else:
            table, labels = _labels_of_study(study, entry, trials, certificate)
            differences += differences_from_looks(labels.looks, certificate)
        differences += differences_from_records(study, done)
    except StudyError as error:
        if not differences:  # the losses are damaged, not the certificate
            raise
        return None, [*differences, str(error)]
    judge = None
    if certificate.sequential is not None:
        judge = labels.judge
    elif certificate.judge is not None:
        judge = judges_of(study, [trials[row] for row in rows])
    space = space_as_json(space_of(trials))
    numbers = [trial.number for trial in trials]
    brought = Brought(
        table.validation,
        table.calibration,
        table.configs,
        space,
        use_of(entry),
        numbers,
        judge,
        evaluated=evaluated_of(trials),
    )
    return brought, differences


def _labels_of_study(
    study: optuna.Study,
    entry: Mapping[str, Any],
    trials: Sequence[FrozenTrial],
    certificate: Certificate,
) -> tuple[LossTable, KeptLabels]:
    """Read validation losses, and the labels that had arrived when a certificate was made."""
    n, most = len(certificate.candidates), losses_behind(certificate)
    assert most is not None
    labels = kept_labels(study, entry["question"], problem_of(study), n, most)
    configs = tuple(dict(trial.params) for trial in trials)
    return LossTable(validation_table(study, trials), labels.losses, configs), labels
