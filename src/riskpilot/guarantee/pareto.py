"""Dominance, hypervolume, and the hypervolume improvement of many points at once."""

import itertools
from typing import Any

import moocore
import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Beyond these the coordinate grid of the front no longer fits; moocore takes over.
_GRID_DIMENSIONS = 3
_GRID_CELLS = 4_000_000


def non_dominated(points: npt.ArrayLike) -> BoolArray:
    """Which points no other point dominates (eq:pareto); of equal points the first. Shape (n,).

    >>> non_dominated([[1, 1], [1, 0], [0, 2]])
    array([False,  True,  True])
    """
    array = np.asarray(points, dtype=np.float64)
    if len(array) == 0:
        return np.zeros(0, dtype=bool)
    return np.asarray(moocore.is_nondominated(array, keep_weakly=False), dtype=bool)


def hypervolume(front: npt.ArrayLike, reference: npt.ArrayLike) -> float:
    """The volume that ``front``, shape (n, d), dominates below ``reference`` (eq:hypervolume)."""
    array = np.asarray(front, dtype=np.float64)
    array = array[(array < np.asarray(reference)).all(axis=1)]
    return float(moocore.hypervolume(array, ref=np.asarray(reference))) if len(array) else 0.0


def hypervolume_improvement(
    points: npt.ArrayLike, front: npt.ArrayLike, reference: npt.ArrayLike
) -> FloatArray:
    """eq:hvi for each of ``points``, shape (n, d), on its own. Returns shape (n,).

    The improvement of q is the undominated volume of the box [q, reference]. Undominated volume is
    constant on each cell of the grid of the front's coordinates, so that its integral is
    multilinear in q inside each cell: sums from the far corner give it at the nodes of the grid,
    interpolation gives it everywhere, exactly.
    """
    r = np.asarray(reference, dtype=np.float64)
    q: FloatArray = np.minimum(np.asarray(points, dtype=np.float64), r)
    p = np.asarray(front, dtype=np.float64).reshape(-1, len(r))
    p = p[(p < r).all(axis=1)]
    p = p[non_dominated(p)]
    d = len(r)
    if d > _GRID_DIMENSIONS or (len(p) + 2.0) ** d > _GRID_CELLS:
        return _improvement_one_by_one(q, p, r)
    bottom = np.minimum(q.min(axis=0), p.min(axis=0, initial=np.inf))
    axes = [np.unique(np.r_[bottom[i], p[:, i], r[i]]) for i in range(d)]
    return _interpolate(axes, _undominated_volume(axes, p), q)


def _undominated_volume(axes: list[FloatArray], front: FloatArray) -> FloatArray:
    """At every node, the undominated volume between it and the far corner of the grid."""
    shape = tuple(len(axis) - 1 for axis in axes)
    dominated = np.zeros(shape, dtype=bool)
    corner = tuple(np.searchsorted(axis, front[:, i]) for i, axis in enumerate(axes))
    dominated[corner] = True  # the cell above each front point, then all cells beyond it
    for i in range(len(axes)):
        dominated = np.logical_or.accumulate(dominated, axis=i)
    volume: Any = ~dominated * 1.0
    for i, axis in enumerate(axes):
        lengths = np.diff(axis).reshape([-1 if j == i else 1 for j in range(len(axes))])
        volume = np.flip(np.cumsum(np.flip(volume * lengths, i), axis=i), i)
    result: FloatArray = np.pad(volume, [(0, 1)] * len(axes))
    return result


def _interpolate(axes: list[FloatArray], nodes: FloatArray, points: FloatArray) -> FloatArray:
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
    before = hypervolume(front, reference)
    improvement = np.zeros(len(points))
    inside = (points < reference).all(axis=1)
    for i in np.flatnonzero(inside):
        if len(front) and (front <= points[i]).all(axis=1).any():
            continue
        improvement[i] = hypervolume(np.vstack([front, points[i]]), reference) - before
    return improvement
