"""What a certificate says otherwise than the ledger, settings, records or seal of its study."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna

from riskpilot.common import canonical, how_many, nearly_equal, plain
from riskpilot.errors import LossError, StudyError
from riskpilot.guarantee import Certificate, Seal, question_digest, runs
from riskpilot.selection import read_ledger
from riskpilot.study.kept.attributes import problem_of, settings_of
from riskpilot.study.kept.records import Record
from riskpilot.study.kept.trial_losses import record_again
from riskpilot.study.kept.trials import Finished
from riskpilot.study.questions.question_ledger import entry_of, ledger, losses_behind, use_of

_ENTRY_WORDS = {
    "asked": "problem",
    "plan": "digest of the plan",
    "calibration": "digest of the calibration losses",
    "spend": "share of delta",
}


def differences_from_file_ledger(certificate: Certificate, path: Path) -> list[str]:
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


def differences_from_looks(looks: Sequence[int], certificate: Certificate) -> list[str]:
    """Compare the looks of a certificate with the batches in which the labels came."""
    assert certificate.sequential is not None
    said, found = certificate.sequential["looks"], runs(looks)
    if said == found:
        return []
    return [
        f"the labels came in batches that ended at {_brief(found)} (first and last of each run), "
        f"the certificate has {_brief(said)}"
    ]


def differences_from_entry(entry: Mapping[str, Any], certificate: Certificate) -> list[str]:
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


def differences_from_settings(study: optuna.Study, certificate: Certificate) -> list[str]:
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


def differences_from_records(study: optuna.Study, done: Finished) -> list[str]:
    """Compare what the considered trials say openly with the losses that are stored for them."""
    problem = problem_of(study)
    differences = []
    for trial, written in zip(done.trials, done.records, strict=True):
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


def differences_from_outcome(
    answers: Sequence[Mapping[str, Any]], certificate: Certificate
) -> list[str]:
    """Compare a certificate with the answer that the ledger recorded, after as many losses."""
    losses = losses_behind(certificate)
    outcome = next((answer for answer in answers if answer["losses"] == losses), None)
    if outcome is None:
        return ["the ledger has no answer to this question: select again to complete it"]
    if not certificate.has_fingerprint(outcome["fingerprint"]):
        return [
            f"the ledger has the certificate {outcome['certificate'][:16]} as the answer to this "
            f"question, not {certificate.digest[:16]}"
        ]
    return []


def differences_from_sealed_study(
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
            f"the seal says that the ledger had {how_many(seal.questions, 'question')} by then, "
            f"but the ledger has {len(before):,} before this one, {older:,} of them older than the "
            f"seal"
        )
    return differences


def _brief(value: Any) -> str:
    """Write a value in at most 200 characters."""
    text = str(value)
    return text if len(text) <= 200 else text[:197] + "..."
