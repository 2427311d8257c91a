"""The normal approximation: it steers searches and orders candidates, and tests nothing."""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtri

from riskpilot.common import FloatArray
from riskpilot.statistics.families.base import Family


def log_normal(mean: npt.ArrayLike, standard_error: npt.ArrayLike, limit: float) -> FloatArray:
    """The normal approximation. Not a valid p-value: it orders candidates on validation data."""
    mean = np.asarray(mean, float)
    error = np.maximum(np.asarray(standard_error, float), 1e-12)
    result: FloatArray = log_ndtr((mean - limit) / error)
    return result


def _largest_mean(limit: float, n: int, delta: float, std: float | None) -> float | None:
    mean = limit - (0.1 - float(ndtri(delta))) * (std or 0.5) / math.sqrt(n)
    return mean if mean >= 0 else None


NORMAL = Family("normal", largest_mean=_largest_mean)
