"""A certified drop in accuracy: ``python -m benchmarks.drop`` draws docs/images/drop-certified.svg.

The pruned encoders of the pruning experiment are given; all their texts together are the
population. It is split at random many times. Each time the cheapest encoder is chosen whose
accuracy is at most so much below that of the whole one: by the exact test of the difference, by
betting on it, and as in common practice, by the measured drop alone.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt

import riskpilot as rp
from riskpilot.bench import tasks

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "drop-certified.svg"
LIMITS = (0.01, 0.02, 0.03)
SIZES = (500, 1000, 2000)  # examples of each split
WHO = ("exact", "betting", "practice")
N_CONFIGS = 400
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Population:
    """Errors of the pruned encoders, shape (n, M), of the whole one, (M,), and costs, (n,)."""

    wrong: Array
    dense: Array
    cost: Array

    def drop(self, rows: Array | slice = slice(None)) -> Array:
        return np.asarray(self.wrong[:, rows].mean(axis=1) - self.dense[rows].mean())


def population() -> Population:
    task = tasks.load("pruning_drop")
    assert task.grid is not None
    step = max(1, len(task.grid) // N_CONFIGS)
    wrong, cost = [], []
    for config in task.grid[::step]:
        wrong.append(np.concatenate([task.losses(split, config)["error"] for split in task.size]))
        cost.append(np.mean([task.free(split, config, None) for split in task.size]))
    dense = [task.losses(split, task.grid[0])["dense"] for split in task.size]
    return Population(np.array(wrong), np.concatenate(dense), np.array(cost))


def select(whole: Population, limit: float, size: int, order: Array, test: str) -> rp.Selection:
    risk = rp.Risk("error", limit, statistic=rp.Difference("dense"), p_value=test)
    seen, sealed = order[:size], order[size : 2 * size]
    return rp.select_from_losses(
        rp.Problem([risk], "cost"),
        validation={
            "error": whole.wrong[:, seen],
            "dense": whole.dense[seen],
            "cost": whole.cost,
        },
        calibration={"error": whole.wrong[:, sealed], "dense": whole.dense[sealed]},
    )


def choose(whole: Population, limit: float, size: int, order: Array, who: str) -> int | None:
    if who == "practice":
        kept = np.flatnonzero(whole.drop(order[: 2 * size]) <= limit)
        return int(kept[np.argmin(whole.cost[kept])]) if len(kept) else None
    test = "betting" if who == "betting" else "auto"
    config = select(whole, limit, size, order, test).config
    return None if config is None else int(config["index"])


def replay(whole: Population, limit: float, size: int, splits: int) -> dict[str, dict[str, float]]:
    """Of each way to choose: how often the limit was broken, the mean cost, how often it chose."""
    truth = whole.drop()
    found = {}
    for who in WHO:
        rows = [
            choose(
                whole, limit, size, np.random.default_rng(seed).permutation(len(whole.dense)), who
            )
            for seed in range(splits)
        ]
        given = np.array([row for row in rows if row is not None], dtype=np.intp)
        found[who] = {
            "broke": float((truth[given] > limit).sum()) / splits,
            "cost": float(whole.cost[given].mean()) if len(given) else float("nan"),
            "answers": len(given) / splits,
        }
    return found


def draw(whole: Population, path: Path) -> None:
    limit, size = 0.02, 2000
    order = np.random.default_rng(0).permutation(len(whole.dense))
    selection = select(whole, limit, size, order, "auto")
    drops = whole.drop(order[:size])
    figure, axis = plt.subplots(figsize=(6.4, 4))
    axis.scatter(drops, whole.cost, s=10, color="#999999", label="pruned encoders")
    passed = [
        row for row, ok in zip(selection.plan.order, selection.result.passed, strict=True) if ok
    ]
    axis.scatter(drops[passed], whole.cost[passed], s=34, color="#009E73", label="certified")
    if selection.config is not None:
        best = selection.config["index"]
        axis.scatter(
            drops[best], whole.cost[best], s=170, marker="*", color="#0072B2", label="chosen"
        )
    axis.axvline(limit, color="#D55E00", label="limit")
    axis.set(xlabel="drop in accuracy on validation data", ylabel="cost", xlim=(-0.01, 0.08))
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main(arguments: list[str] | None = None) -> dict[str, dict[str, dict[str, float]]]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drop", description=__doc__)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--out", type=Path, default=PICTURE, help="where the picture goes")
    options = parser.parse_args(arguments)
    whole = population()
    found = {}
    for limit in LIMITS:
        for size in SIZES:
            result = replay(whole, limit, size, options.splits)
            found[f"limit {limit}, {size} examples"] = result
            for who, numbers in result.items():
                told = ", ".join(f"{what} {value:.3f}" for what, value in numbers.items())
                print(f"limit {limit:g}, 2 x {size:,} examples, {who}: {told}", flush=True)
    draw(whole, options.out)
    return found


if __name__ == "__main__":
    main()
