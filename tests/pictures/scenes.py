"""Selections to look at: a table, a table of two risks, a search, one that certifies nothing."""

import functools

import numpy as np

import riskpilot as rp


@functools.cache
def thresholds():
    """Error against hand-overs, 101 thresholds over one set of scores."""
    rng = np.random.default_rng(0)
    scores = rng.beta(2, 1.2, size=8_000)
    right = rng.random(8_000) < scores
    levels = np.linspace(0, 1, 101)[:, None]
    error, handed_over = (scores >= levels) & ~right, scores < levels
    return rp.select_from_losses(
        rp.Problem([rp.Risk("error", limit=0.10)], minimize="handed_over", delta=0.1),
        validation={"error": error[:, :4_000], "handed_over": handed_over[:, :4_000]},
        calibration={"error": error[:, 4_000:]},
        configs=[{"threshold": round(float(t), 2)} for t in levels[:, 0]],
    )


def two_risks(names=("false_alarms", "misses", "cost"), n=200, seed=0):
    """``n`` configurations with two risks of different kinds: 0/1 losses, and losses between."""
    one, other, cost = names
    rng = np.random.default_rng(seed)
    x, y = rng.random((2, n, 1))
    rate, mean = 0.02 + 0.4 * x**2, 0.05 + 0.5 * y

    def losses(m):
        return {
            one: rng.random((n, m)) < rate,
            other: np.clip(mean + 0.1 * rng.standard_normal((n, m)), 0, 1),
        }

    free = 2.0 - (x + y)[:, 0] + 0.02 * rng.standard_normal(n)
    problem = rp.Problem(
        [rp.Risk(one, limit=0.15), rp.Risk(other, limit=0.3)], minimize=cost, delta=0.1
    )
    return rp.select_from_losses(
        problem,
        validation={**losses(1_000), cost: free},
        calibration=losses(1_500),
        configs=[
            {"x": float(a), "y": float(b), "kind": "wide" if a > b else "deep"}
            for a, b in zip(x[:, 0], y[:, 0], strict=True)
        ],
    )


def nothing():
    """A limit that no configuration keeps."""
    rng = np.random.default_rng(1)
    rate = np.linspace(0.12, 0.3, 8)[:, None]
    return rp.select_from_losses(
        rp.Problem([rp.Risk("error", limit=0.13)], minimize="cost", delta=0.1),
        validation={"error": rng.random((8, 500)) < rate, "cost": np.linspace(1, 0, 8)},
        calibration={"error": rng.random((8, 500)) < rate},
    )


PROBLEM = rp.Problem([rp.Risk("error", limit=0.2)], minimize="cost", delta=0.1)


def evaluate(trial, sizes=(1_000, 1_500)):
    """A synthetic training run whose error falls and whose cost rises with effort."""
    effort = trial.suggest_float("effort", 0.0, 1.0)
    layers = trial.suggest_int("layers", 1, 5)
    rate = 0.08 + 0.4 * (1 - effort) ** 2 + 0.02 * abs(layers - 3)
    rng = np.random.default_rng([trial.number, 7])
    validation, calibration = (rng.random(m) < rate for m in sizes)
    return rp.Evaluation(
        validation={"error": validation, "cost": effort + 0.1 * layers},
        calibration={"error": calibration},
    )


def study(n_trials=16, **settings):
    made = rp.create_study(PROBLEM, seed=0, **settings)
    made.optimize(rp.objective(made, evaluate), n_trials=n_trials)
    return made
