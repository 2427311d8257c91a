"""Figures that compare riskpilot with other tools, as tables in Markdown, from stored results.

Each row has the command that makes its figures again.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_RESULTS = _ROOT / "experiments" / "results"
Row = tuple[str, str, str, str]
"""The question, riskpilot's figure, the figure of the other, and the command."""


def table() -> str:
    """Write all comparisons as one table."""
    rows = [*_thresholds(), *_gaps(), *_searches(), *_times(), *_gates(), *_alarms(), *_labels()]
    lines = ["| question | riskpilot | the other | command |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(row[:-1])} | `{row[-1]}` |" for row in rows]
    return "\n".join(lines)


def _json(name: str) -> Any:
    return json.loads((_RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _csv(name: str) -> list[dict[str, str]]:
    with (_RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _thresholds() -> Iterator[Row]:
    """A threshold under a limit on the false-positive rate, against MAPIE."""
    found = _json("known_order")
    rates = {
        name: _percent(each["false negative rate"], 2) for name, each in found["methods"].items()
    }
    yield (
        f"False-negative rate of a threshold with a false-positive rate of at most 10 %, "
        f"{found['size']:,} examples, mean of {found['draws']} draws",
        f"{rates['riskpilot, known order, every score']} with a known order, "
        f"{rates['riskpilot, searched order, 100 thresholds']} with a searched one",
        f"MAPIE: {rates['MAPIE, fixed sequence, 1,000 thresholds']} with a fixed sequence of "
        f"1,000 thresholds, {rates['MAPIE, split fixed sequence, 100 thresholds']} with a split "
        f"one, which learns the order, {rates['MAPIE, Bonferroni-Holm, 100 thresholds']} with its "
        f"default",
        "python -m experiments.known_order",
    )


def _gaps() -> Iterator[Row]:
    """A limit on the gap between two groups, against Fairlearn."""
    rows = {row["who"]: row for row in _json("gap") if (row["limit"], row["V"]) == (0.05, 2000)}
    broke = {who: f"{row['broke']} of {row['answers']} answers" for who, row in rows.items()}
    mine = rows["riskpilot"]
    yield (
        f"How often a gap of at most 5 points is broken on unseen people, {mine['splits']} splits "
        f"of Adult with 4,000 labelled examples",
        f"{broke['riskpilot']}, and none in "
        f"{mine['splits'] - mine['answers']} of {mine['splits']} splits",
        f"Fairlearn: `ThresholdOptimizer` {broke['thresholds']}, `ExponentiatedGradient` "
        f"{broke['gradient']}",
        "python -m experiments.fairlearn_gap",
    )


def _searches() -> Iterator[Row]:
    """Searches of the same budget, and a choice without a test."""
    for name, words in (("ehvi", "BoTorch's qLogEHVI"), ("parego", "SMAC's ParEGO")):
        verdicts = Counter(
            row["verdict"]
            for row in _csv("comparisons")
            if (row["method"], row["baseline"]) == ("guided", name)
        )
        yield (
            f"The free objective on test after the same number of evaluations and the same test, "
            f"{verdicts.total()} limits",
            f"better in {verdicts['win']}, tied in {verdicts['tie']}",
            f"{words}: better in {verdicts['loss']}",
            "riskpilot bench",
        )
    broke = {
        name: [float(row["violations"]) for row in _csv("cells") if row["method"] == name]
        for name in ("guided", "practice")
    }
    means = {name: _percent(sum(shares) / len(shares)) for name, shares in broke.items()}
    yield (
        "How often the choice breaks a limit, over all tasks and limits of the replay",
        f"{means['guided']} on average, {_percent(max(broke['guided']))} at most",
        f"Optuna's TPE with constraints, best feasible trial: {means['practice']} on average, "
        f"{_percent(max(broke['practice']))} at most",
        "riskpilot bench",
    )


def _times() -> Iterator[Row]:
    """Seconds of a proposal and of a procedure."""
    file = _ROOT / "benchmarks" / "results.json"
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    proposals = [row for row in rows if row["name"] == "proposal, d=3, n=50"]
    yield (
        "Time of a proposal, 3 parameters, 50 trials",
        " and ".join(_milliseconds(row["ours_seconds"]) for row in proposals)
        + ", timed anew beside each of the others",
        ", ".join(f"{row['peer_name']}: {_milliseconds(row['peer_seconds'])}" for row in proposals),
        "python -m benchmarks --only proposals",
    )
    (row,) = (r for r in rows if r["name"] == "Holm, 10,000 hypotheses")
    yield (
        "Time of Holm's procedure, 10,000 hypotheses",
        _milliseconds(row["ours_seconds"]),
        f"MAPIE: {_milliseconds(row['peer_seconds'])}",
        "python -m benchmarks --only procedures",
    )


def _gates() -> Iterator[Row]:
    """How often a gate lets a real drop through."""
    found = _json("gate")
    for row in found["rows"]:
        if (row["n"], row["worse"]) in ((300, 0.06), (300, 0.03), (1_000, 0.04)):
            drop = row["worse"] - row["better"]
            answers = f"{_percent(row['worse'], 0)} worse, {_percent(row['better'], 0)} better"
            yield (
                f"How often a change with a true drop of {_percent(drop, 0)} ({answers}) passes a "
                f"gate of {_percent(found['limit'], 0)}, {row['n']:,} examples",
                _percent(row["shown"]),
                f"a gate that asks for no significant difference (McNemar): "
                f"{_percent(row['insignificant'])}",
                "python -m experiments.gate",
            )


def _alarms() -> Iterator[Row]:
    """Labels until an alarm, against MAPIE's monitor."""
    found = _json("watch_delay")
    for row in found["delays"]:
        if (row["limit"], row["losses"]) != (0.1, "0/1") or row["after"] != 0.15:
            continue
        if row["change"] not in (0, 10_000):
            continue
        before = f"after {row['change']:,} labels at 0.06" if row["change"] else "from the start"
        yield (
            f"Labels until the alarm, limit 0.1, risk 0.15 {before} (median)",
            f"{row['watch'] + 1e-6:,.0f}, at level {found['delta']:g}",
            f"MAPIE `RiskMonitoring`: {row['mapie'] + 1e-6:,.0f}, at level {found['delta'] / 4:g}, "
            f"its part of {found['delta']:g}; {row['mapie_whole_level'] + 1e-6:,.0f} with all",
            "python -m experiments.watch_delay",
        )


def _labels() -> Iterator[Row]:
    """Labels that are saved by looking early."""
    rows = _json("labels_saved")["stopping"]["rows"]
    (row,) = (each for each in rows if each["limit"] == 0.1)
    yield (
        f"Labels that a promise takes, limit 0.1, true risk {row['risk']}",
        f"{row['mean_labels']:,} on average, power {row['power']}",
        f"a test at the end: {row['horizon']:,}, power {row['fixed_power']}",
        "python -m experiments.labels_saved",
    )


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms" if seconds < 0.01 else f"{1000 * seconds:,.0f} ms"
