"""Labels that arrive one after another: the boundary, the paths, and what is ahead."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from riskpilot.common import FloatArray, IntArray
from riskpilot.guarantee import TestPlan, TestResult
from riskpilot.plots.points import config_label
from riskpilot.plots.sequence import shown_positions
from riskpilot.plots.style import BLUE, GREEN, LIMIT_LINE, ORANGE, RED, SKY, styled

_FIRST = 5  # shares of fewer labels jump too much to be drawn
_PATHS = 12  # simulated paths in a picture of what is ahead


def label_paths(
    plan: TestPlan,
    result: TestResult,
    chosen: int | None,
    configs: Sequence[Mapping[str, Any]] = (),
) -> go.Figure | None:
    """Draw the share of losses among the labels so far, with the boundary, for the first risk.

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
        One line for each candidate around the decision; None where no risk has a boundary that is
        the same for all candidates.
    """
    labelling = result.labelling
    if labelling is None or not labelling.steps:
        return None
    name, steps = next(iter(labelling.steps.items()))
    risk = next(risk for risk in plan.problem.risks if risk.name == name)
    figure = _with_boundary(np.array(steps), labelling.horizon)
    assert risk.limit is not None
    limit = risk.statistic.limit_of_zeros(risk.unit_limit)
    figure.add_hline(y=limit, line=LIMIT_LINE)
    lost = _losses(plan, result, name)
    for position in shown_positions(result, chosen, most=6):
        t = int(labelling.labels[position])
        shares = np.cumsum(lost[position, :t]) / np.arange(1, t + 1)
        passed = bool(result.passed[position])
        place = f"{position + 1}{config_label(configs, position, '  ', longest=34)}"
        figure.add_scatter(
            x=np.arange(_FIRST, t + 1),
            y=shares[_FIRST - 1 :],
            mode="lines",
            name=f"{place} ★" if position == chosen else place,
            line={
                "color": GREEN if passed else SKY,
                "width": 3 if position == chosen else 1.5,
                "dash": "solid" if passed else "dot",
            },
            hovertemplate="label %{x}: %{y:.4g}<extra></extra>",
        )
    figure.update_yaxes(title_text=f"share of losses, {risk.title}", range=[0, 2 * limit])
    return styled(figure, "Label by label", height=460)


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
    figure = _with_boundary(steps, horizon)
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


def _with_boundary(steps: IntArray, horizon: int) -> go.Figure:
    """Begin a figure with the boundary as a share of the labels."""
    figure = go.Figure()
    label = np.arange(1, horizon + 1)
    critical = np.searchsorted(steps, label, side="right") - 1
    known = critical >= 0
    figure.add_scatter(
        x=label[known],
        y=critical[known] / label[known],
        mode="lines",
        name="boundary",
        line={"color": BLUE, "width": 2},
        hovertemplate="at label %{x} a share of %{y:.4g} passes<extra></extra>",
    )
    figure.add_scatter(
        x=[None], y=[None], mode="lines", name="limit", line={"color": RED, "width": 2}
    )
    figure.update_xaxes(title_text="labels", range=[0, horizon])
    return figure


def _losses(plan: TestPlan, result: TestResult, name: str) -> FloatArray:
    """Which labels are losses to the boundary of a risk, shape (n_candidates, labels)."""
    risk = next(risk for risk in plan.problem.risks if risk.name == name)
    assert result.labelling is not None
    losses = np.asarray(result.labelling.table[name])
    threshold = risk.limit if risk.statistic.exact else risk.low
    return np.asarray(losses > threshold, dtype=np.float64)
