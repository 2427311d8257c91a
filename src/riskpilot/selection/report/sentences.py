"""The sentences of a report, and how it writes numbers."""

import html
from functools import partial
from typing import Any

from riskpilot import common
from riskpilot.common import bound_in_words, exact, on_its_side
from riskpilot.guarantee import groups_in_words, with_short_numbers
from riskpilot.problem import Risk
from riskpilot.selection.verdict import Selection


def headline(selection: Selection) -> str:
    """Write the verdict as a headline."""
    if selection.config is None:
        return "No configuration is shown to keep every limit"
    return f"With {certainty(selection)} confidence, {limits(selection, 'is ')} on new data"


def sentence(selection: Selection) -> str:
    """Say what the verdict means to somebody who decides."""
    problem = selection.plan.problem
    if selection.config is None:
        return (
            "Do not rely on any of these configurations yet. None was shown to keep "
            f"{limits(selection)} with the certainty that was asked for, {certainty(selection)}."
        )
    return (
        f"In at most {percent(problem.delta)} of all draws of validation and calibration data does "
        f"this procedure choose a configuration that breaks a limit. New data must come from the "
        f"same distribution."
        f"{groups_in_words(selection.plan.groups)} {problem.minimize} is "
        f"{selection.plan.free[selection.closest]:.4g} on validation data; nothing is promised "
        f"of it."
    )


def limits(selection: Selection, verb: str = "") -> str:
    """Write every limit, joined by and; ``verb`` makes sentences of them."""
    return " and ".join(
        risk.says(partial(limit_amount, risk), f"{verb}at or below", f"{verb}at or above")
        for risk in selection.plan.problem.risks
    )


def short(selection: Selection, words: str) -> str:
    """Write numbers of the configuration that the page is about with six digits."""
    return with_short_numbers(words, selection.candidates[selection.closest])


def plain(value: Any) -> str:
    """Write the value of a parameter."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def amount(risk: Risk, value: float) -> str:
    """Write a measured share of examples in percent, any other loss in its units, so that its side
    of the limit is seen."""
    assert risk.limit is not None
    if not _is_share(risk):
        return on_its_side(value, risk.limit)
    return _spaced(f"{on_its_side(100 * value, 100 * risk.limit)}%")


def limit_amount(risk: Risk, value: float) -> str:
    """Write a limit as `amount` does, but exactly: a promise must not be rounded."""
    return percent(value) if _is_share(risk) else exact(value)


def bound_amount(risk: Risk, value: float) -> str:
    """Write an upper bound as `amount` does, but rounded up, though not beyond the limit."""
    return limit_amount(risk, float(bound_in_words(value, up=True, limit=risk.limit)))


def percent(value: float) -> str:
    """Write a share in percent, exactly."""
    return _spaced(common.percent(value))


def certainty(selection: Selection) -> str:
    """Write the probability with which the promise holds, never rounded up."""
    return _spaced(selection.plan.problem.confidence)


def _is_share(risk: Risk) -> bool:
    """Whether a risk is a share of examples."""
    return (0.0, 1.0) in ((risk.bottom, risk.top), (risk.low, risk.high))


def _spaced(text: str) -> str:
    """Put a space at which no line ends before a percent sign."""
    return text.replace("%", "\N{NO-BREAK SPACE}%")


def escaped(text: object) -> str:
    """Escape a text for the page."""
    return html.escape(str(text))
