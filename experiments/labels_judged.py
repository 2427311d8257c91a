"""What a judge saves, and that it cannot deceive: parts of `experiments.labels_saved`."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import binom

from experiments.adaptive_peers import prediction_powered, r_autoeval_plus
from riskpilot.statistics.families import log_binomial
from riskpilot.statistics.judged.testing import add_judged, log_judged, start_judged
from riskpilot.statistics.judged.worth import labels_worth

FloatArray = npt.NDArray[np.float64]
Row = dict[str, Any]

DELTA = 0.1
LOG_DELTA = math.log(DELTA)
LIMITS = (0.02, 0.05, 0.1, 0.2, 0.3)


def judge(alone: int = 1000, runs: int = 1_500) -> Row:
    """A judge with correlation 0.8 and ten unlabelled examples for each label, and a useless one.

    ``alone``: the labels with which the exact binomial test has a power of 0.9; ``worth``: that
    number over the labels with which the judged test has it.
    """
    rows = []
    for limit in LIMITS:
        risk = risk_with_fixed_power(limit, alone, 0.9)
        half = _judged(limit, risk, alone // 2, 0.8, runs)
        useless = _judged(limit, risk, alone, 0.0, runs)
        without = (log_binomial(useless[0].sum(axis=1), alone, limit) < LOG_DELTA).mean()
        rows.append(
            {
                "limit": limit,
                "risk": rounded(risk, 4),
                "worth": _worth(limit, risk, alone, runs),
                "power_with_half": _ours(half, limit),
                "power_useless": _ours(useless, limit),
                "cost_useless": rounded(float(without) - _ours(useless, limit)),
                "autoeval_with_half": _autoeval(half, limit),
                "autoeval_useless": _autoeval(useless, limit),
                "its_bets_without_judge": _autoeval(useless, limit, weights=1),
            }
        )
    names = ("worth", "power_with_half", "cost_useless", "autoeval_with_half", "autoeval_useless")
    means = {name: rounded(np.mean([row[name] for row in rows])) for name in names}
    return {
        "alone": alone,
        "rows": rows,
        "means": means,
        "worth_in_theory": rounded(labels_worth(0.8, 10)),
        "target_met": means["worth"] >= 2 and max(row["cost_useless"] for row in rows) <= 0.02,
    }


def _judged(
    limit: float, risk: float, m: int, correlation: float, runs: int, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """0/1 losses, a judge's 0/1 scores at the same rate, and its scores of ten times as many."""
    rng = np.random.default_rng(seed)
    losses = (rng.random((runs, m)) < risk) * 1.0
    rate = np.where(losses == 1, risk + correlation * (1 - risk), risk * (1 - correlation))
    scores = (rng.random((runs, m)) < rate) * 1.0
    return losses, scores, (rng.random((runs, 10 * m)) < risk) * 1.0


def _ours(data: tuple[FloatArray, FloatArray, FloatArray], limit: float) -> float:
    return rounded((log_judged(*data, limit, DELTA, binary=True) < LOG_DELTA).mean())


def _autoeval(
    data: tuple[FloatArray, FloatArray, FloatArray], limit: float, weights: int = 10
) -> float:
    return rounded((r_autoeval_plus(*data, limit, DELTA, weights=weights) < LOG_DELTA).mean())


def _worth(limit: float, risk: float, alone: int, runs: int) -> float:
    """Power at three numbers of labels, and where a line through their normal scores has 0.9."""
    sizes = np.array([0.42, 0.5, 0.6]) * alone
    scores = [
        ndtri(np.clip(_ours(_judged(limit, risk, int(m), 0.8, runs, 1 + i), limit), 0.01, 0.99))
        for i, m in enumerate(sizes)
    ]
    slope, intercept = np.polyfit(np.sqrt(sizes), scores, 1)
    return rounded(alone / ((ndtri(0.9) - intercept) / slope) ** 2, 2)


def violations() -> list[Row]:
    """How often a candidate at its limit passes, with few labels: delta is 0.1."""
    rows = []
    for name, judge_of in _JUDGES.items():
        for m in (25, 50, 100, 400):
            rng = np.random.default_rng(0)
            u, fresh = rng.random((4_000, m)), rng.random((4_000, 10 * m))
            losses = (u < 0.1) * 1.0
            scores, pool = judge_of(u, rng), judge_of(fresh, rng)
            ours = log_judged(losses, scores, pool, 0.1, DELTA, binary=True) < LOG_DELTA
            asymptotic = prediction_powered(losses, scores, pool, 0.1) < DELTA
            rows.append(
                {
                    "judge": name,
                    "labels": m,
                    "prediction_powered": rounded(asymptotic.mean()),
                    "ours": rounded(ours.mean()),
                }
            )
    return rows


# What a judge says of an example whose loss is 1 where u < 0.1.
_JUDGES: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "perfect": lambda u, rng: (u < 0.1) * 1.0,
    "good": lambda u, rng: (np.abs(u + 0.02 * rng.standard_normal(u.shape)) < 0.1) * 1.0,
    "noise": lambda u, rng: rng.random(u.shape),
    "sees half of the losses": lambda u, rng: (u < 0.05) * 1.0,
}


def judged_stopping(runs: int = 1_000, horizon: int = 1_000) -> Row:
    """Labels that arrive, at limit 0.1 and risk 0.07, with judges of three kinds; and the rate at
    which a candidate at its limit is certified by who stops at the best moment."""
    rows = []
    for correlation in (0.0, 0.5, 0.8):
        data = _judged(0.1, 0.07, horizon, correlation, runs)
        found = power_and_labels(_judged_crossings(data, 0.1), horizon)
        rows.append({"correlation": correlation, **found})
    return {"limit": 0.1, "risk": 0.07, "horizon": horizon, "rows": rows, "type_1": _type_1()}


def _judged_crossings(
    data: tuple[FloatArray, FloatArray, FloatArray], limit: float
) -> npt.NDArray[np.int64]:
    """Return the label at which each stream is certified, looked at after every fifth."""
    losses, scores, pool = data
    n, m = losses.shape
    state, first = start_judged(n, limit, DELTA, m, pool.shape[1], binary=True), np.full(n, m + 1)
    for start in range(0, m, 5):
        some = slice(start, start + 5)
        state = add_judged(state, losses[:, some], scores[:, some], pool)
        first = np.where(state.crossed & (first > m), state.labels, first)
    return first


def _type_1(batches: int = 4, streams: int = 2_000, horizon: int = 300) -> list[Row]:
    """Streams at the limit, stopped at their best moment, for judges of every kind."""
    rows = []
    for i, (name, judge_of) in enumerate((_JUDGES | _BAD_JUDGES).items()):
        crossed = 0
        for batch in range(batches):
            rng = np.random.default_rng([i, batch])
            u, fresh = rng.random((streams, horizon)), rng.random((streams, 10 * horizon))
            data = (u < 0.1) * 1.0, judge_of(u, rng), judge_of(fresh, rng)
            crossed += int((_judged_crossings(data, 0.1) <= horizon).sum())
        number = batches * streams
        rows.append({"judge": name, "streams": number, "rate": rounded(crossed / number)})
    return rows


_BAD_JUDGES: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "constant": lambda u, rng: np.full(u.shape, 0.6),
    "far too low": lambda u, rng: (u < 0.02) * 1.0,
    "anti-correlated": lambda u, rng: (u >= 0.1) * 1.0,
    "wrong where it matters": lambda u, rng: ((u > 0.1) & (u < 0.2)) * 1.0,
}


def risk_with_fixed_power(limit: float, m: int, power: float) -> float:
    """The risk at which m labels pass the exact binomial test with this probability."""
    passing = log_binomial(np.arange(m + 1), m, limit) <= LOG_DELTA
    largest = int(passing.sum()) - 1
    return float(brentq(lambda risk: binom.cdf(largest, m, risk) - power, 1e-6, limit))


def power_and_labels(first: npt.NDArray[np.int64], m: int) -> Row:
    return {
        "power": rounded((first <= m).mean()),
        "mean_labels": round(float(np.minimum(first, m).mean())),
    }


def rounded(value: Any, digits: int = 3) -> float:
    return round(float(value), digits)
