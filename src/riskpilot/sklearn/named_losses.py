"""Losses by name or by function, as the estimators take them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskpilot.common.arrays import Array, IntArray
from riskpilot.errors import LossError, ProblemError, shown
from riskpilot.losses import turned_round, value_of
from riskpilot.problem import (
    Codes,
    Meaning,
    Problem,
    Risk,
    check_minimized,
    meaning,
    near,
    parse_risk,
)
from riskpilot.statistics import Mean

ABSTAIN = -1  # the code of an example that is handed over; classes are coded from 0 on

LossFunction = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Losses:
    """Makes the losses of a problem from models or predictions.

    ``known``: what the names of risks and of the free objective mean, of those whose losses come
    from predictions; ``functions``: by name, for all others and for what stands beside losses;
    ``classes``: of the labels, shape (K,); ``positive``: the code of the positive one.
    """

    problem: Problem
    known: Mapping[str, Meaning]
    functions: Mapping[str, LossFunction]
    classes: Array
    positive: int

    @property
    def abstains(self) -> bool:
        """Whether a metric speaks of examples that are handed over."""
        return any(known.metric.abstains for known in self.known.values())

    @property
    def meaning_of_codes(self) -> Codes:
        """What the codes of classes mean to metrics."""
        return Codes(self.positive, ABSTAIN)

    def of_model(self, model: Any, X: Any, y: Any, *, free: bool = False) -> dict[str, Any]:
        """Compute the losses of a fitted model, shape (n,); the free objective may be a number."""
        labels = predicted = None
        if self.known or (len(self.classes) and any(map(meaning, self.problem.names))):
            labels, predicted = self.labels(y), self.codes(model.predict(X))
        beside = {
            name: self.functions[name](model, X, y)
            for name in self.problem.beside
            if name in self.functions
        }
        result: dict[str, Any] = {}
        for risk in self.problem.risks:
            if risk.name in self.functions:
                result[risk.name] = self.functions[risk.name](model, X, y)
                if labels is not None and predicted is not None:
                    self._check_function(risk, result[risk.name], labels, predicted)
                continue
            assert labels is not None
            assert predicted is not None
            result[risk.name] = self._losses(risk.name, labels, predicted)
            beside |= self._labels_within(risk, self.known[risk.name], labels)
        result |= beside
        if free:
            result[self.problem.minimize] = self._free(model, X, y, labels, predicted)
        return result

    def of_codes(self, y: Any, predicted: IntArray, *, free: bool = False) -> dict[str, Any]:
        """Compute the losses of many predictions, shape (configurations, n)."""
        labels = self.labels(y)
        result: dict[str, Any] = {
            name: self._losses(name, labels, predicted) for name in self.problem.names
        }
        if free:
            metric, codes = self.known[self.problem.minimize].metric, self.meaning_of_codes
            result[self.problem.minimize] = [metric.mean(labels, row, codes) for row in predicted]
        return result

    def _losses(self, name: str, labels: IntArray, predicted: IntArray) -> Array:
        """Compute the losses that a name means."""
        return self.known[name].metric.losses(labels, predicted, self.meaning_of_codes)

    def _free(
        self, model: Any, X: Any, y: Any, labels: IntArray | None, predicted: IntArray | None
    ) -> Any:
        """Compute the free objective, by its function or by what its name means."""
        name = self.problem.minimize
        if name in self.functions:
            return self.functions[name](model, X, y)
        assert labels is not None
        assert predicted is not None
        known = self.known[name]
        if known.statistic is None:
            return known.metric.mean(labels, predicted, self.meaning_of_codes)
        measured = Risk("losses", conditional=True, statistic=known.statistic)
        beside = {
            beside: self.functions[beside](model, X, y)
            for beside in (*measured.labels, *measured.numbers)
            if beside in self.functions
        }
        losses = np.asarray(self._losses(name, labels, predicted), dtype=np.float64)
        beside |= self._labels_within(measured, known, labels)
        return float(value_of(measured, {"losses": losses[None], **beside})[0])

    def _labels_within(self, risk: Risk, known: Meaning, labels: IntArray) -> dict[str, Any]:
        """Find the true labels, where groups are compared within them and no function gives any."""
        within = risk.statistic.label_name
        if within is None or within in self.functions:
            return {}
        positive = known.metric.needs_positive
        return {within: (labels == self.positive).astype(np.int8) if positive else labels}

    def _check_function(
        self, risk: Risk, given: Any, labels: IntArray, predicted: IntArray
    ) -> None:
        """Notice a function that gives hits where the name of its risk says misses."""
        known = meaning(risk.name)
        if known is None or known.metric.abstains:
            return
        losses = known.metric.losses(labels, predicted, self.meaning_of_codes)
        expected, found = np.asarray(losses, dtype=np.float64), np.asarray(given)
        if found.shape != expected.shape or found.dtype.kind not in "biuf":
            return  # whoever reads the losses says what is wrong with them
        if turned_round(found.astype(np.float64), expected):
            raise LossError(
                f"Risk {risk.name!r}: its function gives the contrary of what the predictions say "
                f"on most examples. The losses of {risk.name!r} are {risk.loss_words}. Leave the "
                f"function out, or give it another name."
            )

    def labels(self, y: Any) -> IntArray:
        """Code true labels from 0 on, and refuse one that is no class.

        Counted as anything it would be counted wrongly: as a negative, say, that was recognised.
        """
        codes = self.codes(y)
        if (codes == len(self.classes)).any():
            odd = np.asarray(y)[codes == len(self.classes)].tolist()
            raise LossError(
                f"Every label must be one of the classes that the model is fitted with, "
                f"{shown(self.classes.tolist())}, but one is {shown(odd[0])}. "
                f"Leave out the examples of other classes, or fit the model with them."
            )
        return codes

    def codes(self, values: Any) -> IntArray:
        """Code labels or predictions from 0 on; what is no class becomes K."""
        places = {label: place for place, label in enumerate(self.classes.tolist())}
        found = [places.get(value, len(places)) for value in np.asarray(values).tolist()]
        return np.array(found, dtype=np.int64)


def read_losses(
    risks: Any,
    minimize: str,
    delta: float,
    *,
    functions: Mapping[str, LossFunction],
    classes: Array | None,
    pos_label: Any,
) -> Losses:
    """Read what an estimator must keep and minimise. ``classes``: None for a regressor."""
    if not isinstance(functions, Mapping):
        raise ProblemError(
            f"losses map names to functions of (model, X, y), but they are {shown(functions)}. "
            f'Write losses={{"loss": function}}.'
        )
    limited = [_read(risk) for risk in _each(risks)]
    known = {risk.name: _known(risk.name) for risk in limited if risk.name not in functions}
    for risk in limited:
        _check_beside(risk, functions)
    if not isinstance(minimize, str) or minimize not in functions:
        known[minimize] = _known(minimize)
        check_minimized(minimize)
        statistic = known[minimize].statistic or Mean()
        _check_beside(Risk("losses", conditional=True, statistic=statistic), functions)
    if known and classes is None:
        raise ProblemError(
            f"{next(iter(known))!r} is a metric of classifiers, but the estimator "
            f"is none. Give its losses as functions: losses={{'loss': lambda model, X, y: ...}}."
        )
    labels = np.empty(0) if classes is None else classes
    positive = _positive(labels, pos_label, known)
    return Losses(Problem(limited, minimize, delta), known, functions, labels, positive)


def _known(name: object) -> Meaning:
    """Look up what a name means; the error for an unknown one suggests a similar name."""
    found = meaning(name) if isinstance(name, str) else None
    if found is None:
        raise ProblemError(
            f"{shown(name)} is no metric that riskpilot knows.{near(name)} Give its losses as a "
            f"function of (model, X, y), losses={{{shown(name)}: function}}, or name a metric, "
            f"such as 'error' or 'precision'."
        )
    return found


def _check_beside(risk: Risk, functions: Mapping[str, LossFunction]) -> None:
    """Refuse a statistic that needs groups, weights or a reference that nothing here gives."""
    given = set(functions)
    if risk.name not in functions:
        given.add("label")  # the true labels are known wherever losses come from predictions
    missing = [name for name in (*risk.labels, *risk.numbers) if name not in given]
    if missing:
        raise ProblemError(
            f"The {risk.words} needs {missing[0]!r} for every example, but nothing gives it here. "
            f"Pass a function to RiskControlledSearch, losses={{{missing[0]!r}: "
            f"lambda model, X, y: ...}}; or make the losses with riskpilot.losses_from_predictions "
            f"and select with riskpilot.select_from_losses."
        )


def _each(risks: Any) -> list[Any]:
    """List the risks, however they were written."""
    if isinstance(risks, str | Risk):
        return [risks]
    if isinstance(risks, Mapping):
        return list(risks.items())
    try:
        return list(risks)
    except TypeError as error:
        raise ProblemError(
            f"risks map metrics to limits, but they are {shown(risks)}. "
            f'Write risks={{"error": 0.1, "recall": 0.8}}.'
        ) from error


def _read(one: Any) -> Risk:
    """Read a risk from a `Risk`, a text, or a name and its limit."""
    if isinstance(one, Risk):
        return one
    if isinstance(one, str):
        return parse_risk(one)
    if isinstance(one, tuple) and len(one) == 2:
        name, bound = one
        known = meaning(name) if isinstance(name, str) else None
        larger = known is not None and known.better_when_larger
        return Risk(name, **{"at_least" if larger else "at_most": bound})
    raise ProblemError(
        f"A risk reads like 'error <= 0.1', but one is {shown(one)}. "
        f'Write risks={{"error": 0.1}}.'
    )


def _positive(classes: Array, pos_label: Any, known: Mapping[str, Meaning]) -> int:
    """Find the code of the positive class."""
    if pos_label is not None:
        where = np.flatnonzero(classes == pos_label)
        if len(where) != 1:
            raise ProblemError(
                f"pos_label must be one of the classes {classes.tolist()}, but it is "
                f"{shown(pos_label)}."
            )
        return int(where[0])
    needs = next((name for name, one in known.items() if one.metric.needs_positive), None)
    if needs is not None and len(classes) > 2:
        raise ProblemError(
            f"{needs!r} speaks of one positive class, and there are {len(classes)} classes: "
            f"{classes.tolist()}. Name it: pos_label={classes.tolist()[0]!r}."
        )
    return min(1, max(len(classes) - 1, 0))
