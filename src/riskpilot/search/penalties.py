"""Free objectives that are penalties, such as 1e30 for a run that failed, and tell nothing more."""

import math

import numpy as np

from riskpilot.common.arrays import BoolArray, FloatArray

# A penalty is farther from the best value than all others are by this factor. Beside it a surrogate
# sees them as equal: they differ by less than its smallest noise.
_FACTOR = 1e6
# Fewer values do not show how far free objectives lie apart.
_FEWEST = 3
# A smaller factor is enough for a number that is so many times as large as all others, too: what
# a search goes by, it looks at again with every evaluation.
_FACTOR_OF_LARGE, _TIMES_AS_LARGE = 1e3, 10.0
# A smaller factor is enough for a number that was given more than once, beside so many others. One
# that was given once may be where a search began that has come close to an optimum since.
_FACTOR_OF_REPEATED = 10.0
_FEWEST_BESIDE_REPEATED = 5
# What one more evaluation may gain hangs on the best values alone, so that there a smaller factor
# is enough for numbers that were given once, too.
_FACTOR_OF_OUTLIER = 10.0
# Values that differ by less than this share of the best one differ by rounding alone.
_ROUNDING = 1e-12


def without_penalties(values: FloatArray) -> FloatArray:
    """Bring penalties among free objectives down to the worst of the others.

    ``values``: the objectives of evaluations, shape (n, c + 1), the free one last. Beside a penalty
    as it is, a surrogate could not tell the others apart. One whose risks no other evaluation has
    comes down to what is as much worse than the worst as the others differ: it may be all that
    passes, and what passes without a penalty is still to be found. Where there is none, nothing
    changes.
    """
    far = np.flatnonzero(penalised(values))
    if not len(far):
        return values
    usual = np.delete(values[:, -1], far)
    line = float(usual.max())
    cut = cut_at(values, line)
    cut[far[~_dominated_above(values, line)], -1] += line - float(usual.min())
    return cut


def penalised(values: FloatArray) -> BoolArray:
    """Tell of each evaluation whether its free objective is a penalty for the search, shape (n,).

    It is where `penalty_line` says so, where one number was given again and again, or where it lies
    a thousand times as far from the best as the others, and is ten times as large. ``values``: the
    objectives of evaluations, shape (n, c + 1).
    """
    line = penalty_line(values[:, -1])
    if line == math.inf:
        line = _line_below_repeated(values)
    if line == math.inf:
        line = _line_below_large(values[:, -1])
    return np.asarray(values[:, -1] > line)


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
    return next(iter(_below_gaps(free, _FACTOR, _FEWEST)), math.inf)


def outlier_line(values: FloatArray, likely: BoolArray) -> float:
    """Find the worst free objective that counts in an outlook; infinity where all of them do.

    Those above it, whether repeated or not, lie ten times as far from the best as all others, and
    others have risks as low, or one of these is likely to pass: then nobody has to pay the price of
    lower risks, which may be a penalty. ``values``: the objectives of evaluations, shape
    (n, c + 1); ``likely``: which of them are likely to pass, (n,). A search goes by more of them
    (see `without_penalties`): where it began far from what it has found since, the way down shows
    where to go.
    """

    def counts(line: float) -> bool:
        passes = likely & (values[:, -1] <= line)
        return bool(passes.any() or _dominated_above(values, line).all())

    lines = _below_gaps(values[:, -1], _FACTOR_OF_OUTLIER, _FEWEST_BESIDE_REPEATED)
    return next(filter(counts, lines), math.inf)


def _line_below_repeated(values: FloatArray) -> float:
    """Find the worst free objective below a smaller gap, above which is one number, repeated.

    Infinity where there is none. ``values``: objectives of shape (n, c + 1).
    """
    lines = _below_gaps(values[:, -1], _FACTOR_OF_REPEATED, _FEWEST_BESIDE_REPEATED)
    line = next(iter(lines), math.inf)
    far = values[values[:, -1] > line]
    is_repeated = len(far) > 1 and np.ptp(far[:, -1]) == 0
    return line if is_repeated and _dominated_above(values, line).all() else math.inf


def _line_below_large(free: FloatArray) -> float:
    """Find the worst free objective above which all others are large; infinity where none is."""
    for line in _below_gaps(free, _FACTOR_OF_LARGE, _FEWEST):
        usual = free[free <= line]
        if free[free > line].min() > _TIMES_AS_LARGE * np.abs(usual).max():
            return line
    return math.inf


def _dominated_above(values: FloatArray, line: float) -> BoolArray:
    """Tell for each evaluation above a line whether there is one below with risks as low.

    Where there is none, its free objective may be the price of low risks. ``values``: objectives
    of shape (n, c + 1).
    """
    near, far = values[values[:, -1] <= line], values[values[:, -1] > line]
    as_low = (near[:, None, :-1] <= far[:, :-1]).all(axis=2)
    return np.asarray(as_low.any(axis=0))


def _below_gaps(free: FloatArray, factor: float, fewest: int) -> list[float]:
    """Find the values below gaps of so many times what the values below them differ by, in order.

    At least half of the values, and at least ``fewest``, lie below each of them.
    """
    in_order = np.sort(free)
    beyond_best = in_order - in_order[0]
    fewest = max(fewest, math.ceil(len(free) / 2))
    inside, outside = beyond_best[fewest - 1 : -1], beyond_best[fewest:]
    differ = inside > _ROUNDING * abs(float(in_order[0]))
    gaps = np.flatnonzero((outside > factor * inside) & differ)
    return [float(value) for value in in_order[fewest - 1 + gaps]]
