"""How many labels stopping early and a judge save: ``python -m experiments.labels_saved``.

Each part takes less than a minute; ``--part`` runs one of them and leaves the others' results.
"""

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.adaptive_peers import adaptive_crossings
from experiments.labels_judged import (
    DELTA,
    LIMITS,
    LOG_DELTA,
    FloatArray,
    Row,
    judge,
    judged_stopping,
    power_and_labels,
    risk_with_fixed_power,
    rounded,
    violations,
)
from riskpilot.statistics.families import largest_passing_mean, log_betting
from riskpilot.statistics.sequential.boundary import exact_boundary
from riskpilot.statistics.sequential.capital import add_losses, start_capital
from riskpilot.statistics.sequential.operating import (
    crossing_chances,
    outlook,
    sequence_times,
    summarise_sequence,
)

OUT = Path(__file__).parent / "results" / "labels_saved.json"
TABLES = Path(__file__).parent
RUNS = 1_000
HORIZON = 1_000  # of the sequences


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.labels_saved", description=__doc__)
    parser.add_argument("--part", choices=PARTS, help="one part alone")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    found = json.loads(options.out.read_text()) if options.out.exists() else {}
    for part in [options.part] if options.part else PARTS:
        found[part] = PARTS[part]()
        print(part, json.dumps(found[part], indent=1), sep="\n")
    options.out.write_text(
        json.dumps({part: found[part] for part in PARTS if part in found}) + "\n"
    )


# Stopping early.


def stopping() -> Row:
    """0/1 losses, exactly, beside the fixed test and e-processes without a horizon."""
    rows = []
    for limit, m in [(0.02, 5000), (0.05, 2000), (0.1, 1000), (0.2, 1000), (0.3, 1000)]:
        # The margin of the target: a risk of 0.07 under a limit of 0.1, or what is as hard.
        risk = 0.07 if limit == 0.1 else round(risk_with_fixed_power(limit, m, 0.983), 4)
        found = outlook(limit, risk, DELTA, m)
        losses = (np.random.default_rng(0).random((RUNS, m)) < risk) * 1.0
        row = {
            "limit": limit,
            "risk": risk,
            "horizon": m,
            "fixed_power": rounded(found.fixed_power),
            "power": rounded(found.power),
            "mean_labels": round(found.mean_labels),
        }
        for bets in ("plug-in", "newton"):
            row[f"e_process_{bets}"] = power_and_labels(
                adaptive_crossings(losses, limit, DELTA, bets), m
            )
        rows.append(row)
    at = rows[2]
    met = at["power"] >= 0.975 and at["mean_labels"] <= 480
    return {"rows": rows, "target_met": met, "type_1": _type_1()}


def _type_1() -> list[Row]:
    """The largest error of the boundaries above, exactly: what is spent at the limit."""
    return [
        {"limit": limit, "error": rounded(exact_boundary(limit, DELTA, 1000).spent[-1], 5)}
        for limit in LIMITS
    ]


def graded() -> Row:
    """Graded losses: the capital with a horizon beside tests at the end and without a horizon."""
    cases = [
        ("beta, wide", 0.1, 1000, _beta(0.07, 1)),
        ("beta", 0.3, 1000, _beta(0.28, 5)),
        ("beta, narrow", 0.3, 1000, _beta(0.29, 50)),
        ("beta, low limit", 0.02, 2000, _beta(0.016, 10)),
        ("beta, few", 0.3, 200, _beta(0.25, 2)),
        ("almost 0/1", 0.1, 1000, lambda rng, shape: 0.98 * (rng.random(shape) < 0.07)),
    ]
    rows = []
    for name, limit, m, draw in cases:
        losses = draw(np.random.default_rng(0), (RUNS, m))
        fixed = (log_betting(losses, limit, DELTA) < LOG_DELTA).mean()
        row = {
            "losses": name,
            "limit": limit,
            "risk": rounded(float(losses.mean())),
            "horizon": m,
            "fixed_power": rounded(fixed),
            **power_and_labels(_capital_crossings(losses, limit), m),
        }
        for bets in ("plug-in", "newton"):
            row[f"e_process_{bets}"] = power_and_labels(
                adaptive_crossings(losses, limit, DELTA, bets), m
            )
        rows.append(row)
    return {"rows": rows, "type_1": _graded_type_1()}


def _graded_type_1() -> list[Row]:
    """Streams at the limit, stopped at their best moment."""
    draws = {
        "two values": lambda rng, shape: (rng.random(shape) < 0.1) * 1.0,
        "beta": _beta(0.1, 1),
        "tiny variance": lambda rng, shape: 0.099 + 0.002 * rng.integers(0, 2, shape),
    }
    rows = []
    for name, draw in draws.items():
        crossings = _capital_crossings(draw(np.random.default_rng(1), (10_000, 200)), 0.1)
        rows.append({"losses": name, "streams": 10_000, "rate": rounded((crossings <= 200).mean())})
    return rows


def _capital_crossings(losses: FloatArray, limit: float) -> npt.NDArray[np.int64]:
    n, m = losses.shape
    state, first = start_capital(n, limit, DELTA, m), np.full(n, m + 1)
    for start in range(0, m, 5):
        state = add_losses(state, losses[:, start : start + 5])
        first = np.where(state.crossed & (first > m), state.labels, first)
    return first


def sequences() -> Row:
    """Ten candidates of each of the paper's tables, ordered by validation, under several margins.

    A critical width is the limit less the largest mean that passes the fixed test at the horizon.
    The limit is set so that the first candidate has a margin of so many of them. Labels are drawn
    from the held-out examples, and one stops when the first candidate is certified; ``done``: when
    nothing more can change for any of the ten.
    """
    rows = []
    for task, (validation, held_out) in _tables().items():
        safest = np.argsort(validation.mean(axis=1), kind="stable")
        losses = held_out[safest[:: len(safest) // 10][:10]]
        for margin in (1.5, 2.0, 2.5):
            rows.append({"task": task, **_sequence(losses, margin)})
    exact = [{"limit": limit, **_labels_by_margin(limit)} for limit in LIMITS]
    met = all(row["labels"] <= 0.6 for row in rows if row["margin"] == 1.5)
    return {"rows": rows, "one_candidate_exactly": exact, "target_met": met}


def _sequence(losses: FloatArray, margin: float) -> Row:
    """Shares of the horizon. ``losses``: shape (candidates, examples), in testing order."""
    risk, binary = float(losses[0].mean()), bool(((losses == 0) | (losses == 1)).all())
    deviation = None if binary else float(losses[0].std())
    limit = _limit_with_margin(risk, margin, deviation)
    rng, examples = np.random.default_rng(0), losses.shape[1]
    rows = [rng.choice(examples, HORIZON, replace=False) for _ in range(200)]
    streams = np.stack([losses[:, labels] for labels in rows])
    if binary:
        critical = exact_boundary(limit, DELTA, HORIZON).critical
        crossing, hopeless = sequence_times(streams > 0, critical)
    else:  # a capital can always come back
        crossing = _capital_crossings(streams.reshape(-1, HORIZON), limit).reshape(200, -1)
        hopeless = np.full(crossing.shape, HORIZON)
    found = summarise_sequence(crossing, hopeless, HORIZON)
    return {
        "margin": margin,
        "limit": rounded(limit, 4),
        "certified": rounded(found.certified[0]),
        "labels": rounded(found.mean_labels_first / HORIZON),
        "done": rounded(found.mean_labels_done / HORIZON),
    }


def _tables() -> dict[str, tuple[FloatArray, FloatArray]]:
    """Losses of validation and of held-out examples, shape (configurations, examples) each."""
    found = {}
    for task in ("fairness", "waterbirds", "celeba"):
        with np.load(TABLES / task / "table.npz", allow_pickle=False) as table:
            parts = []
            for split in ("validation", "held_out"):
                packed, label = table[f"{split}_positive"], table[f"{split}_label"]
                packed = packed[0] if packed.ndim == 3 else packed
                positive = np.unpackbits(packed, axis=-1, count=len(table["lam"])).astype(bool)
                parts.append((label != positive.T) * 1.0)
            found[task] = (parts[0], parts[1])
    with np.load(TABLES / "vae" / "table.npz", allow_pickle=False) as table:
        low, step = ("validation_mse_low", "held_out_mse_low"), "_mse_step"
        found["vae"] = tuple(  # type: ignore[assignment]
            table[name][:, None] + table[split + step][:, None] * table[f"{split}_mse"]
            for name, split in zip(low, ("validation", "held_out"), strict=True)
        )
    return found


def _width(limit: float, deviation: float | None = None) -> float:
    family = "binomial" if deviation is None else "betting"
    largest = largest_passing_mean(family, limit, HORIZON, DELTA, deviation)
    return limit if largest is None else limit - largest


def _limit_with_margin(risk: float, margin: float, deviation: float | None) -> float:
    limits = risk * np.arange(1.001, 3.0, 0.001)
    enough = (at for at in limits if at - risk >= margin * _width(float(at), deviation))
    return float(next(enough))


def _labels_by_margin(limit: float) -> Row:
    """The share of the horizon that is labelled at 1.5 widths, and the widths at which it is .6."""
    critical = exact_boundary(limit, DELTA, HORIZON).critical
    width = _width(limit)

    def share(margin: float) -> float:
        crossed, _ = crossing_chances(critical, max(limit - margin * width, 0.0))
        return float(1 + (1 - crossed[:-1]).sum()) / HORIZON

    enough = next(margin for margin in np.arange(1.5, 3.0, 0.05) if share(margin) <= 0.6)
    return {"labels_at_1.5": rounded(share(1.5)), "margin_for_0.6": rounded(enough, 2)}


def least() -> Row:
    """What any boundary at all could reach at 1.5 critical widths, by dynamic programming.

    Among all rules that certify a candidate at some label and otherwise go on to the horizon, the
    one with the fewest labels on average within delta is found by backward induction: at every
    count it is cheaper to stop or to go on, where a wrong certificate has a price that makes the
    error delta, and a right one a ``reward``. Without a reward no power is asked for;
    ``fewest_at_our_power`` is the best of a grid of rewards.
    """
    rows = []
    for limit in LIMITS:
        risk = limit - 1.5 * _width(limit)
        ours = outlook(limit, risk, DELTA, HORIZON)
        rewards = (0, 300, 600, 1000, 1500, 2000, 2500, 3000, 4000)
        found = [_least(limit, risk, reward) for reward in rewards]
        as_good = [row for row in found if row["power"] >= ours.power - 0.0005]
        rows.append(
            {
                "limit": limit,
                "risk": rounded(risk, 4),
                "ours": {
                    "labels": rounded(ours.mean_labels / HORIZON),
                    "power": rounded(ours.power),
                    "labels_until_decided": rounded(ours.mean_labels_decided / HORIZON),
                },
                "fewest_labels": found[0],
                "fewest_at_our_power": min(as_good, key=lambda row: row["labels"], default=None),
            }
        )
    reachable = all(row["fewest_labels"]["labels"] <= 0.6 for row in rows)
    return {"rows": rows, "reachable": reachable}


def _least(limit: float, risk: float, reward: float) -> Row:
    """The boundary with the fewest labels at this reward, with a price that spends delta."""
    low, high = 0.0, 25.0  # logs of the price
    for _ in range(28):
        price = (low + high) / 2
        critical = _best_boundary(limit, risk, math.exp(price), reward)
        if crossing_chances(critical, limit)[0][-1] > DELTA:
            low = price
        else:
            high = price
    critical = _best_boundary(limit, risk, math.exp(high), reward)
    crossed, _ = crossing_chances(critical, risk)
    labels = float(1 + (1 - crossed[:-1]).sum()) / HORIZON
    return {"labels": rounded(labels), "power": rounded(crossed[-1])}


def _best_boundary(limit: float, risk: float, price: float, reward: float) -> npt.NDArray[np.int64]:
    """Critical counts that minimise E[labels] + price P_limit(certified) - reward P(certified)."""
    count = np.arange(int(HORIZON * limit) + 3)
    per_loss, per_other = math.log(limit / risk), math.log((1 - limit) / (1 - risk))
    critical = np.empty(HORIZON, np.int64)
    value = np.full(len(count), float(HORIZON))
    for label in range(HORIZON, 0, -1):
        likelier = np.minimum(count * per_loss + (label - count) * per_other, 300)
        stop = label + price * np.exp(likelier) - reward
        going = value
        if label < HORIZON:
            going = (1 - risk) * value + risk * np.append(value[1:], HORIZON)
        stops = (stop <= going) & (count <= label)
        value = np.where(stops, stop, going)
        critical[label - 1] = count[stops].max(initial=-1)
    return np.maximum.accumulate(critical)


def _beta(mean: float, size: float) -> Callable[[np.random.Generator, tuple[int, int]], FloatArray]:
    return lambda rng, shape: rng.beta(mean * size, (1 - mean) * size, shape)


PARTS: dict[str, Callable[[], Any]] = {
    "stopping": stopping,
    "graded": graded,
    "sequences": sequences,
    "least": least,
    "judge": judge,
    "judge_of_more": lambda: judge(2000, 600),
    "violations": violations,
    "judged_stopping": judged_stopping,
}

if __name__ == "__main__":
    main()
