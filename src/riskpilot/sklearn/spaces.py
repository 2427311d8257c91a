"""The parameters of a search as scikit-learn's users write them, in Optuna's terms."""

from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from riskpilot.errors import ProblemError, shown


def distribution_of(name: str, given: Any) -> BaseDistribution:
    """Make the distribution of a parameter from what stands in ``space``."""
    if isinstance(given, BaseDistribution):
        return given
    if isinstance(given, list | np.ndarray):
        return CategoricalDistribution(list(given))
    if isinstance(given, tuple) and len(given) in (2, 3):
        low, high, *log = given
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (low, high))
        if numbers and log in ([], ["log"]):
            whole = isinstance(low, int) and isinstance(high, int)
            kind = IntDistribution if whole else FloatDistribution
            return kind(low, high, log=bool(log))
    raise ProblemError(
        f"The space of {name!r} must be an Optuna distribution, a list of choices, a pair "
        f'(low, high) or a triple (low, high, "log"), but it is {shown(given)}.'
    )


def suggest(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    """Ask a trial for the value of one parameter."""
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high, step, log = (getattr(distribution, key) for key in ("low", "high", "step", "log"))
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(name, low, high, step=step, log=log)
    return trial.suggest_float(name, low, high, step=step, log=log)
