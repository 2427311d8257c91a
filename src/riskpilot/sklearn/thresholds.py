"""Thresholds and abstention for a fitted classifier."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state, indexable
from sklearn.utils.validation import check_is_fitted

from riskpilot.common.arrays import Array, IntArray
from riskpilot.errors import LossError, ProblemError, shown
from riskpilot.guarantee import samples_to_pass
from riskpilot.problem import Problem, meaning
from riskpilot.selection import Selection, select_from_losses
from riskpilot.sklearn.named_losses import Losses
from riskpilot.sklearn.shared import (
    WithPromise,
    deal,
    delegated,
    read_labels,
    require_estimator,
    require_y,
)
from riskpilot.sklearn.threshold_rules import Rule, rule_for
from riskpilot.statistics import Mean

_LEVELS, _LEVELS_IN_ORDER = 100, 1_000  # by default; a known order costs nothing for more of them


class RiskControlledThreshold(ClassifierMixin, WithPromise):  # type: ignore[misc]
    """Thresholds for a fitted classifier, and when it should abstain, with a guarantee.

    In the manner of ``TunedThresholdClassifierCV``, but with a promise. `fit` takes data that the
    classifier has not seen, and splits it into a part on which thresholds are compared and one on
    which they are tested. The classifier itself stays as it is.

    Two classes: the positive one from ``threshold`` on; with abstention, below ``low`` negative,
    from ``high`` on positive. More classes: the most likely one from ``confidence`` on.

    Parameters
    ----------
    estimator : classifier
        Fitted, with ``predict_proba`` or, for two classes, ``decision_function``.
    risks : mapping, str, Risk, or list of str and Risk
        Metrics and their limits, as for `RiskControlledSearch`; none that needs groups.
    minimize : str
        A metric.
    delta : float, default 0.1
        The probability with which the promise may fail.
    abstain : bool, optional
        Whether the classifier may hand examples over; by default where a metric speaks of it.
    n_thresholds : int, optional
        How many thresholds are compared: by default 100, and 1,000 in a known order.
    pos_label : label, optional
        The positive class; by default the larger of two.
    abstain_label : label, optional
        What `predict` gives to examples handed over: -1 by default, "abstain" where classes are
        text. It must not be a class.
    validation_size : float, default 1 / 3
        The share of the data that compares thresholds, as `split_labelled` recommends; the rest
        calibrates. None is needed with ``order="monotone"``.
    order : str, default "searched"
        "searched" or "monotone": how the testing order is found. "monotone" is for one threshold
        and metrics that can only grow along it, such as false_positive_rate as the threshold falls:
        the order from safe to risky is then known, and all of the data tests.
    random_state : int, RandomState instance or None, default None
        The seed of the split.

    Attributes
    ----------
    selection_ : Selection
        The verdict, with certificate and report.
    cv_results_ : dict
        Every configuration in columns.
    classes_ : array
        The classes.
    abstain_label_ : label, or None
        What `predict` gives to examples handed over; None where that cannot happen.
    best_params_ : dict
        The certified thresholds; not there where nothing was certified.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(4000, random_state=0)
    >>> model = LogisticRegression().fit(X[:1000], y[:1000])
    >>> tuned = RiskControlledThreshold(
    ...     model,
    ...     risks={"selective_error": 0.1},
    ...     minimize="abstention",
    ...     random_state=0,
    ... ).fit(X[1000:], y[1000:])
    >>> sorted(tuned.best_params_)
    ['high', 'low']
    """

    def __init__(
        self,
        estimator: Any,
        *,
        risks: Any,
        minimize: str,
        delta: float = 0.1,
        abstain: bool | None = None,
        n_thresholds: int | None = None,
        pos_label: Any = None,
        abstain_label: Any = None,
        validation_size: float = 1 / 3,
        order: str = "searched",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.risks = risks
        self.minimize = minimize
        self.delta = delta
        self.abstain = abstain
        self.n_thresholds = n_thresholds
        self.pos_label = pos_label
        self.abstain_label = abstain_label
        self.validation_size = validation_size
        self.order = order
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Choose thresholds on data that the classifier has not seen.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The examples. A part of them compares thresholds, the others test them.
        y : array-like of shape (n_samples,)
            Their labels.
        X_val : array-like of shape (n_validation, n_features), optional
            Examples that compare thresholds; all of ``X`` then tests them.
        y_val : array-like of shape (n_validation,), optional
            Their labels.

        Returns
        -------
        RiskControlledThreshold
            The estimator itself, fitted.

        Raises
        ------
        ProblemError
            If the risks, the number of classes or the sizes of the parts cannot be used.
        LossError
            If the classifier has no scores from which thresholds could be made, or a label is
            missing or none of its classes.
        """
        require_estimator(self, self.estimator)
        require_y(self, y)
        check_is_fitted(self.estimator)
        rng = check_random_state(self.random_state)
        X, y = indexable(X, read_labels(y, "y"))
        known_order = self._knows_order(X_val)
        if known_order:
            calibration, validation = (X, y), (X, y)
        elif X_val is None:
            calibration, validation = deal(X, y, {"validation_size": self.validation_size}, rng)
        else:
            calibration, validation = (X, y), (X_val, read_labels(y_val, "y_val"))
        self.classes_ = np.asarray(self.estimator.classes_)
        losses = self._losses_for(self.classes_)
        if not (self.abstain is None or isinstance(self.abstain, bool | np.bool_)):
            raise ProblemError(
                f"abstain is True or False, or None where the metrics say it, but it is "
                f"{shown(self.abstain)}. Leave it out."
            )
        abstain = losses.abstains if self.abstain is None else bool(self.abstain)
        self.rule_for = rule_for(len(self.classes_), losses.positive, abstain)
        self.abstain_label_ = _abstain_label(self.abstain_label, self.classes_, abstain)
        seen, sealed = self._scores(validation[0]), self._scores(calibration[0])
        usual = _LEVELS_IN_ORDER if known_order else _LEVELS
        configs = self.rule_for.configs(
            seen, usual if self.n_thresholds is None else self.n_thresholds
        )
        self.__dict__.pop("best_params_", None)  # of an earlier fit
        if known_order:
            return self._finish(_select_in_order(losses, self.rule_for, configs, sealed, y))
        table = losses.of_codes(validation[1], self.rule_for.codes(seen, configs), free=True)
        kept = _testable(losses.problem, table, len(sealed) / len(seen))
        configs = [configs[row] for row in kept]
        selection = select_from_losses(
            losses.problem,
            validation={name: np.asarray(values)[kept] for name, values in table.items()},
            calibration=losses.of_codes(calibration[1], self.rule_for.codes(sealed, configs)),
            configs=configs,
        )
        return self._finish(selection)

    def _knows_order(self, X_val: Any) -> bool:
        """Say whether the order is known, and refuse what does not go with that."""
        if not isinstance(self.order, str) or self.order not in ("searched", "monotone"):
            raise ProblemError(
                f'order is "searched" or "monotone", but it is {shown(self.order)}. Leave it out '
                f"where the metrics are not known to grow along the threshold."
            )
        if self.order == "monotone" and X_val is not None:
            raise ProblemError(
                'With order="monotone" all of the data tests, and none compares thresholds, but '
                "X_val is given. Add it to X, or leave order out."
            )
        return self.order == "monotone"

    def _finish(self, selection: Selection) -> Self:
        """Keep the verdict in the attributes of a fitted estimator."""
        self._keep(selection, self.estimator)
        if self.selection_.config is not None:
            self.best_params_ = self.selection_.config
        self._warn_unless_certified()
        return self

    def predict(self, X: Any) -> Any:
        """Predict classes by the certified thresholds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        array of shape (n_samples,)
            A class for each example, or ``abstain_label_``.

        Raises
        ------
        NotCertifiedError
            If nothing was certified.
        """
        self._check_certified()
        codes = self.rule_for.codes(self._scores(X), [self.best_params_])[0]
        if self.abstain_label_ is None:
            return self.classes_[codes]
        label = np.asarray([self.abstain_label_])
        # Numbers and text do not mix in one array: numpy would turn 1 into "1".
        mixed = (label.dtype.kind in "US") != (self.classes_.dtype.kind in "US")
        classes = self.classes_.astype(object) if mixed else self.classes_
        return np.concatenate([classes, label])[codes]  # ABSTAIN, -1, is the last

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the share of examples that are answered and right.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The examples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            The weight of each example.

        Returns
        -------
        float
            The share.

        Raises
        ------
        NotCertifiedError
            If nothing was certified.
        """
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    @delegated
    def predict_proba(self, X: Any) -> Any:
        """Compute the probabilities of the classifier, which thresholds do not change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        array of shape (n_samples, n_classes)
            The probability of each class.

        Raises
        ------
        NotCertifiedError
            If nothing was certified.
        """
        self._check_certified()
        return self.estimator.predict_proba(X)

    def _scores(self, X: Any) -> Array:
        """Compute scores, of shape (n,) for two classes and (n, K) for more."""
        if hasattr(self.estimator, "predict_proba"):
            proba = np.asarray(self.estimator.predict_proba(X))
            return proba[:, self.rule_for.positive] if len(self.classes_) == 2 else proba
        scores = np.asarray(self.estimator.decision_function(X))
        if scores.ndim > 1:
            raise LossError(
                "Thresholds for more than two classes need probabilities, but the classifier has "
                "only a decision_function. Calibrate it: CalibratedClassifierCV(classifier)."
            )
        return scores if self.rule_for.positive == 1 else -scores


def _select_in_order(
    losses: Losses, rule: Rule, configs: list[dict[str, float]], scores: Array, y: Any
) -> Selection:
    """Test thresholds from the safe end on, each on all of the data.

    That thresholds are made of the scores of the same data does no harm: losses grow along the
    threshold on every sample, so that to pass beyond the first threshold that breaks a limit, a
    sample would have to pass at that threshold, wherever the others lie.
    """
    from_high = _safe_end(losses.problem, rule) == "high"
    (name,) = configs[0]
    levels = np.sort([config[name] for config in configs])
    if from_high:
        # Between two scores all thresholds decide alike on this sample, and pass or fail together;
        # the lowest of them finds most among new examples.
        values = np.unique(scores if scores.ndim == 1 else scores.max(axis=1))
        below = np.searchsorted(values, levels) - 1
        levels = np.where(below < 0, levels, np.nextafter(values[below], np.inf))[::-1]
    configs = [{name: float(level)} for level in dict.fromkeys(levels.tolist())]
    table = losses.of_codes(y, rule.codes(scores, configs), free=True)
    free = {losses.problem.minimize: table.pop(losses.problem.minimize)}
    return select_from_losses(
        losses.problem,
        validation=free,
        calibration=table,
        configs=configs,
        order=range(len(configs)),
    )


def _safe_end(problem: Problem, rule: Rule) -> str:
    """Find the end of the thresholds at which every limit is kept."""
    ends = {}
    for risk in problem.risks:
        known = meaning(risk.name)
        metric = "" if known is None else known.metric.name
        end = rule.safe_ends.get(metric) if isinstance(risk.statistic, Mean) else None
        if end is None:
            listed = ", ".join(rule.safe_ends) or "none with two thresholds"
            raise ProblemError(
                f'order="monotone" needs metrics that can only grow along it ({listed}), '
                f"but a limit is on {risk.name!r}. Leave order out: the order is then searched for "
                f"on a part of the data."
            )
        ends[risk.name] = end
    if len(set(ends.values())) > 1:
        raise ProblemError(
            f'order="monotone" needs one direction from safe to risky, but the limits on '
            f"{' and '.join(ends)} are kept at different ends. Leave order out."
        )
    return next(iter(ends.values()))


def _testable(problem: Problem, table: Mapping[str, Any], ratio: float) -> IntArray:
    """Find the configurations that leave enough examples for the test, by what validation shows.

    A threshold that leaves three positives, all right by luck, looks better than any other and can
    never be certified. Kept are those whose risk at half its limit would pass; all where none are.
    ``ratio``: calibration examples for each validation example.
    """
    enough = np.ones(len(table[problem.minimize]), dtype=bool)
    for risk in problem.risks:
        if risk.conditional:
            limit = risk.unit_limit
            needed = samples_to_pass("binomial", limit, limit / 2, problem.delta)
            enough &= ratio * np.count_nonzero(~np.isnan(table[risk.name]), axis=1) >= needed
    return np.flatnonzero(enough) if enough.any() else np.arange(len(enough))


def _abstain_label(label: Any, classes: Array, abstain: bool) -> Any:
    """Choose what `predict` says of an example handed over; None where that cannot happen."""
    if not abstain:
        return None
    if label is None:
        label = "abstain" if classes.dtype.kind in "USO" else -1
    if label in classes.tolist():
        raise ProblemError(
            f"abstain_label must not be one of the classes {classes.tolist()}, but it is "
            f"{shown(label)}. Choose another: abstain_label=-99."
        )
    return label
