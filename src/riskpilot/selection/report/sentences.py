"""The sentences of a report, and how it writes numbers."""

import html
from functools import partial
from typing import Any

from riskpilot.guarantee import groups_in_words
from riskpilot.problem import Risk
from riskpilot.selection.verdict import Selection


def headline(selection: Selection) -> str:
    """Write the verdict as a headline."""
    free = selection.plan.problem.minimize
    if selection.config is None:
        return "No configuration is shown to keep every limit"
    value = selection.plan.free[selection.closest]
    return f"Every limit is kept; {free} is {value:.4g}"


def sentence(selection: Selection) -> str:
    """Write the promise as one would say it to somebody who decides."""
    delta = selection.plan.problem.delta
    if selection.config is None:
        return (
            "Do not rely on any of these configurations yet. None was shown to keep "
            f"{limits(selection)} with the certainty that was asked for, {percent(1 - delta)}."
        )
    return (
        f"You can rely on this configuration to keep {limits(selection)}, as long as the data "
        f"stays the way it was. The chance that this statement is wrong is at most "
        f"{percent(delta)}."
        f"{groups_in_words(selection.plan.groups)}"
    )


def limits(selection: Selection) -> str:
    """Write every limit, joined by and."""
    return " and ".join(
        risk.says(partial(amount, risk), "at or below", "at or above")
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
    """Write a share in percent."""
    return f"{100 * value:.4g} %"


def escaped(text: object) -> str:
    """Escape a text for the page."""
    return html.escape(str(text))
