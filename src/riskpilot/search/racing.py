"""Whether an evaluation is worth finishing, from the first of its validation examples alone.

Objectives are columns: the c risks in the problem's order, then the free objective.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.guarantee import Interval
from riskpilot.search.penalties import cut_at, without_penalties
from riskpilot.search.worlds import passing_chances, volume_added

# What may come of an evaluation is averaged over so many draws.
_DRAWS = 128
# An evaluation is not worth finishing when it gains less than this share of what the free objective
# differs by between evaluations.
_WORTH = 0.003
# A free objective that lies so many times as far beyond those that are likely to pass as these lie
# apart would hide what they differ by.
_FAR = 10.0
# Where the first examples of an earlier evaluation lie so many standard errors from all of them,
# their order is no random one.
_ODD = 5.0


class Guess(NamedTuple):
    """What is foretold of an objective: its value on all examples, and its standard error."""

    value: float
    error: float


def foretold(seen: FloatArray, whole: FloatArray) -> Guess:
    """Foretell a mean over all examples from the first of them.

    ``seen``: losses of the first n examples, NaN where one does not count, shape (n,); ``whole``:
    those of r earlier evaluations on all k examples, shape (r, k). Examples that are hard for one
    configuration are hard for its neighbours, so that these tell how the first examples differ
    from the others: a regression on them corrects the mean.
    """
    counts = ~np.isnan(seen)
    y, k = seen[counts], whole.shape[1]
    n = len(y)
    if n < 2:
        return Guess(0.0, math.inf)
    before = whole[:, : len(seen)][:, counts]
    usable = ~np.isnan(before).any(axis=1)
    before, whole = before[usable], whole[usable]
    shift = np.nanmean(whole, axis=1) - before.mean(axis=1) if len(whole) else np.empty(0)
    centred = before - before.mean(axis=1)[:, None]
    products = centred @ centred.T
    ridge = 1e-3 * np.trace(products) / max(len(products), 1) + 1e-12
    slopes = np.linalg.solve(products + ridge * np.eye(len(products)), centred @ (y - y.mean()))
    left = y - y.mean() - slopes @ centred
    # One more example, as odd as any, stands for what the first ones have not shown.
    odd = max(float(np.ptp(y)), float(np.nanmax(whole) - np.nanmin(whole)) if whole.size else 0.0)
    variance = (left @ left + odd**2) / max(n - 1 - len(whole), 1)
    share_left = 1 - len(seen) / k
    return Guess(float(y.mean() + slopes @ shift), math.sqrt(variance * share_left / n))


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


def is_worth_finishing(
    guesses: Sequence[Guess], known: FloatArray, region: Sequence[Interval]
) -> bool:
    """Tell whether an evaluation may still become a better choice than earlier ones.

    ``guesses``: what is foretold of its c + 1 objectives; ``known``: the objectives of earlier
    evaluations, shape (n, c + 1); ``region``: what passes. What counts is by how much the free
    objective of the choice is expected to gain: a mean over what the evaluation may show and over
    what may pass on calibration data. A free objective of which nothing is known counts as far
    better than all others. Until something known is more likely to pass than not, whatever may
    pass is worth more than nothing, however bad its free objective is.
    """
    means, errors = (np.array(column) for column in zip(*guesses, strict=True))
    if not np.isfinite(errors[:-1]).all():
        return True
    likely = passing_chances(region, known) >= 0.5
    known = _within_reach(
        without_penalties(known), likely, means[-1] if np.isfinite(errors[-1]) else None
    )
    low, high = known[:, -1].min(), known[:, -1].max()
    if not np.isfinite(errors[-1]):
        means[-1], errors[-1] = 2 * low - high - 1e-9, 0.0
    worst = float(max(high, means[-1]))
    spread = worst - float(low)
    is_likely = bool(likely.any())
    # What a search without a choice is worth.
    nothing = worst if is_likely else worst + (spread or 1.0)
    reference = np.append(np.full(len(region), np.inf), nothing)
    half = np.random.default_rng(0).standard_normal((_DRAWS // 2, len(means)))
    draws = means + np.vstack([half, -half]) * errors
    added, _ = volume_added(known, reference, region)
    return bool(added(draws).mean() > _WORTH * spread)


def _within_reach(known: FloatArray, likely: BoolArray, foretold: float | None) -> FloatArray:
    """Bring free objectives down that lie far beyond all that are likely to pass.

    ``known``: the objectives of earlier evaluations, shape (n, c + 1); ``likely``: which of them
    are likely to pass, (n,); ``foretold``: the free objective of the one under way, where it is
    known. Beside a penalty no gain would be worth an evaluation.
    """
    near = np.append(known[likely, -1], [] if foretold is None else [foretold])
    if not likely.any() or np.ptp(near) == 0:
        return known
    return cut_at(known, float(near.max() + _FAR * np.ptp(near)))
