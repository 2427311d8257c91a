"""Hoeffding's inequality (Angelopoulos and others, "Learn then test")."""

import math

import numpy as np
import numpy.typing as npt

from riskpilot.common import FloatArray
from riskpilot.statistics.families.base import Family, Sums, or_one, with_means


def log_hoeffding(total: npt.ArrayLike, n: npt.ArrayLike, limit: float) -> FloatArray:
    """Compute log p-values by Hoeffding's inequality, as in the body of the paper.

    ``total``: sums of losses, shape (n,); ``n``: how many were summed.

    >>> round(float(np.exp(log_hoeffding(35, 1000, 0.05))), 4)
    0.6376
    """
    total, n, mean = with_means(total, n)
    return or_one(-2 * n * np.maximum(limit - mean, 0.0) ** 2, n)


def _from_sums(sums: Sums, limit: float) -> FloatArray:
    return log_hoeffding(sums.total, sums.n, limit)


def _largest_mean(limit: float, n: int, delta: float, std: float | None) -> float | None:
    alpha_max = limit - math.sqrt(-math.log(delta) / (2 * n))  # eq:alpha_max
    return alpha_max if alpha_max >= 0 else None


HOEFFDING = Family(
    "hoeffding",
    offered=True,
    log_p_from_sums=_from_sums,
    largest_mean=_largest_mean,
    rate=lambda limit: 2 * limit**2,
    log_p_of_zeros=lambda n, limit, delta: float(log_hoeffding(0, n, limit)),
)
