"""Labels in files: which columns are read, and how a file is told from others."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from riskpilot.common import Array, is_name, reason_of, shown_safely
from riskpilot.errors import TableError, raise_alone, shown
from riskpilot.problem import Problem
from riskpilot.selection import wanted_columns
from riskpilot.tables import column_names, read_rows

_IDS = "example"  # the column of ids, where no other is named


@dataclass(frozen=True)
class LabelFile:
    """The labels of a file: losses with what stands beside them, ids and weights where given."""

    losses: dict[str, Any]
    ids: Array | None
    weights: Array | None


def read_file(
    problem: Problem, path: str | Path, ids: str | None, weights: str | None
) -> tuple[str, LabelFile]:
    """Read the labels in a file, and the digest of its name and content.

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
    read = read_rows(path, wanted, () if ids is None else (ids,))
    losses = {name: read[name] for name in (*problem.names, *problem.beside)}
    if ids is not None and any(one is None or not str(one).strip() for one in read[ids]):
        raise TableError(
            f"{shown_safely(path)}: every row needs an id in the column {ids!r}, which tells an "
            f"example from all others, but one is empty. Fill it, or name another column: "
            f'ids="request_id".'
        )
    return digest, LabelFile(
        losses,
        None if ids is None else read[ids],
        None if weights is None else read[weights],
    )


def _digest(path: str | Path) -> str:
    """Compute the digest of a file's name and content: two good days may have equal labels."""
    try:
        with Path(path).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        return hashlib.sha256(content + Path(path).name.encode("utf-8", "replace")).hexdigest()
    except (OSError, TypeError, ValueError) as error:
        raise_alone(
            TableError(
                f"The labels in {shown_safely(path)} cannot be read: {reason_of(error)}. Give the "
                f"path of a CSV, Parquet or JSON file."
            )
        )
