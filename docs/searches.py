"""The figures of searches under hard conditions, as tables in Markdown.

``python -m experiments.optimism``, ``python -m experiments.settling``,
``python -m experiments.racing``, ``python -m experiments.warm_start``,
``python -m experiments.trees``, ``python -m experiments.training``,
``python -m experiments.many_parameters``, ``python -m experiments.few_evaluations``,
``python -m experiments.known_surface``, ``python -m experiments.without_safe_start``,
``python -m experiments.hard_spaces``, ``python -m experiments.many_workers`` and
``python -m benchmarks.throughput`` make them.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_RESULTS = _ROOT / "experiments" / "results"
_FIGURES = _ROOT / "benchmarks" / "durability.json"
_STORAGES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
_METHODS = ("guided", "trusting", "uniform")
_TREES = {
    "branches": "three models, synthetic",
    "layers": "layers, synthetic",
    "nested": "two levels, synthetic",
    "pipeline": "two choices side by side, synthetic",
    "three models on Adult": "three models of scikit-learn on Adult",
    "branches, few": "three models, synthetic, N = 12",
    "layers, few": "layers, synthetic, N = 15",
    "nested, few": "two levels, synthetic, N = 15",
    "pipeline, few": "two choices side by side, synthetic, N = 12",
    "three models on Adult, few": "three models of scikit-learn on Adult, N = 12",
}


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


def races() -> str:
    """Write what races cost, as multiples of whole evaluations, and the examples that they take."""
    return _multiples("racing", "whole", ("examples of as many trials",))


def earlier_studies() -> str:
    """Write what half of the budget finds with an earlier study, as multiples of a cold search."""
    return _multiples("warm_start", "cold")


def few_evaluations() -> str:
    """Write what the beginning of a search is worth, as multiples of the paper's own search."""
    found = _read("few_evaluations")
    ways = [key for key in found["rows"][0]["ratio"] if f"{key}, half" in found["rows"][0]["ratio"]]
    lines = [f"| task | {' | '.join(ways)} |", "|---" * (1 + len(ways)) + "|"]
    for row in found["rows"]:
        each = [f"{row['ratio'][way]:.2f}, {row['ratio'][f'{way}, half']:.2f}" for way in ways]
        lines.append(f"| {row['task'].removeprefix('tuning: ')} | " + " | ".join(each) + " |")
    return "\n".join([*lines, "", _made_of(found)])


def known_surface() -> str:
    """Write what half of the evaluations lose to all of the paper's, with perfect surrogates."""
    found = _read("known_surface")
    rows = found["rows"]
    ways = list(rows[0]["ratio"])
    lines = [f"| task | limits | {' | '.join(ways)} |", "|---" * (2 + len(ways)) + "|"]
    for row in rows:
        each = [f"{row['ratio'][way]:.3f} ({row['losses'][way]})" for way in ways]
        name = row["task"].replace("_", " ")
        lines.append(f"| {name} | {row['limits']} | " + " | ".join(each) + " |")
    lost = [sum(row["losses"][way] for row in rows) for way in ways]
    limits = sum(row["limits"] for row in rows)
    lines.append(f"| **losses in all** | {limits} | " + " | ".join(map(str, lost)) + " |")
    return "\n".join([*lines, "", _made_of(found)])


def without_safe_start() -> str:
    """Write what searches find where no safe configuration was named."""
    found = _read("without_safe_start")
    searches = list(found["rows"][0]["left"])
    lines = [f"| task | validation | {' | '.join(searches)} |", "|---" * (2 + len(searches)) + "|"]
    for row in found["rows"]:
        each = [f"{row['left'][one]:.3f} ({row['empty'][one]:.1%})" for one in searches]
        validation = f"thinned by {row['thinned']:.0%}" if row["thinned"] else "as it is"
        lines.append(f"| {row['task']} | {validation} | " + " | ".join(each) + " |")
    return "\n".join([*lines, "", f"{found['seeds']} seeds of data and search."])


def narrow_regions() -> str:
    """Write how far searches stay behind where little of the space is safe and none is named."""
    return _hard_spaces("gap", lambda row, one: f"{row['gap'][one]:.2f} ({row['empty'][one]:.0%})")


def failing_regions() -> str:
    """Write what searches find where evaluations in a region give no results."""
    return _hard_spaces(
        "multiple", lambda row, one: f"{row['multiple'][one]:.3f} ({row['fell'][one]:.1f})"
    )


def _hard_spaces(figure: str, written: Callable[[dict[str, Any], str], str]) -> str:
    """Write a row for each task that has a figure, and their mean."""
    found = _read("hard_spaces")
    rows = [row for row in found["rows"] if figure in row]
    searches = list(rows[0][figure])
    lines = [f"| task | N | {' | '.join(searches)} |", "|---" * (2 + len(searches)) + "|"]
    for row in rows:
        each = [written(row, one) for one in searches]
        lines.append(f"| {row['task']} | {row['trials']} | " + " | ".join(each) + " |")
    means = {
        column: {one: sum(row[column][one] for row in rows) / len(rows) for one in searches}
        for column in (figure, "empty", "fell")
    }
    each = [f"**{written(means, one)}**" for one in searches]
    lines.append("| **mean** | | " + " | ".join(each) + " |")
    return "\n".join([*lines, "", f"{found['seeds']} seeds of task and search."])


def _multiples(name: str, base: str, shares: tuple[str, ...] = ()) -> str:
    """Write a row for each task: shares, then free objectives as multiples of that of the base."""
    found = _read(name)
    keys = [key for key in found["rows"][0]["ratio"] if key != base]
    heads = " | ".join(["task", *shares, *keys])
    lines = [f"| {heads} |", "|---" * (1 + len(shares) + len(keys)) + "|"]
    for row in found["rows"]:
        each = [f"{row[share]:.0%}" for share in shares]
        each += [f"{row['ratio'][key]:.3f}" if key in row["ratio"] else "" for key in keys]
        lines.append(f"| {row['task'].replace('_', ' ')} | " + " | ".join(each) + " |")
    return "\n".join([*lines, "", _made_of(found)])


def trees() -> str:
    """Write what searches find where parameters exist under conditions."""
    return _side_by_side("trees")


def training() -> str:
    """Write what searches find that train anew for each trial."""
    return _side_by_side("training")


def many_parameters() -> str:
    """Write what searches find on the tasks for tuning with many parameters."""
    return _side_by_side("many_parameters")


def _side_by_side(name: str) -> str:
    """Write a row for each task: what every search found, and guided against the best peer."""
    rows = _read(name)
    searches = list(rows[0]["free"])
    heads = " | ".join(["task", *searches, "guided / best of Optuna's", "gain over it"])
    lines = [f"| {heads} |", "|---" * (len(searches) + 3) + "|"]
    for row in rows:
        task = _TREES.get(row["task"], row["task"])
        role = " (tuning)" if row["role"] == "tuning" else ""
        each = [_free(row, search) for search in searches]
        gain, error = row["gain"]
        each += [f"{row['ratio']:.3f} ({row['best_peer']})", f"{gain:.3f} ± {error:.3f}"]
        lines.append(f"| {task}{role} | " + " | ".join(each) + " |")
    mean = sum(row["ratio"] for row in rows) / len(rows)
    words = f"{rows[0]['seeds']} seeds of data and search; {mean:.2f} of the best on average."
    return "\n".join([*lines, "", words])


def _free(row: dict[str, Any], search: str) -> str:
    """Write the mean free objective of a search, and in how many runs it certified nothing."""
    empty = row["empty"][search]
    return f"{row['free'][search]:.3f}" + (f" ({empty} empty)" if empty else "")


def many_workers() -> str:
    """Write what searches find with many workers, relative to the guided one with one worker."""
    found = _read("many_workers")
    workers = list(found["rows"][0]["ratio"]["guided"])
    lines = [
        "| task | search | " + " | ".join(_workers(n) for n in workers) + " |",
        "|---" * (len(workers) + 2) + "|",
    ]
    for row in found["rows"]:
        task = row["task"].replace("tuning: ", "").replace("_", " ")
        for search, ratios in row["ratio"].items():
            each = [f"{ratios[n]:.3f}" if n in ratios else "" for n in workers]
            lines.append(f"| {task} | {search} | " + " | ".join(each) + " |")
    return "\n".join([*lines, "", f"{found['trials']} evaluations. {_made_of(found)}"])


def throughput() -> str:
    """Write what a trial takes of the processor, and for how long a decision holds the lock."""
    found = json.loads(_FIGURES.read_text(encoding="utf-8"))["throughput"]
    lines = [
        "| storage | workers | trials | trials a second | processor time of a trial "
        "| of it under the lock | under the lock on the clock |",
        "|---|---|---|---|---|---|---|",
    ]
    for place, run in sorted(found.items(), reverse=True):
        lines.append(
            f"| {_STORAGES[place.partition(',')[0]]} | {run['workers']} | {run['trials']} "
            f"| {run['per_second']:.1f} | {run['processor_ms']:.0f} ms "
            f"| {run['lock_processor_ms']:.1f} ms | {run['lock_ms']:.1f} ms |"
        )
    return "\n".join(lines)


def _workers(n: str) -> str:
    """Write a number of workers."""
    return "1 worker" if n == "1" else f"{n} workers"


def _saved(title: str, row: dict[str, Any], keys: list[str]) -> str:
    """Write one line: the share of evaluations saved, and the rise of the free objective."""
    each = [f"{row['saved'][key]:.0%} for {row['cost'][key]:+.1%}" for key in keys]
    return f"| {title} | " + " | ".join(each) + " |"


def _read(name: str) -> Any:
    """Read the figures of an experiment."""
    return json.loads((_RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _made_of(found: dict[str, Any]) -> str:
    """Write how many seeds and splits figures rest on."""
    seeds = "One seed" if found["seeds"] == 1 else f"{found['seeds']} seeds"
    return f"{seeds} of search, {found['splits']} splits into calibration and test."
