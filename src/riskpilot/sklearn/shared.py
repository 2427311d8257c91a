"""What the estimators share: losses by name, the split of the data, and the refusal to guess."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from riskpilot.common.arrays import Array, IntArray
from riskpilot.errors import LossError, NotCertifiedError, ProblemError, shown
from riskpilot.losses import is_missing, plain_array, turned_round, value_of
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
from riskpilot.selection import Selection
from riskpilot.statistics import Mean

ABSTAIN = -1  # the code of an example that is handed over; classes are coded from 0 on

Method = TypeVar("Method", bound=Callable[..., Any])
LossFunction = Callable[[Any, Any, Any], Any]
Data = tuple[Any, Any]


def delegated(method: Method) -> Method:
    """Let a method exist only where the chosen model, or the one to be tuned, has it."""

    def check(self: Any) -> bool:
        return hasattr(getattr(self, "best_estimator_", self.estimator), method.__name__)

    decorated: Method = available_if(check)(method)
    return decorated


class WithPromise(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The base of both estimators: it holds a selection, and refuses to predict without one."""

    estimator: Any
    risks: Any
    minimize: str
    delta: float
    pos_label: Any
    selection_: Selection
    cv_results_: dict[str, Any]

    def _losses_for(
        self, classes: Array | None, functions: Mapping[str, LossFunction] | None = None
    ) -> "Losses":
        """Read what is limited and what is minimised. ``classes``: None for a regressor."""
        return read_losses(
            self.risks,
            self.minimize,
            self.delta,
            functions={} if functions is None else functions,
            classes=classes,
            pos_label=self.pos_label,
        )

    def _keep(self, selection: Selection, fitted: Any) -> None:
        """Keep a selection in the place of an earlier one, and what a fitted model says of its
        features."""
        for name in ("best_estimator_", "best_params_", "best_index_"):
            self.__dict__.pop(name, None)
        self.selection_ = selection
        self.cv_results_ = results_table(selection)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    def _check_certified(self) -> None:
        """Refuse to go on where nothing was certified."""
        check_is_fitted(self, "selection_")
        if self.selection_.config is None:
            raise NotCertifiedError(f"{type(self).__name__} does not predict: {self._why_not()}")

    def _why_not(self) -> str:
        """Say why nothing was certified, and the way out."""
        return (
            f"{self.selection_.message}\n"
            f"Loosen a limit, raise delta, or bring more calibration data, and fit again."
        )

    def _warn_unless_certified(self) -> None:
        """Warn at the end of `fit` where nothing was certified; `predict` will refuse."""
        if self.selection_.config is None:
            warnings.warn(
                f"{type(self).__name__} will not predict: {self._why_not()}",
                UserWarning,
                stacklevel=3,
            )

    def __getattr__(self, name: str) -> Any:
        """Explain why a fitted search has no best configuration, where it has none."""
        if name.startswith("best_") and "selection_" in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has no {name}, because nothing was certified: "
                f"{self._why_not()}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "selection_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.target_tags.required = True
        return tags


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


def require_estimator(search: Any, estimator: Any) -> None:
    """Refuse what scikit-learn cannot fit."""
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise TypeError(
            f"{type(search).__name__} fits an estimator of scikit-learn, but estimator is "
            f"{shown(estimator)}. Pass an object that has fit and predict."
        )


def require_y(estimator: Any, y: Any) -> None:
    """Refuse data without labels, in the words that scikit-learn expects."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )


def read_labels(y: Any, what: str) -> Array:
    """Read the labels of a classifier, shape (n,); one that is missing is refused."""
    if y is None:
        raise LossError(f"{what} holds the labels of the examples, but it is None. Pass them.")
    labels: Array = column_or_1d(plain_array(y, what), warn=True)
    missing = [label for label in labels.tolist() if is_missing(label)]
    if missing:
        raise LossError(
            f"{what} must hold the label of every example, but {len(missing):,} are missing, such "
            f"as {shown(missing[0])}. Leave out the examples without a label."
        )
    return labels


def classes_among(labels: Array) -> Array:
    """Find the classes that labels are of, in order."""
    try:
        return np.unique(labels)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise LossError(
            f"The labels in y must be of one kind, but some are {kinds[0]} and some {kinds[-1]}. "
            f"Make all of them texts, or all of them numbers."
        ) from error


def deal(X: Any, y: Any, shares: Mapping[str, float], rng: Any) -> list[Data]:
    """Split data at random into what is left over and then one part for each share."""
    for name, share in shares.items():
        if not isinstance(share, int | float) or not 0 <= share < 1:
            raise ProblemError(
                f"{name} is a share of the data and lies in (0, 1), but it is {shown(share)}. "
                f"Use 0.3."
            )
    n = _num_samples(X)
    sizes = [max(round(share * n), 1) if share else 0 for share in shares.values()]
    if sum(sizes) >= n:
        raise ProblemError(
            f"{' and '.join(shares)} leave nothing of the n_samples={n} examples for the rest. "
            f"Make them smaller, or bring more data."
        )
    order = rng.permutation(n)
    parts = np.split(order, np.cumsum([n - sum(sizes), *sizes])[:-1])
    return [(_safe_indexing(X, part), _safe_indexing(y, part)) for part in parts]


def results_table(selection: Selection) -> dict[str, Any]:
    """Write every configuration in columns, of which pandas can make a data frame."""
    configs = [dict(config) for config in selection.background.configs]
    n, problem = len(configs), selection.problem
    table: dict[str, Any] = {"params": configs}
    for name in dict.fromkeys(name for config in configs for name in config):
        column = np.empty(n, dtype=object)
        column[:] = [config.get(name) for config in configs]
        table[f"param_{name}"] = column
    for risk, values in zip(problem.risks, selection.validation.values.T, strict=True):
        table[f"validation_{risk.label}"] = np.array(values)
    table[f"validation_{problem.minimize}"] = np.array(selection.validation.free)
    order = list(selection.plan.order)
    for i, risk in enumerate(problem.risks):
        table[f"calibration_{risk.label}"] = np.full(n, np.nan)
        table[f"calibration_{risk.label}"][order] = selection.result.means[:, i]
    table["p_value"] = np.full(n, np.nan)
    table["p_value"][order] = selection.p_values
    table["certified"] = np.zeros(n, dtype=bool)
    table["certified"][order] = selection.result.passed
    table["chosen"] = np.zeros(n, dtype=bool)
    if selection.certificate.chosen is not None:
        table["chosen"][order[selection.certificate.chosen]] = True
    return table
