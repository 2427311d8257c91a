"""The search over time: what each trial showed on validation data."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from riskpilot.losses import ValidationLosses
from riskpilot.plots.style import BLUE, GREEN, GREY, ORANGE, RED, styled, words
from riskpilot.plots.trade_off import Background, Search


def search_history(
    validation: ValidationLosses,
    search: Search | None = None,
    background: Background | None = None,
) -> go.Figure:
    """Risks and the free objective by trial; the step is the best that keeps every limit so far."""
    background = background or Background()
    problem = validation.problem
    n = len(validation.free)
    rows = len(problem.risks) + 1
    figure = make_subplots(rows=rows, cols=1, shared_xaxes=True, vertical_spacing=0.05)
    number = np.array(background.numbers if len(background.numbers) else range(n))
    pool = np.array(search.pool if search else [False] * n, dtype=bool)
    labels = [background.label(row) for row in range(n)]
    feasible = np.ones(n, dtype=bool)
    titles = [*(risk.title for risk in problem.risks), problem.minimize]
    for i, title in enumerate(titles):
        place: dict[str, Any] = {"row": i + 1, "col": 1}
        if i < len(problem.risks):
            risk = problem.risks[i]
            y = risk.from_unit(validation.risks[risk.name].summary.mean)
            if search and np.isfinite(search.intervals[i].high):
                part = search.intervals[i]
                figure.add_hrect(
                    y0=part.low,
                    y1=part.high,
                    fillcolor=ORANGE,
                    opacity=0.14,
                    line_width=0,
                    layer="below",
                    exclude_empty_subplots=False,
                    **place,
                )
            if risk.limit is not None:
                line = {"color": RED, "width": 2}
                figure.add_hline(y=risk.limit, line=line, exclude_empty_subplots=False, **place)
                feasible &= y <= risk.limit
        else:
            y = validation.free
        for kind, mask, colour in (("initial", pool, GREY), ("proposed", ~pool, BLUE)):
            if search is None and kind == "initial":
                continue
            figure.add_scatter(
                x=number[mask],
                y=y[mask],
                name=kind if search else "evaluated",
                legendgroup=kind,
                showlegend=i == 0,
                mode="markers",
                text=[label for label, kept in zip(labels, mask, strict=True) if kept],
                hovertemplate=f"%{{text}}<br>{words(title)} %{{y:.4g}}<extra></extra>",
                marker={"size": 7, "color": colour},
                **place,
            )
        figure.update_yaxes(title_text=words(title), **place)
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
