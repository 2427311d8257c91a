"""The figures of the page."""

from riskpilot.plots import (
    PageFigure,
    label_paths,
    p_value_sequence,
    risk_bounds,
    risk_plane,
    search_history,
    trade_off,
)
from riskpilot.selection.verdict import Selection


def figures_of(selection: Selection) -> list[PageFigure]:
    """Draw all that the page shows of a selection."""
    plan, result, chosen = selection.plan, selection.result, selection.certificate.chosen
    validation, background = selection.validation, selection.background
    configs = selection.candidates
    n_risks = len(plan.problem.risks)
    shown = []
    if plan.n_validation:  # with a known order, validation data may say nothing of the risks
        words = (
            "Every configuration on validation data. Numbers are positions in the test, as far as "
            "there is room for them; rings and squares mark what was tested. Around the dashed "
            "line the test is a close call."
        )
        plane = trade_off(plan, result, validation, chosen, background)
        shown.append(PageFigure("The trade-off", words, plane))
    if plan.n_validation and n_risks == 2:
        words = "Where both limits are kept on validation data, and at what cost."
        plane = risk_plane(plan, result, validation, chosen, background)
        shown.append(PageFigure("Both risks", words, plane))
    if result.labelling is not None:
        words = (
            "What the labels so far showed of each risk: the share of losses with its boundary, or "
            "the evidence that the limit is kept. A candidate has shown a risk where its line "
            "first touches the boundary, or reaches 1; nothing after that counts."
        )
        paths = label_paths(plan, result, chosen, configs)
        if paths is not None:
            shown.append(PageFigure("Label by label", words, paths))
    else:
        words = (
            "The candidates around the decision. A bar that ends before the limit passes on its "
            "own; where the test goes in a fixed order, all before it must have passed, too."
        )
        bounds = risk_bounds(plan, result, chosen, configs)
        shown.append(PageFigure("Risks with upper bounds", words, bounds))
    shown.append(
        PageFigure(
            "The test",
            "p-values on calibration data, in the order that was fixed before it was opened.",
            p_value_sequence(plan, result, configs),
        )
    )
    if background.search is not None:
        words = "What each trial showed on validation data."
        history = search_history(validation, background)
        shown.append(PageFigure("The search", words, history))
    return shown
