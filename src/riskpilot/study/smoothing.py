"""Estimates of the risks that lean on neighbouring configurations, from validation alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution

from riskpilot.common import one_thread
from riskpilot.common.arrays import FloatArray
from riskpilot.losses import ValidationLosses
from riskpilot.search import (
    ENOUGH_TO_SMOOTH,
    MOST_OBSERVATIONS,
    Observations,
    cautious_values,
    values_and_variances,
)
from riskpilot.study.space import Space


def smoothed_risks(
    space: Mapping[str, BaseDistribution],
    configs: Sequence[Mapping[str, Any]],
    validation: ValidationLosses,
    most: int = MOST_OBSERVATIONS,
) -> FloatArray | None:
    """Estimate the risks of configurations with the help of their neighbours, shape (n, c).

    A configuration is safe when its own examples and its neighbours agree. None where
    configurations cannot be compared: they have parameters that the space does not have, or there
    are too few. A configuration need not have all parameters of the space.
    Of more than ``most`` configurations, each leans on a block of its neighbours.
    """
    if len(configs) < ENOUGH_TO_SMOOTH or not space:
        return None
    if any(not config.keys() <= space.keys() for config in configs):
        return None
    places = Space(space)
    x = places.encode(np.array([places.point(config) for config in configs]))
    values, variances = values_and_variances(validation)
    risks = Observations(x, values[:, :-1], variances[:, :-1], np.empty((0, x.shape[1])))
    with one_thread():
        return cautious_values(risks, most)
