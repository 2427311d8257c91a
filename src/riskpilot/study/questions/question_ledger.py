"""The ledger of a study: every question to its calibration data, and every answer, in a chain."""

from collections.abc import Mapping, Sequence
from typing import Any

import optuna

from riskpilot.common import (
    ShapeError,
    anything,
    digest,
    digest_of,
    list_of,
    mapping_of,
    moment,
    optional,
    record,
    text,
    whole,
)
from riskpilot.errors import StudyError
from riskpilot.guarantee import (
    CONTENT,
    ELSEWHERE,
    VERSIONS,
    Certificate,
    Question,
    Use,
    numbers_of,
    question_digest,
    stamp,
)
from riskpilot.losses import LossMapping, TextArray
from riskpilot.study.kept.attributes import LEDGER_KEY, attributes_of, require_study
from riskpilot.study.questions.known_rows import known_rows
from riskpilot.study.questions.used_ids import asked_about
from riskpilot.study.storages import exclusive, storage_of

_HEAD_KEY = f"{LEDGER_KEY}:head"
_OUTCOME_KEY = f"{LEDGER_KEY}:outcome:"
_WITHOUT = "without its ledger nobody can say how often the calibration data was used"

_ENTRY = record(
    use=whole(1),
    question=digest,
    problem=text,
    **CONTENT,
    calibration=optional(digest),
    rows=list_of(text),
    elsewhere=ELSEWHERE,
    answers=mapping_of(digest),
    created=moment,
    versions=VERSIONS,
    previous=text,
    digest=digest,
)
_ENTRIES = list_of(_ENTRY)
_HEAD = record(count=whole(1), digest=digest)
_ANNOUNCING_HEAD = record(count=whole(), digest=text, next=digest)
_OUTCOME = record(
    use=whole(1),
    losses=optional(whole(1)),
    entry=digest,
    config=optional(mapping_of(anything)),
    promise=text,
    certificate=digest,
    fingerprint=digest,
    digest=digest,
)


def ledger(study: optuna.Study) -> list[dict[str, Any]]:
    """List every question that has been put to a study's calibration data.

    Each entry carries a digest of itself, of the entry before it and of the answers so far.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`.

    Returns
    -------
    list of dict
        The questions, oldest first: ``use`` (their number in this study), ``problem`` (what was
        asked, in words), ``asked`` (the same as ``Problem.to_dict`` writes it), ``spend``,
        ``level``, ``procedure``, ``groups``, ``seeds``, ``trials``, ``created`` and ``versions``;
        digests of the ``plan`` and of the ``calibration`` losses; and ``elsewhere``, the questions
        of other studies of the same storage to the same losses that came before.

    Raises
    ------
    StudyError
        If the ledger was changed or lost entries.

    Examples
    --------
    >>> import numpy as np, riskpilot as rp
    >>> study = rp.create_study(rp.Problem([rp.Risk("error", 0.2)], "cost"), seed=0)
    >>> draws = np.random.default_rng(0).random((2, 500)) < 0.1
    >>> evaluation = rp.Evaluation({"error": draws[0], "cost": 1.0}, {"error": draws[1]})
    >>> study.optimize(rp.objective(study, lambda trial: evaluation), n_trials=1)
    >>> selection = rp.select(study)
    >>> [(entry["use"], entry["spend"]) for entry in rp.ledger(study)]
    [(1, 1.0)]
    """
    return _read(study)[0]


def outcomes(study: optuna.Study) -> dict[int, list[dict[str, Any]]]:
    """Return what each question of the ledger led to, by its number.

    An outcome holds the configuration, or None, and the certificate's digest. A question whose test
    was interrupted has no outcome; ask it again. Where labels arrive one after another a question
    has one outcome for every number of losses at which it was answered, fewest first.
    """
    found: dict[int, list[dict[str, Any]]] = {}
    for outcome in sorted(_read(study)[1].values(), key=lambda one: one["losses"] or 0):
        found.setdefault(outcome["use"], []).append(outcome)
    return found


def trials_of(entry: Mapping[str, Any]) -> list[int]:
    """Return the numbers of the trials among which a question chose.

    >>> trials_of({"trials": [[0, 2], [4, 4]]})
    [0, 1, 2, 4]
    """
    return numbers_of(entry["trials"])


def use_of(entry: Mapping[str, Any]) -> Use:
    """Return which use of the calibration data an entry is: those of other studies count, too."""
    return Use(
        entry["use"] + len(entry["elsewhere"]),
        entry["digest"],
        tuple(entry["elsewhere"]),
        entry["created"],
        entry["versions"],
    )


def enter(
    study: optuna.Study,
    question: Question,
    losses: str | None,
    given: LossMapping,
    ids: TextArray | None = None,
) -> Use:
    """Record a question before its answer is known; the same one keeps its number and date.

    ``losses``: the digest of the candidates' losses, in testing order; None where labels arrive one
    after another, so that the losses are not known yet. ``given``: the same losses, or the first of
    them, as they were given, shape (n_candidates, m) for each risk; ``ids``: of the examples, where
    they are known.
    """
    asked = question.entry
    with exclusive(study, "ledger"):
        entries, answers = _read(study)
        for entry in entries:
            if entry["question"] == asked["question"]:
                _check_calibration(study, entry, losses)
                _set_head(study, entries)
                return use_of(entry)
        rows = known_rows([given[name] for name in question.problem.names], ids)
        entry = {
            "use": len(entries) + 1,
            **asked,
            "calibration": losses,
            "rows": rows,
            "elsewhere": _asked_elsewhere(study, rows, ids),
            "answers": {name: outcome["digest"] for name, outcome in answers.items()},
            **stamp(),
            "previous": entries[-1]["digest"] if entries else "",
        }
        entry["digest"] = _own_digest(entry)
        _announce(study, entries, entry)
        study.set_user_attr(LEDGER_KEY, [*entries, entry])
        _set_head(study, [*entries, entry])
    return use_of(entry)


def note_outcome(study: optuna.Study, certificate: Certificate) -> None:
    """Record what a question led to; another answer than the first is an error."""
    entries, answers = _read(study)
    entry = entry_of(certificate, entries)
    assert entry is not None
    losses = losses_behind(certificate)
    name = _outcome_name(entry["use"], losses)
    found, earlier = certificate.outcome, answers.get(name)
    if earlier is None:
        outcome = {"use": entry["use"], "losses": losses, "entry": entry["digest"], **found}
        outcome["digest"] = _own_digest(outcome)
        study.set_user_attr(f"{_OUTCOME_KEY}{name}", outcome)
    elif not certificate.has_fingerprint(earlier["fingerprint"]):
        raise StudyError(
            f"The same question must have the same answer, but question {entry['use']} of study "
            f"{study.study_name!r} led to another certificate before, made with "
            f"{entry['versions']}. Restore the storage from a copy, or select with those versions."
        )


def losses_behind(certificate: Certificate) -> int | None:
    """Count the losses of all candidates, where labels arrive; it grows with every batch of them,
    also where a candidate gets the losses of labels that others have had before."""
    return None if certificate.sequential is None else sum(certificate.sequential["labels"])


def _outcome_name(use: int, losses: int | None) -> str:
    """Name an outcome by its question, and by the number of losses where labels arrive."""
    return str(use) if losses is None else f"{use}:{losses}"


def entry_of(certificate: Certificate, entries: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Find the entry of the ledger that a certificate names."""
    named = certificate.use["ledger"]
    return next((entry for entry in entries if entry["digest"] == named), None)


def _read(study: optuna.Study) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Read the entries, and the outcomes by their names, if both are whole."""
    require_study(study)
    attributes = attributes_of(study)
    entries, head = attributes.get(LEDGER_KEY, []), attributes.get(_HEAD_KEY)
    found = {key: value for key, value in attributes.items() if key.startswith(_OUTCOME_KEY)}
    name = study.study_name
    try:
        _ENTRIES(entries, "the list of entries")
        _a_head(head, "its head")
        for key, value in found.items():
            _OUTCOME(value, key)
    except ShapeError as error:
        raise StudyError(
            f"The ledger of study {name!r} was changed: {error}. Restore the storage from a copy; "
            f"{_WITHOUT}."
        ) from None
    outcomes = {_outcome_name(one["use"], one["losses"]): dict(one) for one in found.values()}
    _check_chain(name, entries)
    _check_whole(name, entries, head)
    _check_outcomes(name, entries, outcomes)
    return [dict(entry) for entry in entries], outcomes


def _check_chain(name: str, entries: Sequence[Mapping[str, Any]]) -> None:
    """Refuse entries that are out of place or not as they were written."""
    previous = ""
    for number, entry in enumerate(entries, 1):
        in_place = entry["use"] == number and entry["previous"] == previous
        if not in_place or not _is_itself(entry) or entry["question"] != question_digest(entry):
            raise StudyError(
                f"The ledger of study {name!r} was changed: entry {number} is not the one that "
                f"was written. Restore the storage from a copy; {_WITHOUT}."
            )
        previous = entry["digest"]


def _check_whole(
    name: str, entries: Sequence[Mapping[str, Any]], head: Mapping[str, Any] | None
) -> None:
    """Refuse a ledger that lost entries or its head.

    A writer may die after it wrote an entry and before it counted it. The head is one entry behind
    then, and it has announced this very entry.
    """
    if head is None and entries:
        raise StudyError(
            f"The ledger of study {name!r} lost entries or its head: nothing says how many "
            f"questions there were, and the list of those that are left has the length "
            f"{len(entries)}. Restore the storage from a copy; {_WITHOUT}."
        )
    if head is None:
        return
    count, digests = head["count"], [entry["digest"] for entry in entries]
    counted, further = digests[:count], digests[count:]
    is_whole = len(counted) == count and head["digest"] == (counted[-1] if counted else "")
    if not is_whole or further not in ([], [head.get("next")]):
        raise StudyError(
            f"The ledger of study {name!r} lost entries: {count} questions were put to the "
            f"calibration data by its head, {len(entries)} are left. Restore the storage from a "
            f"copy; {_WITHOUT}."
        )


def _check_outcomes(
    name: str,
    entries: Sequence[Mapping[str, Any]],
    outcomes: Mapping[str, Mapping[str, Any]],
) -> None:
    """Refuse outcomes that answer no entry, or that are not those that later entries recorded."""
    digests = {entry["use"]: entry["digest"] for entry in entries}
    for outcome in outcomes.values():
        use = outcome["use"]
        if digests.get(use) != outcome["entry"] or not _is_itself(outcome):
            raise StudyError(
                f"The ledger of study {name!r} lost entries or was changed: there is an answer to "
                f"a question {use} that it does not have. Restore the storage from a copy; "
                f"{_WITHOUT}."
            )
    for entry in entries:
        for answered, answer in entry["answers"].items():
            if outcomes.get(answered, {}).get("digest") != answer:
                raise StudyError(
                    f"The ledger of study {name!r} was changed: the answer to question "
                    f"{answered.partition(':')[0]} is "
                    f"not the one that was written. Restore the storage from a copy; {_WITHOUT}."
                )


def _is_itself(content: Mapping[str, Any]) -> bool:
    """Tell whether an entry or an outcome has the digest that it carries."""
    try:
        return bool(content["digest"] == _own_digest(content))
    except (RecursionError, ValueError):  # a number that JSON does not have was never written
        return False


def _own_digest(content: Mapping[str, Any]) -> str:
    """Compute the digest of an entry or an outcome, which it carries beside the rest."""
    return digest_of({key: value for key, value in content.items() if key != "digest"})


def _a_head(value: Any, place: str) -> None:
    """Accept the head of a ledger, which may announce an entry, or none."""
    announces = isinstance(value, Mapping) and "next" in value
    optional(_ANNOUNCING_HEAD if announces else _HEAD)(value, place)


def _announce(
    study: optuna.Study, entries: Sequence[Mapping[str, Any]], entry: Mapping[str, Any]
) -> None:
    """Write into the head which entry comes next, so that it may be there before it is counted."""
    last = entries[-1]["digest"] if entries else ""
    head = {"count": len(entries), "digest": last, "next": entry["digest"]}
    study.set_user_attr(_HEAD_KEY, head)


def _set_head(study: optuna.Study, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write the number of entries and the digest of the last one beside the ledger."""
    head = {"count": len(entries), "digest": entries[-1]["digest"]}
    if attributes_of(study).get(_HEAD_KEY) != head:
        study.set_user_attr(_HEAD_KEY, head)


def _check_calibration(study: optuna.Study, entry: Mapping[str, Any], losses: str | None) -> None:
    """Refuse calibration losses other than those that the question was put to."""
    if entry["calibration"] != losses:
        raise StudyError(
            f"The calibration losses of study {study.study_name!r} are not those that question "
            f"{entry['use']} was put to on {entry['created']}: their digest differs. Restore the "
            f"losses from a copy."
        )


def _asked_elsewhere(
    study: optuna.Study, rows: Sequence[str], ids: TextArray | None
) -> list[dict[str, Any]]:
    """Find questions of the storage's other studies to some of the same losses, oldest first; and
    of studies of the same candidates those to some of the same examples."""
    found, shared = [], asked_about(study, ids)
    for other in storage_of(study).get_all_studies():
        entries = other.user_attrs.get(LEDGER_KEY, [])
        if other.study_name == study.study_name or not isinstance(entries, list):
            continue
        for entry in entries:
            try:
                _ENTRY(entry, "")
            except ShapeError:
                continue  # a changed ledger is refused when its own study is asked
            if other.study_name in shared or not set(rows).isdisjoint(entry["rows"]):
                found.append((entry["created"], other.study_name, entry["use"], entry["digest"]))
    return [{"study": name, "use": use, "digest": digest} for _, name, use, digest in sorted(found)]
