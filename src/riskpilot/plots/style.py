"""One look for every figure, on light and on dark paper, and their way into files."""

from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from riskpilot.common import reason_of, shown_safely, write_whole
from riskpilot.errors import PlotError, raise_alone, shown

# Okabe and Ito's colours, which colour-blind readers can tell apart; markers differ in shape, too.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#8A8A8A"
SKY = "#56B4E9"

# How a limit is drawn, and what shades a region of interest behind everything else.
LIMIT_LINE = {"color": RED, "width": 2}
REGION_SHADE: dict[str, Any] = {
    "fillcolor": ORANGE,
    "opacity": 0.14,
    "line_width": 0,
    "layer": "below",
    "exclude_empty_subplots": False,
}

_FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
_THEMES = {
    "light": {"ink": "#24292f", "paper": "#ffffff", "grid": "#e6e8eb", "line": "#b8bec5"},
    "dark": {"ink": "#e4e7ea", "paper": "#16191d", "grid": "#2d3238", "line": "#555c64"},
    # For pages whose paper is not known: legible on both.
    "neutral": {
        "ink": "#808790",
        "paper": "rgba(0,0,0,0)",
        "grid": "rgba(128,135,144,0.25)",
        "line": "rgba(128,135,144,0.6)",
    },
}


def template(theme: str) -> go.layout.Template:
    """Make the plotly template of a theme.

    Parameters
    ----------
    theme : {"light", "dark", "neutral"}
        The paper that the figure is for; "neutral" is legible on both.

    Returns
    -------
    plotly.graph_objects.layout.Template
        The colours, fonts and axes of the theme.

    Raises
    ------
    PlotError
        If there is no such theme.
    """
    if theme not in _THEMES:
        raise PlotError(
            f"A figure's theme is one of {', '.join(_THEMES)}, but it is {shown(theme)}. "
            f'Write with_theme(figure, "dark").'
        )
    colours = _THEMES[theme]
    axis = {
        "gridcolor": colours["grid"],
        "linecolor": colours["line"],
        "zerolinecolor": colours["grid"],
        "showline": True,
        "ticks": "outside",
        "tickcolor": colours["line"],
        "automargin": True,
        "title": {"standoff": 10},
    }
    return go.layout.Template(
        layout={
            "font": {"family": _FONT, "size": 13, "color": colours["ink"]},
            "paper_bgcolor": colours["paper"],
            "plot_bgcolor": colours["paper"],
            "title": {"x": 0.01, "xanchor": "left", "font": {"size": 16}},
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"align": "left", "font": {"family": _FONT}},
            "legend": {"bgcolor": "rgba(0,0,0,0)"},
            "colorway": [BLUE, ORANGE, GREEN, RED, SKY, "#CC79A7", GREY],
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": BLUE},
        }
    )


def styled(figure: go.Figure, title: str, *, height: int = 500) -> go.Figure:
    """Give a finished figure its title, its legend and the light theme."""
    figure.update_layout(
        title_text=title,
        template=template("light"),
        legend={"orientation": "h", "yanchor": "top", "y": -0.16, "x": 0, "xanchor": "left"},
        margin={"l": 60, "r": 20, "t": 60, "b": 40},
        height=height,
    )
    return figure


def with_theme(figure: go.Figure, theme: str) -> go.Figure:
    """Copy a figure into another theme.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        A figure of riskpilot. It is not changed.
    theme : {"light", "dark", "neutral"}
        The paper that the copy is for; "neutral" is legible on both.

    Returns
    -------
    plotly.graph_objects.Figure
        The copy.

    Raises
    ------
    PlotError
        If there is no such theme.

    Examples
    --------
    >>> with_theme(styled(go.Figure(), "A title"), "dark").layout.template.layout.paper_bgcolor
    '#16191d'
    """
    copy = go.Figure(figure)
    copy.update_layout(template=template(theme))
    return copy


def save_figure(
    figure: go.Figure,
    path: str | Path,
    *,
    width: int = 900,
    height: int | None = None,
    scale: float = 2.0,
    theme: str = "light",
) -> Path:
    """Write a figure to a picture for a paper, or to a page that needs no network.

    Pictures need the package kaleido and a Chrome or Chromium; neither needs a network.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        The figure. It is not changed.
    path : str or Path
        The file. Its ending says what is written: .png, .svg, .pdf, .jpg or .webp, or .html.
    width : int, default 900
        The width of a picture, in points.
    height : int, optional
        The height of a picture, in points; that of the figure by default.
    scale : float, default 2.0
        The number of pixels per point of a .png.
    theme : {"light", "dark", "neutral"}, default "light"
        The paper that the file is for.

    Returns
    -------
    Path
        The same path.

    Raises
    ------
    PlotError
        If the ending or the theme is not known, or what draws pictures is not installed.
    """
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    shown = with_theme(figure, theme)
    if kind == "html":
        quiet = {"showSendToCloud": False, "displaylogo": False}  # nothing leaves the page
        return _written(path, shown.to_html(include_plotlyjs=True, config=quiet))
    if kind not in ("png", "svg", "pdf", "jpg", "jpeg", "webp"):
        raise PlotError(
            f"A figure is written as .png, .svg, .pdf, .jpg, .webp or .html, but the file is "
            f"{path.name!r}. Give it one of these endings."
        )
    try:
        height = height or figure.layout.height or 500
        picture = shown.to_image(format=kind, width=width, height=height, scale=scale)
    except Exception as error:
        raise _cannot_write(path, error) from error
    return _written(path, picture)


def _written(path: Path, content: str | bytes) -> Path:
    """Write a figure to its file, whole or not at all."""
    try:
        return write_whole(path, content)
    except (OSError, ValueError) as error:
        raise_alone(
            PlotError(
                f"The figure cannot be written to {shown_safely(path)}: {reason_of(error)}. "
                f"Check that the folder exists, can be written and has space."
            )
        )


def _cannot_write(path: Path, error: Exception) -> Exception:
    """Make an error that names what is missing and the way to get it, where that is known."""
    words_of_error = f"{type(error).__name__}: {error}".lower()
    if "kaleido" in words_of_error and "chrome" not in words_of_error:
        lacks = "the package kaleido is missing. Install it: pip install 'riskpilot[figures]'"
    elif "chrome" in words_of_error or "browser" in words_of_error:
        lacks = (
            "kaleido finds no Chrome or Chromium. Install one (apt install chromium), or name it "
            "in the environment: BROWSER_PATH=/path/to/chromium"
        )
    else:
        return error
    return PlotError(
        f"The picture {path.name!r} cannot be drawn: {lacks}; or write {path.stem}.html, which "
        f"needs neither."
    )
