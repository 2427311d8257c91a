"""Figures: the trade-off, the test, the bounds, the search, the plan, a watch; and their files."""

from riskpilot.plots.courses import Course, evidence_course, risk_course
from riskpilot.plots.history import search_history
from riskpilot.plots.pages import PageFigure, sections, web_page, write_page
from riskpilot.plots.planning import power_curves
from riskpilot.plots.points import validation_points
from riskpilot.plots.sequence import p_value_sequence, risk_bounds, shown_positions
from riskpilot.plots.style import save_figure, template, with_theme
from riskpilot.plots.trade_off import risk_plane, search_plane, trade_off

__all__ = [
    "Course",
    "PageFigure",
    "evidence_course",
    "p_value_sequence",
    "power_curves",
    "risk_bounds",
    "risk_course",
    "risk_plane",
    "save_figure",
    "search_history",
    "search_plane",
    "sections",
    "shown_positions",
    "template",
    "trade_off",
    "validation_points",
    "web_page",
    "with_theme",
    "write_page",
]
