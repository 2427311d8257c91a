"""Metrics of classifiers: labels and predictions become losses, NaN where none counts.

Labels and predictions are codes of classes, whole numbers. Which code hands an example over is
declared by whoever calls; without one, no prediction does. The losses of a metric that is better
when larger are those of one minus it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import BoolArray, IntArray

Losses = npt.NDArray[Any]


@dataclass(frozen=True)
class Codes:
    """What codes mean: the ``positive`` class, and the prediction that hands an example over."""

    positive: int = 1
    abstain: int | None = None

    def handed_over(self, predicted: IntArray) -> BoolArray:
        if self.abstain is None:
            return np.zeros(predicted.shape, dtype=np.bool_)
        return np.asarray(predicted == self.abstain)


Rule = Callable[[IntArray, IntArray, Codes], tuple[BoolArray, BoolArray | None]]


@dataclass(frozen=True)
class Metric:
    """A rate of 0/1 losses.

    ``rule``: from labels, predictions and what their codes mean to what is lost and what counts,
    None where every example does. ``loss_words``: the losses in words. ``better_when_larger``: the
    losses are then those of one minus the metric. ``condition``: what decides whether an example
    counts, its label or its prediction; None where all count.
    """

    name: str
    rule: Rule
    loss_words: str
    better_when_larger: bool = False
    condition: Literal["label", "prediction"] | None = None
    needs_positive: bool = False
    abstains: bool = False

    @property
    def conditional(self) -> bool:
        return self.condition is not None

    def losses(self, labels: IntArray, predicted: IntArray, codes: Codes) -> Losses:
        """``labels``: shape (n,); ``predicted`` and the result: (n,) or (configurations, n).

        Booleans where every example counts, otherwise 0, 1 and NaN.

        >>> METRICS["precision"].losses(np.array([1, 0, 1]), np.array([1, 1, 0]), Codes())
        array([ 0.,  1., nan], dtype=float16)
        """
        lost, counts = self.rule(labels, predicted, codes)
        if counts is None:
            return lost
        counts = np.broadcast_to(counts, lost.shape)
        return np.where(counts, lost, np.float16(np.nan)).astype(np.float16)  # 0 and 1 are exact

    def mean(self, labels: IntArray, predicted: IntArray, codes: Codes) -> float:
        """The mean loss of one configuration; 1, the worst, where no example counts."""
        lost, counts = self.rule(labels, predicted, codes)
        kept = lost if counts is None else lost[counts]
        return float(kept.mean()) if kept.size else 1.0


def _wrong_answers(labels: IntArray, predicted: IntArray, codes: Codes) -> Any:
    return (predicted != labels) & ~codes.handed_over(predicted), None


def _not_right(labels: IntArray, predicted: IntArray, codes: Codes) -> Any:
    return predicted != labels, None


def _wrong_if_answered(labels: IntArray, predicted: IntArray, codes: Codes) -> Any:
    return predicted != labels, ~codes.handed_over(predicted)


def _handed_over(labels: IntArray, predicted: IntArray, codes: Codes) -> Any:
    return codes.handed_over(predicted), None


def _false_alarm(labels: IntArray, predicted: IntArray, codes: Codes) -> Any:
    return predicted == codes.positive, labels != codes.positive


def _negative_not_found(labels: IntArray, predicted: IntArray, codes: Codes) -> Any:
    lost = (predicted == codes.positive) | codes.handed_over(predicted)
    return lost, labels != codes.positive


def _miss(labels: IntArray, predicted: IntArray, codes: Codes) -> Any:
    lost = (predicted != codes.positive) & ~codes.handed_over(predicted)
    return lost, labels == codes.positive


def _positive_not_found(labels: IntArray, predicted: IntArray, codes: Codes) -> Any:
    return predicted != codes.positive, labels == codes.positive


def _false_discovery(labels: IntArray, predicted: IntArray, codes: Codes) -> Any:
    alarms = predicted == codes.positive
    return np.broadcast_to(labels != codes.positive, alarms.shape), alarms


def _selected(labels: IntArray, predicted: IntArray, codes: Codes) -> Any:
    return predicted == codes.positive, None


def _of_answers(name: str, larger: bool) -> Metric:
    """A rate among the examples that were answered."""
    loss_words = (
        "1 where the answer is wrong, 0 where it is right, NaN where the example is handed over"
    )
    return Metric(name, _wrong_if_answered, loss_words, larger, "prediction", abstains=True)


def _of_handing_over(name: str, larger: bool) -> Metric:
    loss_words = "1 where the example is handed over, 0 where it is answered"
    return Metric(name, _handed_over, loss_words, larger, abstains=True)


def _given_label(name: str, rule: Rule, loss_words: str, larger: bool) -> Metric:
    """A rate among the examples of one class, or of all others."""
    return Metric(name, rule, loss_words, larger, "label", needs_positive=True)


def _of_positive_predictions(name: str, larger: bool) -> Metric:
    loss_words = (
        "1 where a positive prediction is wrong, 0 where it is right, NaN for all other predictions"
    )
    return Metric(name, _false_discovery, loss_words, larger, "prediction", needs_positive=True)


_ALL = (
    Metric(
        "error",
        _wrong_answers,
        "1 where the answer is wrong, 0 where it is right or the example is handed over",
    ),
    Metric(
        "accuracy",
        _not_right,
        "1 where the answer is wrong or the example is handed over, 0 where the answer is right",
        better_when_larger=True,
    ),
    _of_answers("selective_error", larger=False),
    _of_answers("selective_accuracy", larger=True),
    _of_handing_over("abstention", larger=False),
    _of_handing_over("coverage", larger=True),
    _given_label(
        "false_positive_rate",
        _false_alarm,
        "1 where a negative is taken for a positive, 0 where it is not, NaN for positives",
        larger=False,
    ),
    _given_label(
        "specificity",
        _negative_not_found,
        "1 where a negative is taken for a positive or handed over, 0 where it is found, "
        "NaN for positives",
        larger=True,
    ),
    _given_label(
        "false_negative_rate",
        _miss,
        "1 where a positive is taken for a negative, 0 where it is found or handed over, "
        "NaN for negatives",
        larger=False,
    ),
    _given_label(
        "recall",
        _positive_not_found,
        "1 where a positive is missed or handed over, 0 where it is found, NaN for negatives",
        larger=True,
    ),
    _of_positive_predictions("false_discovery_rate", larger=False),
    _of_positive_predictions("precision", larger=True),
    Metric(
        "selection_rate",
        _selected,
        "1 where the prediction is positive, 0 where it is not",
        needs_positive=True,
    ),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
