"""Figures of a selection: the trade-off plane, and the p-values along the test."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from riskpilot.losses import ValidationLosses
from riskpilot.pareto import non_dominated
from riskpilot.plan import TestPlan, TestResult
from riskpilot.region import Interval, interval

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#8A8A8A"


@dataclass(frozen=True)
class Search:
    """How the search stood at its end: ``intervals`` by risk, the ``reference`` point, shape
    (c + 1,), and for each configuration whether it belonged to the initial ``pool``."""

    intervals: tuple[Interval, ...]
    reference: tuple[float, ...]
    pool: tuple[bool, ...]


def trade_off(
    plan: TestPlan,
    result: TestResult,
    validation: ValidationLosses,
    chosen: int | None,
    search: Search | None = None,
) -> go.Figure:
    """Validation risks against the free objective, one panel per risk."""
    risks = plan.problem.risks
    figure = make_subplots(rows=1, cols=len(risks), shared_yaxes=True, horizontal_spacing=0.04)
    intervals = search.intervals if search else _intervals(plan, result, validation)
    for i, part in enumerate(intervals):
        _draw_panel(figure, plan, result, validation, chosen, search, i, part)
    figure.update_yaxes(title_text=plan.problem.minimize, col=1)
    return _styled(figure, f"Trade-off on validation data: {plan.problem.minimize} against limits")


def p_value_sequence(plan: TestPlan, result: TestResult) -> go.Figure:
    """Calibration p-values in testing order, against delta."""
    position = list(range(1, len(plan.order) + 1))
    exponent = np.minimum(-result.worst_log_p / math.log(10), 50)
    figure = go.Figure()
    for name, colour, mask in (
        ("passed", GREEN, result.passed),
        ("not certified", RED, ~result.passed),
    ):
        figure.add_scatter(
            x=np.array(position)[mask],
            y=exponent[mask],
            mode="markers",
            name=name,
            marker={"color": colour, "size": 10, "symbol": "circle" if name == "passed" else "x"},
        )
    figure.add_hline(
        y=-math.log10(plan.problem.delta),
        line={"dash": "dash", "color": GREY},
        annotation_text=f"delta = {plan.problem.delta:g}",
    )
    figure.update_xaxes(title_text="position in the test, safest first")
    figure.update_yaxes(title_text="-log10 p on calibration data (capped at 50)")
    return _styled(figure, "p-values along the fixed order")


def _draw_panel(
    figure: go.Figure,
    plan: TestPlan,
    result: TestResult,
    validation: ValidationLosses,
    chosen: int | None,
    search: Search | None,
    i: int,
    part: Interval,
) -> None:
    risk = plan.problem.risks[i]
    x = risk.from_unit(validation.risks[risk.name].summary.mean)
    y = validation.free
    place: dict[str, Any] = {"row": 1, "col": i + 1}
    figure.add_vrect(
        x0=part.low, x1=part.high, fillcolor=ORANGE, opacity=0.12, line_width=0, **place
    )
    figure.add_vline(x=risk.limit, line={"color": RED, "width": 2}, **place)
    figure.add_vline(x=part.alpha_max, line={"color": ORANGE, "dash": "dash"}, **place)

    def points(name: str, xs: Any, ys: Any, **style: Any) -> None:
        figure.add_scatter(
            x=xs, y=ys, name=name, legendgroup=name, showlegend=i == 0, **style, **place
        )

    pool = np.array(search.pool if search else [True] * len(y), dtype=bool)
    first = "initial pool" if search else "configurations"
    points(first, x[pool], y[pool], mode="markers", marker={"color": GREY, "size": 8})
    if search:
        points("proposed", x[~pool], y[~pool], mode="markers", marker={"color": BLUE, "size": 9})
    if len(plan.problem.risks) == 1:
        front = np.flatnonzero(non_dominated(np.column_stack([x, y])))
        front = front[np.argsort(x[front])]
        points(
            "Pareto front",
            x[front],
            y[front],
            mode="lines",
            line={"color": GREY, "width": 1, "shape": "hv"},
        )
    order = list(plan.order)
    valid = [row for row, passed in zip(order, result.passed, strict=True) if passed]
    points(
        "certified",
        x[valid],
        y[valid],
        mode="markers",
        marker={"color": GREEN, "size": 15, "symbol": "circle-open", "line": {"width": 2}},
    )
    if search:
        points(
            "reference point",
            [search.reference[i]],
            [search.reference[-1]],
            mode="markers",
            marker={"color": RED, "size": 12, "symbol": "x"},
        )
    if chosen is not None:
        points(
            "chosen",
            [x[order[chosen]]],
            [y[order[chosen]]],
            mode="markers",
            marker={"color": GREEN, "size": 17, "symbol": "star"},
        )
    points("limit", [None], [None], mode="lines", line={"color": RED, "width": 2})
    points(
        "largest passing mean", [None], [None], mode="lines", line={"color": ORANGE, "dash": "dash"}
    )
    points(
        "region of interest",
        [None],
        [None],
        mode="markers",
        marker={"color": ORANGE, "opacity": 0.3, "symbol": "square", "size": 14},
    )
    figure.update_xaxes(title_text=risk.name, row=1, col=i + 1)


def _intervals(
    plan: TestPlan, result: TestResult, validation: ValidationLosses
) -> tuple[Interval, ...]:
    """The region of interest of a table, where no search has drawn one."""
    parts = []
    for risk in plan.problem.risks:
        summary = validation.risks[risk.name].summary
        n = max(int(np.median(summary.n)), 1)
        nearest = int(np.argmin(np.abs(summary.mean - risk.unit_limit)))
        parts.append(
            interval(
                risk,
                plan.families[risk.name],
                n_validation=n,
                n_calibration=max(round(result.n_calibration * n / plan.n_validation), 1),
                delta=plan.problem.delta,
                std=float(summary.standard_deviation[nearest]),
            )
        )
    return tuple(parts)


def _styled(figure: go.Figure, title: str) -> go.Figure:
    figure.update_layout(
        title=title,
        template="plotly_white",
        font={"family": "system-ui, sans-serif", "size": 14},
        legend={"orientation": "h", "y": -0.18},
        margin={"l": 70, "r": 20, "t": 60, "b": 60},
        height=520,
    )
    return figure
