"""How often the betting test passes: ``python -m experiments.power_of_bets`` prints four tables.

- What bets begin with. The variance of rare losses is not seen before the first of them, and bets
  that take it for small lose all at once. ``nothing``: bets know no more than what they have seen;
  ``ceiling``: the same, with no bet above 0.75 of the largest; ``used``: they begin with what 200
  validation losses say (`p_values.Start`). The rule was made with a look at the losses
  of TUNED and never changed after a look at OTHERS.
- Losses that do not count: about 200 that do, among 1,000 to 4,000 examples.
- The first step of Holm's procedure, at delta / n: bets that aim at delta, and at delta / n.
- One shuffle, and the average of the final capitals of 16 shuffles, which is an e-value: it passes
  where it reaches 1 / delta. Capitals that aim at half of delta do best.

Every sample has a mean below its limit; numbers are shares of samples that pass at DELTA.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import numpy.typing as npt

from riskpilot.statistics import p_values
from riskpilot.statistics.p_values import Start, log_betting

FloatArray = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, float, tuple[int, int]], FloatArray]  # of a given mean

DELTA, N_VALIDATION, CEILING = 0.1, 200, 0.75
LIMITS, SIZES = (0.03, 0.05, 0.1, 0.3), (100, 200, 500, 1_000, 2_000)
SHUFFLES = 16


def sometimes(low: float, high: float) -> Draw:
    """0, or uniform between two numbers."""
    return lambda rng, mean, shape: np.where(
        rng.random(shape) < mean / ((low + high) / 2), rng.uniform(low, high, shape), 0.0
    )


def beta(a: float) -> Draw:
    return lambda rng, mean, shape: rng.beta(a, a * (1 - mean) / mean, shape)


def two_values(low: float, high: float) -> Draw:
    """Two numbers, the lower one as a share of the mean."""
    return lambda rng, mean, shape: np.where(
        rng.random(shape) < mean * (1 - low) / (high - low * mean), high, low * mean
    )


def two_humps(rng: np.random.Generator, mean: float, shape: tuple[int, int]) -> FloatArray:
    """Mostly small, sometimes about 0.8."""
    share = 0.9 * mean / 0.8
    small = 0.2 * mean / (1 - share) * rng.random(shape)
    return np.where(rng.random(shape) < share, rng.uniform(0.75, 0.85, shape), small)


def exponential(rng: np.random.Generator, mean: float, shape: tuple[int, int]) -> FloatArray:
    return np.minimum(rng.exponential(mean, shape), 1.0)


def three_values(rng: np.random.Generator, mean: float, shape: tuple[int, int]) -> FloatArray:
    """0, 0.3 or 1; each of the last two is half of the mean."""
    u = rng.random(shape)
    return np.where(u < mean / 2, 1.0, np.where(u < mean / 2 + mean / 0.6, 0.3, 0.0))


TUNED: dict[str, Draw] = {
    "0 or 1": two_values(0, 1),
    "0 or 0.5": two_values(0, 0.5),
    "0 or uniform": sometimes(0, 1),
    "skewed": beta(0.2),
    "very skewed": beta(0.05),
    "two humps": two_humps,
    "uniform": lambda rng, mean, shape: 2 * mean * rng.random(shape),
}
OTHERS: dict[str, Draw] = {
    "mostly small, rarely 1": two_values(0.5, 1),
    "0 or near 0.7": sometimes(0.6, 0.8),
    "0, 0.3 or 1": three_values,
    "exponential": exponential,
    "low variance": beta(8),
}


def power(log_p: FloatArray, level: float = DELTA) -> float:
    return round(float((log_p < math.log(level)).mean()), 3)


def known(validation: FloatArray) -> Start:
    """What a row of validation losses says; shape (r, k)."""
    n = np.full(len(validation), validation.shape[1] * 1.0)
    return Start(validation.mean(axis=1), validation.var(axis=1), n)


def beginnings(replications: int) -> Iterator[dict[str, object]]:
    """2.4 standard errors below the limit, or as far as losses of this kind can be."""
    for kinds, group in ((TUNED, "tuned on"), (OTHERS, "not tuned on")):
        for name, draw in kinds.items():
            for limit in LIMITS:
                for n in SIZES:
                    rng = np.random.default_rng([n, round(1000 * limit)])
                    std = float(draw(rng, 0.8 * limit, (1, 50_000)).std())
                    mean = max(limit - 2.4 * std / math.sqrt(n), 0.3 * limit)
                    losses = draw(rng, mean, (replications, n))
                    start = known(draw(rng, mean, (replications, N_VALIDATION)))
                    with mock.patch.object(p_values, "LARGEST_BET", CEILING):
                        capped = power(log_betting(losses, limit, DELTA))
                    yield {
                        "losses": name,
                        "rule": group,
                        "limit": limit,
                        "n": n,
                        "nothing": power(log_betting(losses, limit, DELTA)),
                        "ceiling": capped,
                        "used": power(log_betting(losses, limit, DELTA, start)),
                    }


def masks(replications: int) -> Iterator[dict[str, object]]:
    """Losses of mean 0.1 and deviation 0.12 against a limit of 0.13."""
    for share in (1.0, 0.2, 0.1, 0.05):
        rng = np.random.default_rng(0)
        losses = beta(0.5)(rng, 0.1, (replications, round(200 / share)))
        losses[rng.random(losses.shape) >= share] = np.nan
        yield {"share that counts": share, "used": power(log_betting(losses, 0.13, DELTA))}


def first_steps(replications: int) -> Iterator[dict[str, object]]:
    """1,000 losses of mean 0.17 and deviation 0.24 against a limit of 0.2."""
    losses = beta(0.25)(np.random.default_rng(0), 0.17, (replications, 1_000))
    for n in (1, 20, 100):
        level = DELTA / n
        at_delta = power(log_betting(losses, 0.2, DELTA), level)
        yield {
            "n": n,
            "aimed at delta": at_delta,
            "used": power(log_betting(losses, 0.2, level), level),
        }


def shuffles(replications: int) -> Iterator[dict[str, object]]:
    """Losses about two standard errors below their limit."""
    for name, limit, mean, n in (
        ("0 or 0.5", 0.1, 0.08, 500),
        ("skewed", 0.1, 0.075, 200),
        ("uniform", 0.3, 0.28, 300),
    ):
        rng = np.random.default_rng(0)
        losses = TUNED[name](rng, mean, (replications, n))
        orders = [rng.permutation(n) for _ in range(SHUFFLES)]
        capitals = [_final_log_capital(losses[:, order], limit, DELTA / 2) for order in orders]
        averaged = np.log(np.mean(np.exp(capitals), axis=0))
        yield {
            "losses": name,
            "one shuffle": power(log_betting(losses, limit, DELTA)),
            "average of 16": power(-averaged),
        }


def _final_log_capital(losses: FloatArray, limit: float, aim: float) -> FloatArray:
    """`log_betting` with the capital at the end instead of the largest one; no bets after the
    target, and one bet for each loss."""
    m, level = losses.shape[1], math.log(1 / aim)
    capital, total = np.zeros((2, len(losses)))
    squares = np.full(len(losses), limit * (1 - limit))
    for time in range(m):
        gain = limit - losses[:, time]
        missing = np.maximum(level - capital, 0.0)
        bet = np.sqrt(2 * missing / ((m - time) * squares / (time + 1)))
        capital = capital + np.log1p(np.minimum(bet, p_values.LARGEST_BET / (1 - limit)) * gain)
        squares = squares + (gain - total / (time + 1)) ** 2
        total = total + gain
    return np.asarray(capital)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=1_000, help="samples of each kind")
    replications = parser.parse_args().replications
    for table in (beginnings, masks, first_steps, shuffles):
        for i, row in enumerate(table(replications)):
            if i == 0:
                print("\n" + " | ".join(row))
            print(" | ".join(map(str, row.values())), flush=True)


if __name__ == "__main__":
    main()
