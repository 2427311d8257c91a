"""Which observations tell most about the next proposal, where there are too many to fit."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial import KDTree

from riskpilot.common.arrays import FloatArray, IntArray
from riskpilot.guarantee import Interval, non_dominated
from riskpilot.search.acquisition import misses

# This share of the observations is spread over the space, and the others lie near the region: a
# surrogate that knows nothing of the rest of the space would promise improvement there.
_SPREAD = 0.5
# As many observations on the front have their neighbours taken, as a share of all that are taken.
_ANCHORS = 0.125


def representative_rows(
    x: FloatArray,
    values: FloatArray,
    region: Sequence[Interval],
    cover: FloatArray,
    most: int,
) -> IntArray:
    """Choose the observations that surrogates are fitted to; returns at most ``most`` rows, sorted.

    ``x``: (n, d) and ``values``: (n, c + 1) of all observations; ``cover``: points that cover the
    space, (m, d). Taken are the extremes of every objective, the nearest neighbours of places that
    are spread over the space, and then the neighbours of the safest observation, which says whether
    anything is safe yet, and of those on the observed front, near the region of interest first.
    Neighbours are taken whatever they showed. Taking what looks best would take what was lucky, and
    the surrogate would believe in it.
    """
    if len(x) <= most:
        return np.arange(len(x))
    tree = KDTree(x)
    extremes = np.concatenate([values.argmin(axis=0), values.argmax(axis=0)])
    # At random, because every tenth place of a grid or of a Sobol sequence need not be spread.
    some = np.random.default_rng(0).permutation(len(cover))[: round(_SPREAD * most)]
    spread = tree.query(cover[some])[1]
    missed = misses(region, values)
    front = np.flatnonzero(non_dominated(values))
    nearest_first = front[np.argsort(np.abs(missed[front]), kind="stable")]
    anchors = np.append(missed.argmin(), nearest_first[: max(1, round(_ANCHORS * most))])
    neighbours = np.atleast_2d(tree.query(x[anchors], k=most)[1])
    # All anchors come first, then the nearest neighbour of each, and so on.
    in_order = np.concatenate([extremes, spread, neighbours.ravel(order="F")])
    _, first = np.unique(in_order, return_index=True)
    return np.sort(in_order[np.sort(first)[:most]])
