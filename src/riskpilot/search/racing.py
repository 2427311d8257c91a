"""Whether an evaluation is worth going on with, from the first of its validation examples alone.

Objectives are columns: the c risks in the problem's order, then the free objective.
"""

import math
from collections.abc import Sequence

import numpy as np

from riskpilot.common.arrays import FloatArray
from riskpilot.guarantee import Interval
from riskpilot.search.foretelling import Guess
from riskpilot.search.penalties import cut_at, without_penalties
from riskpilot.search.worlds import passing_chances, volume_added

# What may come of an evaluation is averaged over so many draws.
_DRAWS = 128
# An evaluation is not worth finishing when it gains less than this share of what the free objective
# differs by between evaluations.
_WORTH = 0.001
# From this chance on an evaluation counts as likely to pass.
_LIKELY = 0.5
# A free objective that lies so many times as far from the best of those that may become the choice
# as these lie apart would hide what they differ by.
_FAR = 10.0
# A risk is known well when what is foretold of it errs by at most so many of the standard errors
# that it has on all examples. A free objective that is a number is when it errs by at most these
# shares of what it differs by between evaluations, and of itself: near zero every bit of it counts.
_WELL = 2.0
# That is so while there are few evaluations. Of many, which lie closer together, more has to be
# known to tell which is better.
_FEW = 10
_WELL_OF_SPREAD, _WELL_OF_VALUE = 0.03, 0.02
# Whoever asks after every example finds a moment at which little seems to be left. So nothing is
# known well before this share of the examples was seen.
_FEWEST = 0.1


def is_known_well(
    guesses: Sequence[Guess], of_sample: FloatArray, known: FloatArray, share: float
) -> bool:
    """Tell whether the other examples would hardly add to what is foretold of an evaluation.

    ``guesses``: what is foretold of its c + 1 objectives; ``of_sample``: the standard errors that
    they have on all examples, (c + 1,), 0 for a free objective that is a number; ``known``: the
    objectives of earlier evaluations, shape (n, c + 1); ``share``: of all examples, that which
    was seen.
    """
    if share < _FEWEST:
        return False
    enough = _WELL * math.sqrt(_FEW / max(len(known), _FEW)) * of_sample
    spread = float(np.ptp(without_penalties(known)[:, -1]))
    of_value = abs(guesses[-1].value)
    number = min(_WELL_OF_SPREAD * spread, _WELL_OF_VALUE * of_value)
    enough[-1] = max(enough[-1], number)
    return all(guess.error <= most for guess, most in zip(guesses, enough, strict=True))


def is_worth_finishing(
    guesses: Sequence[Guess],
    known: FloatArray,
    region: Sequence[Interval],
    *,
    has_safe: bool = True,
) -> bool:
    """Tell whether an evaluation may still become a better choice than earlier ones.

    ``guesses``: what is foretold of its c + 1 objectives; ``known``: the objectives of earlier
    evaluations, shape (n, c + 1); ``region``: what passes. What counts is by how much the free
    objective of the choice is expected to gain: a mean over what the evaluation may show and over
    what may pass on calibration data. A free objective of which nothing is known counts as far
    better than all others. Until something known is more likely to pass than not, and where no
    configuration was named as safe (``has_safe``), whatever may pass is worth more than nothing,
    however bad its free objective is.
    """
    means, errors = (np.array(column) for column in zip(*guesses, strict=True))
    if not np.isfinite(errors[:-1]).all():
        return True
    chances = passing_chances(region, known)
    foretold = means[-1:] if np.isfinite(errors[-1]) else means[:0]
    known = _within_reach(without_penalties(known), chances, foretold)
    low, high = known[:, -1].min(), known[:, -1].max()
    if not np.isfinite(errors[-1]):
        means[-1], errors[-1] = 2 * low - high - max(1e-9, 1e-6 * abs(low)), 0.0
    worst = float(max(high, means[-1]))
    spread = worst - float(low)
    # What a search without a choice is worth.
    is_safe = has_safe and bool((chances >= _LIKELY).any())
    nothing = worst if is_safe else worst + (spread or 1.0)
    reference = np.append(np.full(len(region), np.inf), nothing)
    half = np.random.default_rng(0).standard_normal((_DRAWS // 2, len(means)))
    draws = means + np.vstack([half, -half]) * errors
    added, _ = volume_added(known, reference, region)
    return bool(added(draws).mean() > _WORTH * spread)


def _within_reach(known: FloatArray, chances: FloatArray, foretold: FloatArray) -> FloatArray:
    """Bring free objectives down that lie far beyond what an evaluation can still change.

    Beside a penalty no gain would be worth an evaluation, even where the penalty itself is likely
    to pass. What counts is how far those lie apart that may become the choice: likely to pass, and
    for none of them a better one is as likely to. The half of them with the worst free objectives
    has no say, as a price for low risks may be as high as a penalty.

    ``known``: the objectives of earlier evaluations, shape (n, c + 1); ``chances``: theirs to pass,
    (n,); ``foretold``: the free objective of the one under way where it is known, else empty.
    """
    rows = np.lexsort([-chances, known[:, -1]])
    rows = rows[chances[rows] >= _LIKELY]
    if not rows.size:
        return known
    of_better = np.maximum.accumulate(np.append(-np.inf, chances[rows]))[:-1]
    near = np.unique(np.append(known[rows[chances[rows] > of_better], -1], foretold))
    if near.size == 1:
        return known
    return cut_at(known, float(near[0] + _FAR * (near[len(near) // 2] - near[0])))
