"""A search over the parameters of an estimator, in the manner of scikit-learn's searches."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import optuna
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state, indexable

from riskpilot.common import finite_number
from riskpilot.common.arrays import Array
from riskpilot.errors import ProblemError, shown
from riskpilot.losses import Evaluation
from riskpilot.sklearn.kept_models import drop_dominated
from riskpilot.sklearn.named_losses import LossFunction
from riskpilot.sklearn.shared import (
    Data,
    WithPromise,
    classes_among,
    deal,
    delegated,
    read_labels,
    require_estimator,
    require_y,
)
from riskpilot.sklearn.spaces import distribution_of, suggest
from riskpilot.study import (
    check_choices,
    create_study,
    objective,
    select,
)


class RiskControlledSearch(WithPromise):
    """Search the parameters of an estimator for the best that keeps limits, with a guarantee.

    In the manner of ``RandomizedSearchCV``: `fit` splits the data into training, validation and
    calibration parts, searches with `GuidedSampler`, tests the survivors on the calibration part,
    and keeps the best that passed. The promise is about that very model: it is not fitted again.

    Parameters
    ----------
    estimator : estimator
        What is fitted with every proposal of parameters.
    space : mapping of str to distribution, list or tuple
        What each parameter may be: an Optuna distribution, a list of choices, a pair (low, high)
        of ints or floats, or a triple (low, high, "log").
    risks : mapping, str, Risk, or list of str and Risk
        Metrics and their limits, such as ``{"error": 0.1, "recall": 0.8}``, or as on the command
        line ``["error <= 0.1", "worst_group_error <= 0.2 by sex"]``.
    minimize : str
        A metric, or a name in ``losses``.
    delta : float, default 0.1
        The probability with which the promise may fail.
    n_trials : int or None, default 30
        How many proposals are fitted; None for as many as ``timeout`` allows.
    losses : mapping of str to callable, optional
        Functions of (fitted estimator, X, y) for risks and objectives of one's own. They return
        per-example losses in [0, 1], or one number for the free objective. Groups, weights and the
        losses of a reference come from such functions, too, by the names that their risk gives
        them.
    pos_label : label, optional
        The positive class; by default the larger of two.
    validation_size : float, default 1 / 6
        The share of the data on which configurations are compared: half of what they are tested
        on, as `split_labelled` recommends.
    calibration_size : float, default 1 / 3
        The share of the data on which they are tested.
    safe : mapping, optional
        Parameters known to keep the risks low.
    timeout : float, optional
        Seconds after which no proposal begins.
    random_state : int, RandomState instance or None, default None
        The seed of the split and of the search.

    Attributes
    ----------
    selection_ : Selection
        The verdict, with certificate and report.
    study_ : optuna.Study
        The search.
    cv_results_ : dict
        Every configuration in columns.
    best_estimator_ : estimator
        The certified model. Where nothing was certified it is not there, as the two below, and the
        error says why.
    best_params_ : dict
        Its parameters.
    best_index_ : int
        Its row in ``cv_results_``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2000, random_state=0)
    >>> search = RiskControlledSearch(
    ...     LogisticRegression(),
    ...     {"C": (0.01, 10.0, "log")},
    ...     risks={"error": 0.2},
    ...     minimize="false_negative_rate",
    ...     n_trials=5,
    ...     random_state=0,
    ... ).fit(X, y)
    >>> sorted(search.best_params_)
    ['C']
    """

    def __init__(
        self,
        estimator: Any,
        space: Mapping[str, Any],
        *,
        risks: Any,
        minimize: str,
        delta: float = 0.1,
        n_trials: int | None = 30,
        losses: Mapping[str, LossFunction] | None = None,
        pos_label: Any = None,
        validation_size: float = 1 / 6,
        calibration_size: float = 1 / 3,
        safe: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.risks = risks
        self.minimize = minimize
        self.delta = delta
        self.n_trials = n_trials
        self.losses = losses
        self.pos_label = pos_label
        self.validation_size = validation_size
        self.calibration_size = calibration_size
        self.safe = safe
        self.timeout = timeout
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        X_cal: Any = None,
        y_cal: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Search, test and select.

        Parts of the data that are given are used as they are. The others are drawn from ``X, y``
        at random; not stratified, because the test needs an independent draw.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The examples to train on, and to draw the other parts from.
        y : array-like of shape (n_samples,)
            Their labels.
        X_val : array-like of shape (n_validation, n_features), optional
            The examples on which configurations are compared.
        y_val : array-like of shape (n_validation,), optional
            Their labels.
        X_cal : array-like of shape (n_calibration, n_features), optional
            The examples on which they are tested, which nothing else may have used.
        y_cal : array-like of shape (n_calibration,), optional
            Their labels.
        **fit_params : dict
            Passed on to the ``fit`` of the estimator.

        Returns
        -------
        RiskControlledSearch
            The search itself, fitted.

        Raises
        ------
        ProblemError
            If the risks, the space or the sizes of the parts cannot be used.
        LossError
            If a label is missing or none of the classes, or a function of ``losses`` returns what
            are no losses.
        """
        require_estimator(self, self.estimator)
        self._check_settings()
        require_y(self, y)
        rng = check_random_state(self.random_state)
        classes = None
        if is_classifier(self.estimator):
            y = read_labels(y, "y")
            y_val = y_val if X_val is None else read_labels(y_val, "y_val")
            y_cal = y_cal if X_cal is None else read_labels(y_cal, "y_cal")
            classes = classes_among(y)
        train, validation, calibration = self._split(X, y, (X_val, y_val), (X_cal, y_cal), rng)
        losses = self._losses_for(classes, self.losses)
        distributions = {name: distribution_of(name, given) for name, given in self.space.items()}
        for name, distribution in distributions.items():
            check_choices(name, distribution, ProblemError)
        models: dict[int, Any] = {}

        def evaluate(trial: optuna.Trial) -> Evaluation:
            params = {name: suggest(trial, name, dist) for name, dist in distributions.items()}
            model = clone(self.estimator).set_params(**params)
            model.fit(*train, **fit_params)
            models[trial.number] = model
            return Evaluation(
                validation=losses.of_model(model, *validation, free=True),
                calibration=losses.of_model(model, *calibration),
            )

        study = create_study(losses.problem, seed=int(rng.randint(2**31 - 1)), safe=self.safe)
        study.optimize(
            objective(study, evaluate),
            n_trials=self.n_trials,
            timeout=self.timeout,
            callbacks=[lambda study, trial: drop_dominated(study, losses.problem, models)],
        )
        self.study_ = study
        # Models that others dominate by their means are gone, so that the plan must go by means.
        self._keep(select(study, smooth=False), next(iter(models.values())))
        chosen = self.selection_.certificate.chosen
        if chosen is not None:
            self.best_index_ = self.selection_.plan.order[chosen]
            self.best_params_ = dict(self.selection_.candidates[chosen])
            self.best_estimator_ = models[self.selection_.background.numbers[self.best_index_]]
        self._warn_unless_certified()
        return self

    def _check_settings(self) -> None:
        """Refuse a space that is none, and a search that would not end."""
        if not isinstance(self.space, Mapping) or not all(isinstance(n, str) for n in self.space):
            raise ProblemError(
                f"space maps names of parameters to their ranges, but it is {shown(self.space)}. "
                f'Write space={{"max_depth": (1, 6)}}.'
            )
        n = self.n_trials
        whole = isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1
        if not whole and not (n is None and self.timeout is not None):
            raise ProblemError(
                f"n_trials is a whole number of at least 1, or None where timeout ends the search, "
                f"but it is {shown(n)}. Use n_trials=30."
            )
        if self.timeout is not None and finite_number(self.timeout) is None:
            raise ProblemError(
                f"timeout is a number of seconds, but it is {shown(self.timeout)}. "
                f"Leave it out to end after n_trials."
            )

    def _split(
        self, X: Any, y: Any, validation: Data, calibration: Data, rng: Any
    ) -> tuple[Data, Data, Data]:
        """Draw the parts that were not given: training, validation, calibration."""
        X, y = indexable(X, y)
        shares = {
            "validation_size": self.validation_size if validation[0] is None else 0.0,
            "calibration_size": self.calibration_size if calibration[0] is None else 0.0,
        }
        parts = deal(X, y, shares, rng)
        return (
            parts[0],
            parts[1] if validation[0] is None else validation,
            parts[2] if calibration[0] is None else calibration,
        )

    @property
    def classes_(self) -> Array:
        """The classes of the certified model."""
        self._check_certified()
        classes: Array = self.best_estimator_.classes_
        return classes

    @delegated
    def predict(self, X: Any) -> Any:
        """Predict with the certified model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        array of shape (n_samples,)
            What the model predicts.

        Raises
        ------
        NotCertifiedError
            If nothing was certified.
        """
        self._check_certified()
        return self.best_estimator_.predict(X)

    @delegated
    def predict_proba(self, X: Any) -> Any:
        """Compute probabilities with the certified model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        array
            The probability of each class, shape (n_samples, n_classes).

        Raises
        ------
        NotCertifiedError
            If nothing was certified.
        """
        self._check_certified()
        return self.best_estimator_.predict_proba(X)

    @delegated
    def decision_function(self, X: Any) -> Any:
        """Compute decision values with the certified model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        array
            The decision values of the model.

        Raises
        ------
        NotCertifiedError
            If nothing was certified.
        """
        self._check_certified()
        return self.best_estimator_.decision_function(X)

    @delegated
    def transform(self, X: Any) -> Any:
        """Transform examples with the certified model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        array
            The transformed examples.

        Raises
        ------
        NotCertifiedError
            If nothing was certified.
        """
        self._check_certified()
        return self.best_estimator_.transform(X)

    @delegated
    def score(self, X: Any, y: Any = None) -> float:
        """Score the certified model on examples, by the measure of the model itself.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The examples.
        y : array-like of shape (n_samples,), optional
            Their labels.

        Returns
        -------
        float
            The score.

        Raises
        ------
        NotCertifiedError
            If nothing was certified.
        """
        self._check_certified()
        return float(self.best_estimator_.score(X, y))
