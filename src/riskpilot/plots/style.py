"""One look for every figure, on light and on dark paper."""

from typing import Any

import plotly.graph_objects as go

from riskpilot.errors import PlotError, shown

# Okabe and Ito's colours, which colour-blind readers can tell apart, and a grey that is darker than
# what green and purple look like to some of them; markers differ in shape, too.
BLUE, ORANGE, GREEN, RED, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9"
PURPLE, GREY = "#CC79A7", "#686868"
PALETTE = (BLUE, ORANGE, GREEN, RED, SKY, PURPLE, GREY)

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
    theme : str
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
            "colorway": list(PALETTE),
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
    theme : str
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
