"""How many labels a watch needs to notice a broken limit: ``python -m experiments.watch_delay``.

On the same streams: the watch, a single e-process with the same bets and no restarts, and MAPIE's
``RiskMonitoring``, as it is and with the whole level for its alarms. Delays are medians over
streams, counted from the change.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from mapie.exchangeability_testing import RiskMonitoring
from mapie.exchangeability_testing.bounds import GammaExponentialMixtureBound
from rich.progress import track
from scipy.special import gammainc, gammaln

from riskpilot.watch import Rule, begin, group_shares, make_rule, update

OUT = Path(__file__).parent / "results" / "watch_delay.json"
DELTA = 0.05
# MAPIE keeps half of its level for reference data, and half of the rest for the other side.
MAPIE_LEVEL = DELTA / 2 / 2
CHUNK = 250
LATEST = 20_000  # labels after the change; what has raised no alarm by then counts as later

FloatArray = npt.NDArray[np.float64]

# (limit, risk before, risk after, kind of the losses), each with the times of the change.
SETTINGS = [
    *[((0.1, 0.06, after, "0/1"), (0, 500, 2_000, 10_000)) for after in (0.12, 0.15, 0.2, 0.3)],
    ((0.1, 0.09, 0.15, "0/1"), (2_000,)),
    ((0.01, 0.006, 0.02, "0/1"), (0, 2_000)),
    ((0.5, 0.4, 0.6, "0/1"), (0, 2_000)),
    ((0.1, 0.06, 0.15, "graded"), (0, 2_000)),
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.watch_delay", description=__doc__)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    cells = [(setting, change) for setting, changes in SETTINGS for change in changes]
    rows = [
        measure(*setting, change, options.streams, seed)
        for seed, (setting, change) in enumerate(track(cells, "delays"))
    ]
    found = {
        "streams": options.streams,
        "delta": DELTA,
        "delays": rows,
        "targets": targets(rows),
        "groups": groups(options.streams),
        "microseconds": speed(),
        "mapie_agrees": agrees_with_mapie(),
    }
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def measure(
    limit: float, before: float, after: float, kind: str, change: int, n: int, seed: int
) -> dict[str, Any]:
    """Median delays of all of them, and how far the estimated time of the change is off."""
    rule = each_alone(make_rule([limit] * n, delta=DELTA))

    def stream() -> Iterator[FloatArray]:
        rng = np.random.default_rng(seed)
        for start in range(0, change + LATEST, CHUNK):
            risk = np.where(np.arange(start, start + CHUNK) < change, before, after)
            yield draw(rng, risk[:, None] * np.ones(n), kind)

    alarms, changes = watched(rule, stream())
    single, _ = watched(replace(rule, reserve=0.0), stream())
    mapie, whole = (mapie_alarms(stream(), limit, n, level) for level in (MAPIE_LEVEL, DELTA))
    late = [alarm > change for alarm in alarms]
    medians = {
        name: median_delay(found, change)
        for name, found in (
            ("watch", alarms),
            ("single", single),
            ("mapie", mapie),
            ("mapie_whole_level", whole),
        )
    }
    return {
        "limit": limit,
        "before": before if change else None,
        "after": after,
        "losses": kind,
        "change": change,
        **medians,
        "to_single": quotient(medians["watch"], medians["single"]),
        "mapie_to_watch": quotient(medians["mapie"], medians["watch"]),
        "mapie_whole_level_to_watch": quotient(medians["mapie_whole_level"], medians["watch"]),
        "alarms_before_change": round(1 - float(np.mean(late)), 3) if change else None,
        "change_off_by": round(float(np.median(np.abs(changes[late] - change)))),
    }


def draw(rng: np.random.Generator, risk: FloatArray, kind: str) -> FloatArray:
    if kind == "graded":
        return rng.beta(4 * risk, 4 * (1 - risk))
    return (rng.random(risk.shape) < risk) + 0.0


def each_alone(rule: Rule) -> Rule:
    """Every stream is a replication, and has all of delta."""
    return replace(rule, shares=(1.0,) * rule.n_streams)


def watched(rule: Rule, stream: Iterator[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """The label of each alarm, infinite where there is none, and of the estimated change."""
    state = begin(rule)
    for values in stream:
        state = update(rule, state, values)
        if len(state.alarms) == rule.n_streams:
            break
    alarms, changes = np.full((2, rule.n_streams), math.inf)
    for alarm in state.alarms:
        alarms[alarm.stream], changes[alarm.stream] = alarm.row, alarm.segment.row
    return alarms, changes


def mapie_alarms(
    stream: Iterator[FloatArray], limit: float, n: int, level: float = MAPIE_LEVEL
) -> FloatArray:
    """The alarms of ``RiskMonitoring(threshold=limit)``, or those at another level.

    MAPIE finds its bound anew at every label by bisection of a function that rises in the sum of
    the losses; the bound is above the limit where that function, at the sum less t times the
    limit, is above its level. That takes one evaluation, of all streams together, with MAPIE's
    constants. `agrees_with_mapie` compares it with MAPIE itself.
    """
    bound = GammaExponentialMixtureBound(v_opt=1, c=1, alpha_opt=level)
    total, spread, seen = np.zeros(n), np.zeros(n), 0
    alarms, open_ = np.full(n, math.inf), np.arange(n)
    for values in stream:
        x = values[:, open_]
        t = seen + np.arange(1, len(x) + 1)[:, None]
        sums = total[open_] + np.cumsum(x, axis=0)
        before = np.concatenate((total[open_][None], sums[:-1])) / np.maximum(t - 1, 1)
        before[t[:, 0] == 1] = 0.5
        spreads = spread[open_] + np.cumsum((x - before) ** 2, axis=0)
        excess = sums - t * limit
        above = (excess > 0) & (log_mixture(bound, excess, spreads) > math.log(1 / level))
        hit = above.any(axis=0)
        alarms[open_[hit]] = seen + above[:, hit].argmax(axis=0) + 1
        total[open_], spread[open_], seen = sums[-1], spreads[-1], seen + len(x)
        open_ = open_[~hit]
        if len(open_) == 0:
            break
    return alarms


def log_mixture(bound: GammaExponentialMixtureBound, s: FloatArray, v: FloatArray) -> FloatArray:
    """``GammaExponentialMixtureBound.log_supermg`` for arrays, with c = 1."""
    s = np.maximum(s, 0.0)
    x, shape = s + v + bound.rho, v + bound.rho
    with np.errstate(divide="ignore"):
        log_gamma = np.log(gammainc(shape, x))
    return np.asarray(
        bound.leading_constant + gammaln(shape) + log_gamma - shape * np.log(x) + s + v
    )


def agrees_with_mapie() -> bool:
    """Whether MAPIE itself raises its alarms at the same labels, on a few streams."""
    losses = (np.random.default_rng(0).random((1_500, 3)) < 0.3) + 0.0
    losses[:300] = 0
    same = []
    for column, alarm in zip(losses.T, mapie_alarms(iter([losses]), 0.1, 3), strict=True):
        monitor = RiskMonitoring("accuracy", test_level=DELTA, threshold=0.1, warn=False)
        monitor.update(np.zeros(len(column), dtype=int), column.astype(int))
        above = monitor.online_risk_lower_bound_sequence_history > 0.1
        same.append(above.any() and int(above.argmax()) + 1 == alarm)
    return all(same)


def median_delay(alarms: FloatArray, change: int) -> float | None:
    """None where the median is later than what was looked at. False alarms are left out."""
    delay = float(np.median(alarms[alarms > change])) - change
    return delay if math.isfinite(delay) else None


def quotient(a: float | None, b: float | None) -> float | None:
    """None where either is later than what was looked at."""
    return None if a is None or b is None else round(a / b, 2)


def targets(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The worst of the cells that each target is about."""
    start = [row["to_single"] for row in rows if row["change"] == 0]
    later = [
        # A median that is later than what was looked at is at least that late.
        round((row["mapie"] or LATEST) / row["watch"], 2)
        for row in rows
        if row["change"] == 2_000
    ]
    return {
        "broken from the start, to the single e-process, at most 1.15": max(start),
        "after 2,000 safe labels, MAPIE to the watch, at least 3": min(later),
    }


def groups(n: int) -> list[dict[str, Any]]:
    """Delays, in labels of all groups, where some of five equal groups are broken: with and without
    a stream for all of them together."""
    rows = []
    for broken in (1, 5):
        limits = [0.1] * 6 * n
        shares = np.tile(group_shares(5), n)
        alone = np.tile([1e-9, *[0.2] * 5], n)
        rule = make_rule(limits, delta=DELTA)
        found = {
            name: first_of_six(replace(rule, shares=tuple(part.tolist())), broken, n)
            for name, part in (("together and each", shares), ("each", alone))
        }
        rows.append({"groups": 5, "broken": broken, "limit": 0.1, "after": 0.2, **found})
    return rows


def first_of_six(rule: Rule, broken: int, n: int) -> float:
    """The median of the first alarm among all groups together and each of five."""

    def stream() -> Iterator[FloatArray]:
        rng = np.random.default_rng(1)
        while True:
            group = rng.integers(0, 5, (CHUNK, n))
            losses = (rng.random(group.shape) < np.where(group < broken, 0.2, 0.06)) + 0.0
            member = group[..., None] == np.arange(5)
            member = np.concatenate((np.ones((*group.shape, 1), bool), member), axis=2)
            yield np.where(member, losses[..., None], np.nan).reshape(CHUNK, -1)

    state, stop = begin(rule), 0
    for values in stream():
        state = update(rule, state, values)
        stop += CHUNK
        first: dict[int, int] = {}
        for alarm in state.alarms:
            first.setdefault(alarm.stream // 6, alarm.row)
        if len(first) == n or stop >= LATEST:
            return float(np.median([first.get(i, math.inf) for i in range(n)]))
    raise AssertionError("A stream does not end.")


def speed() -> dict[str, float]:
    """Microseconds of processor time for a label, one at a time and in batches, one stream."""
    rule, n = make_rule([0.1]), 20_000
    values = (np.random.default_rng(0).random((n, 1)) < 0.06) + 0.0
    found = {}
    for name, step in (("one label", 1), ("1,000 labels", 1_000)):
        state, start = begin(rule), time.process_time()
        for t in range(0, n, step):
            state = update(rule, state, values[t : t + step])
        found[name] = round((time.process_time() - start) / n * 1e6, 1)
    return found


if __name__ == "__main__":
    main()
