"""Tables of a run: one row per cell and method, per seed, and per comparison."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot.bench.cells import Cell
from riskpilot.bench.jobs import NO_TEST
from riskpilot.bench.methods import METHODS
from riskpilot.bench.results import Entry, Results, Runs, family_label, tested
from riskpilot.bench.shown.estimate import Estimate, two_way
from riskpilot.common import write_whole

Row = dict[str, Any]
# Whom each proponent is compared with; the p-values of both sides are the same.
BASELINES = ("uniform", "random", "hvi", "ehvi", "parego", "one_sided")
COMPARISONS = (
    *(("guided", name, "auto") for name in (*BASELINES, "paper", "dense")),
    *(("paper", name, "auto") for name in (*BASELINES, "dense")),
    ("guided_hb", "paper", "hoeffding_bentkus"),
    ("guided_half", "paper", "auto"),
)


def cell_label(cell: Cell) -> str:
    """Write the limits of a cell.

    >>> cell_label((0.18, 0.05))
    '0.18 / 0.05'
    """
    return " / ".join(f"{limit:g}" for limit in cell)


def ratio(results: Results, entry: Entry) -> float | None:
    """Divide the mean free objective by that of the dense grid, tested in the same way."""
    family = "auto" if entry.family == NO_TEST else entry.family
    dense = results.get(entry.task, entry.cell, "dense", family)
    if dense is None:
        return None
    return float(results.runs[entry].free.mean() / dense.free.mean())


def cell_rows(results: Results) -> list[Row]:
    """Make the table of cells: one row per cell, method and p-values."""
    return [_cell_row(results, entry, runs) for entry, runs in results.runs.items()]


def _cell_row(results: Results, entry: Entry, runs: Runs) -> Row:
    """Summarise the runs of one method in one cell."""
    free = two_way(runs.free)
    certified = runs.free[~runs.nothing]
    row: Row = {
        **_about(entry),
        "evaluations": runs.n_configs,
        "candidates": runs.n_candidates,
        "free_objective": results.names[entry.task][-1],
        "free": free.mean,
        "free_low": free.low,
        "free_high": free.high,
        "free_where_certified": float(certified.mean()) if certified.size else None,
        "nothing_certified": float(runs.nothing.mean()),
        "violations": float(runs.violated.mean()),
        "ratio_to_dense": ratio(results, entry),
        "search_seconds": runs.seconds,
    }
    for i, name in enumerate(results.names[entry.task][:-1]):
        values = runs.risks[..., i]
        certain = values[~np.isnan(values)]  # nothing was certified in the other runs
        row |= {
            f"risk_{i + 1}": name,
            f"limit_{i + 1}": entry.cell[i],
            f"risk_{i + 1}_on_test": float(certain.mean()) if certain.size else None,
        }
    return row


def seed_rows(results: Results) -> list[Row]:
    """Make the table of seeds: means over the splits, for each search seed."""
    rows = []
    for entry, runs in results.runs.items():
        for seed in range(len(runs.free)):
            rows.append(
                {
                    **_about(entry),
                    "seed": seed,
                    "free": float(runs.free[seed].mean()),
                    "nothing_certified": float(runs.nothing[seed].mean()),
                    "violations": float(runs.violated[seed].mean()),
                }
            )
    return rows


def compare(
    results: Results, task: str, cell: Cell, method: str, baseline: str, family: str = "auto"
) -> Estimate | None:
    """Estimate the paired difference of the free objective, over the same seeds and splits.

    None where one of both was not run.
    """
    one = results.get(task, cell, method, family)
    other = results.get(task, cell, baseline, family)
    if one is None or other is None:
        return None
    return two_way(one.free - other.free)


def comparison_rows(results: Results) -> list[Row]:
    """Make the table of comparisons: one row per pair of methods and cell."""
    rows = []
    for method, baseline, family in COMPARISONS:
        for task, cell in results.entries():
            found = compare(results, task, cell, method, baseline, family)
            if found is None:
                continue
            rows.append(
                {
                    "task": task,
                    "limits": cell_label(cell),
                    "method": method,
                    "baseline": baseline,
                    "p_values": family_label(family),
                    "difference": found.mean,
                    "low": found.low,
                    "high": found.high,
                    "verdict": found.verdict,
                }
            )
    return rows


def counts(rows: Iterable[Row], method: str, baseline: str, family: str = "auto") -> Row:
    """Count wins, ties and losses of one comparison over all cells."""
    family = family_label(family)
    verdicts = [
        row["verdict"]
        for row in rows
        if (row["method"], row["baseline"], row["p_values"]) == (method, baseline, family)
    ]
    return {
        "method": METHODS[method].label,
        "against": METHODS[baseline].label,
        "p-values": family,
        "wins": verdicts.count("win"),
        "ties": verdicts.count("tie"),
        "losses": verdicts.count("loss"),
    }


def largest_violation(results: Results, test: bool) -> tuple[float, Entry] | None:
    """Find the largest share of runs with a violation, among methods that test (or do not)."""
    shares = [
        (float(runs.violated.mean()), entry)
        for entry, runs in results.runs.items()
        if tested(entry.method) == test
    ]
    return max(shares, key=lambda pair: pair[0], default=None)


def _about(entry: Entry) -> Row:
    """Write what a row is about."""
    return {
        "task": entry.task,
        "limits": cell_label(entry.cell),
        "method": entry.method,
        "p_values": family_label(entry.family),
    }


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write rows to a CSV file: numbers with six digits, empty where there is none."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _csv_value(value) for name, value in row.items()} for row in rows)
    write_whole(path, text.getvalue())


def _csv_value(value: Any) -> Any:
    """Write a value as it stands in a CSV file."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value
