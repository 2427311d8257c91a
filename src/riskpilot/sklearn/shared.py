"""What the estimators share: losses by name, the split of the data, and the refusal to guess."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from riskpilot.errors import NotCertifiedError, ProblemError
from riskpilot.metrics import (
    Metric,
    Requirement,
    parse_requirement,
    requirement,
    to_minimize,
)
from riskpilot.problem import Problem, Risk
from riskpilot.selection import Selection

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]
Method = TypeVar("Method", bound=Callable[..., Any])
LossFunction = Callable[[Any, Any, Any], Any]
Data = tuple[Any, Any]


def delegated(method: Method) -> Method:
    """A method that exists only where the chosen model, or the one to be tuned, has it."""

    def check(self: Any) -> bool:
        return hasattr(getattr(self, "best_estimator_", self.estimator), method.__name__)

    decorated: Method = available_if(check)(method)
    return decorated


class WithPromise(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """What the two estimators share: a selection, and the refusal to predict without one."""

    estimator: Any
    selection_: Selection

    def _check_certified(self) -> None:
        check_is_fitted(self, "selection_")
        if self.selection_.config is None:
            raise NotCertifiedError(
                f"{type(self).__name__} does not predict: {self.selection_.message}\n"
                f"Loosen a limit, raise delta, or bring more calibration data, and fit again."
            )

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
    """From models or predictions to the losses of a problem.

    ``metrics`` and ``functions``: by name of the risk or the free objective; ``classes``: of the
    labels, shape (K,); ``positive``: the code of the positive one.
    """

    problem: Problem
    metrics: Mapping[str, Metric]
    functions: Mapping[str, LossFunction]
    classes: Array
    positive: int

    @property
    def abstains(self) -> bool:
        return any(metric.abstains for metric in self.metrics.values())

    def of_model(self, model: Any, X: Any, y: Any, *, free: bool = False) -> dict[str, Any]:
        """Losses of a fitted model: shape (n,) each, the free objective a number or shape (n,)."""
        names = [*self.problem.names, *([self.problem.minimize] if free else [])]
        predicted = self.codes(model.predict(X)) if self.metrics else None
        labels = self.codes(y) if self.metrics else None
        result: dict[str, Any] = {}
        for name in names:
            if name in self.functions:
                result[name] = self.functions[name](model, X, y)
                continue
            assert labels is not None
            assert predicted is not None
            metric = self.metrics[name]
            how = metric.mean if name == self.problem.minimize else metric.losses
            result[name] = how(labels, predicted, self.positive)
        for name in self.problem.beside:  # groups, weights, losses of a reference
            if name in self.functions:
                result[name] = self.functions[name](model, X, y)
        return result

    def of_codes(self, y: Any, predicted: IntArray, *, free: bool = False) -> dict[str, Any]:
        """Losses of many predictions, shape (configurations, n)."""
        labels = self.codes(y)
        result: dict[str, Any] = {
            name: self.metrics[name].losses(labels, predicted, self.positive)
            for name in self.problem.names
        }
        if free:
            metric = self.metrics[self.problem.minimize]
            result[metric.name] = [metric.mean(labels, row, self.positive) for row in predicted]
        return result

    def codes(self, y: Any) -> IntArray:
        """Labels as codes; one that the classes do not hold becomes K, which no prediction is."""
        labels = np.asarray(y)
        places = np.searchsorted(self.classes, labels)
        found = self.classes[np.minimum(places, len(self.classes) - 1)] == labels
        return np.where(found, places, len(self.classes)).astype(np.int64)


def read_losses(
    risks: Any,
    minimize: str,
    delta: float,
    *,
    functions: Mapping[str, LossFunction],
    classes: Array | None,
    pos_label: Any,
) -> Losses:
    """What an estimator was asked to keep and to minimise. ``classes``: None for a regressor."""
    metrics: dict[str, Metric] = {}
    limited = []
    for told in _each(risks):
        read = _read(told, functions)
        if isinstance(read, Requirement):
            metric = read.metric
            metrics[metric.loss_name] = metric
            # A condition leaves 0/1 losses for those who meet it: the exact test still applies.
            test = "binomial" if metric.conditional else "auto"
            read = Risk(metric.loss_name, read.limit, conditional=metric.conditional, p_value=test)
        limited.append(read)
    if minimize not in functions:
        metrics[minimize] = to_minimize(minimize)
    if metrics and classes is None:
        raise ProblemError(
            f"{next(iter(metrics.values())).name!r} is a metric of classifiers, but the estimator "
            f"is none. Give its losses as functions: losses={{'loss': lambda model, X, y: ...}}."
        )
    known = np.empty(0) if classes is None else classes
    positive = _positive(known, pos_label, metrics)
    return Losses(Problem(limited, minimize, delta), metrics, functions, known, positive)


def _each(risks: Any) -> list[Any]:
    if isinstance(risks, str | Risk):
        return [risks]
    if isinstance(risks, Mapping):
        return list(risks.items())
    try:
        return list(risks)
    except TypeError as error:
        raise ProblemError(
            f"risks map metrics to limits, but they are {risks!r}. "
            f'Write risks={{"error": 0.1, "recall": 0.8}}.'
        ) from error


def _read(told: Any, functions: Mapping[str, LossFunction]) -> Requirement | Risk:
    if isinstance(told, Risk):
        if told.name not in functions:
            raise ProblemError(
                f"Risk {told.name!r} needs a function that gives its losses. "
                f"Pass losses={{{told.name!r}: function of (model, X, y)}}, or name a metric."
            )
        return told
    if isinstance(told, str):
        name, sign, bound = (part.strip() for part in told.partition("<="))
        if sign and name in functions:
            return Risk(name, float(bound))
        return parse_requirement(told)
    if isinstance(told, tuple) and len(told) == 2:
        name, limit = told
        return Risk(name, limit) if name in functions else requirement(name, limit)
    raise ProblemError(
        f"A risk reads like 'error <= 0.1', but one is {told!r}. Write risks={{\"error\": 0.1}}."
    )


def _positive(classes: Array, pos_label: Any, metrics: Mapping[str, Metric]) -> int:
    if pos_label is not None:
        where = np.flatnonzero(classes == pos_label)
        if len(where) != 1:
            raise ProblemError(
                f"pos_label must be one of the classes {classes.tolist()}, but it is {pos_label!r}."
            )
        return int(where[0])
    needs = next((metric.name for metric in metrics.values() if metric.needs_positive), None)
    if needs is not None and len(classes) > 2:
        raise ProblemError(
            f"{needs!r} speaks of one positive class, and there are {len(classes)} classes: "
            f"{classes.tolist()}. Name it: pos_label={classes.tolist()[0]!r}."
        )
    return min(1, max(len(classes) - 1, 0))


def require_y(estimator: Any, y: Any) -> None:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )


def deal(X: Any, y: Any, shares: Mapping[str, float], rng: Any) -> list[Data]:
    """The data in parts, drawn at random: what is left over, then one part for each share."""
    for name, share in shares.items():
        if not isinstance(share, int | float) or not 0 <= share < 1:
            raise ProblemError(
                f"{name} is a share of the data and lies in (0, 1), but it is {share!r}. Use 0.3."
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
    """Every configuration in columns, like ``cv_results_``; a data frame takes it as it is."""
    configs = [dict(config) for config in selection.background.configs]
    n, problem = len(configs), selection.problem
    table: dict[str, Any] = {"params": configs}
    for name in dict.fromkeys(name for config in configs for name in config):
        column = np.empty(n, dtype=object)
        column[:] = [config.get(name) for config in configs]
        table[f"param_{name}"] = column
    for risk in problem.risks:
        summary = selection.validation.risks[risk.name].summary
        table[f"validation_{risk.name}"] = risk.from_unit(summary.mean)
    table[f"validation_{problem.minimize}"] = np.array(selection.validation.free)
    order = list(selection.plan.order)
    for i, risk in enumerate(problem.risks):
        table[f"calibration_{risk.name}"] = np.full(n, np.nan)
        table[f"calibration_{risk.name}"][order] = selection.result.means[:, i]
    table["p_value"] = np.full(n, np.nan)
    table["p_value"][order] = selection.p_values
    table["certified"] = np.zeros(n, dtype=bool)
    table["certified"][order] = selection.result.passed
    table["chosen"] = np.zeros(n, dtype=bool)
    if selection.certificate.chosen is not None:
        table["chosen"][order[selection.certificate.chosen]] = True
    return table
