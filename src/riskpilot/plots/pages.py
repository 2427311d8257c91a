"""Pages that stand on their own: one look, figures in the reader's colours, no network."""

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from riskpilot.common import reason_of, shown_safely, write_whole
from riskpilot.errors import PlotError, raise_alone
from riskpilot.plots.style import template


@dataclass(frozen=True)
class PageFigure:
    """A figure of a page with its heading and a sentence; ``panels``: how much room it takes."""

    heading: str
    words: str
    figure: go.Figure
    panels: int


def web_page(
    *,
    title: str,
    good: bool,
    version: str,
    body: str,
    figures: Sequence[PageFigure],
    script: str = "",
) -> str:
    """Write a page as HTML, with plotly and all data inside.

    ``good``: whether its verdict is green or red. ``body``: what stands in it, as HTML, with the
    places of the figures (`sections`). ``script``: what it does beside drawing its figures.
    """
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="riskpilot {html.escape(version)}">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>{page_style()}</style></head>
<body class="{"certified" if good else "none"}">
{body}
<script type="application/json" id="page">{figure_data(figures)}</script>
<script type="text/plain" id="plotly">{get_plotlyjs()}</script>
<script>{page_script()}</script>
<script>{script}</script>
</body></html>
"""


def page_style() -> str:
    """Return the stylesheet of every page."""
    return _asset("page.css")


def page_script() -> str:
    """Return the script that draws the figures of a page."""
    return _asset("figures.js")


def figure_data(figures: Sequence[PageFigure]) -> str:
    """Write what the script of a page draws as JSON that can stand inside a script element."""
    return _as_json(_page_data(figures))


def sections(figures: Sequence[PageFigure]) -> str:
    """Write the places where the script of the page draws the figures."""
    return "\n".join(
        f'<section><h2>{html.escape(one.heading)}</h2><p class="note">{html.escape(one.words)}</p>'
        f'<div class="figure{" panels" if one.panels > 1 else ""}">'
        f'<div id="figure-{i}" style="height:{one.figure.layout.height}px"></div></div></section>'
        for i, one in enumerate(figures)
    )


def write_page(path: str | Path, page: str, what: str) -> Path:
    """Write a page to a file, whole or not at all, and return where it is.

    ``what``: what it is called in messages.
    """
    try:
        return write_whole(path, page)
    except (OSError, TypeError, ValueError) as error:
        raise_alone(
            PlotError(
                f"The {what} cannot be written to {shown_safely(path)}: {reason_of(error)}. "
                f"Check that the folder exists, can be written and has space."
            )
        )


def _page_data(figures: Sequence[PageFigure]) -> dict[str, Any]:
    """Collect what the script of the page draws, in the two themes it can use."""
    drawn = {}
    for i, one in enumerate(figures):
        figure = json.loads(one.figure.to_json())
        figure["layout"].pop("template")
        figure["layout"].pop("title")  # the heading of the section says it
        figure["layout"]["margin"]["t"] = 20
        drawn[f"figure-{i}"] = figure
    themes = {name: _template(name) for name in ("light", "dark")}
    return {"figures": drawn, "themes": themes}


def _template(theme: str) -> Any:
    """Write a theme as plain JSON."""
    return json.loads(go.Figure(layout={"template": template(theme)}).to_json())["layout"][
        "template"
    ]


def _as_json(data: Any) -> str:
    """Write JSON that can stand inside a script element whatever names it holds."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


def _asset(name: str) -> str:
    """Read a file of the folder of assets."""
    return (files("riskpilot.plots") / "assets" / name).read_text(encoding="utf-8")
