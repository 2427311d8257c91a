"""Tables of losses read whole, from files of any kind."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot.common import Array, check_file, check_memory, exact, reason_of, shown_safely
from riskpilot.errors import ProblemError, TableError, raise_alone, shown
from riskpilot.losses import NumbersOfTexts
from riskpilot.problem import Problem
from riskpilot.tables.archives import read_archive
from riskpilot.tables.columns import SPLITS, Columns, Wanted, named_columns, wanted_columns
from riskpilot.tables.local_files import local_path, no_table
from riskpilot.tables.long import LongTable, open_table
from riskpilot.tables.loss_table import LossTable
from riskpilot.tables.sources import column_names, kind_of, open_source


def read_losses(
    path: str | Path,
    groups: Collection[str] = (),
    *,
    config: str | Sequence[str] = "config",
    example: str | None = None,
    split: str = "split",
    problem: Problem | None = None,
) -> LossTable:
    """Read a table of losses; the ending of the name says how it is written.

    Parameters
    ----------
    path : str or Path
        An .npz file, or a long table that DuckDB reads: a .csv, .parquet, .json or .jsonl file, a
        glob of such files, or an address such as ``s3://bucket/losses.parquet``. A long table has
        one row per configuration and example, in any order.
    groups : collection of str, default ()
        The columns that name groups or labels of examples. They are read as they are written: "1",
        "01" and "1.0" are different groups. Every other column holds numbers.
    config : str or sequence of str, default "config"
        The columns that make up a configuration. The one column "config" holds JSON objects or
        labels.
    example : str, optional
        The column of the examples' ids; "example" where there is one. Without ids, the examples of
        every configuration stand in one order.
    split : str, default "split"
        The column that says validation or calibration.
    problem : Problem, optional
        What the table is read for: its columns alone are read, with its groups and labels, and each
        holds what its name says, as for the commands. Where that is good, as under
        ``Risk("correct", at_least=0.85)``, losses are one minus it. Without a problem all columns
        are read as they are written; `select_from_losses` takes them for losses, so give the
        problem where a limit is a lower one.

    Returns
    -------
    LossTable
        One row per configuration; ``validation`` and ``calibration`` go to `select_from_losses`.

    Raises
    ------
    TableError
        If the file cannot be read as a table of losses; or if it is an .npz file, which holds
        losses, and the problem limits what is good.
    ProblemError
        If ``problem`` is no problem, or it is not plain how losses follow from a column.
    """
    if not isinstance(problem, Problem | None):
        raise ProblemError(
            f"problem is the Problem that the table is read for, but it is {shown(problem)}. Give "
            f"the one that goes to select_from_losses, or leave it out."
        )
    if not isinstance(path, str | Path):
        raise TableError(
            f'path is the file of the losses, but it is {shown(path)}. Write "losses.npz".'
        )
    path = local_path(path)
    try:
        _check_size(path)
        if is_archive(path):
            place = existing(path)
            _check_archive(place.name, problem)
            return read_archive(place)
    except OSError as error:
        raise_alone(
            TableError(
                f"{shown_safely(path)} cannot be read: {reason_of(error)}. Check its permissions, "
                f"or copy it again."
            )
        )
    columns = with_example(path, named_columns(config, example, split))
    wanted = Wanted() if problem is None else wanted_columns(problem)
    texts = tuple(dict.fromkeys((*wanted.texts, *groups)))
    with open_table(path, columns, replace(wanted, texts=texts)) as table:
        validation, calibration = (_arrays(table, name) for name in SPLITS)
        return LossTable(
            validation,
            calibration,
            table.configs,
            table.ids("validation"),
            table.ids("calibration"),
        )


def is_archive(path: str | Path) -> bool:
    """Say whether a path names a NumPy archive."""
    return Path(path).suffix.lower() == ".npz"


def _check_archive(name: str, problem: Problem | None) -> None:
    """Refuse an archive for a limit on what is good: nobody knows whether 1 is good in it."""
    risks = () if problem is None else problem.risks
    risk = next((risk for risk in risks if risk.losses_are_complement), None)
    if risk is not None:
        limit = exact(0.1 if risk.limit is None else risk.limit)
        raise TableError(
            f"An .npz file holds losses as Python makes them, where 1 is bad, but in the column "
            f"{risk.name!r} of a table 1 is good, and nobody can tell which of the two {name!r} "
            f"has. Give a .csv or .parquet file whose column {risk.name!r} holds what its name "
            f'says, or limit the losses under a name of their own: "wrong<={limit}".'
        )


def existing(path: str | Path) -> Path:
    """Return the path of a file that is there, or say that it is not."""
    place = Path(path)
    if not place.is_file():
        raise no_table(path)
    return place


def _check_size(path: str | Path) -> None:
    """Refuse a file that memory cannot hold: `read_losses` makes arrays of all of it."""
    if Path(path).is_file():
        check_file(Path(path), "The table of losses", TableError)
    if kind_of(str(path)) == "parquet":
        with open_source(path) as source:
            ((rows,),) = source.ask(f"SELECT count(*) FROM {source.rows}").fetchall()
            # Rows that are all alike take no room in the file, but 8 bytes for each number here.
            check_memory(
                8 * rows * len(source.types), f"The table of losses {source.name!r}", TableError
            )


def with_example(table: Any, columns: Columns) -> Columns:
    """Take the column "example" for the ids of examples where a table has one and no other was
    named."""
    if columns.example is None and "example" in column_names(table):
        return named_columns(columns.config, "example", columns.split, columns.draw)
    return columns


def _arrays(table: LongTable, split: str) -> dict[str, Array]:
    """Read one split as arrays. Numbers that a file wrote as texts serve as losses only."""
    found = {}
    for name, values in table.read(split).items():
        array = np.asarray(values)
        of_texts = table.source.texts and name not in table.wanted.texts
        found[name] = array.view(NumbersOfTexts) if of_texts else array
    return found
