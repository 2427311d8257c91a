"""The page of results, written from the numbers of a run."""

from collections.abc import Sequence
from pathlib import Path

from riskpilot.bench.cells import DELTA, VARIANTS
from riskpilot.bench.jobs import NO_TEST
from riskpilot.bench.methods import METHODS
from riskpilot.bench.results import Entry, Results
from riskpilot.bench.shown.claims import Claim, paper_claims
from riskpilot.bench.shown.estimate import two_way
from riskpilot.bench.shown.labels import free_label, risk_label, task_title
from riskpilot.bench.shown.summary import (
    COMPARISONS,
    Row,
    cell_label,
    comparison_rows,
    counts,
    ratio,
)
from riskpilot.bench.shown.targets import piece_rows, targets

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
CAPTIONS = {
    "ratios": "Free objective relative to the dense grid, one mark per limit",
    "search": "What guided search evaluated",
    "budget": "The number of evaluations N on pruning",
    "delta_prime_paper": "The width of the region, delta', in the paper's preset",
    "delta_prime_guided": "The width of the region, delta', in the default",
    "sided": "Two-sided against one-sided region",
    "p_values": "The dense grid tested with other p-values",
}


def page(results: Results, command: str, missing: dict[str, str], figures: Sequence[Path]) -> str:
    """Write the whole page as Markdown; figures are linked where they are."""
    scope = results.scope
    parts = [
        "# The paper's experiments, replayed",
        f"Made by `{command}`: search seeds 0 to {scope.n_seeds - 1}, {scope.n_splits} random "
        f"splits of the held-out examples into calibration and test, delta = {DELTA:g}. "
        f"Everything below changes when the tables in `experiments/` change.",
        _how_to_read(results),
    ]
    if missing:
        names = ", ".join(missing)
        parts.append(f"Not run, because their tables are not there: {names}.")
    parts += [
        "## What the paper claims",
        _claims(paper_claims(results)),
        "## What riskpilot's default adds",
        _claims(aims := targets(results)),
        _missed(aims),
        "## What each piece of the default brings",
        "The default, and the default without one thing that the paper does not do, over the cells "
        "where both were run; the range is over cells.",
        table(piece_rows(results)),
        "## Guided search against each method",
        "Wins, ties and losses over all cells: paired differences of the free objective on test "
        "over the same seeds and splits; a tie is a 95 % interval that contains 0.",
        _comparisons(comparison_rows(results)),
    ]
    parts += [part for stem in CAPTIONS for part in _figure(stem, figures)]
    parts.append("## Every task and limit")
    for task in scope.tasks:
        parts += [f"### {task_title(task)}", *_figure(task, figures), _cells(results, task)]
    parts += [_files()]
    return "\n\n".join(parts) + "\n"


def _how_to_read(results: Results) -> str:
    """Explain the columns of the tables."""
    variants = [
        f"{name} ({VARIANTS[name]} versions)" for name in results.scope.tasks if name in VARIANTS
    ]
    turns = f" Search seeds take turns on {' and '.join(variants)}." if variants else ""
    return (
        "Free: the objective that is minimised, on test examples; small is good. A run that "
        "certifies nothing counts with the free objective of the task's safe configuration, so "
        "that failing is never rewarded; the figure for certified runs alone stands beside it. "
        "Violations: runs whose chosen configuration has a population risk above its limit (the "
        "mean over calibration and test together stands for the population; on the synthetic task "
        "the truth is known). Intervals are 95 %, over seeds and splits as crossed random effects. "
        "The default starts from the task's safe configuration; the paper's preset and the "
        f"baselines do not.{turns}"
    )


def _claims(claims: Sequence[Claim]) -> str:
    """Write claims as a table."""
    rows: list[Row] = [
        {
            "claim": claim.claim,
            "verdict": f"**{claim.verdict}**",
            "figure": claim.figure,
            "rule": claim.rule,
        }
        for claim in claims
    ]
    return table(rows)


def _missed(claims: Sequence[Claim]) -> str:
    """List the cells that miss a target, by target."""
    lines = [f"- {claim.claim}: {', '.join(claim.missed)}" for claim in claims if claim.missed]
    return "Cells that miss a target:\n\n" + "\n".join(lines) if lines else "No cell misses one."


def _comparisons(rows: Sequence[Row]) -> str:
    """Write wins, ties and losses of the comparisons that were run as a table."""
    counted = [counts(rows, *each) for each in COMPARISONS]
    return table([row for row in counted if row["wins"] + row["ties"] + row["losses"]])


def _cells(results: Results, task: str) -> str:
    """Write the results of a task as a table."""
    *risks, free = results.names[task]
    rows: list[Row] = []
    for cell in results.cells[task]:
        for method, family in SHOWN:
            entry = Entry(task, cell, method, family)
            if entry not in results.runs:
                continue
            runs = results.runs[entry]
            found = two_way(runs.free)
            certified = runs.free[~runs.nothing]
            label = METHODS[method].label
            to_dense = ratio(results, entry)
            row: Row = {
                "limit": cell_label(cell),
                "method": label if family != "hoeffding_bentkus" else f"{label}, H.-Bentkus",
                free_label(free): f"{found.mean:.4g} [{found.low:.4g}, {found.high:.4g}]",
                "certified runs": f"{certified.mean():.4g}" if certified.size else "",
            }
            for i, name in enumerate(risks):
                values = runs.risks[..., i][~runs.nothing]
                row[risk_label(name)] = f"{values.mean():.4f}" if values.size else ""
            row |= {
                "violations": f"{100 * runs.violated.mean():.1f} %",
                "nothing certified": f"{100 * runs.nothing.mean():.1f} %",
                "ratio to dense": "" if to_dense is None else f"{to_dense:.3f}",
            }
            rows.append(row)
    return table(rows)


def _figure(stem: str, figures: Sequence[Path]) -> list[str]:
    """Link a figure under its caption; nothing where it was not drawn."""
    for path in figures:
        if path.stem == stem:
            caption = CAPTIONS.get(stem, f"{task_title(stem)}: objectives on test and the limit")
            heading = [f"## {caption}"] if stem in CAPTIONS else []
            return [*heading, f"![{caption}]({path.parent.name}/{path.name})"]
    return []


def _files() -> str:
    """List the files beside the page."""
    return (
        "## Files\n\n"
        "- `cells.csv`: one row per task, limits, method and p-values\n"
        "- `seeds.csv`: the same for each search seed\n"
        "- `comparisons.csv`: paired differences, cell by cell\n"
        "- `ablations.csv`: budget, delta', half of N, and the default without its pieces, as in "
        "`cells.csv`\n"
        "- `claims.csv`: the claims above"
    )


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
