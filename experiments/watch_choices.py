"""What was tried for the watch: bets, restarts, reserve. ``python -m experiments.watch_choices``.

Median delays on the same streams, in labels since the change, at limit 0.1 and delta 0.05.
"""

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.progress import track

from experiments.watch_delay import DELTA, draw, each_alone
from riskpilot.watch import Rule, begin, make_rule, update

OUT = Path(__file__).parent / "results" / "watch_choices.json"
LIMIT = 0.1
# The own bets of a restart begin as if so many labels had been seen at 1.5 times the limit.
PRIOR_LABELS = 60
EVERY = 5  # labels between restarts with bets of their own: there are too many otherwise

FloatArray = npt.NDArray[np.float64]
Monitor = Callable[[FloatArray], FloatArray]

# (risk before, risk after, change, labels, kind)
CELLS = [
    (0.06, 0.15, 0, 1_500, "0/1"),
    (0.06, 0.12, 0, 6_000, "0/1"),
    (0.06, 0.15, 2_000, 4_000, "0/1"),
    (0.1, 0.15, 2_000, 4_000, "0/1"),
    (0.06, 0.15, 2_000, 3_000, "graded"),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.watch_choices", description=__doc__
    )
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    streams = [cell_stream(*cell, options.streams, seed) for seed, cell in enumerate(CELLS)]
    rows = []
    for name, monitor in track(monitors(options.streams).items(), "choices"):
        delays = [
            float(np.median(monitor(stream))) - cell[2]
            for stream, cell in zip(streams, CELLS, strict=True)
        ]
        rows.append({"tried": name, "delays": [d if math.isfinite(d) else None for d in delays]})
    found = {"streams": options.streams, "cells": CELLS, "tried": rows}
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    for row in rows:
        print(f"{row['tried']:48}", *[f"{d if d else math.inf:8.0f}" for d in row["delays"]])


def cell_stream(
    before: float, after: float, change: int, labels: int, kind: str, n: int, seed: int
) -> FloatArray:
    risk = np.where(np.arange(labels) < change, before, after)[:, None] * np.ones(n)
    return draw(np.random.default_rng(seed), risk, kind)


def monitors(n: int) -> dict[str, Monitor]:
    """What is compared: each gives the label of the alarm of every stream, shape (n,)."""
    rule = each_alone(make_rule([LIMIT] * n, delta=DELTA))

    def changed(**fields: float) -> Monitor:
        return lambda x: by_rule(replace(rule, **fields), x)

    return {
        "as it is": changed(),
        "no restarts": changed(reserve=0.0),
        "a tenth in reserve": changed(reserve=0.1),
        "half in reserve": changed(reserve=0.5),
        "spent three times as fast": changed(pace=100.0),
        "spent three times as slowly": changed(pace=900.0),
        "recent mean of half as many labels": lambda x: by_rule(remembering(rule, 0.5), x),
        "recent mean of twice as many labels": lambda x: by_rule(remembering(rule, 2.0), x),
        "bets a factor of 1.5 apart": lambda x: by_rule(spaced(rule, 1.5), x),
        "bets a factor of 4 apart": lambda x: by_rule(spaced(rule, 4.0), x),
        "all bets alike at first": lambda x: by_rule(uniform(rule), x),
        "a restart after every label": lambda x: after_every_label(rule, x),
        "own bets for each restart, after every 5 labels": lambda x: own_bets(rule, x),
    }


def by_rule(rule: Rule, x: FloatArray) -> FloatArray:
    state = update(rule, begin(rule), x)
    alarms = np.full(rule.n_streams, math.inf)
    for alarm in state.alarms:
        alarms[alarm.stream] = alarm.row
    return alarms


def remembering(rule: Rule, factor: float) -> Rule:
    return replace(rule, memory=tuple(factor * labels for labels in rule.memory))


def spaced(rule: Rule, ratio: float) -> Rule:
    """The same largest and smallest bet, others in between, the same bell as a prior."""
    old = rule.bet_array[0]
    n = math.ceil(math.log(old[0] / old[-1], ratio)) + 1
    bets = np.geomspace(old[0], old[-1], n)
    bell = np.interp(np.log(bets), np.log(old[::-1]), rule.prior_array[0][::-1])
    prior = tuple((bell / bell.sum()).tolist())
    k = rule.n_streams
    return replace(rule, bets=(tuple(bets.tolist()),) * k, prior=(prior,) * k)


def uniform(rule: Rule) -> Rule:
    n = rule.bet_array.shape[1]
    return replace(rule, prior=((1 / n,) * n,) * rule.n_streams)


def after_every_label(rule: Rule, x: FloatArray) -> FloatArray:
    """The same restarts, paid whether or not the recent mean is above the limit."""
    left = rule.reserve_after(np.arange(len(x) + 1))
    capital = (1 - rule.reserve) * rule.prior_array
    alarms = np.full(x.shape[1], math.inf)
    for t, values in enumerate(x):
        capital = capital * (1 + rule.bet_array * (values - LIMIT)[:, None])
        capital += (left[t] - left[t + 1]) * rule.prior_array
        reached = capital.sum(axis=1) + left[t + 1] >= 1 / DELTA
        alarms[reached & np.isinf(alarms)] = t + 1
    return alarms


def own_bets(rule: Rule, x: FloatArray) -> FloatArray:
    """Every restart bets by the mean of the labels since it began, and none is ever dropped."""
    n, most = x.shape[1], len(x) // EVERY + 1
    left = rule.reserve_after(np.arange(len(x) + 1))
    capital, total, seen = np.zeros((most, n)), np.zeros((most, n)), np.zeros((most, 1))
    capital[0], live = 1 - rule.reserve, 1
    alarms = np.full(n, math.inf)
    for t, values in enumerate(x):
        mean = (total[:live] + PRIOR_LABELS * 1.5 * LIMIT) / (seen[:live] + PRIOR_LABELS)
        bets = np.clip((mean - LIMIT) / (LIMIT * (1 - LIMIT)), 0.0, rule.bet_array[0, 0])
        capital[:live] *= 1 + bets * (values - LIMIT)
        total[:live] += values
        seen[:live] += 1
        if (t + 1) % EVERY == 0 and live < most:
            capital[live], live = left[t + 1 - EVERY] - left[t + 1], live + 1
        reached = capital[:live].sum(axis=0) >= 1 / DELTA
        alarms[reached & np.isinf(alarms)] = t + 1
        if np.isfinite(alarms).all():
            break
    return alarms


if __name__ == "__main__":
    main()
