"""The hypervolume of a front, and the hypervolume improvement of many points at once."""

import itertools
from collections.abc import Callable

import moocore
import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import Array, FloatArray
from riskpilot.guarantee import non_dominated

# Beyond these the coordinate grid of the front no longer fits; moocore takes over.
_GRID_DIMENSIONS = 3
_GRID_CELLS = 4_000_000


def hypervolume(front: npt.ArrayLike, reference: npt.ArrayLike) -> float:
    """Compute the volume that a front dominates below a reference point.

    Parameters
    ----------
    front : array of shape (n, d)
        The points of the front; points beyond the reference count nothing.
    reference : array of shape (d,)
        The corner up to which volume counts.

    Returns
    -------
    float
        The dominated volume.

    Examples
    --------
    >>> hypervolume([[0.5, 0.5]], [1.0, 1.0])
    0.25
    """
    # eq:hypervolume
    array = np.asarray(front, dtype=np.float64)
    array = array[(array < np.asarray(reference)).all(axis=1)]
    return float(moocore.hypervolume(array, ref=np.asarray(reference))) if len(array) else 0.0


def hypervolume_improvement(
    points: npt.ArrayLike, front: npt.ArrayLike, reference: npt.ArrayLike
) -> FloatArray:
    """Compute how much each point, on its own, would add to the hypervolume of a front.

    Parameters
    ----------
    points : array of shape (n, d)
        The points that might be added.
    front : array of shape (k, d)
        The points that are there; dominated ones may be among them.
    reference : array of shape (d,)
        The corner up to which volume counts.

    Returns
    -------
    array of shape (n,)
        The added volume, 0 for a point that the front dominates.

    Examples
    --------
    >>> hypervolume_improvement([[0.0, 0.5], [0.6, 0.6]], [[0.5, 0.5]], [1.0, 1.0])
    array([0.25, 0.  ])
    """
    return improvement_over(front, reference)(points)


def improvement_over(
    front: npt.ArrayLike, reference: npt.ArrayLike
) -> Callable[[npt.ArrayLike], FloatArray]:
    """Make the function that gives the improvement of many points over one front.

    The arguments are those of `hypervolume_improvement`. What depends on the front alone is
    computed once, however often the function is called.
    """
    # eq:hvi. The improvement of q is the undominated volume of the box [q, reference]. Undominated
    # volume is constant on each cell of the grid of the front's coordinates, so that its integral
    # is multilinear in q inside each cell: sums from the far corner give it at the nodes of the
    # grid, interpolation gives it everywhere, exactly.
    r = np.asarray(reference, dtype=np.float64)
    p = np.asarray(front, dtype=np.float64).reshape(-1, len(r))
    p = p[(p < r).all(axis=1)]
    p = p[non_dominated(p)]
    d = len(r)
    fits = d <= _GRID_DIMENSIONS and (len(p) + 2.0) ** d <= _GRID_CELLS
    grid = _Grid(p, r)

    def improvement(points: npt.ArrayLike) -> FloatArray:
        q: FloatArray = np.minimum(np.asarray(points, dtype=np.float64), r)
        return grid.improvement(q) if fits else _improvement_one_by_one(q, p, r)

    return improvement


class _Grid:
    """The grid of a front's coordinates, built when it is needed and kept while it suffices.

    It reaches down to the lowest point that it was asked about, coordinate by coordinate.
    """

    def __init__(self, front: FloatArray, reference: FloatArray) -> None:
        self._front = front
        self._reference = reference
        self._bottom = np.full(len(reference), np.inf)
        self._axes: list[FloatArray] = []
        self._nodes: FloatArray = np.empty(0)

    def improvement(self, points: FloatArray) -> FloatArray:
        """Compute the improvement of points below the reference, shape (n, d)."""
        if (points.min(axis=0) < self._bottom).any():
            lowest = np.minimum(points.min(axis=0), self._front.min(axis=0, initial=np.inf))
            self._bottom = np.minimum(self._bottom, lowest)
            columns = zip(self._bottom, self._front.T, self._reference, strict=True)
            self._axes = [np.unique(np.r_[column]) for column in columns]
            self._nodes = _undominated_volume(self._axes, self._front)
        return _interpolate(self._axes, self._nodes, points)


def _undominated_volume(axes: list[FloatArray], front: FloatArray) -> FloatArray:
    """Compute the undominated volume between each node and the far corner of the grid."""
    shape = tuple(len(axis) - 1 for axis in axes)
    dominated = np.zeros(shape, dtype=bool)
    corner = tuple(np.searchsorted(axis, front[:, i]) for i, axis in enumerate(axes))
    dominated[corner] = True  # the cell above each front point, then all cells beyond it
    for i in range(len(axes)):
        _accumulate(np.logical_or, np.moveaxis(dominated, i, 0))
    volume: FloatArray = np.zeros([len(axis) for axis in axes])
    cells = volume[(slice(-1),) * len(axes)]  # nodes at the far ends have nothing beyond them
    cells[~dominated] = 1.0
    for i, axis in enumerate(axes):
        cells *= np.diff(axis).reshape([-1 if j == i else 1 for j in range(len(axes))])
        _accumulate(np.add, np.flip(np.moveaxis(cells, i, 0), 0))
    return volume


def _accumulate(combine: np.ufunc, slices: Array) -> None:
    """Add to each slice the one before it, in place.

    Whole slices at a time: along any axis but the last, NumPy's ``accumulate`` would go through
    memory in steps of a slice.
    """
    if slices.strides[0] and abs(slices.strides[0]) == slices.itemsize:
        combine.accumulate(slices, axis=0, out=slices)
        return
    for before, this in itertools.pairwise(slices):
        combine(this, before, out=this)


def _interpolate(axes: list[FloatArray], nodes: FloatArray, points: FloatArray) -> FloatArray:
    """Interpolate the values at the nodes of a grid multilinearly at points, shape (n, d)."""
    cells, weights = [], []
    for i, axis in enumerate(axes):
        if len(axis) == 1:  # every point sits at the reference
            return np.zeros(len(points))
        cell = np.clip(np.searchsorted(axis, points[:, i], side="right") - 1, 0, len(axis) - 2)
        cells.append(cell)
        weights.append((points[:, i] - axis[cell]) / (axis[cell + 1] - axis[cell]))
    value = np.zeros(len(points))
    for corner in itertools.product((0, 1), repeat=len(axes)):
        weight = np.ones(len(points))
        for far, share in zip(corner, weights, strict=True):
            weight = weight * (share if far else 1 - share)
        at = tuple(cell + far for cell, far in zip(cells, corner, strict=True))
        value += weight * nodes[at]
    return value


def _improvement_one_by_one(
    points: FloatArray, front: FloatArray, reference: FloatArray
) -> FloatArray:
    """Compute improvements as differences of two hypervolumes, for any number of objectives."""
    before = hypervolume(front, reference)
    improvement = np.zeros(len(points))
    inside = (points < reference).all(axis=1)
    for i in np.flatnonzero(inside):
        if len(front) and (front <= points[i]).all(axis=1).any():
            continue
        improvement[i] = hypervolume(np.vstack([front, points[i]]), reference) - before
    return improvement
