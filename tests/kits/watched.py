"""Certificates of every kind of risk, and labels of a deployed configuration at or above its limit.

A case says which risk is promised, and draws labels: at the limit exactly, or clearly above it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import riskpilot as rp

Labels = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """``draw(rng, n, bad)``: the labels of n examples, at the limit or, if bad, above it.
    ``safe(rng, n)``: labels that pass any test. ``streams``: how many streams it is watched by."""

    risk: rp.Risk
    draw: Callable[[np.random.Generator, int, bool], Labels]
    safe: Callable[[np.random.Generator, int], Labels]
    streams: int = 1

    def certificate(self, seed: int = 0) -> rp.Certificate:
        return certificate_of([self], seed)


def certificate_of(cases: list[Case], seed: int = 0) -> rp.Certificate:
    rng, n = np.random.default_rng(seed), 4_000
    splits = []
    for _ in range(2):
        given: Labels = {}
        for case in cases:
            labels = case.safe(rng, n)
            given |= {**labels, case.risk.name: np.asarray(labels[case.risk.name])[None]}
        splits.append(given)
    validation, calibration = splits
    selection = rp.select_from_losses(
        rp.Problem([case.risk for case in cases], minimize="cost"),
        validation={**validation, "cost": np.ones(1)},
        calibration=calibration,
        configs=[{"model": "deployed"}],
    )
    assert selection.config is not None, selection.message
    return selection.certificate


def _coin(rng, n, p):
    return rng.random(n) < p


def _zeros(**beside):
    """Losses of 0, which any test lets pass, and what stands beside them."""

    def safe(rng, n, name):
        return {name: np.zeros(n), **{key: draw(rng, n) for key, draw in beside.items()}}

    return safe


def _named(name, safe):
    return lambda rng, n: safe(rng, n, name)


def _groups(rng, n):
    return rng.choice(["a", "b", "c"], n, p=(0.5, 0.3, 0.2))


def _two(rng, n):
    return rng.choice(["a", "b"], n)


def _mean(rng, n, bad):
    return {"error": _coin(rng, n, 0.3 if bad else 0.1)}


def _conditional(rng, n, bad):
    losses = _coin(rng, n, 0.3 if bad else 0.1) + 0.0
    return {"miss": np.where(_coin(rng, n, 0.5), losses, np.nan)}


def _ranged(rng, n, bad):
    return {"seconds": np.where(_coin(rng, n, 0.4 if bad else 0.1), 50.0, 0.0)}


def _worst(rng, n, bad):
    groups = _groups(rng, n)
    rate = np.where(groups == "b", 0.5 if bad else 0.1, 0.1)
    return {"error": rng.random(n) < rate, "sex": groups}


def _gap(rng, n, bad):
    groups, common = _two(rng, n), 0.3 * np.abs(np.sin(np.arange(n) / 9))
    rate = np.where(groups == "a", common + (0.5 if bad else 0.1), common)
    return {"chosen": rng.random(n) < rate, "groups": groups}


def _directed(rng, n, bad):
    groups = _two(rng, n)
    rate = np.where(groups == "b", 0.7 if bad else 0.3, 0.2)
    return {"chosen": rng.random(n) < rate, "groups": groups}


def _within(rng, n, bad):
    groups, label = _two(rng, n), rng.choice(["0", "1"], n)
    more = np.where((groups == "a") & (label == "1"), 0.6 if bad else 0.2, 0.0)
    return {"chosen": rng.random(n) < 0.2 + more, "groups": groups, "label": label}


def _ratio(rng, n, bad):
    groups = _two(rng, n)
    rate = np.where(groups == "a", 0.1 if bad else 0.4, 0.5)
    return {"rate": rng.random(n) < rate, "groups": groups}


def _alike(name):
    def safe(rng, n):
        return {name: np.ones(n), "groups": _two(rng, n)}

    return safe


def _quantile(rng, n, bad):
    return {"latency": np.where(_coin(rng, n, 0.2 if bad else 0.05), 9.0, 2.0)}


def _tail(rng, n, bad):
    return {"loss": np.where(_coin(rng, n, 0.3 if bad else 0.05), 1.0, 0.2)}


def _difference(rng, n, bad):
    u = rng.random(n)
    return {"wrong": u < (0.35 if bad else 0.15), "dense": (u >= 0.5) & (u < 0.6)}


def _weighted(rng, n, bad):
    heavy = _coin(rng, n, 0.5)
    # E[w L] / E[w] = 0.1 with weights of 4 and 1, while the plain mean is another number.
    rate = np.where(heavy, 0.08, 0.18) + (0.3 if bad else 0.0)
    return {"error": rng.random(n) < rate, "w": np.where(heavy, 4.0, 1.0)}


CASES = {
    "mean": Case(rp.Risk("error", 0.1), _mean, _named("error", _zeros())),
    "conditional": Case(
        rp.Risk("miss", 0.1, conditional=True), _conditional, _named("miss", _zeros())
    ),
    "mean in a range": Case(
        rp.Risk("seconds", 5.0, high=50.0), _ranged, _named("seconds", _zeros())
    ),
    "worst group": Case(
        rp.Risk("error", 0.1, statistic=rp.WorstGroup(), groups="sex"),
        _worst,
        _named("error", _zeros(sex=_groups)),
        streams=4,
    ),
    "gap": Case(
        rp.Risk("chosen", 0.1, statistic=rp.GroupGap()),
        _gap,
        _named("chosen", _zeros(groups=_two)),
        streams=2,
    ),
    "directed gap": Case(
        rp.Risk("chosen", 0.1, statistic=rp.GroupGap(groups=("b", "a"), directed=True)),
        _directed,
        _named("chosen", _zeros(groups=_two)),
    ),
    "gap within labels": Case(
        rp.Risk("chosen", 0.2, statistic=rp.GroupGap(within="label")),
        _within,
        _named("chosen", _zeros(groups=_two, label=lambda rng, n: rng.choice(["0", "1"], n))),
        streams=4,
    ),
    "ratio": Case(rp.Risk("rate", 0.2, statistic=rp.Ratio()), _ratio, _alike("rate"), streams=2),
    "quantile": Case(
        rp.Risk("latency", 8.0, high=10.0, statistic=rp.Quantile(0.95)),
        _quantile,
        _named("latency", _zeros()),
    ),
    "tail": Case(rp.Risk("loss", 0.6, statistic=rp.CVaR(0.9)), _tail, _named("loss", _zeros())),
    "difference": Case(
        rp.Risk("wrong", 0.05, statistic=rp.Difference("dense")),
        _difference,
        lambda rng, n: {"wrong": np.zeros(n), "dense": np.zeros(n)},
    ),
    "weights": Case(
        rp.Risk("error", 0.1, weights="w", largest_weight=4.0),
        _weighted,
        _named("error", _zeros(w=lambda rng, n: rng.choice([1.0, 4.0], n))),
    ),
}
