"""What a report tells, and how it says numbers."""

import html
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.guarantee import Certificate, TestPlan, TestResult, groups_in_words
from riskpilot.losses import ValidationLosses
from riskpilot.plots import Background, Search
from riskpilot.problem import Risk

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Story:
    """All that the page tells."""

    message: str
    certificate: Certificate
    plan: TestPlan
    result: TestResult
    validation: ValidationLosses
    search: Search | None
    background: Background

    @property
    def chosen(self) -> int | None:
        return self.certificate.chosen

    @cached_property
    def values(self) -> FloatArray:
        """Validation values of the risks and the free objective, shape (n, c + 1)."""
        risks = self.validation.problem.risks
        means = [r.from_unit(self.validation.risks[r.name].summary.mean) for r in risks]
        return np.column_stack([*means, self.validation.free])

    @property
    def told(self) -> int:
        """The candidate whose numbers are told: the choice, or the closest."""
        return int(np.argmin(self.result.worst_log_p)) if self.chosen is None else self.chosen


def headline(story: Story) -> str:
    free = story.plan.problem.minimize
    if story.chosen is None:
        return "No configuration is shown to keep every limit"
    value = story.plan.free[story.chosen]
    return f"Every limit is kept; {free} is {value:.4g}"


def sentence(story: Story) -> str:
    """The promise as one would say it to somebody who decides."""
    delta = story.plan.problem.delta
    if story.chosen is None:
        return (
            "Do not rely on any of these configurations yet. None was shown to keep "
            f"{limits(story)} with the certainty that was asked for, {percent(1 - delta)}."
        )
    return (
        f"You can rely on this configuration to keep {limits(story)}, as long as the data stays "
        f"the way it was. The chance that this statement is wrong is at most {percent(delta)}."
        f"{groups_in_words(story.plan.groups)}"
    )


def limits(story: Story) -> str:
    return " and ".join(
        risk.says(partial(amount, risk), "at or below", "at or above")
        for risk in story.plan.problem.risks
    )


def plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def amount(risk: Risk, value: float) -> str:
    """A share of examples in percent, any other loss in its units."""
    share = (0.0, 1.0) in ((risk.bottom, risk.top), (risk.low, risk.high))
    return percent(value) if share else f"{value:.4g}"


def percent(value: float) -> str:
    return f"{100 * value:.4g} %"


def escaped(text: object) -> str:
    return html.escape(str(text))
