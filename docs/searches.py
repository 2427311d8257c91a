"""The figures of searches under hard conditions, as tables in Markdown.

``python -m experiments.optimism``, ``python -m experiments.settling`` and
``python -m experiments.many_workers`` make them.
"""

import json
from pathlib import Path
from typing import Any

_RESULTS = Path(__file__).parents[1] / "experiments" / "results"
_METHODS = ("guided", "trusting", "uniform")


def optimism() -> str:
    """Write what searches are worth where validation is off, as multiples of the dense grid."""
    found = _read("optimism")
    lines = [
        "| tasks | validation risks | guided (hedges) | guided, `trust=1` | uniform grid "
        "| nothing certified: guided, `trust=1`, uniform, dense |",
        "|---|---|---|---|---|---|",
    ]
    for row in found["means"]:
        ratios = " | ".join(f"{row['ratio'][name]:.3f}" for name in _METHODS)
        empty = ", ".join(f"{row['empty'][name]:.1%}" for name in (*_METHODS, "dense"))
        shift = "as they are" if row["shift"] == 0 else f"{row['shift']:+.0%}"
        lines.append(f"| {row['role']} ({row['tasks']}) | {shift} | {ratios} | {empty} |")
    return "\n".join([*lines, "", _made_of(found)])


def optimism_by_task() -> str:
    """Write the same task by task: how guided and uniform searches compare with the dense grid."""
    rows = _read("optimism")["rows"]
    shifts = list(dict.fromkeys(row["shift"] for row in rows))
    lines = [
        "| task | " + " | ".join(f"{shift:+.0%}" for shift in shifts) + " |",
        "|---" * (len(shifts) + 1) + "|",
    ]
    for task in dict.fromkeys(row["task"] for row in rows):
        some = {row["shift"]: row for row in rows if row["task"] == task}
        ratios = [some[shift]["ratio"] for shift in shifts]
        each = [f"{ratio['guided']:.2f} ({ratio['uniform']:.2f})" for ratio in ratios]
        beside = "" if some[0.0]["base"] == "dense" else " (no dense grid: against the uniform one)"
        lines.append(f"| {task.replace('_', ' ')}{beside} | " + " | ".join(each) + " |")
    return "\n".join(lines)


def settling() -> str:
    """Write what `StopWhenSettled(share=...)` saves and costs."""
    found = _read("settling")
    keys = list(found["means"][0]["saved"])
    names = ["1 % foreseen" if key == "foreseen" else f"`share={key}`" for key in keys]
    lines = ["| tasks | " + " | ".join(names) + " |", "|---" * (len(keys) + 1) + "|"]
    for row in found["means"]:
        lines.append(_saved(f"**{row['role']}, mean of {row['tasks']}**", row, keys))
    for row in found["rows"]:
        lines.append(_saved(f"{row['task'].replace('_', ' ')}, N = {row['trials']}", row, keys))
    return "\n".join([*lines, "", _made_of(found)])


def _saved(title: str, row: dict[str, Any], keys: list[str]) -> str:
    """Write one line: the share of evaluations saved, and the rise of the free objective."""
    each = [f"{row['saved'][key]:.0%} for {row['cost'][key]:+.1%}" for key in keys]
    return f"| {title} | " + " | ".join(each) + " |"


def _read(name: str) -> dict[str, Any]:
    """Read the figures of an experiment."""
    found: dict[str, Any] = json.loads((_RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _made_of(found: dict[str, Any]) -> str:
    """Write how many seeds and splits figures rest on."""
    return f"{found['seeds']} seeds of search, {found['splits']} splits into calibration and test."
