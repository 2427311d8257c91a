"""The trade-off plane: every configuration on validation data, the limits, the test, the choice."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.guarantee import (
    Background,
    Interval,
    SearchOutline,
    TestPlan,
    TestResult,
    non_dominated,
    region_of,
)
from riskpilot.losses import ValidationLosses
from riskpilot.plots.points import (
    escaped,
    hover_labels,
    kept,
    places_of_numbers,
    validation_points,
)
from riskpilot.plots.style import BLUE, GREEN, GREY, LIMIT_LINE, ORANGE, REGION_SHADE, SKY, styled
from riskpilot.problem import Problem, Risk

_NUMBERS = 12  # how many positions of the test are written out of many, and up to how many all are
_ALL = 20
_RING, _STAR = 6.0, 9.0  # pixels: how far the marks reach around what was tested, and chosen
_WIDTH, _HEIGHT = 900.0, 390.0  # pixels: what panels that stand side by side share on a wide page


@dataclass(frozen=True)
class _Tested:
    """The part of a picture that calibration data decided."""

    order: tuple[int, ...]
    passed: BoolArray
    chosen: int | None


@dataclass(frozen=True)
class _Scene:
    """All that a panel draws. ``values``: the validation values, shape (n, c + 1)."""

    problem: Problem
    values: FloatArray
    intervals: tuple[Interval | None, ...]
    search: SearchOutline | None
    tested: _Tested | None
    labels: list[str]


def trade_off(
    plan: TestPlan,
    result: TestResult,
    validation: ValidationLosses,
    chosen: int | None,
    background: Background | None = None,
) -> go.Figure:
    """Draw validation risks against the free objective, and what the test said.

    Parameters
    ----------
    plan : TestPlan
        The frozen test of a selection, ``selection.plan``.
    result : TestResult
        What calibration data said of the candidates, ``selection.result``.
    validation : ValidationLosses
        The validation losses of every configuration, ``selection.validation``.
    chosen : int, or None
        The position of the choice in the test, ``selection.certificate.chosen``.
    background : Background, optional
        The configurations for the labels, and the search, ``selection.background``.

    Returns
    -------
    plotly.graph_objects.Figure
        One panel for each risk.
    """
    background = background or Background()
    search = background.search
    scene = _Scene(
        plan.problem,
        validation_points(validation),
        search.intervals if search else tuple(region_of(validation, result.n_calibration)),
        search,
        _Tested(plan.order, result.passed, chosen),
        hover_labels(background, len(validation.free)),
    )
    title = f"{escaped(plan.problem.minimize)} against the limits, on validation data"
    return _panels(scene, title)


def search_plane(validation: ValidationLosses, background: Background | None = None) -> go.Figure:
    """Draw a search under way, from validation data alone, before anything is tested.

    Parameters
    ----------
    validation : ValidationLosses
        The validation losses of every configuration so far.
    background : Background, optional
        The configurations for the labels, and the search as it stands.

    Returns
    -------
    plotly.graph_objects.Figure
        One panel for each risk, as in `trade_off`.
    """
    background = background or Background()
    search = background.search
    problem = validation.problem
    n = len(validation.free)
    scene = _Scene(
        problem,
        validation_points(validation),
        search.intervals if search else tuple(None for _ in problem.risks),
        search,
        None,
        hover_labels(background, n),
    )
    return _panels(scene, f"{escaped(problem.minimize)} against the limits: {n} evaluated")


def risk_plane(
    plan: TestPlan,
    result: TestResult,
    validation: ValidationLosses,
    chosen: int | None,
    background: Background | None = None,
) -> go.Figure:
    """Draw two risks against each other, with the free objective as colour.

    Parameters
    ----------
    plan : TestPlan
        The frozen test of a selection with two risks or more, ``selection.plan``; the first two
        are drawn.
    result : TestResult
        What calibration data said of the candidates, ``selection.result``.
    validation : ValidationLosses
        The validation losses of every configuration, ``selection.validation``.
    chosen : int, or None
        The position of the choice in the test, ``selection.certificate.chosen``.
    background : Background, optional
        The configurations for the labels, ``selection.background``.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure; where both limits are kept, it is shaded.
    """
    problem = plan.problem
    one, other = problem.risks[:2]
    values = validation_points(validation)
    tested = _Tested(plan.order, result.passed, chosen)
    figure = go.Figure()
    figure.add_shape(
        type="rect",
        x0=one.bottom,
        y0=other.bottom,
        x1=one.limit,
        y1=other.limit,
        fillcolor=GREEN,
        opacity=0.1,
        line_width=0,
        layer="below",
    )
    figure.add_vline(x=one.limit, line=LIMIT_LINE)
    figure.add_hline(y=other.limit, line=LIMIT_LINE)
    figure.add_scatter(
        x=values[:, 0],
        y=values[:, 1],
        mode="markers",
        name="configurations",
        showlegend=False,
        text=hover_labels(background or Background(), len(values)),
        customdata=values[:, -1],
        hovertemplate=f"%{{text}}<br>{escaped(one.title)} %{{x:.4g}}<br>{escaped(other.title)} "
        f"%{{y:.4g}}<br>{escaped(problem.minimize)} %{{customdata:.4g}}<extra></extra>",
        marker={
            "size": 10,
            "color": values[:, -1],
            "coloraxis": "coloraxis",
            "line": {"width": 1, "color": GREY},
        },
    )
    bar = {"title": {"text": escaped(problem.minimize)}, "thickness": 14}
    figure.update_layout(coloraxis={"colorscale": "Cividis", "colorbar": bar})
    _draw_tested(figure, (one, other), tested, values[:, :2], {}, show=True)
    figure.update_xaxes(title_text=escaped(one.title), range=_window(values[:, 0], one))
    figure.update_yaxes(title_text=escaped(other.title), range=_window(values[:, 1], other))
    return styled(figure, "Both risks at once, on validation data")


def _panels(scene: _Scene, title: str) -> go.Figure:
    """Draw one panel for each risk, side by side."""
    risks = scene.problem.risks
    figure = make_subplots(rows=1, cols=len(risks), shared_yaxes=True, horizontal_spacing=0.05)
    for i in range(len(risks)):
        _draw_panel(figure, scene, i)
    figure.update_yaxes(title_text=escaped(scene.problem.minimize), col=1)
    return styled(figure, title, height=540)


def _draw_panel(figure: go.Figure, scene: _Scene, i: int) -> None:
    """Draw risk ``i`` against the free objective."""
    risk, part = scene.problem.risks[i], scene.intervals[i]
    x, y = scene.values[:, i], scene.values[:, -1]
    place: dict[str, Any] = {"row": 1, "col": i + 1}
    show = i == 0
    if part is not None and np.isfinite(part.high):
        _draw_region(figure, part, place, show)
    if risk.limit is not None:
        figure.add_vline(x=risk.limit, line=LIMIT_LINE, exclude_empty_subplots=False, **place)
        _key(figure, "limit", {"mode": "lines", "line": LIMIT_LINE}, place, show)
    if len(scene.problem.risks) == 1:
        front = np.flatnonzero(non_dominated(np.column_stack([x, y])))
        front = front[np.argsort(x[front])]
        figure.add_scatter(
            x=x[front],
            y=y[front],
            name="front",
            mode="lines",
            hoverinfo="skip",
            line={"color": GREY, "width": 1, "shape": "hv"},
            showlegend=show,
            **place,
        )
    _draw_evaluated(figure, scene, i, place)
    if scene.tested is not None:
        width = _WIDTH / len(scene.problem.risks)
        points = np.column_stack([x, y])
        _draw_tested(figure, (risk, None), scene.tested, points, place, show, width)
    if scene.search is not None and np.isfinite(scene.search.reference[i]):
        figure.add_scatter(
            x=[scene.search.reference[i]],
            y=[scene.search.reference[-1]],
            name="reference point",
            legendgroup="reference point",
            mode="markers",
            hovertemplate="reference point of the search<br>%{x:.4g}, %{y:.4g}<extra></extra>",
            marker={"color": ORANGE, "size": 11, "symbol": "diamond-tall"},
            showlegend=show,
            **place,
        )
    figure.update_xaxes(title_text=escaped(risk.title), range=_window(x, risk), row=1, col=i + 1)


def _draw_region(figure: go.Figure, part: Interval, place: dict[str, Any], show: bool) -> None:
    """Shade the region of interest, and mark the largest calibration value that passes."""
    figure.add_vrect(x0=part.low, x1=part.high, **REGION_SHADE, **place)
    dashed = {"color": ORANGE, "dash": "dash"}
    figure.add_vline(x=part.alpha_max, line=dashed, exclude_empty_subplots=False, **place)
    square = {"color": ORANGE, "opacity": 0.35, "symbol": "square", "size": 13}
    _key(figure, "region of interest", {"mode": "markers", "marker": square}, place, show)
    passes = "largest calibration value that passes"
    _key(figure, passes, {"mode": "lines", "line": dashed}, place, show)


def _draw_evaluated(figure: go.Figure, scene: _Scene, i: int, place: dict[str, Any]) -> None:
    """Draw every configuration, those of the initial pool apart where there was a search."""
    x, y = scene.values[:, i], scene.values[:, -1]
    known = scene.search.pool if scene.search else ()
    pool = np.array(known or [True] * len(y), dtype=bool)
    kinds = [("initial" if known else "evaluated", pool, GREY, "circle")]
    if known:
        kinds.append(("proposed", ~pool, BLUE, "square"))
    for name, mask, colour, symbol in kinds:
        figure.add_scatter(
            x=x[mask],
            y=y[mask],
            name=name,
            legendgroup=name,
            mode="markers",
            text=kept(scene.labels, mask),
            hovertemplate=f"%{{text}}<br>{escaped(scene.problem.risks[i].title)} %{{x:.4g}}"
            f"<br>{escaped(scene.problem.minimize)} %{{y:.4g}}<extra>{name}</extra>",
            marker={"color": colour, "size": 8, "symbol": symbol},
            showlegend=i == 0,
            **place,
        )


def _draw_tested(
    figure: go.Figure,
    axes: tuple[Risk, Risk | None],
    tested: _Tested,
    points: FloatArray,
    place: dict[str, Any],
    show: bool,
    width: float = _WIDTH,
) -> None:
    """Draw rings around what was tested, and a star on the choice.

    ``axes``: the risks across and up, None for the free objective; ``points``: shape (n, 2).
    """
    order = np.array(tested.order, dtype=int)
    x, y = points.T
    low, high = np.array([_window(x, axes[0]), _window(y, axes[1])]).T
    rows = {position + 1: tested.order[position] for position in _numbers(tested)}
    reach = np.full(len(points), _RING)
    if tested.chosen is not None:
        reach[tested.order[tested.chosen]] = _STAR
    shares = (points - low) / (high - low)
    numbers = places_of_numbers(shares, rows, (width, _HEIGHT), reach)
    for name, mask, colour, symbol in (
        ("certified", tested.passed, GREEN, "circle-open"),
        ("tested, not certified", ~tested.passed, SKY, "square-open"),
    ):
        positions = np.flatnonzero(mask)
        figure.add_scatter(
            x=x[order[positions]],
            y=y[order[positions]],
            name=name,
            legendgroup=name,
            mode="markers+text",
            text=[str(p + 1) if p + 1 in numbers else "" for p in positions],
            textposition=[numbers.get(int(p) + 1, "top right") for p in positions],
            textfont={"size": 11},
            cliponaxis=False,  # numbers at the edge are whole
            customdata=positions + 1,
            hovertemplate=f"number %{{customdata}} in the test<extra>{name}</extra>",
            marker={"color": colour, "size": 13, "symbol": symbol, "line": {"width": 1.8}},
            showlegend=show,
            **place,
        )
    if tested.chosen is not None:
        row = tested.order[tested.chosen]
        figure.add_scatter(
            x=[x[row]],
            y=[y[row]],
            name="chosen",
            legendgroup="chosen",
            mode="markers",
            hovertemplate="chosen<br>%{x:.4g}, %{y:.4g}<extra></extra>",
            marker={
                "color": GREEN,
                "size": 19,
                "symbol": "star",
                "line": {"width": 1, "color": "#ffffff"},
            },
            showlegend=show,
            **place,
        )


def _key(
    figure: go.Figure, name: str, style: dict[str, Any], place: dict[str, Any], show: bool
) -> None:
    """Add an entry to the legend for what is drawn as a shape."""
    if show:
        figure.add_scatter(x=[None], y=[None], name=name, **style, **place)


def _numbers(tested: _Tested) -> list[int]:
    """Pick the positions of the test to write out, the most important ones first.

    These are the choice, the first one, the turning point, and a few others.
    """
    n = len(tested.order)
    turning = int(np.argmin(tested.passed)) if not tested.passed.all() else n - 1
    kept = [0, turning, n - 1] if tested.chosen is None else [tested.chosen, 0, turning]
    spread = np.linspace(0, n - 1, min(n, _NUMBERS - 3)).round().astype(int)
    gap = max(n // (2 * _NUMBERS), 1)
    kept += [int(p) for p in spread if min(abs(int(p) - k) for k in kept) > gap]
    if n <= _ALL:
        kept += range(n)
    return list(dict.fromkeys(kept))


def _window(x: FloatArray, risk: Risk | None) -> list[float]:
    """Find the range of an axis that shows all points and the limit, with a margin."""
    known = np.append(x, [] if risk is None or risk.limit is None else [risk.limit])
    margin = 0.06 * max(float(np.ptp(known)), 1e-9)
    return [float(known.min()) - margin, float(known.max()) + margin]
