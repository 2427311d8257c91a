"""The figures of large studies, as tables in Markdown.

``python -m benchmarks.load`` makes those of time and memory, and
``python -m experiments.bounded`` those of quality.
"""

import json
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
FIGURES = _ROOT / "benchmarks" / "durability.json"
QUALITY = _ROOT / "experiments" / "results" / "bounded.json"


def times() -> str:
    """Write what each question takes, by the number of trials."""
    runs = json.loads(FIGURES.read_text(encoding="utf-8"))["load"].values()
    lines = [
        "| trials | first proposal | proposal: median, slowest | select | status | report "
        "| memory: proposals, select, report |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in sorted(runs, key=lambda run: run["trials"]):
        lines.append(
            f"| {run['trials']:,} | {_seconds(run, 'first_proposal')} "
            f"| {_seconds(run, 'proposal')}, {_seconds(run, 'slowest_proposal')} "
            f"| {_seconds(run, 'select')} | {_seconds(run, 'status')} | {_seconds(run, 'report')} "
            f"| {run['proposals_mb']:.0f}, {run['select_mb']:.0f}, {run['selection_mb']:.0f} MB |"
        )
    return "\n".join(lines)


def quality() -> str:
    """Write what a bound on the fitted trials costs, task by task."""
    found = json.loads(QUALITY.read_text(encoding="utf-8"))
    lines = [
        f"| task | all {found['trials']} fitted | {found['bound']} of them fitted | difference |",
        "|---|---|---|---|",
    ]
    for name, run in found["tasks"].items():
        gap, error = run["gap"]
        lines.append(
            f"| {name.replace('_', ' ')} | {_free(run['all'])} | {_free(run['bounded'])} "
            f"| {gap:+.4f} ± {error:.4f} |"
        )
    return "\n".join(lines)


def _seconds(run: dict[str, Any], key: str) -> str:
    """Write the processor time of a question."""
    return f"{run[key][1]:.2f} s"


def _free(run: dict[str, float]) -> str:
    """Write the free objective on test, and where nothing could be certified how often."""
    nothing = run["nothing_certified"]
    return f"{run['free']:.4f}" + (f" (nothing in {nothing:.0%})" if nothing else "")
