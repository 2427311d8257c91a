"""What is foretold of an evaluation from the first of its examples and from its neighbours."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from riskpilot.common.arrays import FloatArray

# Where the first examples of an earlier evaluation lie so many standard errors from all of them,
# their order is no random one.
_ODD = 5.0
# Shares are tilted by at most this: e^-600 of the largest is no share any more.
_STEEPEST = 600.0


class Guess(NamedTuple):
    """What is foretold of an objective: its value on all examples, and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class _Neighbours:
    """What earlier evaluations on all k examples say of one that has seen the first n.

    ``slopes``: by how much its losses follow theirs, (r,); ``whole``: their losses, (r, k);
    ``before``: their means over the first n examples, (r,).
    """

    slopes: FloatArray
    whole: FloatArray
    before: FloatArray

    def correction(self) -> float:
        """By how much the mean over all examples is foretold to differ from that so far."""
        if not len(self.whole):
            return 0.0
        return float(self.slopes @ (np.nanmean(self.whole, axis=1) - self.before))


def _regression(seen: FloatArray, whole: FloatArray) -> tuple[_Neighbours, FloatArray]:
    """Regress losses on those of neighbours; also returns what the neighbours do not explain.

    The arguments are those of `foretold`. A neighbour with an example that does not count, among
    the first ones that do, is left out.
    """
    counts = ~np.isnan(seen)
    y = seen[counts]
    first = whole[:, : len(seen)][:, counts]
    usable = ~np.isnan(first).any(axis=1)
    first, whole = first[usable], whole[usable]
    before = first.mean(axis=1)
    centred = first - before[:, None]
    products = centred @ centred.T
    ridge = 1e-3 * np.trace(products) / max(len(products), 1) + 1e-12
    slopes = np.linalg.solve(products + ridge * np.eye(len(products)), centred @ (y - y.mean()))
    return _Neighbours(slopes, whole, before), y - y.mean() - slopes @ centred


def foretold(seen: FloatArray, whole: FloatArray) -> Guess:
    """Foretell a mean over all examples from the first of them.

    ``seen``: losses of the first n examples, NaN where one does not count, shape (n,); ``whole``:
    those of r earlier evaluations on all k examples, shape (r, k). Examples that are hard for one
    configuration are hard for its neighbours, so that these tell how the first examples differ
    from the others: a regression on them corrects the mean.
    """
    y, k = seen[~np.isnan(seen)], whole.shape[1]
    n = len(y)
    if n < 2:
        return Guess(0.0, math.inf)
    neighbours, left = _regression(seen, whole)
    used = neighbours.whole
    # One more example, as odd as any, stands for what the first ones have not shown.
    odd = max(float(np.ptp(y)), float(np.nanmax(used) - np.nanmin(used)) if used.size else 0.0)
    variance = (left @ left + odd**2) / max(n - 1 - len(used), 1)
    share_left = 1 - len(seen) / k
    value = float(y.mean()) + neighbours.correction()
    return Guess(value, math.sqrt(variance * share_left / n))


def filled(seen: FloatArray, whole: FloatArray) -> FloatArray:
    """Fill in the losses of the other examples, so that all have the mean that is foretold, (k,).

    The arguments are those of `foretold`, without any example that does not count. The losses that
    are filled in are ones that this evaluation has shown, or a neighbour where these cannot have
    the mean: as many of each as give it, the largest where neighbours lose most.
    """
    n, k = len(seen), whole.shape[1]
    neighbours, _ = _regression(seen, whole)
    hardness = neighbours.slopes @ neighbours.whole[:, n:]
    value = float(seen.mean()) + neighbours.correction()
    target = (value * k - float(seen.sum())) / (k - n)
    slack = 1e-9 * float(np.abs(seen).max())  # the mean of equal numbers has a rounding error
    is_within = seen.min() - slack <= target <= seen.max() + slack
    possible = seen if is_within else np.append(seen, neighbours.whole)
    shown, numbers = np.unique(possible, return_counts=True)
    shares = _tilted(shown, numbers / numbers.sum(), target)
    ranks = (np.arange(k - n) + 0.5) / (k - n)
    at = np.searchsorted(np.cumsum(shares), ranks)
    rest = np.empty(k - n)
    rest[np.argsort(hardness, kind="stable")] = shown[np.minimum(at, len(shown) - 1)]
    return np.append(seen, rest)


def _tilted(values: FloatArray, shares: FloatArray, mean: float) -> FloatArray:
    """Change how often each value occurs, as little as possible, so that they have a mean, (n,).

    ``values``: in ascending order; ``shares``: how often each occurs. That is exponential tilting:
    a share is multiplied by exp(t value). A mean that the values cannot have is moved to the end.
    """
    if len(values) == 1:
        return shares
    scaled = (values - values[0]) / (values[-1] - values[0])
    target = (mean - values[0]) / (values[-1] - values[0])

    def tilted(t: float) -> FloatArray:
        weights: FloatArray = shares * np.exp(t * scaled - max(t, 0.0))
        return np.asarray(weights / weights.sum())

    ends = [float(tilted(t) @ scaled) for t in (-_STEEPEST, _STEEPEST)]
    if not ends[0] < target < ends[1]:
        return tilted(-_STEEPEST if target <= ends[0] else _STEEPEST)
    return tilted(brentq(lambda t: float(tilted(t) @ scaled) - target, -_STEEPEST, _STEEPEST))


def foretold_number(value: float, changes: FloatArray) -> Guess:
    """Foretell a free objective that is a number, from what it is on the first examples.

    ``changes``: by how much it changed from there to the last example in r neighbours, shape (r,);
    fewer than two of them teach nothing.
    """
    if len(changes) < 2:
        return Guess(value, math.inf)
    return Guess(value + float(changes.mean()), float(np.ptp(changes)))


def is_odd_order(whole: FloatArray, n: int) -> bool:
    """Tell whether the first n of all examples differ from the others in more than by chance.

    ``whole``: losses of earlier evaluations, shape (r, k), NaN where one does not count.
    """
    for losses in whole:
        first = losses[:n][~np.isnan(losses[:n])]
        every = losses[~np.isnan(losses)]
        error = every.std() * math.sqrt(max(1 / max(len(first), 1) - 1 / len(every), 0.0))
        if len(first) and abs(first.mean() - every.mean()) > _ODD * error + 1e-12:
            return True
    return False
