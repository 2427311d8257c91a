"""Two gates against a true drop: ``python -m experiments.gate`` (some minutes).

A change makes some answers worse and some better. How often does each gate let it through? "No
significant difference" passes it where the exact McNemar test, two-sided, finds nothing at 5 %;
riskpilot's gate passes it where the exact test of the difference shows that the drop is smaller
than the limit. Where the true drop is the limit itself, passing is a mistake; where there is no
drop, it is what one hopes for.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from riskpilot.statistics.families import log_trinomial

OUT = Path(__file__).parent / "results" / "gate.json"
LIMIT, LEVEL, RUNS = 0.03, 0.05, 4_000
SIZES = (300, 1_000)
# The shares of answers that get worse and better; their difference is the true drop.
CHANGES = ((0.04, 0.01), (0.06, 0.03), (0.09, 0.06), (0.03, 0.03))

Counts = npt.NDArray[np.int64]


def mcnemar(worse: Counts, better: Counts) -> npt.NDArray[np.float64]:
    """Compute two-sided p-values of the exact McNemar test."""
    fewer = np.minimum(worse, better)
    return np.minimum(1.0, 2 * binom.cdf(fewer, worse + better, 0.5))


def pass_rates(n: int, worse: float, better: float, runs: int, seed: int) -> dict[str, Any]:
    """Measure how often each of the two gates lets a change through."""
    rng = np.random.default_rng([seed, n, round(1000 * worse), round(1000 * better)])
    counts = rng.multinomial(n, [worse, better, 1 - worse - better], size=runs)[:, :2]
    pairs, times = np.unique(counts, axis=0, return_counts=True)
    one, two = pairs.T
    insignificant = mcnemar(one, two) >= LEVEL
    shown = log_trinomial(one, two, n, LIMIT, LEVEL) < math.log(LEVEL)
    return {
        "n": n,
        "worse": worse,
        "better": better,
        "insignificant": float(times @ insignificant / runs),
        "shown": float(times @ shown / runs),
    }


def main() -> None:
    """Measure all rates, print and keep them."""
    parser = argparse.ArgumentParser(prog="python -m experiments.gate", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    print(f"A change passes in so many of {options.runs:,} runs; limit {LIMIT:g}, level {LEVEL:g}:")
    print("    n   worse  better   drop   no significant difference   riskpilot gate")
    rows = []
    for n in SIZES:
        for worse, better in CHANGES:
            row = pass_rates(n, worse, better, options.runs, options.seed)
            rows.append(row)
            print(
                f"{n:5d}    {worse:.2f}    {better:.2f}   {worse - better:.2f}   "
                f"{row['insignificant']:25.1%}   {row['shown']:14.1%}",
                flush=True,
            )
    found = {"limit": LIMIT, "level": LEVEL, "runs": options.runs, "rows": rows}
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
