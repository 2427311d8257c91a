"""The page of one task: its figure, and a table of all methods for every limit."""

from collections.abc import Sequence
from pathlib import Path

from riskpilot.bench import cells
from riskpilot.bench.cells import Cell
from riskpilot.bench.jobs import NO_TEST
from riskpilot.bench.methods import METHODS
from riskpilot.bench.results import Entry, Results
from riskpilot.bench.shown.estimate import two_way
from riskpilot.bench.shown.labels import free_label, risk_label, task_title
from riskpilot.bench.shown.summary import Row, ratio
from riskpilot.bench.tasks import Task

SHOWN = (
    ("guided", "auto"),
    ("paper", "auto"),
    ("paper", "hoeffding_bentkus"),
    ("one_sided", "auto"),
    ("hvi", "auto"),
    ("ehvi", "auto"),
    ("parego", "auto"),
    ("uniform", "auto"),
    ("random", "auto"),
    ("dense", "auto"),
    ("practice", NO_TEST),
)
# A ratio is one of two methods that are tested in the same way.
_MARK = " \\*"
_STAR = (
    " The ratio with a star is one to the dense grid tested with Hoeffding-Bentkus, as the method "
    "of its row is; all other ratios are to the dense grid tested with the default p-values."
)


def task_page(results: Results, name: str, figures: Sequence[Path]) -> str:
    """Write the results of a task as a page in Markdown."""
    parts = [f"# {task_title(name)}", about(cells.load(name, 0))]
    caption = f"{task_title(name)}: objectives on test and the limit"
    parts += figure(name, caption, figures, folder="../")
    for cell in results.cells[name]:
        parts += [f"## {limits(results.names[name], cell)}", _methods(results, name, cell)]
    return "\n\n".join(parts) + "\n"


def about(task: Task) -> str:
    """Say what a task is, and by which command its figures can be made again."""
    space = "one parameter" if len(task.space) == 1 else f"{len(task.space)} parameters"
    grid = "no dense grid" if task.grid is None else f"a dense grid of {len(task.grid):,}"
    return (
        f"A part of [the replay](../README.md), which says how to read the figures. "
        f"{space.capitalize()}, {task.n_trials} evaluations for each search, {grid}; "
        f"{task.size['validation']:,} validation examples, {cells.n_calibration(task):,} for "
        f"calibration.{_STAR if task.grid is not None else ''}\n\n"
        f"This page alone: `riskpilot bench --task {task.name} --out build/{task.name}`."
    )


def limits(names: Sequence[str], cell: Cell) -> str:
    """Write the limits of a cell as a heading.

    >>> limits(("error", "drop", "cost"), (0.1, 0.02))
    'error at most 0.1, accuracy drop at most 0.02'
    """
    pairs = zip(names[:-1], cell, strict=True)
    return ", ".join(f"{risk_label(name)} at most {limit:g}" for name, limit in pairs)


def _methods(results: Results, task: str, cell: Cell) -> str:
    """Write what every method reached at some limits as a table."""
    entries = [Entry(task, cell, method, family) for method, family in SHOWN]
    return table([_row(results, entry) for entry in entries if entry in results.runs])


def _row(results: Results, entry: Entry) -> Row:
    """Write what one method reached."""
    *risks, free = results.names[entry.task]
    runs = results.runs[entry]
    found, certified = two_way(runs.free), runs.free[~runs.nothing]
    label, cost = METHODS[entry.method].label, free_label(free)
    to_dense = ratio(results, entry)
    by_bentkus = entry.family == "hoeffding_bentkus"
    row: Row = {
        "method": f"{label}, H.-Bentkus" if by_bentkus else label,
        f"{cost}, all runs": f"{found.mean:.4g} [{found.low:.4g}, {found.high:.4g}]",
        f"{cost}, certified runs alone": f"{certified.mean():.4g}" if certified.size else "",
    }
    for i, name in enumerate(risks):
        values = runs.risks[..., i][~runs.nothing]
        row[risk_label(name)] = f"{values.mean():.4f}" if values.size else ""
    return row | {
        "violations": f"{100 * runs.violated.mean():.1f} %",
        "nothing certified": f"{100 * runs.nothing.mean():.1f} %",
        "ratio to dense, all runs": ""
        if to_dense is None
        else f"{to_dense:.3f}{_MARK if by_bentkus else ''}",
    }


def figure(
    stem: str,
    caption: str,
    figures: Sequence[Path],
    *,
    folder: str = "",
    heading: bool = False,
) -> list[str]:
    """Link a figure, where asked for under a heading; nothing where it was not drawn.

    ``folder``: the way from the page to the folder of the overview.
    """
    for path in figures:
        if path.stem == stem:
            above = [f"## {caption}"] if heading else []
            return [*above, f"![{caption}]({folder}{path.parent.name}/{path.name})"]
    return []


def table(rows: Sequence[Row]) -> str:
    """Write rows as a Markdown table, with the columns of the first row.

    >>> print(table([{"a": 1, "b": "x"}]))
    | a | b |
    |---|---|
    | 1 | x |
    """
    if not rows:
        return "(nothing was run)"
    columns = list(rows[0])
    lines = [
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(str(row.get(name, '')) for name in columns)} |" for row in rows),
    ]
    return "\n".join(lines)
