"""A risk in words: what is limited, and what the losses of an example are."""

from typing import TYPE_CHECKING

from riskpilot.common import exact
from riskpilot.problem import names
from riskpilot.statistics import Difference

if TYPE_CHECKING:
    from riskpilot.problem.risk import Risk


def limited(risk: "Risk") -> str:
    """Say what is limited; nothing for the mean of all examples."""
    by = risk.groups if risk.needs_groups and risk.groups != "groups" else None
    what = risk.statistic.words(by=by, larger=risk.complement)
    known = names.meaning(risk.name)
    if risk.conditional and (known is None or not known.conditional):
        what = f"{what or 'mean'} of the examples that count"
    return what if risk.weights is None else f"{what or 'mean'}, weighted by {risk.weights}"


def column_of(risk: "Risk") -> tuple[str, bool]:
    """Name the column of a table that the losses of a risk come from, and say whether they are one
    minus it."""
    known = names.meaning(risk.name)
    if known is not None and isinstance(known.statistic, Difference):
        return known.metric.name, known.metric.better_when_larger
    return risk.name, risk.losses_are_complement


def losses(risk: "Risk") -> str:
    """Say what the losses of one example are, as far as the name says it."""
    known = names.meaning(risk.name)
    if known is not None:
        return known.loss_words
    nan = ", NaN where the example does not count" if risk.conditional else ""
    if risk.complement:
        return f"one minus the {risk.name} of each example, from 0 to 1{nan}"
    return f"the loss of each example, from {exact(risk.low)} to {exact(risk.high)}{nan}"
