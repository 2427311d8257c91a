"""A watch over time: what the labels showed, against the limits; and the evidence of an alarm."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from riskpilot.common import FloatArray
from riskpilot.plots.points import escaped
from riskpilot.plots.style import (
    BLUE,
    GREEN,
    GREY,
    LIMIT_LINE,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    styled,
)

_COLOURS = (BLUE, ORANGE, GREEN, SKY, PURPLE, GREY)
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross")
_BAND = 0.18


@dataclass(frozen=True)
class Course:
    """One number over time: means of stretches of labels, each between two bounds.

    ``starts`` and ``stops``: after how many labels each stretch begins and ends. ``mean``: NaN
    where no label counts. ``evidence``: at the end of each stretch, the capital as a share of what
    raises an alarm. ``alarm``: at which label it was raised, and after how many labels the change
    was, by estimate; None where there was none.
    """

    name: str
    starts: Sequence[int]
    stops: Sequence[int]
    times: Sequence[str]
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    evidence: FloatArray
    alarm: tuple[int, int] | None


def risk_course(title: str, limit: float, courses: Sequence[Course]) -> go.Figure:
    """Draw means of stretches of labels against a limit, bounds of the first course, and alarms.

    Parameters
    ----------
    title : str
        What the numbers are.
    limit : float
        Their limit.
    courses : sequence of Course
        The groups, or the one course of a risk without groups; the most important one first.

    Returns
    -------
    plotly.graph_objects.Figure
        Labels from left to right.
    """
    figure, first = go.Figure(), courses[0]
    x, (low, high) = _steps(first), (_steps_of(first.lower), _steps_of(first.upper))
    figure.add_scatter(
        x=[*x, *x[::-1]],
        y=[*high, *low[::-1]],
        name=escaped(f"bounds of {first.name}") if len(courses) > 1 else "bounds",
        fill="toself",
        mode="lines",
        line={"width": 0},
        fillcolor=_COLOURS[0],
        opacity=_BAND,
        hoverinfo="skip",
    )
    for i, course in enumerate(courses):
        figure.add_scatter(
            x=[(start + stop) / 2 for start, stop in zip(course.starts, course.stops, strict=True)],
            y=course.mean,
            name=escaped(course.name),
            **_drawn(i),
            text=[
                f"labels {start + 1:,} to {stop:,}, until {escaped(time)}"
                for start, stop, time in zip(course.starts, course.stops, course.times, strict=True)
            ],
            hovertemplate="%{text}<br>%{y:.4g}<extra>" + escaped(course.name) + "</extra>",
        )
    figure.add_hline(y=limit, line=LIMIT_LINE)
    figure.add_scatter(x=[None], y=[None], name="limit", mode="lines", line=LIMIT_LINE)
    _mark_alarms(figure, courses)
    figure.update_xaxes(title_text="labels", rangemode="tozero")
    figure.update_yaxes(title_text=escaped(title), range=_visible(limit, courses))
    return styled(figure, escaped(title), height=430)


def evidence_course(courses: Sequence[Course]) -> go.Figure:
    """Draw the evidence against each limit as a share of what raises an alarm.

    Parameters
    ----------
    courses : sequence of Course
        All numbers that are watched, or the most important ones.

    Returns
    -------
    plotly.graph_objects.Figure
        On a logarithmic scale; an alarm is raised at 1.
    """
    figure = go.Figure()
    for i, course in enumerate(courses):
        figure.add_scatter(
            x=list(course.stops),
            y=np.clip(course.evidence, 1e-3, 1e3),
            name=escaped(course.name),
            **_drawn(i),
            text=[escaped(time) for time in course.times],
            hovertemplate="label %{x:,}, %{text}<br>%{y:.3g} of what raises an alarm<extra>"
            + escaped(course.name)
            + "</extra>",
        )
    figure.add_hline(y=1.0, line=LIMIT_LINE)
    figure.add_scatter(x=[None], y=[None], name="alarm", mode="lines", line=LIMIT_LINE)
    figure.update_xaxes(title_text="labels", rangemode="tozero")
    figure.update_yaxes(title_text="evidence (alarm at 1)", type="log", dtick=1)
    return styled(figure, "The evidence", height=380)


def _drawn(i: int) -> dict[str, Any]:
    """Choose colour and markers of the course in place ``i``."""
    return {
        "mode": "lines+markers",
        "marker": {"size": 6, "symbol": _SYMBOLS[i % len(_SYMBOLS)]},
        "line": {"color": _COLOURS[i % len(_COLOURS)], "width": 2},
    }


def _steps(course: Course) -> list[int]:
    """Write where each stretch begins and ends, one after the other."""
    return [x for pair in zip(course.starts, course.stops, strict=True) for x in pair]


def _steps_of(values: FloatArray) -> list[float]:
    """Repeat each value, for the beginning and the end of its stretch."""
    return np.repeat(values, 2).tolist()


def _mark_alarms(figure: go.Figure, courses: Sequence[Course]) -> None:
    """Mark the first alarm, and the estimated time of the change before it."""
    alarms = [course.alarm for course in courses if course.alarm is not None]
    if not alarms:
        return
    label, change = min(alarms)
    figure.add_vline(x=change, line={"color": GREY, "width": 2, "dash": "dot"})
    figure.add_vline(x=label, line={"color": RED, "width": 2, "dash": "dash"})
    for name, line in (
        ("change, by estimate", {"color": GREY, "dash": "dot"}),
        ("alarm", {"color": RED, "dash": "dash"}),
    ):
        figure.add_scatter(x=[None], y=[None], name=name, mode="lines", line=line)


def _visible(limit: float, courses: Sequence[Course]) -> list[float]:
    """Choose what the axis shows: the limit and all means, with room for the bounds near them."""
    means = np.concatenate([course.mean for course in courses])
    seen = [limit, *means[np.isfinite(means)].tolist()]
    low, high = min(seen), max(seen)
    room = 0.35 * (high - low) or 0.5 * abs(limit) or 0.1
    bottom = low - room
    return [max(bottom, -0.02 * high) if low >= 0 else bottom, high + room]
