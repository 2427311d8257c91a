"""The figures of what was tried, as tables in Markdown.

Reads JSON alone, so that the documentation can be built without the package.
"""

import json
from collections.abc import Sequence
from pathlib import Path

FIGURES = Path(__file__).with_name("tried.json")
# What the columns are called, where there is little room.
_SHORT = {
    "fairness, training seed 0": "fairness",
    "vae": "VAE",
    "synthetic, d = 1": "d = 1",
    "synthetic, d = 2, two risks": "d = 2",
    "synthetic, d = 3": "d = 3",
    "cliffs in steps, d = 3": "cliffs",
}


def tried(path: Path = FIGURES) -> str:
    """The change of the free objective against the default, by tuning task, in percent."""
    rows = json.loads(path.read_text())["tried"]
    names = list(rows[0]["change"])
    body = [
        [
            row["tried"],
            *(_change(row["change"][name]) for name in names),
            _change(row["mean_change"]),
            f"{100 * row['nothing_certified']:.1f}",
        ]
        for row in rows
    ]
    return _table(["tried", *(_SHORT[name] for name in names), "**mean**", "empty"], body)


def shares(path: Path = FIGURES) -> str:
    """The true cost of the choice, by the share of labelled examples spent on validation."""
    rows = json.loads(path.read_text())["shares"]
    columns = list(dict.fromkeys(row["share"] for row in rows))
    settings = list(dict.fromkeys((row["labelled"], row["d"]) for row in rows))
    body = []
    for labelled, d in settings:
        costs = {r["share"]: r["cost"] for r in rows if (r["labelled"], r["d"]) == (labelled, d)}
        best = min(costs.values())
        figures = [f"**{c:.4f}**" if c == best else f"{c:.4f}" for c in map(costs.get, columns)]
        body.append([f"{labelled:,}, d = {d}", *figures])
    return _table(["labelled examples", *(f"{100 * share:.0f} %" for share in columns)], body)


def bets(path: Path = FIGURES) -> str:
    """The power of variants of the betting test."""
    rows = json.loads(path.read_text())["bets"]
    names = [name for name in rows[0] if name not in ("std", "n")]
    body = [
        [f"{row['n']:,}, {row['std']:g}", *(f"{row[name]:.2f}" for name in names)] for row in rows
    ]
    heads = [
        "examples, deviation",
        "one order (default)",
        *(n.replace("_", " ") for n in names[1:]),
    ]
    return _table(heads, body)


def _change(share: float) -> str:
    return f"{100 * share:+.1f}" if abs(share) >= 0.0005 else "0"


def _table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in body)])
