"""The test in pictures: p-values along the sequence, and risks with their bounds."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from riskpilot.common import bound_in_words, exact, how_many
from riskpilot.guarantee import TestPlan, TestResult, config_in_words, p_in_words, upper_bounds
from riskpilot.plots.points import config_label, escaped
from riskpilot.plots.style import GREEN, GREY, LIMIT_LINE, RED, SKY, styled

_LONGEST = 34  # letters: a longer name of a configuration would be cut to where all begin alike
_SMALLEST = 1e-12  # smaller p-values are drawn here: the eye asks how they compare with delta


def p_value_sequence(
    plan: TestPlan, result: TestResult, configs: Sequence[Mapping[str, Any]] = ()
) -> go.Figure:
    """Draw the calibration p-values in testing order, against delta.

    Parameters
    ----------
    plan : TestPlan
        The frozen test of a selection, ``selection.plan``.
    result : TestResult
        What calibration data said of the candidates, ``selection.result``.
    configs : sequence of mappings, optional
        The candidates in testing order, for the labels: ``selection.candidates``.

    Returns
    -------
    plotly.graph_objects.Figure
        One point for each candidate.
    """
    position = np.arange(1, len(plan.order) + 1)
    p = np.exp(np.maximum(result.worst_log_p, math.log(_SMALLEST)))
    figure = go.Figure()
    for name, colour, symbol, mask in (
        ("certified", GREEN, "circle", result.passed),
        ("not certified", SKY, "x", ~result.passed),
    ):
        figure.add_scatter(
            x=position[mask],
            y=p[mask],
            mode="markers",
            name=name,
            text=[_hover(plan, result, configs, int(i)) for i in np.flatnonzero(mask)],
            hovertemplate="number %{x}: %{text}<extra></extra>",
            marker={"color": colour, "size": 9, "symbol": symbol},
        )
    delta = plan.problem.delta
    dashed = {"dash": "dash", "color": RED, "width": 2}
    figure.add_hline(y=delta, line=dashed)
    # The legend names the line: beside it, a point could cover the words.
    figure.add_scatter(
        x=[None], y=[None], name=f"delta = {exact(delta)}", mode="lines", line=dashed
    )
    floor = "≤ " if bool((result.worst_log_p <= math.log(_SMALLEST)).any()) else ""
    figure.update_xaxes(title_text="position in the test, safest first", rangemode="tozero")
    low = max(math.floor(math.log10(p.min())), -12) - 0.5
    figure.update_yaxes(
        title_text="p-value on calibration data",
        type="log",
        range=[low, 0.4],
        tickvals=[10.0**k for k in range(-12, 1, 1 if low > -7 else 3)],
        ticktext=[
            (floor if k == -12 else "") + (f"{10.0**k:g}" if k >= -4 else f"10<sup>{k}</sup>")
            for k in range(-12, 1, 1 if low > -7 else 3)
        ],
    )
    return styled(figure, "The test, candidate by candidate", height=400)


def shown_positions(result: TestResult, chosen: int | None, most: int = 8) -> list[int]:
    """Pick the candidates around the decision: the choice, the first that failed, and those nearby.

    Parameters
    ----------
    result : TestResult
        What calibration data said of the candidates.
    chosen : int, or None
        The position of the choice in the test; None where nothing passed.
    most : int, default 8
        How many candidates to pick at most.

    Returns
    -------
    list of int
        Their positions, in testing order.
    """
    n = len(result.passed)
    failed = np.flatnonzero(~result.passed)
    if chosen is None:
        best = int(np.argmin(result.worst_log_p))
        anchors = [best, *map(int, failed[:1])]
    else:
        anchors = [chosen, *map(int, failed[:1])]
    by_distance = sorted(range(n), key=lambda i: (min(abs(i - a) for a in anchors), i))
    return sorted(by_distance[:most])


def risk_bounds(
    plan: TestPlan,
    result: TestResult,
    chosen: int | None,
    configs: Sequence[Mapping[str, Any]] = (),
    positions: Sequence[int] | None = None,
) -> go.Figure:
    """Draw calibration risks, with the smallest limit that each candidate would have passed.

    A bar ends at the upper bound that the candidate's own test gives at delta; where it ends before
    the limit, the candidate passes. The promise of a selection is about the limits.

    Parameters
    ----------
    plan : TestPlan
        The frozen test of a selection, ``selection.plan``.
    result : TestResult
        What calibration data said of the candidates, ``selection.result``.
    chosen : int, or None
        The position of the choice in the test, ``selection.certificate.chosen``.
    configs : sequence of mappings, optional
        The candidates in testing order, for the labels: ``selection.candidates``.
    positions : sequence of int, optional
        Which candidates to show; those of `shown_positions` by default.

    Returns
    -------
    plotly.graph_objects.Figure
        One panel for each risk.
    """
    shown = list(shown_positions(result, chosen) if positions is None else positions)
    bounds = upper_bounds(plan, result, shown)
    risks = plan.problem.risks
    named = _has_room([configs[position] for position in shown] if len(configs) else ())
    names = [_name(configs if named else (), at, at == chosen) for at in shown]
    figure = make_subplots(rows=1, cols=len(risks), shared_yaxes=True, horizontal_spacing=0.04)
    for i, risk in enumerate(risks):
        place: dict[str, Any] = {"row": 1, "col": i + 1}
        for label, passed in (("certified", True), ("not certified", False)):
            kept = [
                j for j, position in enumerate(shown) if bool(result.passed[position]) == passed
            ]
            means = result.means[[shown[j] for j in kept], i]
            figure.add_scatter(
                x=means,
                y=[names[j] for j in kept],
                name=label,
                legendgroup=label,
                showlegend=i == 0,
                mode="markers",
                text=[
                    f"{how_many(int(result.n[shown[j], i]), 'example')}<br>upper bound "
                    f"{bound_in_words(float(bounds[j, i]), up=True, limit=risk.limit)}"
                    f"{'' if named else config_label(configs, shown[j], '<br>')}"
                    for j in kept
                ],
                hovertemplate=f"%{{y}}<br>{escaped(risk.title)} %{{x:.4g}} on "
                "%{text}<extra></extra>",
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": bounds[kept, i] - means,
                    "arrayminus": np.zeros(len(kept)),
                    "thickness": 3,
                    "width": 7,
                    "color": GREEN if passed else SKY,
                },
                marker={
                    "size": 10,
                    "color": GREEN if passed else SKY,
                    "symbol": "circle" if passed else "x",
                },
                **place,
            )
        figure.add_vline(x=risk.limit, line=LIMIT_LINE, **place)
        if i == 0:
            key: dict[str, Any] = {"name": "limit", "mode": "lines", "line": LIMIT_LINE}
            figure.add_scatter(x=[None], y=[None], **key, **place)
        figure.update_xaxes(title_text=escaped(risk.title), row=1, col=i + 1)
    order = {"type": "category", "categoryorder": "array", "categoryarray": names[::-1]}
    figure.update_yaxes(order, gridcolor=f"{GREY}40")
    figure.update_yaxes(title_text=None if named else "number in the test", col=1)
    short = [f"{position + 1}{' ★' if position == chosen else ''}" for position in shown]
    figure.update_layout(meta={"short_names": short})  # where there is no room for the others
    title = "Risks on calibration data, with upper bounds"
    return styled(figure, title, height=220 + 34 * len(shown))


def _has_room(configs: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether the names of configurations fit beside the panels."""
    return len(configs) > 0 and all(len(config_in_words(one)) <= _LONGEST for one in configs)


def _name(configs: Sequence[Mapping[str, Any]], position: int, chosen: bool) -> str:
    """Write the label of a candidate on an axis; the choice has a star."""
    text = f"{position + 1}{config_label(configs, position, '  ')}"
    return f"<b>{text} ★</b>" if chosen else text


def _hover(plan: TestPlan, result: TestResult, configs: Sequence[Mapping[str, Any]], i: int) -> str:
    """Write what is shown when the pointer is over a candidate."""
    p = p_in_words(float(result.worst_log_p[i]), plan.aims[i])
    return f"p = {p}{config_label(configs, i, '<br>')}"
