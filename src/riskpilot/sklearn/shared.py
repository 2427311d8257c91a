"""What the estimators share: losses by name, the split of the data, and the refusal to guess."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from riskpilot.common.arrays import Array
from riskpilot.errors import LossError, NotCertifiedError, ProblemError, shown
from riskpilot.losses import is_missing, plain_array
from riskpilot.selection import Selection
from riskpilot.sklearn.named_losses import Losses, LossFunction, read_losses

Method = TypeVar("Method", bound=Callable[..., Any])
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
