"""The next configuration: the best point of a space that has not been tried."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from riskpilot.common.arrays import FloatArray
from riskpilot.study.space import Space, with_numbers

# Proposals closer than this to an evaluated configuration would only repeat it.
_SAME = 1e-4


def best_new_point(
    value: Callable[[FloatArray], FloatArray],
    space: Space,
    cover: FloatArray,
    scores: FloatArray,
    taken: FloatArray,
    rng: np.random.Generator,
) -> FloatArray | None:
    """Find the best new point of the cover and refine it twice; None where all have been tried.

    ``scores``: the values at the cover, shape (len(cover),).
    """
    taken_tree = KDTree(with_numbers(taken))
    new = _is_new(cover, taken_tree)
    if not new.any():
        return None
    candidates, scores = cover[new], scores[new]
    for scale in (0.05, 0.01):
        top = candidates[np.argsort(-scores)[:4]]
        more = space.near(top, scale, 64, rng)
        more = more[_is_new(more, taken_tree)]
        if len(more):
            candidates = np.vstack([candidates, more])
            scores = np.append(scores, value(more))
    best: FloatArray = candidates[int(np.argmax(scores))]
    return best


def _is_new(candidates: FloatArray, taken: KDTree) -> npt.NDArray[np.bool_]:
    """Tell which candidates differ from everything tried so far in some coordinate, (n,)."""
    gaps, _ = taken.query(with_numbers(candidates), p=np.inf, distance_upper_bound=2 * _SAME)
    return np.asarray(gaps > _SAME)
