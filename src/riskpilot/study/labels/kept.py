"""Labels of a study, kept in its storage batch by batch, each chained to the one before it.

A batch is an artifact, as the losses of trials are, and an attribute of the study that says where
it is. The attribute is written last: a process that is killed before has not added the batch. A
judge's scores of fresh examples are kept likewise, before the question is in the ledger.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna

from riskpilot.common import ShapeError, digest, digest_of, list_of, moment, record, text, whole
from riskpilot.errors import StudyError
from riskpilot.guarantee import Question, Use, question_digest, stamp
from riskpilot.losses import (
    IDS,
    FreshScores,
    JudgeMapping,
    LabelTable,
    parted,
    read_fresh,
    score_name,
)
from riskpilot.problem import Problem
from riskpilot.study.kept.attributes import LABELS_KEY, attributes_of
from riskpilot.study.kept.loss_bytes import decode, encode
from riskpilot.study.kept.loss_store import get, put, store_of
from riskpilot.study.questions.question_ledger import enter, ledger
from riskpilot.study.storages import exclusive

# With a question behind it: where a judge's scores of fresh examples are.
_FRESH_KEY = "riskpilot:fresh:"
_ARTIFACT = record(id=text, sha256=digest)
_BATCH = record(
    question=digest,
    number=whole(),
    start=whole(),
    candidates=list_of(whole()),
    artifact=_ARTIFACT,
    created=moment,
    previous=text,
    digest=digest,
)


@dataclass(frozen=True)
class Batch:
    """The losses of some candidates, by position, at the labels after the first ``start`` ones.

    ``table``: with a judge's scores of the labels and the ids of their examples, where given.
    """

    start: int
    candidates: tuple[int, ...]
    table: LabelTable


def sequential_entry(study: optuna.Study, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """Find the last question of the ledger to arriving labels with these limits and this horizon.

    ``asked``: the content of a question. The trials may be others: those that were finished when
    the first label came are the ones that the question is about.
    """
    same = ("asked", "spend", "horizon", "procedure")
    found = [entry for entry in ledger(study) if all(entry[name] == asked[name] for name in same)]
    return found[-1] if found else None


def entry_of_question(study: optuna.Study, question: str) -> dict[str, Any] | None:
    """Find a question in the ledger by its digest; None before its first label."""
    return next((entry for entry in ledger(study) if entry["question"] == question), None)


def read_batches(study: optuna.Study, question: str) -> list[Batch]:
    """Read the labels of a question, by its digest, in the order in which they came."""
    store = store_of(study)
    batches = []
    for entry in _entries(study, question):
        what = (
            f"Batch {entry['number'] + 1} of the labels of study {study.study_name!r}: its losses"
        )
        table = decode(get(store, dict(entry["artifact"]), what))
        batches.append(Batch(entry["start"], tuple(entry["candidates"]), table))
    return batches


@dataclass(frozen=True)
class KeptLabels:
    """The labels of a question that had arrived at some moment.

    ``losses``: NaN where a candidate has none, with what stands beside them; ``looks``: after how
    many labels somebody looked; ``judge``: its scores of labelled and of fresh examples.
    """

    losses: LabelTable
    looks: tuple[int, ...]
    judge: JudgeMapping | None


def kept_labels(
    study: optuna.Study, question: str, problem: Problem, n: int, most: int
) -> KeptLabels:
    """Put the first batches of a question together, which hold ``most`` losses of n candidates."""
    table: LabelTable = {}
    looks: set[int] = set()
    losses = 0
    for batch in read_batches(study, question):
        if losses >= most:
            break
        width = batch.start + np.shape(batch.table[problem.names[0]])[1]
        losses += len(batch.candidates) * (width - batch.start)
        looks.add(width)
        for name, values in batch.table.items():
            if np.ndim(values) == 1:  # what stands beside the losses
                before = table.get(name, values[:0])
                table[name] = np.concatenate([before, values[len(before) - batch.start :]])
                continue
            known = table.get(name, np.empty((n, 0)))
            wider = np.full((n, max(width, known.shape[1])), np.nan)
            wider[:, : known.shape[1]] = known
            wider[list(batch.candidates), batch.start : width] = values
            table[name] = wider
    plain, scores = parted(table)
    fresh = read_kept_fresh(study, question, problem, n)
    judge = None
    if fresh is not None and scores is not None:
        judge = {**scores, "unlabelled": fresh.scores}
    return KeptLabels(plain, tuple(sorted(looks)), judge)


def keep_batch(
    study: optuna.Study, question: Question, known: int, batch: Batch, fresh: FreshScores | None
) -> Use:
    """Write a batch to the storage, and before the first one the question to the ledger.

    ``known``: how many batches the writer knows of; with more in the storage it is refused;
    ``fresh``: a judge's scores of fresh examples, which are kept before anything else.
    """
    blob = encode(batch.table, _ranges(question.plan.problem))
    name = question_digest(question.content)
    if fresh is not None and not known:
        _keep_fresh(study, name, fresh)
    use = enter(study, question, None, batch.table, batch.table.get(IDS))
    with exclusive(study, "ledger"):
        entries = _entries(study, name)
        if len(entries) != known:
            raise StudyError(
                f"Labels are added by one process at a time, but study {study.study_name!r} has "
                f"{len(entries)} batches and this Calibration knows {known}. Make it again, "
                f"Calibration(study, horizon=...), and it goes on from all of them."
            )
        entry: dict[str, Any] = {
            "question": name,
            "number": known,
            "start": batch.start,
            "candidates": list(batch.candidates),
            "artifact": put(store_of(study), blob),
            "created": stamp()["created"],
            "previous": entries[-1]["digest"] if entries else "",
        }
        entry["digest"] = digest_of(entry)
        study.set_user_attr(f"{LABELS_KEY}{name[:16]}:{known}", entry)
    return use


def _keep_fresh(study: optuna.Study, question: str, fresh: FreshScores) -> None:
    """Write a judge's scores of fresh examples to the storage."""
    table = dict(fresh.scores) if fresh.ids is None else {**fresh.scores, IDS: fresh.ids}
    study.set_user_attr(f"{_FRESH_KEY}{question[:16]}", put(store_of(study), encode(table)))


def read_kept_fresh(
    study: optuna.Study, question: str, problem: Problem, n: int
) -> FreshScores | None:
    """Read a judge's scores of fresh examples for the n candidates of a question, if it has some.

    The question is about these very scores: where they were changed, its digest is another one.
    """
    entry = attributes_of(study).get(f"{_FRESH_KEY}{question[:16]}")
    if entry is None:
        return None
    try:
        _ARTIFACT(entry, "where the scores of a judge are")
    except ShapeError as error:
        raise _changed(study, str(error)) from None
    what = f"The scores of fresh examples of study {study.study_name!r}"
    table = decode(get(store_of(study), dict(entry), what))
    return read_fresh(problem, {"unlabelled": table, "ids": table.pop(IDS, None)}, n)


def _entries(study: optuna.Study, question: str) -> list[dict[str, Any]]:
    """Read where the batches of a question are, if their chain is whole."""
    prefix = f"{LABELS_KEY}{question[:16]}:"
    attributes = attributes_of(study)
    found = [value for key, value in attributes.items() if key.startswith(prefix)]
    try:
        for value in found:
            _BATCH(value, "a batch of labels")
    except ShapeError as error:
        raise _changed(study, str(error)) from None
    found.sort(key=lambda entry: entry["number"])
    previous = ""
    for number, entry in enumerate(found):
        own = digest_of({key: value for key, value in entry.items() if key != "digest"})
        in_place = entry["number"] == number and entry["previous"] == previous
        if not in_place or entry["digest"] != own or entry["question"] != question:
            raise _changed(study, f"batch {number + 1} is not the one that was written")
        previous = own
    return [dict(entry) for entry in found]


def _changed(study: optuna.Study, reason: str) -> StudyError:
    return StudyError(
        f"The labels of study {study.study_name!r} were changed: {reason}. Restore the storage "
        f"from a copy; labels that are not the ones that came prove nothing."
    )


def _ranges(problem: Problem) -> dict[str, tuple[float, float]]:
    ends = {risk.name: (risk.low, risk.high) for risk in problem.risks}
    return ends | {score_name(name): pair for name, pair in ends.items()}
