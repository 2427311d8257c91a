"""The power of tests, and of their alternatives: ``python -m benchmarks.power`` prints tables and
draws docs/images/power-of-gaps.svg and docs/images/power-of-differences.svg.

Each test is one-sided, of "the mean of A is at most the mean of B plus 0.1", at delta = 0.1, with
0/1 losses. `differences` is the one that riskpilot uses; only it takes losses of any kind as well.

The second picture is of differences between two 0/1 losses of the same examples, against a limit on
their mean; `trinomial` is used there.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import beta, binom

from riskpilot.guarantee.evidence import Contrast
from riskpilot.statistics.p_values import log_betting, log_hoeffding_bentkus
from riskpilot.statistics.paired import log_trinomial

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
DELTA, LIMIT = 0.1, 0.1
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "power-of-gaps.svg"
# Sizes of the two groups, and the mean of the second.
SETTINGS = {
    "400 and 400 examples, rate 0.3": (400, 400, 0.3),
    "100 and 900 examples, rate 0.3": (100, 900, 0.3),
    "400 and 400 examples, rate 0.02": (400, 400, 0.02),
}

# Examples, limit on the mean difference, how many examples change at all.
PAIRED = {
    "500 examples, limit 0.02, 2 % change": (500, 0.02, 0.02),
    "300 examples, limit 0.05, 10 % change": (300, 0.05, 0.1),
    "2,000 examples, limit 0.02, 20 % change": (2000, 0.02, 0.2),
}
PAIRED_PICTURE = PICTURE.with_name("power-of-differences.svg")

Test = Callable[[BoolArray, BoolArray, BoolArray, BoolArray], BoolArray]


def differences(x: BoolArray, y: BoolArray, _: BoolArray, __: BoolArray) -> BoolArray:
    """Betting on differences between examples of one group and shares of the other."""
    claim = Contrast(1.0, -1.0, LIMIT)
    n = min(x.shape[1], y.shape[1])
    log_p = claim.log_p(claim.differences(x.astype(float), y.astype(float), n), DELTA)
    return np.asarray(log_p < np.log(DELTA))


def bonferroni(x: BoolArray, y: BoolArray, _: BoolArray, __: BoolArray) -> BoolArray:
    """An upper bound for A and a lower one for B, exact, each at delta / 2."""
    n, k = x.shape[1], y.shape[1]
    count, other = x.sum(axis=1), y.sum(axis=1)
    upper = np.where(count < n, beta.ppf(1 - DELTA / 2, count + 1, np.maximum(n - count, 1)), 1.0)
    lower = np.where(other > 0, beta.ppf(DELTA / 2, np.maximum(other, 1), k - other + 1), 0.0)
    return np.asarray(upper - lower <= LIMIT)


def split(x: BoolArray, y: BoolArray, vx: BoolArray, vy: BoolArray) -> BoolArray:
    """A stays below a point and B above it less the limit, the point fixed on validation data:
    both at delta."""
    a, b = vx.mean(axis=1), vy.mean(axis=1)
    error_a = np.sqrt(np.maximum(a * (1 - a), 0.01) / x.shape[1])
    error_b = np.sqrt(np.maximum(b * (1 - b), 0.01) / y.shape[1])
    theta = np.clip(a + (LIMIT - (a - b)) * error_a / (error_a + error_b), 1e-6, 1 - 1e-6)
    p_a = binom.cdf(x.sum(axis=1), x.shape[1], theta)
    p_b = binom.sf(y.sum(axis=1) - 1, y.shape[1], np.maximum(theta - LIMIT, 0.0))
    return np.asarray(np.maximum(p_a, p_b) < DELTA)


def product(x: BoolArray, y: BoolArray, vx: BoolArray, vy: BoolArray) -> BoolArray:
    """Two betting e-values multiplied, at the worst point between; bets from validation data."""
    n, k = x.shape[1], y.shape[1]
    a, b = vx.mean(axis=1)[:, None], vy.mean(axis=1)[:, None]
    variance = np.maximum(a * (1 - a), 0.01) / n + np.maximum(b * (1 - b), 0.01) / k
    bet = np.sqrt(2 * np.log(1 / DELTA) / variance)
    theta = np.linspace(LIMIT, 1, 400)
    log_e = _log_capital(x.sum(axis=1)[:, None], n, bet / n, a, theta)
    log_e += _log_capital(k - y.sum(axis=1)[:, None], k, bet / k, 1 - b, 1 - (theta - LIMIT))
    return np.asarray(log_e.min(axis=1) > np.log(1 / DELTA))


def _log_capital(
    count: FloatArray, n: int, bet: FloatArray, mean: FloatArray, limit: FloatArray
) -> FloatArray:
    """Far from the mean the bet is Kelly's, near it the one that plays for 1 / delta."""
    kelly = (limit - mean) / np.maximum(mean * (1 - mean), 0.01)
    bet = np.minimum(np.maximum(bet, kelly), 0.95 / np.maximum(1 - limit, 1e-3))
    return np.asarray(count * np.log(1 + bet * (limit - 1)) + (n - count) * np.log(1 + bet * limit))


def exact(x: BoolArray, y: BoolArray, _: BoolArray, __: BoolArray) -> BoolArray:
    """Unconditional: every pair of counts ordered by a score, its tail at the worst rate."""
    n, k = x.shape[1], y.shape[1]
    i, j = np.arange(n + 1)[:, None], np.arange(k + 1)[None, :]
    a, b = (i + 0.5) / (n + 1), (j + 0.5) / (k + 1)
    score = (i / n - j / k - LIMIT) / np.sqrt(a * (1 - a) / n + b * (1 - b) / k)
    order = np.argsort(score, axis=None, kind="stable")
    p = np.zeros(order.size)
    for theta in np.linspace(LIMIT, 1, 120):
        joint = np.outer(binom.pmf(i[:, 0], n, theta), binom.pmf(j[0], k, theta - LIMIT))
        np.maximum(p, np.cumsum(joint.ravel()[order]), out=p)
    table = np.empty(order.size)
    table[order] = p
    return np.asarray(table.reshape(n + 1, k + 1)[x.sum(axis=1), y.sum(axis=1)] < DELTA)


TESTS: dict[str, Test] = {
    "exact unconditional (0/1 only)": exact,
    "differences, betting (used)": differences,
    "product of two bettings": product,
    "Bonferroni of two bounds": bonferroni,
    "split fixed on validation": split,
}


def power(n: int, k: int, rate: float, gap: float, runs: int) -> dict[str, float]:
    rng = np.random.default_rng([n, k, round(1000 * gap)])
    x, vx = rng.random((2, runs, n)) < rate + gap
    y, vy = rng.random((2, runs, k)) < rate
    return {name: float(test(x, y, vx, vy).mean()) for name, test in TESTS.items()}


def paired_power(n: int, limit: float, change: float, mean: float, runs: int) -> dict[str, float]:
    """The share of samples that pass, where the true mean difference is ``mean``."""
    rng = np.random.default_rng([n, round(10_000 * (1 + mean))])
    draw = rng.random((runs, n))
    worse, better = draw < (change + mean) / 2, draw > 1 - (change - mean) / 2
    a, b, m = worse.sum(axis=1), better.sum(axis=1), np.full(runs, n)
    unit, unit_limit = (worse.astype(float) - better + 1) / 2, (limit + 1) / 2
    upper = np.where(a < n, beta.ppf(1 - DELTA / 2, a + 1, np.maximum(n - a, 1)), 1.0)
    lower = np.where(b > 0, beta.ppf(DELTA / 2, np.maximum(b, 1), n - b + 1), 0.0)
    level = np.log(DELTA)
    passed = {
        "exact, by score (used)": log_trinomial(a, b, m, limit, DELTA) < level,
        "betting": log_betting(unit, unit_limit, DELTA) < level,
        "Bonferroni of two bounds": upper - lower < limit,
        "Hoeffding-Bentkus": log_hoeffding_bentkus(unit.sum(axis=1), m, unit_limit) < level,
    }
    return {name: float(np.mean(each)) for name, each in passed.items()}


def paired(runs: int, path: Path) -> dict[str, dict[str, list[float]]]:
    """Tables and picture of the tests of a difference."""
    figure, axes = plt.subplots(1, len(PAIRED), figsize=(11, 3.6), sharey=True)
    found: dict[str, dict[str, list[float]]] = {}
    for axis, (title, (n, limit, change)) in zip(axes, PAIRED.items(), strict=True):
        means = np.linspace(limit, max(-limit, -change), 9)
        curves: dict[str, list[float]] = {}
        for mean in means:
            for name, share in paired_power(n, limit, change, float(mean), runs).items():
                curves.setdefault(name, []).append(share)
        found[title] = curves
        _show(axis, title, means, curves)
        axis.set_xlabel(f"true difference (limit {limit:g})")
    _finish(figure, axes, path)
    return found


def _show(axis: Axes, title: str, at: FloatArray, curves: dict[str, list[float]]) -> None:
    print(title, "| at", " ".join(f"{x:6.3f}" for x in at))
    for name, shares in curves.items():
        print(f"  {name:32s}", " ".join(f"{share:6.3f}" for share in shares))
        axis.plot(at, shares, label=name, linewidth=2.6 if name.endswith("(used)") else 1.4)
    axis.axhline(DELTA, color="grey", linestyle=":", linewidth=1)
    axis.set_title(title, fontsize=10)


def _finish(figure: Figure, axes: npt.NDArray[np.object_], path: Path) -> None:
    axes[0].set_ylabel("certified")
    axes[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main(arguments: list[str] | None = None) -> dict[str, dict[str, list[float]]]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.power", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="samples for each point")
    parser.add_argument("--out", type=Path, default=PICTURE, help="where the picture of gaps goes")
    parser.add_argument("--paired-out", type=Path, default=PAIRED_PICTURE, help="of differences")
    options = parser.parse_args(arguments)
    gaps = np.linspace(0.1, 0.0, 9)
    figure, axes = plt.subplots(1, len(SETTINGS), figsize=(11, 3.6), sharey=True)
    found: dict[str, dict[str, list[float]]] = {}
    for axis, (title, (n, k, rate)) in zip(axes, SETTINGS.items(), strict=True):
        curves: dict[str, list[float]] = {name: [] for name in TESTS}
        for gap in gaps:
            for name, share in power(n, k, rate, float(gap), options.runs).items():
                curves[name].append(share)
        found[title] = curves
        _show(axis, title, gaps, curves)
        axis.set_xlabel("true gap (limit 0.1)")
    _finish(figure, axes, options.out)
    found |= paired(options.runs, options.paired_out)
    return found


if __name__ == "__main__":
    main()
