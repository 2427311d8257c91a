"""How often limits on groups hold on all data: ``python -m benchmarks.groups``.

The models of the fairness and robustness experiments are given; all their examples together are the
population. It is split at random many times. Each time, riskpilot selects with a limit on the gap
or on the worst group, and so does common practice: the smallest error among the models whose
measured value keeps the limit, on validation and calibration examples together. The value of the
selected model on the population tells who kept the limit. Draws docs/images/groups-certified.svg.

``--speed`` times a selection among 10,000 configurations with 10,000 examples in 8 groups instead:
a limit on the mean, on the worst group, on the largest gap.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt

import riskpilot as rp
from riskpilot.bench import tasks

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "groups-certified.svg"
LIMITS = {"fairness_gap": 0.05, "waterbirds_worst": 0.36, "celeba_worst": 0.4}
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Population:
    """All examples of a task: the losses of its risk and the errors, shape (n, M), and groups."""

    problem: rp.Problem
    losses: Array
    wrong: Array
    groups: Array
    configs: list[dict[str, Any]]

    def value(self, rows: Array | None = None) -> Array:
        columns = slice(None) if rows is None else rows
        statistic = self.problem.risks[0].statistic
        return rp.measure(statistic, self.losses[:, columns], self.groups[columns])


def population(name: str) -> Population:
    task = tasks.load(name)
    risk = task.problem.risks[0]
    assert task.grid is not None
    other = "fairness" if name == "fairness_gap" else name.removesuffix("_worst")
    plain = tasks.load(other)
    losses, wrong = [], []
    for config in task.grid:
        parts = [task.losses(split, config) for split in task.size]
        losses.append(np.concatenate([part[risk.name] for part in parts]))
        wrong.append(np.concatenate([plain.losses(s, config)["error"] for s in task.size]))
    groups = np.concatenate([task.losses(s, task.grid[0])[risk.groups] for s in task.size])
    problem = task.problem.with_limits(**{risk.name: LIMITS[name]})
    return Population(problem, np.array(losses), np.array(wrong), groups, list(task.grid))


def select(whole: Population, seen: Array, sealed: Array) -> rp.Selection:
    risk = whole.problem.risks[0]
    return rp.select_from_losses(
        whole.problem,
        validation={
            risk.name: whole.losses[:, seen],
            risk.groups: whole.groups[seen],
            whole.problem.minimize: whole.wrong[:, seen],
        },
        calibration={risk.name: whole.losses[:, sealed], risk.groups: whole.groups[sealed]},
        configs=whole.configs,
    )


def replay(name: str, splits: int) -> dict[str, float]:
    whole = population(name)
    truth, error = whole.value(), whole.wrong.mean(axis=1)
    limit = whole.problem.risks[0].limit
    assert limit is not None
    broken = {"riskpilot": 0, "practice": 0}
    errors: dict[str, list[float]] = {"riskpilot": [], "practice": []}
    m = whole.losses.shape[1]
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(m)
        seen, sealed = order[: m // 3], order[m // 3 : 2 * m // 3]
        selection = select(whole, seen, sealed)
        both = order[: 2 * m // 3]
        kept = np.flatnonzero(whole.value(both) <= limit)
        chosen = {
            "riskpilot": None
            if selection.config is None
            else whole.configs.index(selection.config),
            "practice": int(kept[np.argmin(whole.wrong[kept][:, both].mean(axis=1))]),
        }
        for who, row in chosen.items():
            if row is not None:
                broken[who] += int(truth[row] > limit)
                errors[who].append(float(error[row]))
    return {
        "limit": limit,
        **{f"{who} broke": broken[who] / splits for who in broken},
        **{f"{who} error": float(np.mean(errors[who])) for who in errors},
        "certified": len(errors["riskpilot"]) / splits,
    }


def draw(path: Path) -> None:
    names = ("fairness_gap", "waterbirds_worst")
    titles = ("Adult: gap in positive rates of the sexes", "Waterbirds: worst group's error")
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8))
    for axis, name, title in zip(axes, names, titles, strict=True):
        whole = population(name)
        m = whole.losses.shape[1]
        order = np.random.default_rng(0).permutation(m)
        selection = select(whole, order[: m // 3], order[m // 3 : 2 * m // 3])
        values, errors = whole.value(order[: m // 3]), whole.wrong[:, order[: m // 3]].mean(axis=1)
        axis.scatter(values, errors, s=10, color="#999999", label="models")
        passed = [
            row for row, ok in zip(selection.plan.order, selection.result.passed, strict=True) if ok
        ]
        axis.scatter(values[passed], errors[passed], s=34, color="#009E73", label="certified")
        if selection.config is not None:
            best = whole.configs.index(selection.config)
            axis.scatter(
                values[best], errors[best], s=170, marker="*", color="#0072B2", label="chosen"
            )
        axis.axvline(LIMITS[name], color="#D55E00", label="limit")
        axis.set(title=title, xlabel="on validation data", ylabel="error")
        axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


SPEED: dict[str, rp.Risk] = {
    "mean": rp.Risk("error", 0.2),
    "worst group": rp.Risk("error", 0.2, statistic=rp.WorstGroup()),
    "gap": rp.Risk("error", 0.05, statistic=rp.GroupGap()),
}


def speed(n: int, repeats: int = 5) -> dict[str, float]:
    """Seconds of one selection, the fastest of some, for each statistic."""
    rng = np.random.default_rng(0)
    rates = np.linspace(0.02, 0.4, n, dtype=np.float32)[:, None]
    more = 1 + 0.0125 * (np.arange(n) % 8).astype(np.float32)
    splits = [rng.random((n, n), dtype=np.float32) < rates * more for _ in range(2)]
    found = {}
    for name, risk in SPEED.items():
        problem = rp.Problem([risk], "cost")
        validation, calibration = (
            {"error": errors, **{name: np.arange(n) % 8 for name in problem.beside}}
            for errors in splits
        )
        validation["cost"] = -rates[:, 0]
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            rp.select_from_losses(problem, validation=validation, calibration=calibration)
            seconds.append(time.perf_counter() - start)
        found[name] = min(seconds)
    return found


def main(arguments: list[str] | None = None) -> dict[str, dict[str, float]]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--out", type=Path, default=PICTURE, help="where the picture goes")
    parser.add_argument("--speed", type=int, nargs="?", const=10_000, help="of so many examples")
    options = parser.parse_args(arguments)
    if options.speed:
        seconds = speed(options.speed)
        for name, value in seconds.items():
            print(f"{name}: {value:.3f} s, {value / seconds['mean']:.2f} times the mean")
        return {"speed": seconds}
    found = {}
    for name in LIMITS:
        found[name] = replay(name, options.splits)
        print(name, {what: round(value, 4) for what, value in found[name].items()})
    draw(options.out)
    return found


if __name__ == "__main__":
    main()
