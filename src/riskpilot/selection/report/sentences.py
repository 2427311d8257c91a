"""The sentences of a report, and how it writes numbers."""

import html
from functools import partial
from typing import Any

from riskpilot.guarantee import groups_in_words
from riskpilot.problem import Risk
from riskpilot.selection.verdict import Selection


def headline(selection: Selection) -> str:
    """Write the verdict as a headline."""
    if selection.config is None:
        return "No configuration is shown to keep every limit"
    confidence = percent(1 - selection.plan.problem.delta)
    return f"With {confidence} confidence, {limits(selection, 'is ')} on new data"


def sentence(selection: Selection) -> str:
    """Say what the verdict means to somebody who decides."""
    problem = selection.plan.problem
    delta = problem.delta
    if selection.config is None:
        return (
            "Do not rely on any of these configurations yet. None was shown to keep "
            f"{limits(selection)} with the certainty that was asked for, {percent(1 - delta)}."
        )
    return (
        f"The procedure that chose this configuration certifies one that breaks a limit with "
        f"probability at most {percent(delta)}, over the draw of validation and calibration data. "
        f"New data must come from the same distribution."
        f"{groups_in_words(selection.plan.groups)} {problem.minimize} is "
        f"{selection.plan.free[selection.closest]:.4g} on validation data; nothing is promised "
        f"of it."
    )


def limits(selection: Selection, verb: str = "") -> str:
    """Write every limit, joined by and; ``verb`` makes sentences of them."""
    return " and ".join(
        risk.says(partial(amount, risk), f"{verb}at or below", f"{verb}at or above")
        for risk in selection.plan.problem.risks
    )


def plain(value: Any) -> str:
    """Write the value of a parameter."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def amount(risk: Risk, value: float) -> str:
    """Write a share of examples in percent, any other loss in its units."""
    share = (0.0, 1.0) in ((risk.bottom, risk.top), (risk.low, risk.high))
    return percent(value) if share else f"{value:.4g}"


def percent(value: float) -> str:
    """Write a share in percent, with a space at which no line ends."""
    return f"{100 * value:.4g}\N{NO-BREAK SPACE}%"


def escaped(text: object) -> str:
    """Escape a text for the page."""
    return html.escape(str(text))
