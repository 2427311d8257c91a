"""What a figure shows, in words, for those who do not see it."""

import html
import re
from collections.abc import Iterable

import plotly.graph_objects as go

from riskpilot.common import how_many


def description(figure: go.Figure) -> str:
    """Name the axes of a figure, and what is drawn with how many points."""
    across, up = (
        _listed(axis.title.text for axis in axes if axis.title.text)
        for axes in (figure.select_xaxes(), figure.select_yaxes())
    )
    counts: dict[str, int] = {}
    for trace in figure.data:
        n = 0 if trace.x is None else sum(x is not None for x in trace.x)
        counts[trace.name or "points"] = max(counts.get(trace.name or "points", 0), n)
    drawn = ", ".join(f"{_plain(name)}{_counted(n)}" for name, n in counts.items())
    title = _plain(figure.layout.title.text or "")
    parts = [title, f"{up or 'values'} against {across or 'positions'}", f"Drawn: {drawn}"]
    return ". ".join(part for part in parts if part) + "."


def _listed(titles: Iterable[str]) -> str:
    """Join the titles of axes, each once."""
    return " and ".join(dict.fromkeys(map(_plain, titles)))


def _counted(n: int) -> str:
    """Write a number of points; an empty text for what has none, as a line at a limit."""
    return "" if not n else f" ({how_many(n, 'point')})"


def _plain(text: str) -> str:
    """Take the markup of plotly out of a text."""
    return html.unescape(re.sub(r"<[^>]*>", " ", text)).strip()
