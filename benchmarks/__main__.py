"""Run every comparison, print the table, write it as JSON: ``python -m benchmarks``."""

import argparse
import json
import os
import platform
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import optuna
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import files, imports, labels, procedures, proposals, storage, tables, watching
from benchmarks.measure import Row

RESULTS = Path(__file__).parent / "results.json"
PACKAGES = ("numpy", "scipy", "scikit-learn", "optuna", "torch", "botorch", "mapie", "duckdb")
# Imports first: their interpreters should find the machine as it is.
SUITES = {
    "imports": imports,
    "procedures": procedures,
    "tables": tables,
    "files": files,
    "labels": labels,
    "proposals": proposals,
    "storage": storage,
    "watching": watching,
}


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the JSON goes")
    parser.add_argument("--only", choices=SUITES, help="one suite")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    console = Console()
    console.width = max(console.width, 130)
    rows: list[Row] = []
    with Progress(console=console, transient=True) as progress:
        suites = [options.only] if options.only else list(SUITES)
        for name in progress.track(suites, description="measuring"):
            for row in SUITES[name].rows(options.quick):
                if options.quick:
                    row = replace(row, target=None)  # targets are for the full sizes
                rows.append(row)
                progress.console.print(f"{row.name} against {row.peer_name}: {row.ratio:.3g}x")
    console.print(as_table(rows))
    figures = as_json(rows, options.quick)
    if options.only and not options.quick:
        figures["rows"] = [*_of_other_suites(options.out, rows), *figures["rows"]]
    options.out.write_text(json.dumps(figures, indent=2) + "\n")
    return rows


def _of_other_suites(path: Path, rows: list[Row]) -> list[dict[str, Any]]:
    """What the file has beside these comparisons: one suite alone takes nothing away."""
    known = json.loads(path.read_text())["rows"] if path.exists() else []
    again = {(row.name, row.peer_name) for row in rows}
    return [row for row in known if (row["name"], row["peer_name"]) not in again]


def as_table(rows: list[Row]) -> Table:
    table = Table(title="riskpilot against its peers (medians of one run)")
    for column in ("what", "peer"):
        table.add_column(column)
    for column in ("ours", "peer's", "ratio", "target"):
        table.add_column(column, justify="right")
    table.add_column("met")
    for row in rows:
        sign = "faster" if row.goal == "faster" else "of its time"
        relation = ">=" if row.goal == "faster" else "<="
        table.add_row(
            row.name,
            row.peer_name,
            amount(row.ours_seconds, row.unit),
            amount(row.peer_seconds, row.unit),
            f"{row.ratio:.3g}x {sign}",
            "-" if row.target is None else f"{relation} {row.target:g}x",
            {True: "yes", False: "[bold red]no[/]", None: "-"}[row.met],
        )
    return table


def amount(value: float, unit: str) -> str:
    return duration(value) if unit == "seconds" else f"{value:,.0f} {unit}"


def duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def as_json(rows: list[Row], quick: bool) -> dict[str, Any]:
    return {
        "quick": quick,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "versions": {package: version(package) for package in PACKAGES},
        "rows": [{**asdict(row), "ratio": row.ratio, "met": row.met} for row in rows],
    }


if __name__ == "__main__":
    main()
