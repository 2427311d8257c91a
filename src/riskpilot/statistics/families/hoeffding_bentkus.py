"""The better of Hoeffding's and Bentkus' inequalities, for any losses."""

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtri, rel_entr

from riskpilot.common import FloatArray
from riskpilot.statistics.families.base import Family, Sums, or_one, with_means
from riskpilot.statistics.families.binomial import as_share, largest_count, log_binomial, rate


def log_hoeffding_bentkus(total: npt.ArrayLike, n: npt.ArrayLike, limit: float) -> FloatArray:
    """Compute log p-values by the smaller of two bounds, one of Hoeffding and one of Bentkus.

    ``total``: sums of losses, shape (n,); ``n``: how many were summed.
    """
    total, n, mean = with_means(total, n)
    clipped = np.minimum(mean, limit)
    h1 = rel_entr(clipped, limit) + rel_entr(1 - clipped, 1 - limit)  # 0 log 0 = 0
    bentkus = 1 + log_binomial(_ceil(total), n, limit)
    return or_one(np.minimum(-n * h1, bentkus), n)


def _ceil(total: FloatArray) -> FloatArray:
    """Round sums up, except for the rounding error of the summation itself."""
    nearest = np.rint(total)
    noise = 1e-9 * np.maximum(1.0, total)
    result: FloatArray = np.where(np.abs(total - nearest) <= noise, nearest, np.ceil(total))
    return result


def _from_sums(sums: Sums, limit: float) -> FloatArray:
    return log_hoeffding_bentkus(sums.total, sums.n, limit)


def _largest_mean(limit: float, n: int, delta: float, std: float | None) -> float | None:
    log_delta = math.log(delta)
    bentkus = as_share(largest_count(limit, n, log_delta - 1), n)
    hoeffding = _largest_hoeffding_mean(limit, n, log_delta)
    passing = [mean for mean in (bentkus, hoeffding) if mean is not None]
    return max(passing, default=None)


def _largest_hoeffding_mean(limit: float, n: int, log_delta: float) -> float | None:
    def excess(mean: float) -> float:
        h1 = float(rel_entr(mean, limit) + rel_entr(1 - mean, 1 - limit))
        return -n * h1 - log_delta

    return None if excess(0.0) >= 0 else float(brentq(excess, 0.0, limit, xtol=1e-12))


def _errors_at_large_n(delta: float) -> float:
    """Take the better of Bentkus, e times the binomial p-value, and Hoeffding."""
    return min(float(-ndtri(delta / math.e)), math.sqrt(-2 * math.log(delta)))


HOEFFDING_BENTKUS = Family(
    "hoeffding_bentkus",
    offered=True,
    log_p_from_sums=_from_sums,
    largest_mean=_largest_mean,
    rate=rate,
    log_p_of_zeros=lambda n, limit, delta: float(log_hoeffding_bentkus(0, n, limit)),
    errors_at_large_n=_errors_at_large_n,
)
