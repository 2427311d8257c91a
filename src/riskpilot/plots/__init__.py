"""Figures: the trade-off, the test, the bounds, the search, the plan, a watch; and their files."""

# The names below that are not in __all__ are for other rooms, and not for users.
from riskpilot.plots.courses import Course as Course
from riskpilot.plots.courses import evidence_course as evidence_course
from riskpilot.plots.courses import risk_course as risk_course
from riskpilot.plots.history import search_history
from riskpilot.plots.labels import label_paths, labels_ahead
from riskpilot.plots.library import asset as asset
from riskpilot.plots.pages import PageFigure as PageFigure
from riskpilot.plots.pages import figure_data as figure_data
from riskpilot.plots.pages import sections as sections
from riskpilot.plots.pages import web_page as web_page
from riskpilot.plots.pages import write_page as write_page
from riskpilot.plots.planning import power_curves
from riskpilot.plots.points import validation_points
from riskpilot.plots.saving import save_figure
from riskpilot.plots.sequence import p_value_sequence, risk_bounds, shown_positions
from riskpilot.plots.style import template, with_theme
from riskpilot.plots.trade_off import risk_plane, search_plane, trade_off

__all__ = [
    "label_paths",
    "labels_ahead",
    "p_value_sequence",
    "power_curves",
    "risk_bounds",
    "risk_plane",
    "save_figure",
    "search_history",
    "search_plane",
    "shown_positions",
    "template",
    "trade_off",
    "validation_points",
    "with_theme",
]
