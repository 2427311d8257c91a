"""One style for all figures, safe for colour-blind readers, and what they share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from riskpilot.bench.methods import METHODS
from riskpilot.bench.results import Results
from riskpilot.bench.shown.estimate import two_way
from riskpilot.bench.shown.labels import risk_label

# Okabe and Ito's palette and two of Tol's; each method also has a marker of its own.
STYLES = {
    "guided": ("#0072B2", "o", "-"),
    "paper": ("#56B4E9", "s", "-"),
    "one_sided": ("#999933", "<", "-"),
    "hvi": ("#009E73", "^", "-"),
    "ehvi": ("#882255", "D", "-"),
    "parego": ("#CC79A7", "P", "-"),
    "uniform": ("#E69F00", "v", "-"),
    "random": ("#D55E00", "X", "-"),
    "practice": ("#777777", "*", ":"),
    "dense": ("#000000", "", "--"),
}
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.markersize": 4.5,
    "lines.linewidth": 1.4,
    "font.size": 9,
    "svg.hashsalt": "riskpilot",
}


def draw_line(
    results: Results,
    task: str,
    axis: Axes,
    method: str,
    *,
    risk: int | None,
    style: tuple[str, str, str] | None = None,
    label: str | None = None,
    family: str | None = None,
) -> None:
    """Draw mean and band of the free objective, or of a limited risk, against the first limit."""
    colour, marker, line = style or STYLES[method]
    family = family or (METHODS[method].families or ("none",))[0]
    x, rows = [], []
    for cell in results.cells[task]:
        runs = results.get(task, cell, method, family)
        if runs is None:
            continue
        values = runs.free
        if risk is not None:
            kept = ~np.isnan(runs.risks[..., risk])
            if not kept.any():
                continue
            # A run that certified nothing has no risk to show; the mean of the others stands in.
            values = np.where(kept, runs.risks[..., risk], runs.risks[..., risk][kept].mean())
        found = two_way(values)
        x.append(cell[0])
        rows.append((found.mean, found.low, found.high))
    if not rows:
        return
    mean, low, high = np.array(rows).T
    axis.plot(
        x, mean, color=colour, marker=marker, linestyle=line, label=label or METHODS[method].label
    )
    axis.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)


def finish(axis: Axes, results: Results, task: str, name: str) -> None:
    """Label the axes, put ticks at the limits, and fit the range to the lines."""
    axis.set_xlabel(f"limit on {risk_label(results.names[task][0])}")
    axis.set_ylabel(f"{name} on test")
    axis.set_xticks([cell[0] for cell in results.cells[task]])
    fit_lines(axis)


def fit_lines(axis: Axes, above: float = 0.12) -> None:
    """Fit the range of an axis to its lines, so that a wide band does not flatten them.

    ``above``: how much room there is above them, as a share of what they span.
    """
    values = [float(y) for line in axis.lines for y in np.asarray(line.get_ydata())]
    low, high = min(values, default=0.0), max(values, default=1.0)
    span = high - low or 0.4
    axis.set_ylim(low - 0.12 * span, high + above * span)


def add_legend(figure: Figure) -> None:
    """Put one legend below all panels, with each label once."""
    handles: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        columns = min(len(handles), max(3, int(figure.get_figwidth() / 1.7)))
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns)


def tasks_with(results: Results, method: str) -> list[str]:
    """Return the tasks on which a method was run."""
    return [t for t in results.scope.tasks if results.get(t, results.cells[t][0], method)]


def panels(n: int) -> tuple[Figure, Sequence[Axes]]:
    """Make a figure of ``n`` panels, three in a row."""
    columns = min(n, 3)
    rows = -(-n // columns)
    figure = Figure(figsize=(max(3.6 * columns, 5.4), 2.7 * rows + 0.4), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in axes[n:]:
        spare.remove()
    return figure, axes[:n]
