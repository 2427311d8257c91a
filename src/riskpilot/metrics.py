"""Metrics of classifiers by name: labels and predictions become losses, NaN where none counts.

Labels and predictions are codes of classes, 0 to K - 1; a prediction of `ABSTAIN` hands the example
over. Metrics that are better when larger are bounded from below: of precision, the loss is
``1 - precision``.
"""

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.errors import ProblemError
from riskpilot.measures import Difference, GroupGap, Mean, Ratio, Statistic, WorstGroup

ABSTAIN = -1

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Losses = npt.NDArray[Any]
Rule = Callable[[IntArray, IntArray, int], tuple[BoolArray, BoolArray | None]]


@dataclass(frozen=True)
class Metric:
    """``rule``: from labels, predictions and the positive code to what is lost and what counts,
    None for every example. ``opposite``: for one that is better when larger, the name of a metric
    to make small instead. ``conditional``: only some examples count."""

    name: str
    rule: Rule
    opposite: str | None = None
    conditional: bool = False
    needs_positive: bool = False
    abstains: bool = False

    @property
    def better_when_larger(self) -> bool:
        return self.opposite is not None

    @property
    def loss_name(self) -> str:
        return f"1 - {self.name}" if self.better_when_larger else self.name

    def losses(self, labels: IntArray, predicted: IntArray, positive: int = 1) -> Losses:
        """``labels``: shape (n,); ``predicted`` and the result: (n,) or (configurations, n).

        Booleans where every example counts, otherwise 0, 1 and NaN.

        >>> METRICS["precision"].losses(np.array([1, 0, 1]), np.array([1, 1, 0]))
        array([ 0.,  1., nan], dtype=float16)
        """
        lost, counts = self.rule(labels, predicted, positive)
        if counts is None:
            return lost
        counts = np.broadcast_to(counts, lost.shape)
        return np.where(counts, lost, np.float16(np.nan)).astype(np.float16)  # 0 and 1 are exact

    def mean(self, labels: IntArray, predicted: IntArray, positive: int = 1) -> float:
        """The mean loss of one configuration; 1, the worst, where no example counts."""
        lost, counts = self.rule(labels, predicted, positive)
        kept = lost if counts is None else lost[counts]
        return float(kept.mean()) if kept.size else 1.0


def _wrong_answers(labels: IntArray, predicted: IntArray, positive: int) -> Any:
    return (predicted != labels) & (predicted != ABSTAIN), None


def _not_right(labels: IntArray, predicted: IntArray, positive: int) -> Any:
    return predicted != labels, None


def _wrong_if_answered(labels: IntArray, predicted: IntArray, positive: int) -> Any:
    return predicted != labels, predicted != ABSTAIN


def _handed_over(labels: IntArray, predicted: IntArray, positive: int) -> Any:
    return predicted == ABSTAIN, None


def _false_alarm(labels: IntArray, predicted: IntArray, positive: int) -> Any:
    return predicted == positive, labels != positive


def _negative_not_found(labels: IntArray, predicted: IntArray, positive: int) -> Any:
    return (predicted == positive) | (predicted == ABSTAIN), labels != positive


def _miss(labels: IntArray, predicted: IntArray, positive: int) -> Any:
    return (predicted != positive) & (predicted != ABSTAIN), labels == positive


def _positive_not_found(labels: IntArray, predicted: IntArray, positive: int) -> Any:
    return predicted != positive, labels == positive


def _false_discovery(labels: IntArray, predicted: IntArray, positive: int) -> Any:
    alarms = predicted == positive
    return np.broadcast_to(labels != positive, alarms.shape), alarms


def _selected(labels: IntArray, predicted: IntArray, positive: int) -> Any:
    return predicted == positive, None


def _given(name: str, rule: Rule, opposite: str | None = None) -> Metric:
    """A rate given the label or the prediction, for a class that is called positive."""
    return Metric(name, rule, opposite, conditional=True, needs_positive=True)


_ALL = (
    Metric("error", _wrong_answers),
    Metric("accuracy", _not_right, "error"),
    Metric("selective_error", _wrong_if_answered, conditional=True, abstains=True),
    Metric("selective_accuracy", _wrong_if_answered, "selective_error", True, abstains=True),
    Metric("abstention", _handed_over, abstains=True),
    Metric("coverage", _handed_over, "abstention", abstains=True),
    _given("false_positive_rate", _false_alarm),
    _given("specificity", _negative_not_found, "false_positive_rate"),
    _given("false_negative_rate", _miss),
    _given("recall", _positive_not_found, "false_negative_rate"),
    _given("false_discovery_rate", _false_discovery),
    _given("precision", _false_discovery, "false_discovery_rate"),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}


_SELECTED = Metric("selection_rate", _selected, needs_positive=True)


@dataclass(frozen=True)
class Named:
    """A limit that is known by its name: the metric of its losses, and what is limited of them."""

    metric: Metric
    statistic: Statistic
    better_when_larger: bool


NAMED: dict[str, Named] = {
    **{m.name: Named(m, Mean(), m.better_when_larger) for m in (*_ALL, _SELECTED)},
    "demographic_parity_gap": Named(_SELECTED, GroupGap(), False),
    "demographic_parity_ratio": Named(_SELECTED, Ratio(), True),
    "equal_opportunity_gap": Named(METRICS["recall"], GroupGap(), False),
    "false_positive_rate_gap": Named(METRICS["false_positive_rate"], GroupGap(), False),
    "equalized_odds_gap": Named(_SELECTED, GroupGap(within="label"), False),
    "accuracy_drop": Named(METRICS["error"], Difference(), False),
    "error_gap": Named(METRICS["error"], GroupGap(), False),
    "worst_group_error": Named(METRICS["error"], WorstGroup(), False),
    "worst_group_accuracy": Named(METRICS["accuracy"], WorstGroup(), True),
    "worst_group_recall": Named(METRICS["recall"], WorstGroup(), True),
}


def named(name: str) -> Named | None:
    """What a name says about losses and statistic; None where it is the user's own."""
    return NAMED.get(name)


def check_direction(name: str, at_least: bool, ratio: bool = False) -> None:
    """Refuse a lower limit on what is better when smaller, and the other way round."""
    known = named(name)
    if known is None:
        if at_least and not ratio:
            near = difflib.get_close_matches(name, NAMED, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ProblemError(
                f"at_least goes with metrics that are known to be better when larger, but "
                f"{name!r} is no metric that riskpilot knows.{hint} Record the loss instead, one "
                f"minus the quantity, and give it limit=."
            )
        return
    if at_least != (known.better_when_larger or ratio):
        right = "at_least" if known.better_when_larger else "at_most"
        raise ProblemError(
            f"{name!r} is better when {'larger' if known.better_when_larger else 'smaller'}, but "
            f"it was given {'at_least' if at_least else 'at_most'}. Write {right}=."
        )


@dataclass(frozen=True)
class Requirement:
    """A metric and the limit on its loss; ``limit`` of "precision >= 0.9" is 0.1."""

    metric: Metric
    limit: float


def metric_named(name: object) -> Metric:
    """The metric of that name, or an error that knows what was meant."""
    if isinstance(name, str) and name in METRICS:
        return METRICS[name]
    near = difflib.get_close_matches(str(name), METRICS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ProblemError(
        f"A metric is one of {', '.join(METRICS)}, but it is {name!r}.{hint} "
        f"Give losses of your own as functions."
    )


def to_minimize(name: str) -> Metric:
    """The metric of that name, which must be better when smaller."""
    metric = metric_named(name)
    if metric.opposite is not None:
        raise ProblemError(
            f"minimize names what to make small, but {name!r} is better when larger. "
            f"Write minimize={metric.opposite!r}."
        )
    return metric


def requirement(name: str, bound: float) -> Requirement:
    """At most ``bound``, or at least for metrics that are better when larger.

    >>> requirement("precision", 0.9).limit
    0.1
    """
    metric = metric_named(name)
    if isinstance(bound, bool) or not isinstance(bound, int | float | np.number):
        raise ProblemError(
            f"The limit of {name!r} must be a number, but it is {bound!r}. "
            f'Write risks={{"{name}": 0.1}}.'
        )
    if not 0 < bound < 1:
        raise ProblemError(
            f"The limit of {name!r} must lie strictly between 0 and 1, but it is {bound!r}: a rate "
            f"can be promised to stay near an end, not at it."
        )
    # 1 - 0.9 is 0.09999999999999998; the promise should read as it was asked for.
    limit = round(1 - bound, 12) if metric.better_when_larger else float(bound)
    return Requirement(metric, limit)


_SIGNS = ("<=", ">=")


def parse_requirement(text: str) -> Requirement:
    """A requirement as one writes it.

    >>> parse_requirement("false_positive_rate <= 0.05").limit
    0.05
    """
    sign = next((sign for sign in _SIGNS if sign in text), None)
    name, _, bound = (part.strip() for part in text.partition(sign or "<="))
    try:
        value = float(bound)
    except ValueError:
        value = math.nan
    if sign is None or math.isnan(value):
        raise ProblemError(
            f"A requirement reads like 'error <= 0.1' or 'precision >= 0.9', but it is {text!r}."
        )
    metric = metric_named(name)
    if (sign == ">=") != metric.better_when_larger:
        right = ">=" if metric.better_when_larger else "<="
        raise ProblemError(
            f"{name!r} is better when {'larger' if metric.better_when_larger else 'smaller'}, so "
            f"that its limit reads {name} {right} {value:g}, but it is {text!r}."
        )
    return requirement(name, value)
