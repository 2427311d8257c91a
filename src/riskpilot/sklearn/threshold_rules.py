"""The rules that turn scores into decisions: one threshold, two thresholds, or a confidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from riskpilot.common.arrays import Array, IntArray
from riskpilot.errors import ProblemError, shown
from riskpilot.sklearn.named_losses import ABSTAIN

Config = Mapping[str, float]

_MOST_LEVELS = 100_000
_PAIR_LEVELS = 30  # of low and high each: 465 pairs


class Rule(Protocol):
    """How scores become predictions; one row of codes for each configuration."""

    @property
    def positive(self) -> int:
        """The code of the positive class."""

    @property
    def safe_ends(self) -> Mapping[str, str]:
        """The metrics that can only grow along the threshold, and at which end they are small."""

    def configs(self, scores: Array, n: int) -> list[dict[str, float]]:
        """Make about ``n`` configurations that suit the scores."""

    def codes(self, scores: Array, configs: Sequence[Config]) -> IntArray:
        """Predict the codes of classes, shape (number of configurations, n)."""


@dataclass(frozen=True)
class _OneThreshold:
    """Predicts the positive class from ``threshold`` on; scores are its own, shape (n,)."""

    positive: int
    safe_ends: ClassVar[Mapping[str, str]] = {
        "false_positive_rate": "high",
        "specificity": "high",
        "selection_rate": "high",
        "false_negative_rate": "low",
        "recall": "low",
    }

    def configs(self, scores: Array, n: int) -> list[dict[str, float]]:
        return [{"threshold": level} for level in _levels(scores, n)]

    def codes(self, scores: Array, configs: Sequence[Config]) -> IntArray:
        levels = np.array([config["threshold"] for config in configs])[:, None]
        return np.where(scores >= levels, self.positive, 1 - self.positive)


@dataclass(frozen=True)
class _TwoThresholds:
    """Predicts positive from ``high`` on and negative below ``low``, and abstains between them."""

    positive: int
    safe_ends: ClassVar[Mapping[str, str]] = {}

    def configs(self, scores: Array, n: int) -> list[dict[str, float]]:
        levels = _levels(scores, min(n, _PAIR_LEVELS))
        return [{"low": a, "high": b} for i, a in enumerate(levels) for b in levels[i:]]

    def codes(self, scores: Array, configs: Sequence[Config]) -> IntArray:
        low = np.array([config["low"] for config in configs])[:, None]
        high = np.array([config["high"] for config in configs])[:, None]
        answers = np.where(scores >= high, self.positive, 1 - self.positive)
        return np.where((scores >= low) & (scores < high), ABSTAIN, answers)


@dataclass(frozen=True)
class _Confidence:
    """Predicts the most likely class from ``confidence`` on; scores are probabilities, (n, K)."""

    positive: int
    safe_ends: ClassVar[Mapping[str, str]] = {
        "error": "high",
        "abstention": "low",
        "coverage": "low",
    }

    def configs(self, scores: Array, n: int) -> list[dict[str, float]]:
        return [{"confidence": level} for level in _levels(scores.max(axis=1), n)]

    def codes(self, scores: Array, configs: Sequence[Config]) -> IntArray:
        levels = np.array([config["confidence"] for config in configs])[:, None]
        return np.where(scores.max(axis=1) >= levels, scores.argmax(axis=1), ABSTAIN)


def rule_for(n_classes: int, positive: int, abstain: bool) -> Rule:
    """Choose the rule that suits the number of classes."""
    if n_classes == 2:
        return _TwoThresholds(positive) if abstain else _OneThreshold(positive)
    if n_classes > 2 and abstain:
        return _Confidence(positive)
    raise ProblemError(
        f"A threshold parts two classes, but the classifier has {n_classes}. "
        f"With more than two it can abstain: RiskControlledThreshold(..., abstain=True)."
    )


def _levels(scores: Array, n: int) -> list[float]:
    """Make thresholds that part the scores into about equal shares, and one above them all."""
    whole = isinstance(n, int | np.integer) and not isinstance(n, np.timedelta64)
    if not whole or not 2 <= n <= _MOST_LEVELS:
        raise ProblemError(
            f"n_thresholds must be a whole number of at least 2 and at most {_MOST_LEVELS:,}, but "
            f"it is {shown(n)}. Use n_thresholds=100."
        )
    quantiles = np.quantile(scores, np.linspace(0, 1, n - 1))
    top = np.nextafter(float(np.max(scores)), np.inf)
    return [float(level) for level in np.unique(np.append(quantiles, top))]
