"""Figures of the ablations: budget, delta', sides of the region, p-values."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from riskpilot.bench.cells import Cell
from riskpilot.bench.methods import BUDGETS, DELTA_PRIMES, METHODS, delta_prime_method
from riskpilot.bench.results import Results
from riskpilot.bench.shown.drawing import (
    add_legend,
    draw_line,
    finish,
    fit_lines,
    panels,
    tasks_with,
)
from riskpilot.bench.shown.labels import free_label, task_title
from riskpilot.bench.shown.summary import cell_label, compare


def budget_figure(results: Results) -> Figure | None:
    """Draw the free objective for several numbers of evaluations on pruning."""
    task = "pruning"
    if task not in tasks_with(results, "guided"):
        return None
    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    colours = ("#D55E00", "#E69F00", "#0072B2")
    for axis, method in zip(figure.subplots(1, 2, sharey=True), ("guided", "paper"), strict=True):
        for n, colour in zip(BUDGETS, colours, strict=True):
            name = method if n == BUDGETS[-1] else f"{method}_n{n}"
            style = (colour, "o", "-")
            draw_line(results, task, axis, name, risk=None, style=style, label=f"N = {n}")
        draw_line(results, task, axis, "dense", risk=None)
        axis.set_title(METHODS[method].label)
        finish(axis, results, task, free_label("cost"))
    add_legend(figure)
    return figure


def delta_prime_figure(results: Results, method: str) -> Figure | None:
    """Draw the change that other values of delta' make."""
    tasks = [task for task in results.scope.tasks if _sweep(results, task, method)]
    if not tasks:
        return None
    figure, axes = panels(len(tasks))
    for axis, task in zip(axes, tasks, strict=True):
        sweep = _sweep(results, task, method)
        for (cell, rows), style in zip(sweep.items(), ("#0072B2", "#D55E00"), strict=False):
            mean, low, high = 100 * np.array(rows).T
            axis.plot(DELTA_PRIMES, mean, "o-", color=style, label=f"limit {cell_label(cell)}")
            axis.fill_between(DELTA_PRIMES, low, high, color=style, alpha=0.15, linewidth=0)
        axis.axhline(0, color="#000000", linewidth=0.8, linestyle=":")
        axis.set_xscale("log")
        axis.set_xlabel("delta'")
        axis.set_ylabel("change of the free objective (%)")
        axis.set_title(task_title(task))
        fit_lines(axis, above=0.3)  # the legend stands there
        axis.legend(loc="upper center", ncols=2, fontsize="small")
    return figure


def _sweep(
    results: Results, task: str, method: str
) -> dict[Cell, list[tuple[float, float, float]]]:
    """Compute, by cell, the relative change and its interval for each delta'."""
    found: dict[Cell, list[tuple[float, float, float]]] = {}
    for cell in results.cells[task]:
        own = results.get(task, cell, method)
        changes = [
            compare(results, task, cell, delta_prime_method(method, value), method)
            for value in DELTA_PRIMES
        ]
        known = [each for each in changes if each is not None]
        if own is not None and len(known) == len(DELTA_PRIMES):
            scale = float(own.free.mean())
            found[cell] = [(c.mean / scale, c.low / scale, c.high / scale) for c in known]
    return found


def sided_figure(results: Results) -> Figure | None:
    """Draw the two-sided region against the one-sided one, for the paper's preset."""

    def draw(axis: Axes, task: str) -> None:
        draw_line(results, task, axis, "paper", risk=None, label="two-sided region (paper preset)")
        draw_line(results, task, axis, "one_sided", risk=None)

    return _by_task(results, "one_sided", draw)


def p_values_figure(results: Results) -> Figure | None:
    """Draw the dense grid under three families of p-values: the effect of the test alone."""

    def draw(axis: Axes, task: str) -> None:
        for family, label, style in (
            ("auto", "binomial or betting (default)", ("#0072B2", "o", "-")),
            ("hoeffding_bentkus", "Hoeffding-Bentkus", ("#E69F00", "s", "-")),
            ("hoeffding", "Hoeffding", ("#D55E00", "v", "-")),
        ):
            draw_line(
                results, task, axis, "dense", risk=None, style=style, label=label, family=family
            )

    return _by_task(results, "dense", draw)


def _by_task(results: Results, method: str, draw: Callable[[Axes, str], None]) -> Figure | None:
    """Draw a panel of the free objective for each task on which a method was run."""
    tasks = tasks_with(results, method)
    if not tasks:
        return None
    figure, axes = panels(len(tasks))
    for axis, task in zip(axes, tasks, strict=True):
        draw(axis, task)
        axis.set_title(task_title(task))
        finish(axis, results, task, free_label(results.names[task][-1]))
    add_legend(figure)
    return figure
