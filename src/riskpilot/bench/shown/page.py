"""The pages of results, written from the numbers of a run: an overview, settings, one per task."""

from collections.abc import Sequence
from pathlib import Path

from riskpilot.bench.cells import DELTA, VARIANTS
from riskpilot.bench.methods import METHODS, Guided
from riskpilot.bench.results import Results
from riskpilot.bench.shown.claims import Claim, paper_claims
from riskpilot.bench.shown.labels import free_label, risk_label, task_title
from riskpilot.bench.shown.summary import COMPARISONS, Row, comparison_rows, counts
from riskpilot.bench.shown.targets import piece_rows, targets
from riskpilot.bench.shown.task_page import figure, table, task_page

OVERVIEW, SETTINGS = "README.md", "settings.md"
HEDGE = "../../docs/tried.md#optimistic-validation"
CAPTIONS = {
    "budget": "The number of evaluations N on pruning",
    "delta_prime_paper": "The width of the region, delta', in the paper's preset",
    "delta_prime_guided": "The width of the region, delta', in the default",
    "sided": "Two-sided against one-sided region",
    "p_values": "The dense grid tested with other p-values",
}


def pages(
    results: Results, command: str, missing: dict[str, str], figures: Sequence[Path]
) -> dict[str, str]:
    """Write all pages as Markdown, by their file; figures are linked where they are."""
    by_task = {task_file(task): task_page(results, task, figures) for task in results.scope.tasks}
    overview = _overview(results, command, missing, figures)
    return {OVERVIEW: overview, SETTINGS: _settings(results, figures), **by_task}


def task_file(task: str) -> str:
    """Return where the page of a task stands, seen from the overview."""
    return f"tasks/{task}.md"


def _overview(
    results: Results, command: str, missing: dict[str, str], figures: Sequence[Path]
) -> str:
    """Write the page of claims, which links to all others."""
    scope = results.scope
    parts = [
        "# The paper's experiments, replayed",
        f"Made by `{command}`: search seeds 0 to {scope.n_seeds - 1}, {scope.n_splits} random "
        f"splits of the held-out examples into calibration and test, delta = {DELTA:g}. "
        f"Everything here changes when the tables in `experiments/` change.",
    ]
    search = METHODS["guided"].search
    if isinstance(search, Guided):
        parts.append(trust_note(search.strategy.trust))
    if missing:
        names = ", ".join(missing)
        parts.append(f"Not run, because their tables are not there: {names}.")
    parts += [
        "## What the paper claims",
        _claims(paper_claims(results)),
        "## What riskpilot's default adds",
        _claims(aims := targets(results)),
        _missed(aims),
        "## Every task",
        _tasks(results),
        *figure("ratios", "Free objective relative to the dense grid, one mark per limit", figures),
        "## Guided search against each method",
        "Wins, ties and losses over all cells: paired differences of the free objective on test "
        "over the same seeds and splits; a tie is a 95 % interval that contains 0.",
        _comparisons(comparison_rows(results)),
        f"[What each piece and setting brings]({SETTINGS}) is a page of its own.",
        "## How to read the figures",
        _how_to_read(results),
        _files(),
    ]
    return "\n\n".join(parts) + "\n"


def trust_note(trust: float) -> str:
    """Say whether the default that was replayed hedges against optimistic validation."""
    replayed = (
        "The default on these pages is the search that trusts validation (`trust=1`). The default "
        "that riskpilot ships hedges against validation that is too optimistic"
        if trust == 1
        else f"The default on these pages hedges against validation that is too optimistic "
        f"(`trust={trust:g}`)"
    )
    return f"{replayed}; [what the hedge changes]({HEDGE}) was measured by itself."


def _settings(results: Results, figures: Sequence[Path]) -> str:
    """Write the page of ablations: pieces of the default, and settings that were varied."""
    parts = [
        "# What each piece and setting brings",
        f"A part of [the replay]({OVERVIEW}), which says how to read the figures.",
        "## The pieces of the default",
        "The default, and the default without one thing that the paper does not do, over the cells "
        "where both were run; the range is over cells.",
        table(piece_rows(results)),
        *figure("search", "What guided search evaluated", figures, heading=True),
    ]
    for stem, caption in CAPTIONS.items():
        parts += figure(stem, caption, figures, heading=True)
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
            "claim, and its rule": f"{claim.claim}: *{claim.rule}*",
            "verdict": f"**{claim.verdict}**",
            "figure": claim.figure,
            "command": f"`{claim.command}`",
        }
        for claim in claims
    ]
    return table(rows)


def _missed(claims: Sequence[Claim]) -> str:
    """List the cells that miss a target, by target."""
    lines = [f"- {claim.claim}: {', '.join(claim.missed)}" for claim in claims if claim.missed]
    return "Cells that miss a target:\n\n" + "\n".join(lines) if lines else "No cell misses one."


def _tasks(results: Results) -> str:
    """Link the page of every task, with what is limited and minimised there."""
    rows: list[Row] = []
    for task in results.scope.tasks:
        *risks, free = results.names[task]
        row = {
            "task": f"[{task_title(task)}]({task_file(task)})",
            "limited": ", ".join(map(risk_label, risks)),
            "minimised": free_label(free),
            "limits": len(results.cells[task]),
        }
        rows.append(row)
    return table(rows)


def _comparisons(rows: Sequence[Row]) -> str:
    """Write wins, ties and losses of the comparisons that were run as a table."""
    counted = [counts(rows, *each) for each in COMPARISONS]
    return table([row for row in counted if row["wins"] + row["ties"] + row["losses"]])


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
