"""The paper's claims, each with its rule, its figure and its verdict."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from riskpilot.bench.cells import DELTA, Cell
from riskpilot.bench.methods import DELTA_PRIMES, METHODS, delta_prime_method
from riskpilot.bench.results import Entry, Results
from riskpilot.bench.shown.estimate import Estimate
from riskpilot.bench.shown.summary import (
    cell_label,
    compare,
    largest_violation,
    ratio,
)

# What the paper compares with, at the same test.
RIVALS = ("uniform", "random", "hvi", "ehvi", "parego")
MATCHES = 1.02  # a ratio to the dense grid that counts as equal


@dataclass(frozen=True)
class Claim:
    """A statement about the results, the rule by which it is judged, and the verdict.

    ``figure``: the numbers behind the verdict; ``holds``: None where the run lacks what the rule
    needs; ``missed``: the cells in which a target is not met, and by how much; ``command``: what
    makes the figure again.
    """

    claim: str
    rule: str
    figure: str
    holds: bool | None
    missed: tuple[str, ...] = ()
    command: str = "riskpilot bench"

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if self.holds is None:
            return "not run"
        return "holds" if self.holds else "does not hold here"


def paper_claims(results: Results) -> list[Claim]:
    """Judge the paper's statements about its method; where it matters, about the default, too."""
    return [
        _superior(results, "paper", "The paper's method is superior in almost all cells"),
        _superior(results, "guided", "The default is superior in almost all cells"),
        _matches_dense(results, "paper"),
        _matches_dense(results, "guided"),
        _insensitive(results, "paper"),
        _insensitive(results, "guided"),
        _two_sided(results),
        _parego(results),
        _valid(results),
    ]


def _superior(results: Results, method: str, claim: str) -> Claim:
    """Judge whether a method has the best free objective in almost all cells."""
    rule = "smallest mean free objective of all methods with the same N, in at least 90 % of cells"
    best, cells, verdicts = 0, 0, []
    for task, cell in results.entries():
        mine = results.get(task, cell, method)
        others = [r for name in RIVALS if (r := results.get(task, cell, name)) is not None]
        if mine is None or not others:
            continue
        cells += 1
        best += mine.free.mean() <= min(other.free.mean() for other in others)
        verdicts += verdicts_of(compare(results, task, cell, method, name) for name in RIVALS)
    if not cells:
        return Claim(claim, rule, "", None)
    figure = f"best in {best} of {cells} cells; against single baselines {tally(verdicts)}"
    return Claim(claim, rule, figure, best >= 0.9 * cells)


def _matches_dense(results: Results, method: str) -> Claim:
    """Judge whether few evaluations reach the dense grid on pruning."""
    name = "paper's preset" if method == "paper" else "default"
    claim = f"N = 50 matches the dense grid on pruning ({name})"
    rule = f"in each cell not worse within the CI, or a ratio of at most {MATCHES}"
    command = "riskpilot bench --task pruning"
    ratios, good = [], []
    for cell in results.cells.get("pruning", []):
        found = compare(results, "pruning", cell, method, "dense")
        if found is None:
            continue
        ratios.append(_ratio(results, "pruning", cell, method))
        good.append(found.verdict != "loss" or ratios[-1] <= MATCHES)
    if not good:
        return Claim(claim, rule, "", None, command=command)
    figure = f"ratio {span(ratios)}, matched in {sum(good)} of {len(good)} cells"
    return Claim(claim, rule, figure, all(good), command=command)


def _insensitive(results: Results, method: str) -> Claim:
    """Judge whether the width of the region matters little."""
    name = "paper's preset" if method == "paper" else "default"
    claim = f"Insensitive to delta' ({name})"
    rule = f"more than half of the values tie with that of the {name} within the CI"
    verdicts, spreads = [], []
    for task, cell in results.entries():
        found = [
            compare(results, task, cell, other, method)
            for value in DELTA_PRIMES
            if (other := delta_prime_method(method, value)) != method
        ]
        own = results.get(task, cell, method)
        known = [each for each in found if each is not None]
        if not known or own is None:
            continue
        verdicts += verdicts_of(known)
        shifts = [0.0, *(each.mean for each in known)]
        spreads.append((max(shifts) - min(shifts)) / float(own.free.mean()))
    if not verdicts:
        return Claim(claim, rule, "", None)
    figure = (
        f"other values: {tally(verdicts)}; the free objective spreads by "
        f"{100 * np.median(spreads):.1f} % in the median cell, {100 * max(spreads):.1f} % at most"
    )
    return Claim(claim, rule, figure, verdicts.count("tie") > len(verdicts) / 2)


def _two_sided(results: Results) -> Claim:
    """Judge whether a region with two sides is better than one with one side."""
    claim = "The two-sided region beats the one-sided one in most cells (paper's preset)"
    rule = "smaller mean free objective in more than half of the cells"
    found = all_compared(results, "paper", "one_sided")
    if not found:
        return Claim(claim, rule, "", None)
    better = sum(each.mean < 0 for each in found)
    figure = f"smaller in {better} of {len(found)} cells; {tally(verdicts_of(found))}"
    return Claim(claim, rule, figure, better > len(found) / 2)


def _parego(results: Results) -> Claim:
    """Judge whether ParEGO sometimes certifies nothing."""
    claim = "ParEGO sometimes certifies nothing"
    rule = "in some runs of some cell"
    shares = {
        entry: float(runs.nothing.mean())
        for entry, runs in results.runs.items()
        if entry.method == "parego"
    }
    if not shares:
        return Claim(claim, rule, "", None)
    worst = max(shares, key=lambda entry: shares[entry])
    figure = (
        f"in {sum(share > 0 for share in shares.values())} of {len(shares)} cells, at most "
        f"{100 * shares[worst]:.1f} % of runs ({worst.task} at {cell_label(worst.cell)}"
    )
    for method in ("paper", "guided", "dense"):
        runs = results.get(worst.task, worst.cell, method)
        if runs is not None:
            figure += f"; there {METHODS[method].label} {100 * runs.nothing.mean():.1f} %"
    return Claim(claim, rule, f"{figure})", shares[worst] > 0)


def _valid(results: Results) -> Claim:
    """Judge whether the promise is kept by every method that tests."""
    claim = f"Violations in at most delta = {DELTA:g} of the runs, whichever method searched"
    rule = "in every cell, for every method that tests"
    found, practice = largest_violation(results, True), largest_violation(results, False)
    if found is None:
        return Claim(claim, rule, "", None)
    figure = f"at most {_place(*found)}"
    if practice is not None:
        figure += f"; without a test up to {_place(*practice)}"
    return Claim(claim, rule, figure, found[0] <= DELTA)


def all_compared(results: Results, method: str, baseline: str) -> list[Estimate]:
    """Compare a method with a baseline in every cell in which both were run."""
    found = [compare(results, *where, method, baseline) for where in results.entries()]
    return [each for each in found if each is not None]


def verdicts_of(found: Iterable[Estimate | None]) -> list[str]:
    """Return the verdicts of the comparisons that were run."""
    return [each.verdict for each in found if each is not None]


def tally(verdicts: Sequence[str]) -> str:
    """Count wins, ties and losses in words."""
    words = (("win", "wins"), ("tie", "ties"), ("loss", "losses"))
    counted = ((verdicts.count(one), one, more) for one, more in words)
    return ", ".join(f"{n} {one if n == 1 else more}" for n, one, more in counted)


def span(values: Sequence[float]) -> str:
    """Write the range of some values."""
    return f"{min(values):.3f} to {max(values):.3f}"


def _ratio(results: Results, task: str, cell: Cell, method: str) -> float:
    """Return the ratio of a method to the dense grid, NaN where it is not known."""
    return ratio(results, Entry(task, cell, method, "auto")) or float("nan")


def _place(share: float, entry: Entry) -> str:
    """Write a share of runs, and where it was found."""
    label = METHODS[entry.method].label
    return f"{100 * share:.1f} % ({label}, {entry.task} at {cell_label(entry.cell)})"
