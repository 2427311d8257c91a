"""The region of interest: validation risks at which the test on calibration data is decided."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaln, ndtri

from riskpilot.common.arrays import FloatArray
from riskpilot.guarantee.risk_tests import family, fewest_examples, steering_family
from riskpilot.losses import ValidationLosses
from riskpilot.problem import Risk
from riskpilot.statistics import largest_passing_mean

DELTA_PRIME = 0.05
# The search hedges against validation that is too optimistic: it is right with the first chance,
# and otherwise its risks are too low by up to the second share of the true ones.
TRUST = 0.7
DOUBT = 0.2


@dataclass(frozen=True)
class WithoutLoss:
    """A test that only a calibration sample without any loss passes, for 0/1 losses.

    ``width``: how far a loss lies above none, in the units of the risk.
    """

    n_validation: int
    n_calibration: int
    width: float

    def chance(self, means: FloatArray) -> FloatArray:
        """Compute the chance of such a sample at validation means above the bottom, any shape.

        It is a mean over the true risks that the losses on validation data leave likely, with
        Jeffreys' prior.

        >>> WithoutLoss(1000, 20, 1.0).chance(np.array([0.0, 0.01])).round(2)
        array([0.99, 0.81])
        """
        n, m = self.n_validation, self.n_calibration
        losses = np.clip(means / self.width, 0.0, 1.0) * n
        logs = betaln(losses + 0.5, n - losses + m + 0.5) - betaln(losses + 0.5, n - losses + 0.5)
        chances: FloatArray = np.exp(logs)
        return chances


@dataclass(frozen=True)
class Interval:
    """One risk's part of the region of interest, in the units of its losses.

    Attributes
    ----------
    alpha_max : float
        The largest calibration mean that passes.
    low, high : float
        The validation means that are likely where the true risk is ``alpha_max`` lie between them.
    needs : int
        The fewest calibration examples with which anything can pass.
    feasible : bool
        Whether the calibration sample is that large. Where no mean above the bottom of the range
        can pass, the interval collapses to it.
    noise : float, default 0.0
        The standard error with which a validation mean foretells a calibration mean, at the
        default width of the interval.
    trust : float, default 1.0
        The chance that a validation mean misses the true risk by noise alone.
    doubt : float, default 0.0
        How far it may lie below the true risk otherwise, beyond noise.
    without_loss : WithoutLoss, optional
        Where only a calibration sample without any loss passes, the chance of that: no normal
        distribution around ``alpha_max`` foretells it.
    """

    alpha_max: float
    low: float
    high: float
    needs: int
    feasible: bool
    noise: float = 0.0
    trust: float = 1.0
    doubt: float = 0.0
    without_loss: WithoutLoss | None = None


def interval(
    risk: Risk,
    family: str,
    *,
    n_validation: int,
    n_calibration: int,
    delta: float,
    delta_prime: float = DELTA_PRIME,
    std: float | None = None,
    trust: float = 1.0,
    doubt: float = 0.0,
    binary: bool = False,
) -> Interval:
    """Compute one risk's part of the region of interest: where the test will be a close call.

    Parameters
    ----------
    risk : Risk
        The risk, with its limit.
    family : str
        The p-value that will test it, such as "binomial".
    n_validation, n_calibration : int
        The numbers of examples.
    delta : float
        The probability with which the promise may fail.
    delta_prime : float, default 0.05
        How unlikely a validation mean outside the interval is; a smaller one is a wider interval.
    std : float, optional
        The standard deviation of the losses, on the unit scale, for tests that profit from a small
        one.
    trust : float, default 1.0
        The chance that validation is not too optimistic.
    doubt : float, default 0.0
        Up to what share of the true risk it is too optimistic otherwise. The share counts from
        the smallest loss that there can be, or from 0 where losses may be negative.
    binary : bool, default False
        Whether losses are 0 or 1 on the unit scale.

    Returns
    -------
    Interval
        The interval of validation means.

    Examples
    --------
    >>> part = interval(Risk("error", 0.05), "hoeffding", n_validation=5000, n_calibration=5000,
    ...                 delta=0.1, delta_prime=1e-4)
    >>> round(part.alpha_max, 4), round(part.low, 4), round(part.high, 4)
    (0.0348, 0.0045, 0.0652)
    """
    needs = fewest_examples(risk, family, delta)
    family = steering_family(risk, family)
    # eq:alpha_max
    alpha_max = largest_passing_mean(family, risk.unit_limit, n_calibration, delta, std)
    feasible = n_calibration >= needs
    without_loss = None
    if binary and feasible and (alpha_max or 0.0) * n_calibration < 1:
        without_loss = WithoutLoss(n_validation, n_calibration, risk.width)
    if alpha_max is None:
        bottom = risk.from_unit(0.0)
        return Interval(bottom, bottom, bottom, needs, feasible, without_loss=without_loss)
    # eq:region_i
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
        feasible=feasible,
        noise=risk.width * noise,
        trust=trust,
        doubt=doubt * _size(risk, risk.from_unit(alpha_max)),
        without_loss=without_loss,
    )


def _size(risk: Risk, mean: float) -> float:
    """Compute how large a mean of losses is, which a share of it is a share of.

    It counts from the smallest loss there can be; where losses may be negative, from 0.
    """
    return mean - risk.low if risk.low >= 0 else abs(mean)


def _edge(family: str, limit: float, n: int, delta_prime: float, std: float | None) -> float:
    """Find the smallest mean of n losses that a risk of ``limit`` makes likely, or else 0."""
    if not 0 < limit < 1:
        return limit
    return largest_passing_mean(family, limit, n, delta_prime, std) or 0.0


def region_of(
    validation: ValidationLosses,
    n_calibration: int | None,
    *,
    region_family: str | None = None,
    delta_prime: float = DELTA_PRIME,
    trust: float = 1.0,
    doubt: float = 0.0,
) -> list[Interval]:
    """Compute the region of interest that sample sizes and the spread of validation losses imply.

    ``n_calibration``: as many as validation examples where None. ``region_family``: the p-value
    behind the bounds; that of each risk's own test where None. ``trust``: the chance that
    validation is not too optimistic; ``doubt``: up to what share of a risk it is otherwise. A risk
    with an open limit has an interval without edges.
    """
    m = n_calibration or validation.n_examples
    region = []
    for risk in validation.problem.risks:
        if risk.limit is None:
            region.append(_NO_LIMIT)
            continue
        summary = validation.risks[risk.name].summary
        n_validation = max(round(float(np.median(summary.n))), 1)
        nearest = int(np.argmin(np.abs(summary.mean - risk.unit_limit)))
        part = interval(
            risk,
            region_family or family(risk, summary.binary),
            n_validation=n_validation,
            # A conditional risk counts only a share of the examples: the same share on both.
            n_calibration=max(round(m * n_validation / validation.n_examples), 1),
            delta=validation.problem.delta,
            delta_prime=delta_prime,
            std=float(summary.standard_deviation[nearest]),
            trust=trust,
            doubt=doubt,
            binary=summary.binary,
        )
        needs = math.ceil(part.needs * validation.n_examples / n_validation)
        region.append(replace(part, needs=needs))
    return region


_NO_LIMIT = Interval(math.inf, math.inf, math.inf, 0, feasible=True)
