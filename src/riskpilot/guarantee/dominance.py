"""Dominance: which configurations no other configuration beats in every objective."""

import moocore
import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import BoolArray


def non_dominated(points: npt.ArrayLike) -> BoolArray:
    """Tell which points no other point dominates.

    Parameters
    ----------
    points : array of shape (n, d)
        Objectives, all of them minimised.

    Returns
    -------
    array of bool, shape (n,)
        True where no other point is at most as large in every objective and smaller in one; of
        equal points the first counts.

    Examples
    --------
    >>> non_dominated([[1, 1], [1, 0], [0, 2]])
    array([False,  True,  True])
    """
    # eq:pareto
    array = np.asarray(points, dtype=np.float64)
    if len(array) == 0:
        return np.zeros(0, dtype=bool)
    return np.asarray(moocore.is_nondominated(array, keep_weakly=False), dtype=bool)
