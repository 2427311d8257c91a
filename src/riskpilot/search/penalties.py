"""Free objectives that are penalties, such as 1e30 for a run that failed, and tell nothing more."""

import math

import numpy as np

from riskpilot.common.arrays import FloatArray

# A penalty is farther from the best value than all others are by this factor. Beside it a surrogate
# sees them as equal: they differ by less than its smallest noise.
_FACTOR = 1e6
# Fewer values do not show how far free objectives lie apart.
_FEWEST = 3
# Values that differ by less than this share of the best one differ by rounding alone.
_ROUNDING = 1e-12


def without_penalties(values: FloatArray) -> FloatArray:
    """Bring penalties among free objectives down to the worst of the others.

    ``values``: the objectives of evaluations, shape (n, c + 1), the free one last. Beside a penalty
    as it is, a surrogate could not tell the others apart. Where there is none, nothing changes.
    """
    line = penalty_line(values[:, -1])
    return values if line == math.inf else cut_at(values, line)


def cut_at(values: FloatArray, line: float) -> FloatArray:
    """Bring free objectives above a line down to it, in objectives of shape (n, c + 1)."""
    return np.column_stack([values[:, :-1], np.minimum(values[:, -1], line)])


def penalty_line(free: FloatArray) -> float:
    """Find the worst free objective that is no penalty; infinity where none is a penalty.

    At least half of the values are no penalties, and between them and the penalties is a gap of a
    million times what they differ by.

    >>> penalty_line(np.array([1.0, 1e30, 3.0, 2.0])), penalty_line(np.array([1.0, 100.0, 3.0]))
    (3.0, inf)
    """
    in_order = np.sort(free)
    beyond_best = in_order - in_order[0]
    fewest = max(_FEWEST, math.ceil(len(free) / 2))
    inside, outside = beyond_best[fewest - 1 : -1], beyond_best[fewest:]
    differ = inside > _ROUNDING * abs(float(in_order[0]))
    gaps = np.flatnonzero((outside > _FACTOR * inside) & differ)
    return float(in_order[fewest - 1 + gaps[0]]) if len(gaps) else math.inf
