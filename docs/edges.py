"""The figures of the page of pitfalls, as tables in Markdown; ``python -m experiments.edges`` makes
them."""

import json
from pathlib import Path

FIGURES = Path(__file__).parents[1] / "experiments" / "results" / "edges.json"


def promises() -> str:
    """Write how often a broken limit was certified, before and now."""
    return _table("promises")


def differences() -> str:
    """Write what was taken for the same or for different without a word, before and now."""
    return _table("differences")


def verify() -> str:
    """Write which made-up or edited certificates were accepted, before and now."""
    return _table("verify")


def _table(kind: str) -> str:
    rows = json.loads(FIGURES.read_text(encoding="utf-8"))[kind]
    lines = ["| # | mistake | before | now |", "|---|---|---|---|"]
    for row in rows:
        lines.append(
            f"| {' | '.join(value.replace('|', chr(92) + '|') for value in row.values())} |"
        )
    return "\n".join(lines)
