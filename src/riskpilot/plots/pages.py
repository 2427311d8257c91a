"""Pages that stand on their own: one look, figures in the reader's colours, no network."""

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from riskpilot.common import check_replaceable, reason_of, shown_safely, write_whole
from riskpilot.errors import PlotError, raise_alone
from riskpilot.plots.described import description
from riskpilot.plots.library import asset, library_for
from riskpilot.plots.narrow import narrow_form
from riskpilot.plots.style import template

_HEIGHT = 450  # pixels: of a figure that does not say how high it is
_KEYS = "Arrow keys move through its points."


@dataclass(frozen=True)
class PageFigure:
    """A figure of a page with its heading and a sentence."""

    heading: str
    words: str
    figure: go.Figure


def web_page(
    *,
    title: str,
    good: bool | None,
    version: str,
    body: str,
    figures: Sequence[PageFigure],
    script: str = "",
) -> str:
    """Write a page as HTML, with plotly and all data inside.

    ``good``: whether its verdict is green or red; None where it has no verdict. ``body``: what
    stands in it, as HTML, with the places of the figures (`sections`). ``script``: what it does
    beside drawing its figures.
    """
    verdict = {None: "", True: "certified", False: "none"}[good]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="riskpilot {html.escape(version)}">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>{_text("page.css")}</style></head>
<body class="{verdict}">
{body}
<p id="spoken" class="unseen" role="status"></p>
<script type="application/json" id="page">{figure_data(figures)}</script>
<script type="text/plain" id="plotly">{library_for(one.figure for one in figures)}</script>
<script>{_text("figures.js")}</script>
<script>{_text("points.js")}</script>
<script>{script}</script>
</body></html>
"""


def sections(figures: Sequence[PageFigure]) -> str:
    """Write the places where the script of the page draws the figures."""
    return "\n".join(
        f'<section><h2>{html.escape(one.heading)}</h2><p class="note">{html.escape(one.words)}</p>'
        f"{_place(i, one)}</section>"
        for i, one in enumerate(figures)
    )


def figure_data(figures: Sequence[PageFigure]) -> str:
    """Write what the script of a page draws as JSON that can stand inside a script element."""
    return _as_json(_page_data(figures))


def page_of(figure: go.Figure) -> str:
    """Write a page that shows one figure under its title."""
    title = html.unescape(figure.layout.title.text or "A figure")
    one = PageFigure(title, "", figure)
    body = f"<main><h1>{html.escape(title)}</h1>{_place(0, one)}</main>"
    release = installed("riskpilot")
    return web_page(title=title, good=None, version=release, body=body, figures=[one])


def write_page(path: str | Path, page: str | bytes, what: str) -> Path:
    """Write a page or a picture to a file, whole or not at all, and return where it is.

    ``what``: what it is called in messages.
    """
    check_replaceable(path, what, PlotError)
    try:
        return write_whole(path, page)
    except (OSError, TypeError, ValueError) as error:
        raise_alone(
            PlotError(
                f"The {what} cannot be written to {shown_safely(path)}: {reason_of(error)}. "
                f"Check that the folder exists, can be written and has space."
            )
        )


def _place(i: int, one: PageFigure) -> str:
    """Write the place of a figure: what it shows in words, until and unless it is drawn."""
    words = html.escape(f"{one.heading}: {description(one.figure)}")
    return (
        f'<div class="figure"><div id="figure-{i}" class="drawing" tabindex="0" '
        f'role="application" aria-roledescription="figure" aria-label="{words} {_KEYS}" '
        f'style="min-height:{one.figure.layout.height or _HEIGHT}px">'
        f"<noscript><p>Figures are drawn by a script, which this browser does not run. {words}</p>"
        f"</noscript></div></div>"
    )


def _page_data(figures: Sequence[PageFigure]) -> dict[str, Any]:
    """Collect what the script of the page draws, in the two themes it can use."""
    drawn = {}
    for i, one in enumerate(figures):
        figure = json.loads(one.figure.to_json())
        layout = figure["layout"]
        for name in ("template", "title"):  # the page has the theme, and the heading says the title
            layout.pop(name, None)
        layout.setdefault("height", _HEIGHT)
        layout["margin"] = {**layout.get("margin", {}), "t": 20}
        drawn[f"figure-{i}"] = {**figure, "narrow": narrow_form(layout)}
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


def _text(name: str) -> str:
    """Read a text among the assets."""
    return asset(name).decode("utf-8")
