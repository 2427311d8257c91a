"""The search over time: what each trial showed on validation data."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from riskpilot.guarantee import Background
from riskpilot.losses import ValidationLosses
from riskpilot.plots.points import escaped, hover_labels, kept, validation_points
from riskpilot.plots.style import BLUE, GREEN, GREY, LIMIT_LINE, REGION_SHADE, styled


def search_history(validation: ValidationLosses, background: Background | None = None) -> go.Figure:
    """Draw risks and the free objective by trial.

    The step in the last panel is the best value so far that keeps every limit on validation data.

    Parameters
    ----------
    validation : ValidationLosses
        The validation losses of every configuration, ``selection.validation``.
    background : Background, optional
        The trials for the labels, and the search, ``selection.background``.

    Returns
    -------
    plotly.graph_objects.Figure
        One panel for each risk, and one for the free objective.
    """
    background = background or Background()
    search = background.search
    problem = validation.problem
    n = len(validation.free)
    rows = len(problem.risks) + 1
    figure = make_subplots(rows=rows, cols=1, shared_xaxes=True, vertical_spacing=0.05)
    number = np.array(background.numbers if len(background.numbers) else range(n))
    known = search.pool if search else ()
    pool = np.array(known or [False] * n, dtype=bool)
    labels, values = hover_labels(background, n), validation_points(validation)
    feasible = np.ones(n, dtype=bool)
    titles = [*(risk.title for risk in problem.risks), problem.minimize]
    for i, title in enumerate(titles):
        place: dict[str, Any] = {"row": i + 1, "col": 1}
        y = values[:, i]
        if i < len(problem.risks):
            risk = problem.risks[i]
            if search and np.isfinite(search.intervals[i].high):
                part = search.intervals[i]
                figure.add_hrect(y0=part.low, y1=part.high, **REGION_SHADE, **place)
            if risk.limit is not None:
                shown = {"line": LIMIT_LINE, "exclude_empty_subplots": False}
                figure.add_hline(y=risk.limit, **shown, **place)
                feasible &= y <= risk.limit
        for kind, mask, colour, symbol in (
            ("initial", pool, GREY, "circle"),
            ("proposed", ~pool, BLUE, "square"),
        ):
            if not known and kind == "initial":
                continue
            figure.add_scatter(
                x=number[mask],
                y=y[mask],
                name=kind if known else "evaluated",
                legendgroup=kind,
                showlegend=i == 0,
                mode="markers",
                text=kept(labels, mask),
                hovertemplate=f"%{{text}}<br>{escaped(title)} %{{y:.4g}}<extra></extra>",
                marker={"size": 7, "color": colour, "symbol": symbol},
                **place,
            )
        figure.update_yaxes(title_text=escaped(title), **place)
    best = np.minimum.accumulate(np.where(feasible, validation.free, np.inf))
    reached = np.isfinite(best)
    figure.add_scatter(
        x=number[reached],
        y=best[reached],
        name="best that keeps the limits on validation",
        mode="lines",
        line={"color": GREEN, "width": 2, "shape": "hv"},
        hoverinfo="skip",
        row=rows,
        col=1,
    )
    figure.update_xaxes(title_text="trial", row=rows, col=1)
    figure = styled(figure, "The search, trial by trial", height=180 + 170 * rows)
    figure.update_layout(legend={"y": -0.32 / rows - 0.04})
    return figure
