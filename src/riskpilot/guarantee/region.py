"""The region of interest: validation risks at which the test on calibration data is decided."""

import math
from dataclasses import dataclass

from scipy.special import ndtri

from riskpilot.losses import fewest_examples, steering_family
from riskpilot.problem import Risk
from riskpilot.statistics import largest_passing_mean

DELTA_PRIME = 0.05


@dataclass(frozen=True)
class Interval:
    """One risk's part of the region, in the units of its losses.

    ``alpha_max``: the largest calibration mean that passes (eq:alpha_max); ``low`` and ``high``:
    the validation means that are likely where the true risk is ``alpha_max`` (eq:region_i).
    ``needs``: the fewest calibration examples with which anything can pass. Where the calibration
    sample is smaller, ``feasible`` is False and the interval collapses to the bottom of the range.
    ``noise``: the standard error with which a validation mean foretells a calibration mean, at
    the default width of the interval.
    """

    alpha_max: float
    low: float
    high: float
    needs: int
    feasible: bool
    noise: float = 0.0


def interval(
    risk: Risk,
    family: str,
    *,
    n_validation: int,
    n_calibration: int,
    delta: float,
    delta_prime: float = DELTA_PRIME,
    std: float | None = None,
) -> Interval:
    """eq:alpha_max and eq:region_i for one risk. ``std``: of its losses, on the unit scale.

    >>> part = interval(Risk("error", 0.05), "hoeffding", n_validation=5000, n_calibration=5000,
    ...                 delta=0.1, delta_prime=1e-4)
    >>> round(part.alpha_max, 4), round(part.low, 4), round(part.high, 4)
    (0.0348, 0.0045, 0.0652)
    """
    needs = fewest_examples(risk, family, delta)
    family = steering_family(risk, family)
    alpha_max = largest_passing_mean(family, risk.unit_limit, n_calibration, delta, std)
    if alpha_max is None:
        return Interval(risk.bottom, risk.bottom, risk.bottom, needs, feasible=False)
    low = _edge(family, alpha_max, n_validation, delta_prime, std)
    # The upper edge is the lower edge of the mirrored losses, 1 - loss.
    high = 1 - _edge(family, 1 - alpha_max, n_validation, delta_prime, std)
    spread = math.sqrt(alpha_max * (1 - alpha_max)) if std is None else std
    # Another delta' widens or narrows the soft edges in step with the interval.
    width = float(ndtri(delta_prime) / ndtri(DELTA_PRIME)) if delta_prime < 0.5 else 0.0
    noise = width * spread * math.sqrt(1 / max(n_validation, 1) + 1 / n_calibration)
    return Interval(
        alpha_max=risk.from_unit(alpha_max),
        low=risk.from_unit(low),
        high=risk.from_unit(high),
        needs=needs,
        feasible=True,
        noise=(risk.top - risk.bottom) * noise,
    )


def _edge(family: str, limit: float, n: int, delta_prime: float, std: float | None) -> float:
    """The smallest mean of n losses that is likely under a risk of ``limit``; 0 where all are."""
    if not 0 < limit < 1:
        return limit
    return largest_passing_mean(family, limit, n, delta_prime, std) or 0.0
