"""Two gates against a true drop, computed exactly: ``python -m experiments.gate`` (minutes).

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
from scipy.stats import binom, multinomial

from riskpilot.statistics.families import log_trinomial

OUT = Path(__file__).parent / "results" / "gate.json"
LIMIT, LEVEL = 0.03, 0.05
FAR = 1e-6  # counts in tails of this chance are left out; their sum is below all figures shown
SIZES = (300, 1_000)
# The shares of answers that get worse and better; their difference is the true drop.
CHANGES = ((0.04, 0.01), (0.06, 0.03), (0.09, 0.06), (0.03, 0.03))

Counts = npt.NDArray[np.int64]


def mcnemar(worse: Counts, better: Counts) -> npt.NDArray[np.float64]:
    """Compute two-sided p-values of the exact McNemar test."""
    fewer = np.minimum(worse, better)
    return np.minimum(1.0, 2 * binom.cdf(fewer, worse + better, 0.5))


def pass_rates(n: int, worse: float, better: float) -> dict[str, Any]:
    """Compute the chance that each of the two gates lets a change through."""
    ranges = [np.arange(*binom.ppf([FAR, 1 - FAR], n, share)) for share in (worse, better)]
    one, two = (grid.ravel().astype(np.int64) for grid in np.meshgrid(*ranges))
    counts = np.stack([one, two, n - one - two], axis=1)
    chances = multinomial.pmf(counts, n, [worse, better, 1 - worse - better])
    insignificant = mcnemar(one, two) >= LEVEL
    shown = log_trinomial(one, two, n, LIMIT, LEVEL) < math.log(LEVEL)
    return {
        "n": n,
        "worse": worse,
        "better": better,
        "insignificant": float(chances @ insignificant),
        "shown": float(chances @ shown),
    }


def main() -> None:
    """Compute all chances, print and keep them."""
    parser = argparse.ArgumentParser(prog="python -m experiments.gate", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    print(f"The chance that a change passes; limit {LIMIT:g}, level {LEVEL:g}:")
    print("    n   worse  better   drop   no significant difference   riskpilot gate")
    rows = []
    for n in SIZES:
        for worse, better in CHANGES:
            row = pass_rates(n, worse, better)
            rows.append(row)
            print(
                f"{n:5d}    {worse:.2f}    {better:.2f}   {worse - better:.2f}   "
                f"{row['insignificant']:25.1%}   {row['shown']:14.1%}",
                flush=True,
            )
    found = {"limit": LIMIT, "level": LEVEL, "rows": rows}
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
