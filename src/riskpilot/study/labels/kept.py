"""Labels of a study, kept in its storage batch by batch, each chained to the one before it.

A batch is an artifact, as the losses of trials are, and an attribute of the study that says where
it is. The attribute is written last: a process that is killed before has not added the batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna

from riskpilot.common import ShapeError, digest, digest_of, list_of, moment, record, text, whole
from riskpilot.errors import StudyError
from riskpilot.guarantee import Question, Use, question_digest, stamp
from riskpilot.losses import LabelTable
from riskpilot.problem import Problem
from riskpilot.study.kept.attributes import LABELS_KEY, attributes_of
from riskpilot.study.kept.loss_bytes import decode, encode
from riskpilot.study.kept.loss_store import get, put, store_of
from riskpilot.study.questions.question_ledger import enter, ledger, use_of
from riskpilot.study.storages import exclusive

_BATCH = record(
    question=digest,
    number=whole(),
    start=whole(),
    candidates=list_of(whole()),
    artifact=record(id=text, sha256=digest),
    created=moment,
    previous=text,
    digest=digest,
)


@dataclass(frozen=True)
class Batch:
    """The losses of some candidates, by position, at the labels after the first ``start`` ones."""

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


def label_table(
    study: optuna.Study, question: str, problem: Problem, n_candidates: int
) -> tuple[LabelTable, tuple[int, ...]]:
    """Put the labels of a question together, NaN where a candidate has none; and list the looks."""
    table: LabelTable = {}
    looks = set()
    for batch in read_batches(study, question):
        width = batch.start + np.shape(batch.table[problem.names[0]])[1]
        looks.add(width)
        for name, values in batch.table.items():
            if name in problem.beside:
                before = table.get(name, values[:0])
                table[name] = np.concatenate([before, values[len(before) - batch.start :]])
                continue
            known = table.get(name, np.empty((n_candidates, 0)))
            wider = np.full((n_candidates, max(width, known.shape[1])), np.nan)
            wider[:, : known.shape[1]] = known
            wider[list(batch.candidates), batch.start : width] = values
            table[name] = wider
    return table, tuple(sorted(looks))


def keep_batch(study: optuna.Study, question: Question, known: int, batch: Batch) -> Use:
    """Write a batch to the storage, and before the first one the question to the ledger.

    ``known``: how many batches the writer knows of; with more in the storage it is refused.
    """
    blob = encode(batch.table, _ranges(question.plan.problem))
    use = enter(study, question, None, batch.table)
    name = question_digest(question.content)
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


def use_of_question(study: optuna.Study, question: str) -> Use | None:
    """Return which use of the data a question is; None where it has not been asked."""
    found = next((entry for entry in ledger(study) if entry["question"] == question), None)
    return None if found is None else use_of(found)


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
    return {risk.name: (risk.low, risk.high) for risk in problem.risks}
