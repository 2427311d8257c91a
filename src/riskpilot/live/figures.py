"""The figures of the page: the trade-off so far, and the course of the search."""

import plotly.graph_objects as go

from riskpilot.live.snapshot import Snapshot
from riskpilot.plots import PageFigure, search_history, search_plane, validation_points

_GREEN = "#009E73"


def figures_of(snapshot: Snapshot) -> tuple[PageFigure, ...]:
    """Draw all that the page shows of a snapshot; nothing before a trial has finished."""
    if snapshot.search is None:
        return ()
    validation, background = snapshot.search
    shaded = "" if background.search is None else " Shaded: where the test is a close call."
    return (
        PageFigure(
            "The trade-off",
            f"Every finished trial on validation data, and the limits.{shaded}",
            _plane(snapshot),
        ),
        PageFigure(
            "The search",
            "What each trial showed on validation data.",
            search_history(validation, background),
        ),
    )


def _plane(snapshot: Snapshot) -> go.Figure:
    """Draw the trade-off, with a mark at the trial that was chosen or is expected to pass."""
    assert snapshot.search is not None
    validation, background = snapshot.search
    figure = search_plane(validation, background)
    if snapshot.best is None:
        return figure
    chosen = snapshot.verdict is not None
    values = validation_points(validation)[list(background.numbers).index(snapshot.best)]
    for i, value in enumerate(values[:-1]):
        figure.add_scatter(
            x=[value],
            y=[values[-1]],
            name="chosen" if chosen else "expected to pass",
            legendgroup="best",
            showlegend=i == 0,
            mode="markers",
            hoverinfo="skip",
            marker={
                "symbol": "star" if chosen else "circle-open",
                "size": 19 if chosen else 16,
                "color": _GREEN,
                "line": {"width": 1 if chosen else 2.5},
            },
            row=1,
            col=i + 1,
        )
    return figure
