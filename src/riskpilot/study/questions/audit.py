"""Certificates checked against what they were made of: losses, the study's ledger, a seal."""

import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from riskpilot.common import canonical, nearly_equal, parse, plain, signed_files
from riskpilot.common.arrays import FloatArray
from riskpilot.errors import CertificateError, LossError, RiskpilotError, StudyError
from riskpilot.guarantee import (
    SCHEMA,
    Certificate,
    Procedure,
    Seal,
    check_certificate,
    check_procedure,
    custom_name,
    differences_from_seal,
    from_description,
    numbers_of,
    question_digest,
)
from riskpilot.losses import JudgeMapping, LossMapping, ValidationLosses
from riskpilot.problem import Problem
from riskpilot.selection import (
    Brought,
    Configs,
    Verification,
    compare,
    ledger_beside,
    read_ledger,
    wanted_columns,
    whole_table,
)
from riskpilot.study.as_tables import is_storage, open_study, study_losses, validation_table
from riskpilot.study.kept.records import Record, problem_of, record_again, settings_of
from riskpilot.study.kept.trials import Finished, finished, space_of
from riskpilot.study.labels.kept import KeptLabels, kept_labels
from riskpilot.study.questions.asking import judges_of, space_as_json, space_from_json
from riskpilot.study.questions.question_ledger import (
    entry_of,
    ledger,
    losses_behind,
    outcomes,
    trials_of,
    use_of,
)
from riskpilot.study.smoothing import smoothed_risks
from riskpilot.tables import Columns, LossTable, is_archive, open_table


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
            differences += _differences_from_sealed_study(seal, certificate, study)
    return Verification(tuple(differences), tuple(_trusted(certificate, configs, study, seal)))


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
        table = whole_table(problem, losses)
        found = verify(
            certificate,
            validation=table.validation,
            calibration=table.calibration,
            configs=table.configs,
            seal=sealed,
        )
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
                    f"the table has {len(table.configs):,} configurations, the certificate says "
                    f"that {certificate.n_configs:,} were considered",
                )
            )
        return verify(
            certificate,
            validation=table.read("validation", free=problem.minimize),
            calibration=table.read("calibration", rows=rows, free=problem.minimize),
            configs=table.configs,
            seal=seal,
        )


_FILE_LEDGER_KNOWS = "number, date and versions, which the ledger beside the table knows"
_FILE_LEDGER_IS_OLD = (
    "that nobody wrote the ledger beside the table anew; an earlier copy of it would show it"
)


def _with_ledger(found: Verification, certificate: Certificate, path: Path) -> Verification:
    """Compare a certificate with the ledger beside the table, where it names one that is there."""
    if _FILE_LEDGER_KNOWS not in found.trusted or not path.exists():
        return found
    differences = _differences_from_file_ledger(certificate, path)
    trusted = [_FILE_LEDGER_IS_OLD if one == _FILE_LEDGER_KNOWS else one for one in found.trusted]
    return Verification((*found.differences, *differences), tuple(trusted))


def _differences_from_file_ledger(certificate: Certificate, path: Path) -> list[str]:
    """Describe what the entry of a question in a ledger beside a table says otherwise."""
    named = certificate.use["ledger"]
    entry = next((one for one in read_ledger(path) if one["digest"] == named), None)
    if entry is None:
        return ["the ledger beside the table has no such question"]
    expected = {
        "use": certificate.use["number"],
        "plan": certificate.plan_digest,
        "calibration": certificate.calibration_digest,
        "created": certificate.created,
        "versions": certificate.versions,
    }
    return [
        f"the ledger beside the table has the {_ENTRY_WORDS.get(name, name)} {entry[name]}, the "
        f"certificate has {value}"
        for name, value in expected.items()
        if entry[name] != value
    ]


def _was_certificate(text: str) -> bool:
    """Tell whether a text that cannot be read as a certificate was one before it was changed."""
    try:
        data = parse(text)
    except ValueError:
        return False
    return isinstance(data, dict) and data.get("schema") == SCHEMA


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
            f"verify takes a Certificate, but got a {type(certificate).__name__}. "
            f"Load it first: riskpilot.Certificate.load(path)."
        )
    if seal is not None and not isinstance(seal, Seal):
        raise CertificateError(
            f"seal is a Seal, but it is a {type(seal).__name__}. "
            f"Load it first: riskpilot.Seal.load(path)."
        )
    if study is not None and not isinstance(study, optuna.Study):
        raise CertificateError(
            f"study is an Optuna study, but it is a {type(study).__name__}. "
            f"Load it first: riskpilot.load_study(storage=...)."
        )
    given = [one is not None for one in (validation, calibration)]
    if not all(given) if study is None else any(given) or configs is not None:
        raise CertificateError(
            "A certificate is checked against validation= and calibration=, or against study=, but "
            "not against both or a part. Give the losses, or the study that holds them."
        )
    check_certificate(asdict(certificate))


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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna warns of choices that are lists
            return smoothed_risks(space_from_json(space), configs, validation)
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
    differences = _differences_from_entry(entry, certificate)
    differences += _differences_from_outcome(answers.get(entry["use"], []), certificate)
    differences += _differences_from_settings(study, certificate)
    wanted = set(trials_of(entry))
    done = finished(study)
    trials = [trial for trial in done.trials if trial.number in wanted]
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
            differences += _differences_from_looks(labels.looks, certificate)
        differences += _differences_from_records(study, done, wanted)
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
        table.validation, table.calibration, table.configs, space, use_of(entry), numbers, judge
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


def _differences_from_looks(looks: Sequence[int], certificate: Certificate) -> list[str]:
    """Compare the looks of a certificate with the batches in which the labels came."""
    assert certificate.sequential is not None
    said = numbers_of(certificate.sequential["looks"])
    if said == list(looks):
        return []
    return [
        f"the labels came in batches that ended at {_brief(looks)}, "
        f"the certificate has {_brief(said)}"
    ]


_ENTRY_WORDS = {
    "asked": "problem",
    "plan": "digest of the plan",
    "calibration": "digest of the calibration losses",
    "spend": "share of delta",
}


def _differences_from_entry(entry: Mapping[str, Any], certificate: Certificate) -> list[str]:
    """Compare a certificate with the entry of the ledger that it names, field by field."""
    content = certificate.content
    use = use_of(entry)
    expected = {
        **content,
        "question": question_digest(content),
        # The losses of labels that arrive are not known when their question is entered.
        "calibration": None if certificate.sequential else certificate.calibration_digest,
        "created": certificate.created,
        "versions": certificate.versions,
        "elsewhere": certificate.use["elsewhere"],
    }
    differences = [
        f"the ledger has the {_ENTRY_WORDS.get(name, name)} {_brief(entry[name])}, "
        f"the certificate has {_brief(value)}"
        for name, value in expected.items()
        if canonical(entry[name]) != canonical(value)
    ]
    if use.number != certificate.use["number"]:
        differences.append(
            f"it is question {use.number} to the calibration data by the ledger, "
            f"{certificate.use['number']} by the certificate"
        )
    return differences


def _differences_from_settings(study: optuna.Study, certificate: Certificate) -> list[str]:
    """Compare the seeds of a certificate with the settings that the study keeps."""
    settings = settings_of(study)
    expected = {"search": settings.get("seed"), "entropy": settings.get("entropy")}
    return [
        f"the settings of the study have the {name} seed {_brief(value)}, the certificate has "
        f"{certificate.seeds[name]}"
        for name, value in expected.items()
        # Randomness of its own is in a certificate where the validation losses had too little.
        if certificate.seeds[name] not in ((None, value) if name == "entropy" else (value,))
    ]


def _differences_from_records(
    study: optuna.Study, done: Finished, wanted: Container[int]
) -> list[str]:
    """Compare what the considered trials say openly with the losses that are stored for them."""
    problem = problem_of(study)
    differences = []
    for trial, written in zip(done.trials, done.records, strict=True):
        if trial.number not in wanted:
            continue
        try:
            again = record_again(study, problem, trial, written)
        except LossError as error:
            differences.append(f"the losses of trial {trial.number} cannot be used: {error}")
            continue
        differences += [
            f"the losses of trial {trial.number} lead to {words}"
            for words in _differing_fields(again, written)
        ]
    return differences


def _differing_fields(found: Record, written: Record) -> Iterator[str]:
    """Name every field of a record that differs from what the losses lead to."""
    one, other = plain(found.to_json()), plain(written.to_json())
    for name, value in one.items():
        if not nearly_equal(value, other[name]):
            yield f"{name} {_brief(value)}, its record has {_brief(other[name])}"


def _differences_from_outcome(
    answers: Sequence[Mapping[str, Any]], certificate: Certificate
) -> list[str]:
    """Compare a certificate with the answer that the ledger recorded, after as many losses."""
    losses = losses_behind(certificate)
    outcome = next((answer for answer in answers if answer["losses"] == losses), None)
    if outcome is None:
        return ["the ledger has no answer to this question: select again to complete it"]
    if outcome["fingerprint"] != certificate.fingerprint:
        return [
            f"the ledger has the certificate {outcome['certificate'][:16]} as the answer to this "
            f"question, not {certificate.digest[:16]}"
        ]
    return []


def _differences_from_sealed_study(
    seal: Seal, certificate: Certificate, study: optuna.Study
) -> list[str]:
    """Compare the name of the study and the number of its questions with what the seal says."""
    differences = []
    if seal.study != study.study_name:
        differences.append(
            f"the seal is of the study {_brief(seal.study)!r}, this is {study.study_name!r}"
        )
    try:
        entries = ledger(study)
    except StudyError:  # told already, as a difference of its own
        return differences
    entry = entry_of(certificate, entries)
    if entry is None:
        return differences
    before = entries[: entry["use"] - 1]
    older = sum(one["created"] < seal.created for one in before)
    if not older <= seal.questions <= len(before):
        differences.append(
            f"the seal says that the ledger had {seal.questions:,} questions by then, but the "
            f"ledger has {len(before):,} before this one, {older:,} of them older than the seal"
        )
    return differences


def _trusted(
    certificate: Certificate,
    configs: Configs | None,
    study: optuna.Study | None,
    seal: Seal | None,
) -> list[str]:
    """List what nobody can compare with anything that was brought along."""
    trusted = []
    own = custom_name(certificate.procedure)
    if own is not None:
        trusted.append(
            f"that the procedure {own!r} keeps the chance of any false pass at delta: it is not "
            f"riskpilot's own"
        )
    if certificate.sequential is not None:
        trusted.append("that the order in which labels came did not depend on their losses")
    if certificate.judge is not None:
        trusted.append(
            "that the judge was fixed before the calibration labels were seen, and that the "
            "examples that it scored without a label come from where the labelled ones do"
        )
    if certificate.known_order:
        trusted.append("that the testing order was known before any of the losses")
    if study is not None and seal is None:
        trusted.append(
            "that nobody wrote the whole storage anew, ledger included; a seal made beforehand or "
            "an earlier copy would show it"
        )
    if study is None and certificate.trials is None:
        trusted.append(
            "date and versions, and that no other question was put to the same losses: there is "
            "no ledger"
            if certificate.use["ledger"] is None
            else _FILE_LEDGER_KNOWS
        )
    elif study is None:
        trusted.append(
            "number, date, versions, trials and seed of the search, which the study's ledger knows"
        )
    if study is None and configs is None and certificate.configs is not None:
        trusted.append("which configuration each row of the losses stands for")
    if study is None and certificate.space is not None:
        trusted.append("the search space over which the risks were smoothed")
    if seal is not None:
        trusted.append(
            "that nobody looked at the calibration losses before the seal was made, or replaced "
            "them since: a seal holds nothing of them"
        )
        also = "" if study is not None else ", its study and how many questions that had been asked"
        trusted.append(f"the seal's date and versions{also}: what counts is when its keeper got it")
    if seal is not None and seal.questions:
        earlier = (
            "1 earlier question" if seal.questions == 1 else f"{seal.questions} earlier questions"
        )
        trusted.append(f"what the maker of the seal had learned from {earlier}")
    return trusted


def _brief(value: Any) -> str:
    """Write a value in at most 200 characters."""
    text = str(value)
    return text if len(text) <= 200 else text[:197] + "..."
