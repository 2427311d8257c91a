"""Selecting from a long table: a frame, or a file that may have more rows than memory holds."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from riskpilot.errors import ProblemError, TableError, type_in_words
from riskpilot.guarantee import (
    Procedure,
    Question,
    check_procedure,
    check_seed,
    fixed_sequence,
    freeze_plan,
    run_test,
)
from riskpilot.losses import (
    ExampleIds,
    calibration_losses,
    check_disjoint,
    same_sums,
    validation_losses,
)
from riskpilot.problem import Problem
from riskpilot.selection.file_ledger import (
    check_draw,
    enter,
    ledger_beside,
    ledger_place,
    recorded_draw,
)
from riskpilot.selection.from_table import check_limits, every_config
from riskpilot.selection.verdict import Selection, conclude
from riskpilot.tables import (
    LongTable,
    LossTable,
    is_archive,
    local_files,
    named_columns,
    open_table,
    read_losses,
    wanted_columns,
)


def select_from_frame(
    problem: Problem,
    frame: Any,
    *,
    config: str | Sequence[str],
    example: str | None,
    split: str | float = "split",
    procedure: Procedure = fixed_sequence,
    seed: int = 0,
    ledger: str | Path | None = "beside",
) -> Selection:
    """Select among configurations whose losses stand in a table, one row for each example.

    Validation losses are read first, and the test is settled by them. Only then are calibration
    losses read, those of the tested configurations alone. A column holds what its name says: under
    a lower limit, such as ``Risk("correct", at_least=0.85)``, 1 is good.

    Parameters
    ----------
    problem : Problem
        The risks with their limits, the free objective, and delta. Their names are columns.
    frame : frame, relation, str or Path
        A pandas, Polars or Arrow table, a DuckDB relation, or the path of a .csv, .parquet, .json
        or .jsonl file, a glob of such files, or an address that DuckDB reads.
    config : str or sequence of str
        The columns that make up a configuration. The one column "config" holds JSON objects or
        labels.
    example : str, or None
        The column of the examples' ids; None where a file lists the examples of every
        configuration in one order.
    split : str or float, default "split"
        The column that says validation or calibration; or the share of the examples that is drawn
        for validation. The draw is recorded in the certificate.
    procedure : Procedure, default fixed_sequence
        How several candidates are tested.
    seed : int, default 0
        Another seed makes another draw of the order in which bets see the calibration examples. A
        split is drawn from a seed other than 0. Where it is 0, the draw is that of the ledger, and
        a fresh one where the ledger has none.
    ledger : str or Path or None, default "beside"
        The file that counts the questions to this table. By default it lies beside a local file, or
        the files of a glob, and is named after it; frames and addresses have none. None keeps no
        count.

    Returns
    -------
    Selection
        What was chosen, with its certificate; its ``config`` is None where nothing passed.

    Raises
    ------
    ProblemError
        If the problem or the seed cannot be used, or a limit is open.
    TableError
        If the table lacks a column, a row or an id, or cannot be read.
    LossError
        If losses are outside their range, or missing where every example counts.
    LeakageError
        If validation and calibration share examples.

    Examples
    --------
    >>> import duckdb
    >>> from riskpilot import Problem, Risk
    >>> rows = duckdb.sql('''
    ...     SELECT model, question, question % 2 AS half, 1.0 + (model = 'large')::INT AS cost,
    ...            (hash(question) % 100 >= if(model = 'large', 5, 30))::INT AS correct
    ...     FROM range(4000) numbers(question), (VALUES ('small'), ('large')) models(model)
    ... ''')
    >>> selection = select_from_frame(
    ...     Problem([Risk("correct", at_least=0.9)], minimize="cost"),
    ...     rows,
    ...     config=["model"],
    ...     example="question",
    ...     split=0.5,
    ...     seed=1,
    ... )
    >>> selection.config
    {'model': 'large'}
    """
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"select_from_frame takes a Problem first, but got {type_in_words(problem)}. "
            f'Write Problem([Risk("error", limit=0.1)], minimize="cost").'
        )
    check_limits(problem)
    check_procedure(procedure)
    seed = check_seed(seed)
    columns = named_columns(config, example, split)
    counted_in = _ledger(frame, ledger)
    if not isinstance(split, str):
        draw = seed or (counted_in and recorded_draw(counted_in, columns.to_dict())) or None
        columns = replace(columns, draw=draw)
    if example is None and not isinstance(frame, str | Path):
        raise TableError(
            "The rows of a frame are told apart by the ids of their examples, but example is None. "
            'Name their column: example="question_id".'
        )
    with open_table(frame, columns, wanted_columns(problem)) as table:
        return _select(problem, table, procedure, seed, counted_in)


def _ledger(frame: Any, ledger: str | Path | None) -> Path | None:
    """Find the file that counts the questions to a table, if there is one."""
    if not isinstance(ledger, str) or ledger != "beside":
        return ledger_place(ledger)
    return ledger_beside(frame) if isinstance(frame, str | Path) and local_files(frame) else None


def _select(
    problem: Problem, table: LongTable, procedure: Procedure, seed: int, ledger: Path | None
) -> Selection:
    """Settle the test by validation losses, then read the calibration losses of its candidates."""
    columns, drawn_from = table.columns.to_dict(), table.drawn_from()
    if ledger is not None and drawn_from is not None:
        check_draw(ledger, table.file, columns, drawn_from)
    seen = validation_losses(problem, table.read("validation"))
    plan = freeze_plan(seen, procedure=procedure, seed=seed)
    question = Question(problem, plan, procedure, table.configs, table=columns)
    sealed = calibration_losses(problem, table.read("calibration", rows=plan.order))
    ids = ExampleIds()
    if same_sums(seen, sealed, plan.order):
        ids = ExampleIds(table.ids("validation"), table.ids("calibration"))
    check_disjoint(seen, sealed, plan.order, ids)
    use = None if ledger is None else enter(ledger, question, sealed.digest(), drawn_from)
    result = run_test(plan, sealed, procedure, rows=range(len(plan.order)))
    background = every_config(table.configs, seen.n_configs)
    return conclude(question, seen, result, use, background)


def whole_table(problem: Problem, path: str | Path, *, again: bool = False) -> LossTable:
    """Read a table of losses whole, and keep what a problem needs of it.

    ``again``: for an answer that is computed once more; it is of losses, and so is an archive.
    """
    table = read_losses(path, problem=None if again and is_archive(path) else problem)
    return table.only([*problem.names, *problem.beside], problem.minimize)
