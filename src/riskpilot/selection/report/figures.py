"""The figures of the page, as data that its script draws in the reader's colours."""

import json
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from riskpilot.plots import (
    p_value_sequence,
    risk_bounds,
    risk_plane,
    search_history,
    template,
    trade_off,
)
from riskpilot.selection.verdict import Selection


@dataclass(frozen=True)
class Figure:
    """A figure with its heading and a sentence; ``panels``: how much room it takes."""

    heading: str
    words: str
    figure: go.Figure
    panels: int


def figures_of(selection: Selection) -> list[Figure]:
    """Draw all that the page shows of a selection."""
    plan, result, chosen = selection.plan, selection.result, selection.certificate.chosen
    validation, background = selection.validation, selection.background
    configs = selection.candidates
    n_risks = len(plan.problem.risks)
    shown = []
    if plan.n_validation:  # with a known order, validation data may say nothing of the risks
        words = (
            "Every configuration on validation data. Numbers are positions in the test; rings mark "
            "what was tested. Around the dashed line the test is a close call."
        )
        plane = trade_off(plan, result, validation, chosen, background)
        shown.append(Figure("The trade-off", words, plane, n_risks))
    if plan.n_validation and n_risks == 2:
        words = "Where both limits are kept on validation data, and at what cost."
        plane = risk_plane(plan, result, validation, chosen, background)
        shown.append(Figure("Both risks", words, plane, 1))
    shown += [
        Figure(
            "Risks with upper bounds",
            "The candidates around the decision. A bar that ends before the limit passes on its "
            "own; where the test goes in a fixed order, all before it must have passed, too.",
            risk_bounds(plan, result, chosen, configs),
            n_risks + 1,  # names of configurations take the room of a panel
        ),
        Figure(
            "The test",
            "p-values on calibration data, in the order that was fixed before it was opened.",
            p_value_sequence(plan, result, configs),
            1,
        ),
    ]
    if background.search is not None:
        words = "What each trial showed on validation data."
        history = search_history(validation, background)
        shown.append(Figure("The search", words, history, 1))
    return shown


def sections(figures: list[Figure]) -> str:
    """Write the places where the script of the page draws the figures."""
    return "\n".join(
        f'<section><h2>{one.heading}</h2><p class="note">{one.words}</p>'
        f'<div class="figure{" panels" if one.panels > 1 else ""}">'
        f'<div id="figure-{i}" style="height:{one.figure.layout.height}px"></div></div></section>'
        for i, one in enumerate(figures)
    )


def page_data(figures: list[Figure]) -> dict[str, Any]:
    """Collect what the script of the page draws, in the two themes it can use."""
    drawn = {}
    for i, one in enumerate(figures):
        figure = json.loads(one.figure.to_json())
        figure["layout"].pop("template")
        figure["layout"].pop("title")  # the heading of the section says it
        figure["layout"]["margin"]["t"] = 20
        drawn[f"figure-{i}"] = figure
    themes = {name: _template(name) for name in ("light", "dark")}
    return {"figures": drawn, "themes": themes}


def _template(theme: str) -> Any:
    """Write a theme as plain JSON."""
    return json.loads(go.Figure(layout={"template": template(theme)}).to_json())["layout"][
        "template"
    ]
