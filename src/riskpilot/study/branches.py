"""Which parameters are active together, learned from the trials of a tree-shaped search space.

An objective may ask for some parameters under a condition, such as the depth of a tree where the
model is one. Optuna is not told the condition; it shows in which trials have which parameters.
Points are rows of unit coordinates, NaN where a parameter is not active.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import FloatArray

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Rule:
    """When a parameter is active: as another one says, the parent.

    ``column``: that of the parent; ``values``: the coordinates of the parent that were seen, in
    increasing order; ``active``: whether the parameter is active there; ``open``: where the parent
    alone does not decide it. ``otherwise``: what decides it then, a rule or the answer itself.
    """

    column: int
    values: FloatArray
    active: BoolArray
    open: BoolArray
    otherwise: "Rule | bool"

    def at(self, points: FloatArray) -> BoolArray:
        """Tell where the parameter is active; a value that was not seen counts as its neighbour."""
        middles = (self.values[1:] + self.values[:-1]) / 2
        nearest = np.searchsorted(middles, points[:, self.column])
        return np.where(self.open[nearest], _at(self.otherwise, points), self.active[nearest])


@dataclass(frozen=True)
class Branches:
    """The columns of a space that are not always active, and when each of them is."""

    rules: Mapping[int, Rule | bool]

    def masked(self, points: FloatArray) -> FloatArray:
        """Set the coordinates of parameters that are not active to NaN; all others have values."""
        masked = points.copy()
        for column, rule in self.rules.items():
            masked[~_at(rule, points), column] = np.nan
        return masked


def learned_branches(points: FloatArray, parents: Sequence[int]) -> Branches | None:
    """Learn which parameters are active where, from trials in their order, shape (n, d).

    ``parents``: the columns that may decide it: choices, and numbers that are counted. None where
    all parameters are always active.
    """
    active = ~np.isnan(points)
    by_pattern: dict[bytes, Rule | bool] = {}
    rules = {}
    for column in np.flatnonzero(~active.all(axis=0)):
        pattern = active[:, column].tobytes()
        if pattern not in by_pattern:
            by_pattern[pattern] = _learned(points, active[:, column], parents)
        rules[int(column)] = by_pattern[pattern]
    return Branches(rules) if rules else None


def _learned(points: FloatArray, active: BoolArray, parents: Sequence[int]) -> Rule | bool:
    """Learn when one parameter is active, (n,), by the parent that settles most trials."""
    if active.all() or not active.any():
        return bool(active[0])
    known = ~np.isnan(points.sum(axis=0))
    best, most = None, (0, 0, 0)
    for column in parents:
        if not known[column]:
            continue
        values, where = np.unique(points[:, column], return_inverse=True)
        n, n_active = np.bincount(where), np.bincount(where, weights=active)
        undecided = (n_active > 0) & (n_active < n)
        settled = n[~undecided]
        # A value that was seen once settles its trial, but shows nothing: numbers that hardly ever
        # repeat would settle everything. Where that is all there is, few values are more likely.
        worth = (int((settled - 1).sum()), int(settled.sum()), -len(values))
        if len(settled) and worth > most:
            best, most = (column, values, where, n_active == n, undecided), worth
    if best is None:
        return bool(active[-1])  # the objective was changed, and goes on as it was at last
    column, values, where, always, undecided = best
    left = undecided[where]
    otherwise = _learned(points[left], active[left], parents) if left.any() else False
    return Rule(column, values, always, undecided, otherwise)


def _at(rule: Rule | bool, points: FloatArray) -> BoolArray:
    """Tell where a parameter is active, shape (n,)."""
    return np.full(len(points), rule) if isinstance(rule, bool) else rule.at(points)
