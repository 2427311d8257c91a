"""What a judge saves in a watch: ``python -m experiments.watch_judged``.

Median delays in labels since the change, at limit 0.1 and delta 0.05, with ten fresh examples for
each label; the same streams with and without the scores of judges of several correlations.
"""

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.watch_delay import DELTA, each_alone, median_delay
from riskpilot.watch import Rule, begin, make_rule, update

FloatArray = npt.NDArray[np.float64]

OUT = Path(__file__).parent / "results" / "watch_judged.json"
LIMIT, BEFORE, AFTER, PER_LABEL = 0.1, 0.06, 0.15, 10
LABELS = 1_500  # after the change
CORRELATIONS = (None, 0.0, 0.5, 0.8, 0.9)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.watch_judged", description=__doc__)
    parser.add_argument("--streams", type=int, default=300)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    rows = [
        {"change": change, "correlation": r, "delay": measure(change, r, options.streams)}
        for change in (0, 2_000)
        for r in CORRELATIONS
    ]
    found = {"limit": LIMIT, "before": BEFORE, "after": AFTER, "per_label": PER_LABEL}
    found |= {"streams": options.streams, "rows": rows}
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def measure(change: int, correlation: float | None, n: int) -> float | None:
    """Return the median delay of n streams; ``correlation``: of the judge, None without one."""
    rule = _rule(n, judged=correlation is not None)
    rows = change + LABELS
    risk = np.where(np.arange(rows) < change, BEFORE, AFTER)[:, None]
    losses, scores = _draw(np.random.default_rng(0), risk, n, correlation or 0.0)
    helped: dict[str, Any] = {} if correlation is None else {"scores": scores}
    state = update(rule, begin(rule), losses, **helped)
    alarms = np.full(n, math.inf)
    for alarm in state.alarms:
        alarms[alarm.stream] = alarm.row
    return median_delay(alarms, change)


def _rule(n: int, *, judged: bool) -> Rule:
    rule = make_rule([LIMIT], delta=DELTA, judged=[judged])
    names = ("limits", "shares", "bets", "prior", "memory", "weighted", "judge")
    return each_alone(replace(rule, **{name: getattr(rule, name) * n for name in names}))


def _draw(
    rng: np.random.Generator, risk: FloatArray, n: int, correlation: float
) -> tuple[FloatArray, FloatArray]:
    """0/1 losses, and a judge's 0/1 scores at the same rate less the means of fresh ones."""
    shape = (len(risk), n)
    losses = (rng.random(shape) < risk) * 1.0
    rate = np.where(losses == 1, risk + correlation * (1 - risk), risk * (1 - correlation))
    scores = (rng.random(shape) < rate) * 1.0
    return losses, scores - rng.binomial(PER_LABEL, np.broadcast_to(risk, shape)) / PER_LABEL


if __name__ == "__main__":
    main()
