"""Variants of the betting test that were tried: other starts of the bets, averages over orders."""

import math

import numpy as np
import numpy.typing as npt

from riskpilot.statistics.p_values import LARGEST_BET, log_betting

FloatArray = npt.NDArray[np.float64]

DELTA, LIMIT, ORDERS = 0.1, 0.2, 8
# Standard deviation of the losses, how many, how many standard errors their mean is below LIMIT.
SETTINGS = ((0.1, 200, 2.0), (0.1, 1_000, 2.0), (0.2, 500, 2.0), (0.05, 300, 2.5))


def power_of_bets(replications: int = 1_000) -> list[dict[str, float]]:
    """How often each variant passes at DELTA, by setting."""
    rng, rows = np.random.default_rng(0), []
    for std, n, gap in SETTINGS:
        mean = LIMIT - gap * std / math.sqrt(n)
        k = mean * (1 - mean) / std**2 - 1
        x = rng.beta(mean * k, (1 - mean) * k, (replications, n))
        shuffled = [x[:, rng.permutation(n)] for _ in range(ORDERS)]
        p = np.exp([log_betting(each, LIMIT, DELTA) for each in shuffled])
        found = {
            "one_order": p[0],
            "deviation_known": np.exp(_log_betting_from(x, std)),
            "twice_the_mean": 2 * p.mean(axis=0),
            "twice_the_median": 2 * np.median(p, axis=0),
        }
        power = {name: round(float((each < DELTA).mean()), 3) for name, each in found.items()}
        rows.append({"std": std, "n": n, **power})
    return rows


def _log_betting_from(losses: FloatArray, std: float, weight: int = 300) -> FloatArray:
    """`log_betting` that begins with ``weight`` examples' worth of knowledge of the deviation, as
    validation data could give it; ``losses``: shape (r, m)."""
    m, level = losses.shape[1], math.log(1 / DELTA)
    capital, best, total, squares = np.zeros((4, len(losses)))
    squares += weight * std**2
    for t in range(m):
        gain = LIMIT - losses[:, t]
        missing = np.maximum(level - capital, 1e-9)
        variance = squares / (t + weight)
        bet = np.minimum(np.sqrt(2 * missing / ((m - t) * variance)), LARGEST_BET / (1 - LIMIT))
        capital = capital + np.log1p(bet * gain)
        best = np.maximum(best, capital)
        squares = squares + (gain - total / (t + 1)) ** 2
        total = total + gain
    return -best
