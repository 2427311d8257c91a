"""The figures of studies that survive: kept as JSON, a section for each command; shown in the docs.

Reads and writes JSON alone, so that the documentation can be built without the package.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).with_name("durability.json")
SPEED = Path(__file__).with_name("results.json")


def record(section: str, figures: Mapping[str, Any], path: Path = FIGURES) -> None:
    """Put the figures of one command in their place, and leave the others as they are."""
    known = json.loads(path.read_text()) if path.exists() else {}
    known[section] = {**known.get(section, {}), **figures}
    path.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def table(path: Path = FIGURES, speed: Path = SPEED) -> str:
    """The figures as a table in Markdown."""
    known = json.loads(path.read_text())
    rows = [*_crash(known["crash"]), *_chaos(known["chaos"])]
    rows += [*_workers(known["workers"]), *_large(known["large"])]
    rows += _speed(json.loads(speed.read_text())["rows"])
    lines = ["| what | measured | command |", "|---|---|---|"]
    lines += [f"| {what} | {figure} | `python -m {command}` |" for what, figure, command in rows]
    return "\n".join(lines)


Rows = list[tuple[str, str, str]]


def _crash(figures: Mapping[str, Any]) -> Rows:
    return [
        (
            f"workers killed {run['kills']} times, {run['workers']} at a time, {name(kind)}",
            f"of {run['acknowledged']} finished evaluations {run['lost']} lost, {run['twice']} "
            f"twice, {run['unreadable']} unreadable; "
            f"{'the same' if run['same_selection'] else 'ANOTHER'} selection as undisturbed",
            "benchmarks.crash",
        )
        for kind, run in sorted(figures.items(), reverse=True)
    ]


def _chaos(figures: Mapping[str, Any]) -> Rows:
    return [
        (
            f"{sum(run['faults'].values())} random faults in {run['seconds'] / 60:.0f} minutes, "
            f"{name(kind)}: {_listed(run['faults'])}",
            f"of {run['acknowledged']} finished evaluations {run['lost']} lost, {run['twice']} "
            f"twice; {run['blamed']} trials failed for it, {run['ended']} workers gave up, "
            f"{run['hangs']} hangs, {run['tracebacks']} raw errors; ledger, select and verify "
            f"{'BROKEN' if run['broken'] else 'whole'}",
            "benchmarks.chaos",
        )
        for kind, run in sorted(figures.items(), reverse=True)
    ]


def _listed(faults: Mapping[str, int]) -> str:
    """The faults with their numbers, the most frequent first."""
    ordered = sorted(faults.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{fault} {number}" for fault, number in ordered)


def _workers(figures: Mapping[str, Any]) -> Rows:
    time = figures["time"]
    rows = [
        (
            f"{time['trials']} trials of a second: one worker, two",
            f"{time['one']:.1f} s, {time['two']:.1f} s: {time['one'] / time['two']:.2f} times as "
            f"fast",
            "benchmarks.workers",
        )
    ]
    for run in sorted(figures["quality"].values(), key=lambda run: run["trials"]):
        rows.append(
            (
                f"what is certified after {run['trials']} trials on the fairness table, limit "
                f"{run['limit']:g}, {run['certified']} of {run['seeds']} seeds: one worker, two, "
                f"difference",
                ", ".join(f"{run[key][0]:.4f} ± {run[key][1]:.4f}" for key in ("one", "two", "gap"))
                + " (95 %)",
                "benchmarks.workers",
            )
        )
    return rows


def _large(figures: Mapping[str, Any]) -> Rows:
    return [
        (
            f"{run['trials']:,} trials x {run['examples']:,} examples x 2 risks",
            f"{run['disk_mb']:.0f} MB on the disk; select takes {run['select_seconds']:.1f} s and "
            f"at most {run['peak_mb']:.0f} MB, {run['losses_mb']:.0f} MB of them the losses of its "
            f"{run['candidates']} candidates",
            "benchmarks.large",
        )
        for run in sorted(figures.values(), key=lambda run: run["trials"])
    ]


def _speed(rows: list[Mapping[str, Any]]) -> Rows:
    return [
        (
            f"{row['name']}, with losses, proposals for others to see, heartbeats",
            f"{row['ratio']:.2f} times the time of {row['peer_name']} with the same sampler",
            "benchmarks --only storage",
        )
        for row in rows
        if " trials on " in row["name"]
    ]


def name(kind: str) -> str:
    return {"sqlite": "SQLite", "postgresql": "PostgreSQL", "journal": "a journal"}[kind]
