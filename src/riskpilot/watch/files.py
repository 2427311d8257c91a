"""Labels in files: which columns are read, and how a file is told from others."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot.common import Array, is_name, reason_of, shown_safely
from riskpilot.errors import TableError, raise_alone, shown
from riskpilot.problem import Problem
from riskpilot.tables import column_names, example_id, marked_fresh, read_rows, wanted_columns

_IDS = "example"  # the column of ids, where no other is named
_PARTS = "--ids, or ids="  # how a user names it


@dataclass(frozen=True)
class LabelFile:
    """The labels of a file: losses with what stands beside them; ids, weights and a judge's scores
    where given."""

    losses: dict[str, Any]
    ids: list[str] | None
    weights: Array | None
    judge: dict[str, Any] | None = None


def read_file(
    problem: Problem, path: str | Path, ids: str | None, weights: str | None
) -> tuple[str, LabelFile]:
    """Read the labels in a file, and the digest of its place and content.

    ``ids``, ``weights``: the names of their columns.
    """
    for what, column in (("ids", ids), ("weights", weights)):
        if column is not None and not is_name(column):
            raise TableError(
                f"{what} is the name of a column of the file, but it is {shown(column)}. Write "
                f'{what}="request_id", or leave it out.'
            )
    digest = _digest(path)
    columns = wanted_columns(problem)
    wanted = replace(columns, losses=problem.names)
    if weights is not None:
        wanted = replace(wanted, numbers=(*wanted.numbers, weights))
    if ids is None and _IDS in column_names(path):
        ids = _IDS
    read = read_rows(path, wanted, () if ids is None else (ids,), parts=_PARTS)
    losses = {name: read[name] for name in (*problem.names, *problem.beside)}
    if ids is not None and any(one is None or not str(one).strip() for one in read[ids]):
        raise TableError(
            f"{shown_safely(path)}: every row needs an id in the column {ids!r}, which tells an "
            f"example from all others, but one is empty. Fill it, or name another column: "
            f'--ids request_id, or ids="request_id".'
        )
    return digest, LabelFile(
        losses,
        None if ids is None else [example_id(one) for one in read[ids]],
        None if weights is None else read[weights],
    )


def with_scores(
    labels: LabelFile,
    problem: Problem,
    judged: Sequence[str],
    path: str | Path,
    ids: str | None,
    fresh: str,
) -> LabelFile:
    """Add a judge's scores from a file, of the labelled examples and of fresh ones.

    ``judged``: the risks with which it helps; ``ids``, ``fresh``: the names of the columns of ids,
    and of what says which examples are never labelled.
    """
    where = shown_safely(path)
    if labels.ids is None:
        raise TableError(
            f"{where}: a judge's scores belong to examples, but the labels have no ids to find "
            f'them by. Name their column: --ids request_id, or ids="request_id".'
        )
    wanted = replace(wanted_columns(problem), losses=tuple(judged), texts=(fresh,), numbers=())
    column = _IDS if ids is None else ids
    read = read_rows(path, wanted, (column,), parts=_PARTS)
    examples = [example_id(one) for one in read[column]]
    place = {example: i for i, example in enumerate(examples)}
    if "" in place or len(place) < len(examples):
        raise TableError(
            f"{where}: every row has an id of its own in the column {column!r}, but one is empty "
            f"or stands twice. Score every example once."
        )
    is_fresh = marked_fresh(str(path), fresh, read[fresh], examples)
    missing = next((one for one in labels.ids if one not in place), None)
    if missing is not None:
        raise TableError(
            f"{where}: every labelled example has a score of the judge, but example "
            f"{shown(missing)} has no row. Score it, or leave the judge out of this file."
        )
    own = np.array([place[one] for one in labels.ids], dtype=np.intp)
    if is_fresh[own].any():
        wrong = labels.ids[int(np.argmax(is_fresh[own]))]
        raise TableError(
            f"{where}: fresh examples are never labelled, but example {shown(wrong)} is. Keep "
            f"labelled and fresh examples apart."
        )
    judge = {
        "labelled": {name: read[name][own] for name in judged},
        "unlabelled": {name: read[name][is_fresh] for name in judged},
        "ids": [one for one, mark in zip(examples, is_fresh, strict=True) if mark],
    }
    return replace(labels, judge=judge)


def _digest(path: str | Path) -> str:
    """Compute the digest of where a file really lies and of its content: two good days may have
    equal labels and equal names, and one file may be named in several ways."""
    try:
        with Path(path).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        return hashlib.sha256(content + os.fsencode(os.path.realpath(path))).hexdigest()
    except (OSError, TypeError, ValueError) as error:
        raise_alone(
            TableError(
                f"The labels in {shown_safely(path)} cannot be read: {reason_of(error)}. Give the "
                f"path of a CSV, Parquet or JSON file."
            )
        )
