"""Labels that arrive one after another: the boundary, the paths, and what is ahead."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from riskpilot.common import FloatArray, IntArray
from riskpilot.guarantee import Labelling, TestPlan, TestResult, evidence_paths
from riskpilot.plots.points import config_label, escaped
from riskpilot.plots.sequence import shown_positions
from riskpilot.plots.style import BLUE, GREEN, LIMIT_LINE, ORANGE, RED, SKY, styled
from riskpilot.problem import Risk

_FIRST = 5  # shares of fewer labels jump too much to be drawn
_PATHS = 12  # simulated paths in a picture of what is ahead


def label_paths(
    plan: TestPlan,
    result: TestResult,
    chosen: int | None,
    configs: Sequence[Mapping[str, Any]] = (),
) -> go.Figure | None:
    """Draw what the labels so far showed, one panel for every risk.

    Where 0/1 losses have a boundary that is the same for all candidates, it is the share of losses
    with this boundary; elsewhere the evidence that the limit is kept, which certifies at 1.

    Parameters
    ----------
    plan : TestPlan
        The frozen test of a selection, ``selection.plan``.
    result : TestResult
        What the labels said of the candidates, ``selection.result``.
    chosen : int, or None
        The position of the choice in the test, ``selection.certificate.chosen``.
    configs : sequence of mappings, optional
        The candidates in testing order, for the labels: ``selection.candidates``.

    Returns
    -------
    plotly.graph_objects.Figure or None
        One line for each candidate around the decision; None where labels did not arrive one after
        another.
    """
    labelling = result.labelling
    if labelling is None:
        return None
    risks, shown = plan.problem.risks, shown_positions(result, chosen, most=6)
    rest = [risk.name for risk in risks if risk.name not in labelling.steps]
    paths = evidence_paths(plan, labelling, shown) if rest else None
    figure = make_subplots(rows=len(risks), cols=1, vertical_spacing=0.28 / len(risks))
    for i, risk in enumerate(risks):
        place = {"row": i + 1, "col": 1}
        steps = labelling.steps.get(risk.name)
        if steps is not None:
            _draw_boundary(figure, np.array(steps), labelling.horizon, **place)
            limit = risk.statistic.limit_of_zeros(risk.unit_limit)
            shares = _shares(risk, labelling, shown)
            level, line, title, top = limit, LIMIT_LINE, "share of losses", 2 * limit
        else:
            assert paths is not None
            shares = paths[risk.name]
            highest = max((float(y.max(initial=0.0)) for _, y in shares), default=0.0)
            level, line = 1.0, {**LIMIT_LINE, "color": BLUE}
            title, top = "evidence, shown at 1", max(1.2, 1.1 * highest)
        for position, (x, y) in zip(shown, shares, strict=True):
            look = _line(result, position, chosen, configs)
            hover = "label %{x}: %{y:.4g}<extra></extra>"
            figure.add_scatter(
                x=x, y=y, mode="lines", hovertemplate=hover, showlegend=i == 0, **look, **place
            )
        figure.add_hline(y=level, line=line, **place)  # plotly draws it where there are traces
        figure.update_xaxes(title_text="labels", range=[0, labelling.horizon], **place)
        named = f"{escaped(risk.title)}<br>{title}"
        figure.update_yaxes(title_text=named, range=[0, top], **place)
    return styled(figure, "Label by label", height=140 + 320 * len(risks))


def _line(
    result: TestResult, position: int, chosen: int | None, configs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Say how the line of a candidate looks, the same in every panel."""
    passed = bool(result.passed[position])
    place = f"{position + 1}{config_label(configs, position, '  ', longest=34)}"
    return {
        "name": f"{place} ★" if position == chosen else place,
        "legendgroup": str(position),
        "line": {
            "color": GREEN if passed else SKY,
            "width": 3 if position == chosen else 1.5,
            "dash": "solid" if passed else "dot",
        },
    }


def labels_ahead(
    steps: IntArray, horizon: int, limit: float, risk: float, chances: FloatArray, seed: int = 0
) -> go.Figure:
    """Draw a boundary with simulated paths at a true risk, and the chance to have crossed it.

    Parameters
    ----------
    steps : array of int, shape (c,)
        The label at which a count of 0, 1, 2, ... losses begins to cross.
    horizon : int
        The largest number of labels.
    limit, risk : float
        The limit and the true risk, on the unit scale.
    chances : array of shape (horizon,)
        The probability to have crossed by each label.
    seed : int, default 0
        Of the simulated paths.

    Returns
    -------
    plotly.graph_objects.Figure
        The paths above the chance, over the same labels.
    """
    figure = go.Figure()
    _draw_boundary(figure, steps, horizon)
    figure.update_xaxes(title_text="labels", range=[0, horizon])
    critical = np.searchsorted(steps, np.arange(1, horizon + 1), side="right") - 1
    label = np.arange(1, horizon + 1)
    lost = np.cumsum(np.random.default_rng(seed).random((_PATHS, horizon)) < risk, axis=1)
    for i, path in enumerate(lost):
        crossed = np.flatnonzero(path <= critical)
        end = int(crossed[0]) + 1 if len(crossed) else horizon
        figure.add_scatter(
            x=label[_FIRST - 1 : end],
            y=(path / label)[_FIRST - 1 : end],
            mode="lines",
            name="simulated paths",
            legendgroup="paths",
            showlegend=i == 0,
            hoverinfo="skip",
            line={
                "color": GREEN if len(crossed) else SKY,
                "width": 1,
                "dash": "solid" if len(crossed) else "dot",
            },
        )
    figure.add_hline(y=limit, line=LIMIT_LINE)
    figure.add_scatter(
        x=label,
        y=chances,
        mode="lines",
        name="chance to have crossed",
        yaxis="y2",
        line={"color": ORANGE, "width": 2},
        hovertemplate="by label %{x}: %{y:.3f}<extra></extra>",
    )
    figure.update_layout(
        yaxis2={
            "title": {"text": "chance to have crossed"},
            "overlaying": "y",
            "side": "right",
            "range": [0, 1],
            "tickvals": [0, 0.25, 0.5, 0.75, 1],
            "showgrid": False,
        }
    )
    figure.update_yaxes(title_text="share of losses", range=[0, 2 * limit], selector=0)
    made = styled(figure, f"Labels ahead, at a true risk of {risk:g}", height=460)
    made.update_layout(margin={"r": 70})
    return made


def _draw_boundary(figure: go.Figure, steps: IntArray, horizon: int, **place: Any) -> None:
    """Draw the boundary as a share of the labels."""
    label = np.arange(1, horizon + 1)
    critical = np.searchsorted(steps, label, side="right") - 1
    known = critical >= 0
    first = not any(trace.name == "boundary" for trace in figure.data)
    figure.add_scatter(
        x=label[known],
        y=critical[known] / label[known],
        mode="lines",
        name="boundary",
        legendgroup="boundary",
        showlegend=first,
        line={"color": BLUE, "width": 2},
        customdata=critical[known],
        hovertemplate="at label %{x:,} a count of %{customdata:,} passes<extra></extra>",
        **place,
    )
    if first:
        key = {"name": "limit", "mode": "lines", "line": {"color": RED, "width": 2}}
        figure.add_scatter(x=[None], y=[None], **key, **place)


def _shares(
    risk: Risk, labelling: Labelling, shown: Sequence[int]
) -> list[tuple[IntArray, FloatArray]]:
    """The share of labels that are losses to the boundary of a risk, by candidate: after which
    labels, and how large it is."""
    threshold = risk.limit if risk.statistic.exact else risk.low
    found = []
    for position in shown:
        t = int(labelling.labels[position])
        lost = np.asarray(labelling.table[risk.name])[position, :t] > threshold
        label = np.arange(1, t + 1)
        found.append((label[_FIRST - 1 :], (np.cumsum(lost) / label)[_FIRST - 1 :]))
    return found
