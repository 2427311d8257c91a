"""All figures that riskpilot draws, for tests of what they have in common."""

import numpy as np

from riskpilot import plots
from riskpilot.plots.courses import Course, evidence_course, risk_course
from riskpilot.selection.report.figures import figures_of
from tests.pictures import scenes, written_pages


def every_figure(search):
    """All figures that riskpilot draws."""
    two = scenes.two_risks(n=20)
    yield from (one.figure for one in figures_of(search))
    yield from (one.figure for one in figures_of(two))
    yield from (one.figure for one in figures_of(written_pages.labelled().select()))
    yield plots.search_plane(search.validation, search.background)
    yield plots.power_curves(scenes.PROBLEM, true_risks=[0.1])
    yield plots.labels_ahead(np.array([20, 40]), 50, 0.1, 0.05, np.linspace(0, 1, 50))
    one = np.ones(1)
    courses = [Course(f"g{i}", [0], [9], ["May"], one, one, one, one, None) for i in range(6)]
    yield risk_course("error", 0.1, courses)
    yield evidence_course(courses)
