"""Public methods that save labels, written here from their descriptions, to be compared with.

* Adaptive learn-then-test (Zecchin and Simeone): an e-process for each candidate, with bets that
  know no horizon. Its public code bets after it has seen the loss; here every bet is made before.
* R-AutoEval+ (Park, Zecchin and Simeone, arXiv 2505.18659): an e-value from labels, a judge's
  scores of the same examples and an equal share of unlabelled scores for each, averaged over ten
  weights of the judge from 0 to 1, with the bets of Waudby-Smith and Ramdas for a known number.
* Prediction-powered inference with its tuned weight (PPI++): an asymptotic normal interval.

Losses and scores have the shape (n, m), one row for each simulated stream, on the unit scale.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_LARGEST = 0.75  # bets stay below this share of the ruinous one, as in the papers


def adaptive_crossings(losses: FloatArray, limit: float, delta: float, bets: str) -> IntArray:
    """The label at which the e-process reaches 1 / delta, shape (n,); m + 1 where it never does.

    ``bets``: "plug-in", the predictable ones of Waudby-Smith and Ramdas for an open horizon, or
    "newton", online Newton steps.
    """
    n, m = losses.shape
    level = math.log(1 / delta)
    capital, bet = np.zeros(n), np.zeros(n)
    total, squares = np.full(n, 0.5), np.full(n, 0.25)
    curvature = np.ones(n)
    first = np.full(n, m + 1)
    for t in range(1, m + 1):
        if bets == "plug-in":
            bet = np.sqrt(2 * level / (squares * math.log(t + 1)))  # variance: squares / t
        bet = np.clip(bet, 0.0, _LARGEST / (1 - limit))
        loss = losses[:, t - 1]
        gain = limit - loss
        capital += np.log1p(bet * gain)
        first = np.where((capital >= level) & (first > m), t, first)
        total += loss
        squares += (loss - total / (t + 1)) ** 2
        gradient = gain / (1 + bet * gain)
        curvature += gradient**2
        if bets == "newton":
            bet = bet + 2 / (2 - math.log(3)) * gradient / curvature
    return first


def r_autoeval_plus(
    losses: FloatArray,
    labelled: FloatArray,
    unlabelled: FloatArray,
    limit: float,
    delta: float,
    *,
    weights: int = 10,
) -> FloatArray:
    """log p-values, shape (n,): one over the largest e-value on the way, which is kind to it.

    With one weight alone, ``weights=1``, it is the same test without a judge.
    """
    n, m = losses.shape
    per_label = unlabelled.shape[1] // m
    rho = np.linspace(0, 1, weights)[:, None] if weights > 1 else np.zeros((1, 1))
    level = math.log(1 / delta)
    capital = np.zeros((weights, n))
    best = np.zeros(n)
    total, squares = np.full((weights, n), 0.5), np.full((weights, n), 0.25)
    for t in range(1, m + 1):
        bet = np.minimum(np.sqrt(2 * level / (m * squares / t)), _LARGEST / (1 - limit + rho))
        fresh = unlabelled[:, (t - 1) * per_label : t * per_label].mean(axis=1)
        value = losses[:, t - 1] - rho * (labelled[:, t - 1] - fresh)
        capital += np.log1p(bet * (limit - value))
        best = np.maximum(best, np.logaddexp.reduce(capital, axis=0) - math.log(weights))
        total += value
        squares += (value - total / (t + 1)) ** 2
    return -best


def prediction_powered(
    losses: FloatArray, labelled: FloatArray, unlabelled: FloatArray, limit: float
) -> FloatArray:
    """One-sided p-values of the normal approximation, shape (n,), with the tuned weight."""
    m, pool = losses.shape[1], unlabelled.shape[1]
    centred = labelled - labelled.mean(axis=1, keepdims=True)
    covariance = (centred * losses).mean(axis=1)
    spread = np.maximum(np.c_[labelled, unlabelled].var(axis=1), 1e-12)
    rho = np.clip(covariance / (spread * (1 + m / pool)), 0.0, 1.0)
    rest = losses - rho[:, None] * labelled
    estimate = rest.mean(axis=1) + rho * unlabelled.mean(axis=1)
    variance = rest.var(axis=1) / m + rho**2 * unlabelled.var(axis=1) / pool
    return np.asarray(ndtr((estimate - limit) / np.sqrt(np.maximum(variance, 1e-18))))
