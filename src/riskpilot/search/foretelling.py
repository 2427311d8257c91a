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
class _Regression:
    """How the first n of k losses follow those of neighbours on the same examples.

    ``value``: their mean; ``share``: of all examples, that which is foretold to count; ``slopes``
    and ``regressors``: by how much a loss lies above the mean where those of neighbours do, (p,)
    and (p, k); ``left``: what that leaves unexplained of the first losses, (n,).
    """

    value: float
    share: float
    slopes: FloatArray
    regressors: FloatArray
    left: FloatArray

    @property
    def correction(self) -> float:
        """By how much the mean over all examples is foretold to differ from that so far."""
        return _change(self.slopes, self.regressors, len(self.left)) / self.share


def _regression(seen: FloatArray, whole: FloatArray) -> _Regression:
    """Regress losses on those of neighbours; the arguments are those of `foretold`.

    A mean over examples that count is the ratio of two sums, of losses and of examples. Where it
    lies above a value, losses less so much for every example that counts have a sum above 0.
    Neighbours tell by their losses, and by which examples count for them.
    """
    counts, their = ~np.isnan(seen), ~np.isnan(whole)
    value = float(seen[counts].mean())
    above = np.where(counts, seen - value, 0.0)
    which = their[~their.all(axis=1)].astype(np.float64)
    regressors = np.vstack([np.where(their, whole, 0.0), which])
    slopes, left = _least_squares(above, regressors)
    share = float(counts.mean())
    if len(which):
        follows, _ = _least_squares(counts - share, which)
        share = min(max(share + _change(follows, which, len(seen)), 1 / len(seen)), 1.0)
    return _Regression(value, share, slopes, regressors, left)


def _least_squares(y: FloatArray, regressors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit slopes of ``y``, shape (n,), whose mean is 0, on the first n of (p, k) regressors.

    Also returns what they leave unexplained, (n,).
    """
    first = regressors[:, : len(y)]
    centred = first - first.mean(axis=1)[:, None]
    products = centred @ centred.T
    ridge = 1e-3 * np.trace(products) / max(len(products), 1) + 1e-12
    slopes = np.linalg.solve(products + ridge * np.eye(len(products)), centred @ y)
    return slopes, y - slopes @ centred


def _change(slopes: FloatArray, regressors: FloatArray, n: int) -> float:
    """Compute by how much a mean changes from the first n examples to all of them."""
    return float(slopes @ (regressors.mean(axis=1) - regressors[:, :n].mean(axis=1)))


def foretold(seen: FloatArray, whole: FloatArray) -> Guess:
    """Foretell a mean over all examples from the first of them.

    ``seen``: losses of the first n examples, NaN where one does not count, shape (n,); ``whole``:
    those of r earlier evaluations on all k examples, shape (r, k). Examples that are hard for one
    configuration are hard for its neighbours, so that these tell how the first examples differ
    from the others: a regression on them corrects the mean.
    """
    y, k = seen[~np.isnan(seen)], whole.shape[1]
    n = len(seen)
    if len(y) < 2:
        return Guess(0.0, math.inf)
    found = _regression(seen, whole)
    theirs = whole[~np.isnan(whole)]
    # One more example, as odd as any, stands for what the first ones have not shown.
    odd = max(float(np.ptp(y)), float(np.ptp(theirs)) if theirs.size else 0.0)
    variance = (found.left @ found.left + odd**2) / max(n - 1 - len(found.regressors), 1)
    error = math.sqrt(variance * (1 - n / k) / n) / found.share
    return Guess(found.value + found.correction, error)


def filled(seen: FloatArray, whole: FloatArray, caution: float = 0.0) -> FloatArray:
    """Fill in the losses of the other examples, so that all have the mean that is foretold, (k,).

    The arguments are those of `foretold`; ``caution``: by how many standard errors of what is
    foretold the mean lies above it. The losses that are filled in are ones that this evaluation has
    shown, or a neighbour where these cannot have the mean: as many of each as give it, the largest
    where neighbours lose most. So many examples count as neighbours let expect.
    """
    found, guess, n = _regression(seen, whole), foretold(seen, whole), len(seen)
    rest = np.full(whole.shape[1] - n, np.nan)
    hardness = found.slopes @ found.regressors[:, n:]
    if np.isnan(seen).any() or np.isnan(whole).any():
        counts = filled((~np.isnan(seen)).astype(float), (~np.isnan(whole)).astype(float)) > 0
        places = np.flatnonzero(counts[n:])
    else:
        places = np.arange(len(rest))
    if not len(places):
        return np.append(seen, rest)
    y = seen[~np.isnan(seen)]
    mean = guess.value + caution * guess.error
    target = (mean * (len(y) + len(places)) - float(y.sum())) / len(places)
    slack = 1e-9 * float(np.abs(y).max())  # the mean of equal numbers has a rounding error
    is_within = y.min() - slack <= target <= y.max() + slack
    possible = y if is_within else np.append(y, whole[~np.isnan(whole)])
    shown, numbers = np.unique(possible, return_counts=True)
    shares = _tilted(shown, numbers / numbers.sum(), target)
    ranks = (np.arange(len(places)) + 0.5) / len(places)
    at = np.minimum(np.searchsorted(np.cumsum(shares), ranks), len(shown) - 1)
    rest[places[np.argsort(hardness[places], kind="stable")]] = shown[at]
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
        if not len(every):
            continue
        error = every.std() * math.sqrt(max(1 / max(len(first), 1) - 1 / len(every), 0.0))
        if len(first) and abs(first.mean() - every.mean()) > _ODD * error + 1e-12:
            return True
    return False
