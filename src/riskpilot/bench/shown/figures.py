"""The figures of the replay, like the paper's."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from riskpilot.bench.methods import METHODS
from riskpilot.bench.results import Results, Snapshot
from riskpilot.bench.shown import ablation_figures
from riskpilot.bench.shown.drawing import (
    STYLE,
    STYLES,
    add_legend,
    draw_line,
    finish,
    panels,
    tasks_with,
)
from riskpilot.bench.shown.labels import free_label, risk_label, task_title
from riskpilot.bench.shown.summary import cell_label

MAIN = ("guided", "paper", "uniform", "random", "hvi", "dense")
MORE = ("guided", "ehvi", "parego", "practice", "dense")
IN_RISKS = ("guided", "uniform", "random", "hvi", "dense", "practice")
TICKS = (0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4, 6, 10, 20, 50)


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Draw every figure for which the run has the numbers; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, Figure | None] = {}
    with mpl.rc_context(STYLE):
        for task in results.scope.tasks:
            drawn[task] = limits_figure(results, task)
        drawn["ratios"] = ratios_figure(results)
        drawn["search"] = search_figure(results)
        drawn["budget"] = ablation_figures.budget_figure(results)
        for name in ("paper", "guided"):
            drawn[f"delta_prime_{name}"] = ablation_figures.delta_prime_figure(results, name)
        drawn["sided"] = ablation_figures.sided_figure(results)
        drawn["p_values"] = ablation_figures.p_values_figure(results)
        files = []
        for stem, figure in drawn.items():
            if figure is not None:
                path = folder / f"{stem}.png"
                figure.savefig(path, dpi=110, metadata={"Software": None})
                files.append(path)
    return files


def limits_figure(results: Results, task: str) -> Figure:
    """Draw every objective on test against the first limit, with 95 % bands."""
    *risks, free = results.names[task]
    n = len(risks) + 2
    figure = Figure(figsize=(3.5 * n, 3.5), layout="constrained")
    axes = figure.subplots(1, n)
    cells = results.cells[task]
    for i, name in enumerate(risks):
        first, limits = [cell[0] for cell in cells], [cell[i] for cell in cells]
        axes[i].plot(first, limits, color="#000000", linewidth=1, linestyle=":", label="limit")
        for method in IN_RISKS:
            draw_line(results, task, axes[i], method, risk=i)
        finish(axes[i], results, task, risk_label(name))
    for axis, methods in ((axes[-2], MAIN), (axes[-1], MORE)):
        for method in methods:
            draw_line(results, task, axis, method, risk=None)
        finish(axis, results, task, free_label(free))
    figure.suptitle(task_title(task), fontsize=11)
    add_legend(figure)
    return figure


def ratios_figure(results: Results) -> Figure | None:
    """Draw the free objective relative to the dense grid, every cell as a mark."""
    methods = ("guided", "paper", "one_sided", "hvi", "ehvi", "parego", "uniform", "random")
    tasks = tasks_with(results, "dense")
    if not tasks:
        return None
    figure = Figure(figsize=(9, 0.62 * len(tasks) + 1.6), layout="constrained")
    axis = figure.subplots()
    for row, task in enumerate(tasks):
        for i, method in enumerate(methods):
            colour, marker, _ = STYLES[method]
            y = row + 0.8 * ((i + 0.5) / len(methods) - 0.5)
            ratios = []
            for cell in results.cells[task]:
                mine, dense = results.get(task, cell, method), results.get(task, cell, "dense")
                if mine is not None and dense is not None:
                    ratios.append(mine.free.mean() / dense.free.mean())
            if not ratios:
                continue
            label = METHODS[method].label
            axis.plot(ratios, [y] * len(ratios), marker, color=colour, label=label, alpha=0.85)
    axis.axvline(1.0, color="#000000", linestyle="--", linewidth=1)
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(ticker.FixedLocator(TICKS))
    axis.xaxis.set_minor_locator(ticker.NullLocator())
    axis.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_yticks(range(len(tasks)), [task_title(task) for task in tasks])
    axis.invert_yaxis()
    axis.set_xlabel("free objective on test, relative to the dense grid (one mark per limit)")
    add_legend(figure)
    return figure


def search_figure(results: Results) -> Figure | None:
    """Draw what guided search evaluated, with region and reference point."""
    snapshots = [p for p in results.snapshots if p.search and p.points.shape[1] == 2]
    if not snapshots:
        return None
    figure, axes = panels(len(snapshots))
    for axis, snapshot in zip(axes, snapshots, strict=True):
        _search_panel(results, axis, snapshot)
    add_legend(figure)
    return figure


def _search_panel(results: Results, axis: Axes, snapshot: Snapshot) -> None:
    """Draw one guided search."""
    part = snapshot.search["intervals"][0]
    pool = np.array(snapshot.search["pool"], dtype=bool)
    risk, free = snapshot.points[:, 0], snapshot.points[:, 1]
    axis.axvspan(part["low"], part["high"], color="#F0E442", alpha=0.3, label="region")
    axis.axvline(snapshot.cell[0], color="#000000", linestyle=":", linewidth=1, label="limit")
    axis.plot(risk[pool], free[pool], "o", color="#0072B2", label="initial")
    axis.plot(risk[~pool], free[~pool], "X", color="#D55E00", label="proposed")
    reference = snapshot.search["reference"]
    axis.plot(*reference, "*", color="#009E73", markersize=10, label="reference point")
    name, minimised = results.names[snapshot.task]
    axis.set_xlabel(f"{risk_label(name)} on validation")
    axis.set_ylabel(f"{free_label(minimised)} on validation")
    axis.set_title(f"{task_title(snapshot.task)}, limit {cell_label(snapshot.cell)}")
