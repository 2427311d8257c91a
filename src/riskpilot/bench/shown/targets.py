"""What the default must show beyond the paper's method, and what each piece of it brings."""

import numpy as np

from riskpilot.bench.cells import Cell
from riskpilot.bench.methods import PIECES
from riskpilot.bench.results import Entry, Results
from riskpilot.bench.shown.claims import Claim, all_compared, tally, verdicts_of
from riskpilot.bench.shown.summary import Row, cell_label, compare, ratio

CLOSE = 1.05  # a ratio to the dense grid that is near enough


def targets(results: Results) -> list[Claim]:
    """Judge the default against the paper's preset and the dense grid."""
    return [
        _never_worse(
            results, "guided", "Default at least ties the paper's preset, same N and p-values"
        ),
        _halved(results, "auto"),
        _halved(results, "hoeffding_bentkus"),
        _p_value_share(results),
        _close_to_dense(results, "auto"),
        _close_to_dense(results, "hoeffding_bentkus"),
        _nothing_certified(results),
        _never_worse(
            results, "guided_half", "Default at half of N at least ties the paper's preset at N"
        ),
    ]


def piece_rows(results: Results) -> list[Row]:
    """Compare the default with itself without each of its pieces, where both were run."""
    rows: list[Row] = []
    for piece in PIECES:
        name = piece.method.name
        changes, nothing, verdicts = [], [], []
        for task, cell in results.entries():
            whole, without = results.get(task, cell, "guided"), results.get(task, cell, name)
            if whole is None or without is None:
                continue
            changes.append(float(without.free.mean() / whole.free.mean()) - 1)
            nothing.append(float(without.nothing.mean() - whole.nothing.mean()))
            verdicts.append(compare(results, task, cell, "guided", name))
        if changes:
            rows.append(
                {
                    "what the default does": piece.brings,
                    "free objective without it": f"{100 * np.mean(changes):+.1f} % "
                    f"({100 * min(changes):+.1f} to {100 * max(changes):+.1f})",
                    "nothing certified without it": f"{100 * np.mean(nothing):+.1f} % of runs",
                    "with against without": tally(verdicts_of(verdicts)),
                }
            )
    return rows


def _never_worse(results: Results, method: str, claim: str) -> Claim:
    """Judge whether a method is never worse than the paper's preset."""
    rule = "better or tied within the CI in every cell"
    found = all_compared(results, method, "paper")
    if not found:
        return Claim(claim, rule, "", None)
    verdicts = verdicts_of(found)
    missed = []
    for task, cell in results.entries():
        each, paper = (
            compare(results, task, cell, method, "paper"),
            results.get(task, cell, "paper"),
        )
        if each is not None and paper is not None and each.verdict == "loss":
            missed.append(_at(task, cell, f"{100 * each.mean / paper.free.mean():+.1f} %"))
    return Claim(claim, rule, tally(verdicts), "loss" not in verdicts, tuple(missed))


def _halved(results: Results, family: str) -> Claim:
    """Judge whether the default is half as far from the dense grid as the preset."""
    test = "default p-values" if family == "auto" else "Hoeffding-Bentkus"
    claim = f"Default halves the preset's distance to the dense grid ({test} on all sides)"
    rule = "mean over cells of the ratio less 1"
    default_method = "guided" if family == "auto" else "guided_hb"
    pairs = []
    for task, cell in results.entries():
        one, other = (Entry(task, cell, name, family) for name in (default_method, "paper"))
        if one in results.runs and other in results.runs and ratio(results, one) is not None:
            pairs.append([ratio(results, one) or 1.0, ratio(results, other) or 1.0])
    if not pairs:
        return Claim(claim, rule, "", None)
    default, preset = np.mean(pairs, axis=0) - 1
    figure = f"{100 * default:+.1f} % (default), {100 * preset:+.1f} % (preset)"
    return Claim(claim, rule, figure, bool(default <= preset / 2))


def _p_value_share(results: Results) -> Claim:
    """Judge what better p-values alone bring to the paper's preset."""
    claim = "Better p-values alone lower the free objective (paper's preset, same searches)"
    rule = "mean change over cells is negative"
    changes = []
    for task, cell in results.entries():
        new, old = (
            results.get(task, cell, "paper", family) for family in ("auto", "hoeffding_bentkus")
        )
        if new is not None and old is not None:
            changes.append(float(new.free.mean() / old.free.mean()) - 1)
    if not changes:
        return Claim(claim, rule, "", None)
    low, mean, high = 100 * np.array([min(changes), np.mean(changes), max(changes)])
    figure = f"{mean:+.1f} % on average, {low:+.1f} to {high:+.1f} % over cells"
    return Claim(claim, rule, figure, bool(np.mean(changes) < 0))


def _close_to_dense(results: Results, family: str) -> Claim:
    """Judge whether the default comes close to the dense grid."""
    test = "same p-values" if family == "auto" else "which is tested with Hoeffding-Bentkus"
    claim = f"Default is close to the dense grid, {test}"
    rule = f"ratio at most {CLOSE} in every cell and at most 1 in half of them"
    ratios = {}
    for task, cell in results.entries():
        mine, dense = results.get(task, cell, "guided"), results.get(task, cell, "dense", family)
        if mine is not None and dense is not None:
            ratios[task, cell] = float(mine.free.mean() / dense.free.mean())
    if not ratios:
        return Claim(claim, rule, "", None)
    values = list(ratios.values())
    worst = max(ratios, key=lambda where: ratios[where])
    figure = (
        f"at most {CLOSE} in {sum(v <= CLOSE for v in values)} of {len(values)} cells, at most 1 "
        f"in {sum(v <= 1 for v in values)}; worst {_at(*worst, f'{ratios[worst]:.3f}')}"
    )
    missed = [_at(*where, f"{value:.3f}") for where, value in ratios.items() if value > CLOSE]
    holds = max(values) <= CLOSE and bool(np.median(values) <= 1.0)
    return Claim(claim, rule, figure, holds, tuple(missed))


def _nothing_certified(results: Results) -> Claim:
    """Judge whether the default is as rarely left without a certificate as the dense grid."""
    claim = "Default certifies nothing no more often than the dense grid"
    rule = "in every cell"
    excess = []
    for task, cell in results.entries():
        mine, dense = results.get(task, cell, "guided"), results.get(task, cell, "dense")
        if mine is not None and dense is not None:
            excess.append((float(mine.nothing.mean() - dense.nothing.mean()), task, cell))
    if not excess:
        return Claim(claim, rule, "", None)
    most, task, cell = max(excess)
    figure = (
        f"in {sum(each[0] <= 0 for each in excess)} of {len(excess)} cells; largest excess "
        f"{100 * most:+.1f} % of runs ({task} at {cell_label(cell)})"
    )
    missed = [
        _at(name, limits, f"{100 * more:+.1f} %") for more, name, limits in excess if more > 0
    ]
    return Claim(claim, rule, figure, most <= 0, tuple(missed))


def _at(task: str, cell: Cell, figure: str) -> str:
    """Write a figure with its task and its cell."""
    return f"{task} at {cell_label(cell)} ({figure})"
