"""Whether two tables of losses are of the same examples, or of many of the same."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

from riskpilot.common import Places

Patterns = npt.NDArray[np.uint64]
"""A number for each of m examples, equal where all their losses are equal, shape (m,)."""

NO_PATTERN: Patterns = np.zeros(1, dtype=np.uint64)  # what stands for no row
_RARE = np.log(1e9)  # what happens less often than once in 10^9 times is taken for no accident
_STAKE = 3.0  # the logarithm of what a bet on an event returns; any number makes it a fair one
_IN_SKETCH = 150  # examples; fewer shared ones tell
_DIGITS = re.compile("([0-9]+)")


def patterns_of(
    rows: Iterable[npt.NDArray[Any]],
    kind: type[np.floating[Any]] = np.float64,
    *,
    by_range: bool = True,
) -> Patterns:
    """Give each example a number that stands for its losses in all rows, each of shape (m,).

    The rows may come one by one, and none is kept. ``kind``: the precision in which the losses were
    written; ``by_range``: whether a row is measured by its range, so that its unit does not matter.
    """
    found = NO_PATTERN
    for row in rows:
        found = with_row(found, row, kind, by_range=by_range)
    return found


def with_row(
    found: Patterns,
    row: npt.NDArray[Any],
    kind: type[np.floating[Any]] = np.float64,
    *,
    by_range: bool = True,
) -> Patterns:
    """Let patterns stand for one more row of losses, as `patterns_of` says."""
    with np.errstate(over="ignore"):  # beyond the range of single precision all are alike
        losses = row.astype(kind).astype(np.float64)
    finite = losses[np.isfinite(losses)] if by_range else losses[:0]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    scaled = ((losses - low) / (high - low or 1.0)).astype("<f4") + np.float32(0)
    scaled[np.isnan(scaled)] = np.nan  # one bit pattern for every NaN
    return _mixed(found * np.uint64(31) + scaled.view("<u4").astype(np.uint64))


def _mixed(numbers: Patterns) -> Patterns:
    """Scatter numbers over all that 64 bits can hold, as the generator SplitMix64 does."""
    found = numbers + np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


def order_tells(patterns: npt.NDArray[Any]) -> bool:
    """Say whether another sample would hardly show the same losses in the same order."""
    return bool(_log_orders(_counts(patterns)) > _RARE)


def counts_tell(patterns: npt.NDArray[Any]) -> bool:
    """Say whether another sample would hardly show the same losses in any order.

    With m examples of which c_j show the j-th pattern, another sample of independent examples has
    the same counts with probability at most m! / (c_1! c_2! ...) * (c_1/m)^c_1 (c_2/m)^c_2 ...,
    whatever it is drawn from: no distribution makes them likelier than their own shares do. One
    column of 0/1 losses never tells; many different losses, or patterns of many columns, do.
    """
    counts = _counts(patterns)
    return bool(_log_orders(counts) + xlogy(counts, counts / counts.sum()).sum() < -_RARE)


def overlap_tells(
    seen: npt.NDArray[Any], fresh: npt.NDArray[Any], n_in_all: int | None = None
) -> bool:
    """Say whether two samples share half of the smaller one, which others hardly would.

    ``n_in_all``: how many examples a search was given, where ``seen`` are the first of these and
    stand for all of them.

    Let two samples of k and of m independent examples be drawn from whatever two distributions. If
    k and m were Poisson numbers, each of the n examples that show a pattern would lie in the first
    sample with one probability. So the pattern occurs in both samples with probability at most
    1 - 2^(1 - n), and equally often with probability at most (n choose n / 2) 2^-n, independently
    of other patterns, and evidence exceeds log(10^9) at most once in 10^9 times. That k and m are
    what they are has a probability of at least 1 / (e^2 sqrt(k m)). One column of 0/1 losses never
    tells.
    """
    k, m = len(seen), len(fresh)
    fewest = _fewest_shared(k, m, k if n_in_all is None else n_in_all)
    if found_in(seen, fresh) < fewest:
        return False
    patterns, code = np.unique(np.concatenate([seen, fresh]), return_inverse=True)
    one, other = (np.bincount(part, minlength=len(patterns)) for part in (code[:k], code[k:]))
    if np.minimum(one, other).sum() < fewest:
        return False
    n = (one + other).astype(np.float64)
    in_both = 1 - np.exp2(1 - n)
    halved = np.exp(gammaln(n + 1) - 2 * gammaln(n / 2 + 1) - n * np.log(2))
    equal = np.where(n % 2 == 0, halved, 0.0)
    evidence = max(_evidence((one > 0) & (other > 0), in_both), _evidence(one == other, equal))
    return bool(evidence > _RARE + np.log(2) + 2 + np.log(k * m) / 2)


def _fewest_shared(n: int, m: int, k: int) -> float:
    """Return how many of the first n of k examples are shared where half of all are.

    Where m examples share half of the smaller sample with all k, in any order, the first n have
    fewer than these once in some 700 times.
    """
    half = min(k, m) / 2
    deviation = np.sqrt(n * half / k * (1 - half / k) * (1 - n / k))
    return float(n * half / k - 3 * deviation)


def found_in(seen: npt.NDArray[Any], fresh: npt.NDArray[Any]) -> int:
    """Count the fresh examples whose patterns a sample that was seen shows, in little memory."""
    known = np.sort(seen)
    places = np.searchsorted(known, fresh)
    places[places == len(known)] = 0
    return int((known[places] == fresh).sum())


@dataclass(frozen=True)
class Sketch:
    """What is kept of the losses of an evaluation that was ended, to know its examples again.

    ``n_evaluated`` of ``n_examples`` were evaluated; ``in_order``: the digest of their patterns;
    None where others could well show these in this order; ``patterns``: those of some of them,
    in 32 bits and sorted.
    """

    n_evaluated: int
    n_examples: int
    in_order: str | None
    patterns: npt.NDArray[np.uint32]

    def shows(self, fresh: Patterns) -> bool:
        """Say whether fresh examples are those evaluated, or many of them, in whatever order."""
        n = self.n_evaluated
        if self.in_order is not None and len(fresh) >= n and _digest(fresh[:n]) == self.in_order:
            return True
        some = _some(fresh, n)
        if not (len(self.patterns) and len(some)):
            return False
        of_all = round(len(self.patterns) * self.n_examples / n)
        return overlap_tells(self.patterns, some, of_all)


def sketch_of(evaluated: Patterns, n_examples: int) -> Sketch:
    """Keep what tells the first examples of an evaluation, ``n_examples`` long, from others.

    Which of their patterns are kept hangs on the patterns alone, so that of another sample the same
    ones are looked at.
    """
    n = len(evaluated)
    in_order = _digest(evaluated) if order_tells(evaluated) else None
    some = _some(evaluated, n)
    # Many examples with the same pattern tell nothing, and are not kept.
    return Sketch(n, n_examples, in_order, some if len(some) <= 2 * _IN_SKETCH else some[:0])


def _some(patterns: Patterns, n: int) -> npt.NDArray[np.uint32]:
    """Return those patterns of which about as many as a sketch holds are expected among n."""
    short = (patterns >> np.uint64(32)).astype(np.uint32)
    return np.sort(short[short < 2**32 * min(1.0, _IN_SKETCH / n)])


def _digest(patterns: Patterns) -> str:
    """Compute the digest of patterns in their order."""
    return hashlib.sha256(patterns.astype("<u8").tobytes()).hexdigest()


def _evidence(found: npt.NDArray[np.bool_], chance: npt.NDArray[np.float64]) -> float:
    """Weigh that events were found against their chances, as the logarithm of a fair bet on them:
    its mean is 1 where the events are independent and have these chances, and smaller with others.
    """
    return float((_STAKE * found - np.log1p(np.expm1(_STAKE) * chance)).sum())


def _counts(patterns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Count the examples of each pattern."""
    return np.unique(patterns, return_counts=True)[1].astype(np.int64)


def _log_orders(counts: npt.NDArray[np.int64]) -> float:
    """Compute the logarithm of the number of orders in which patterns could stand."""
    return float(gammaln(counts.sum() + 1) - gammaln(counts + 1).sum())


def orders_of(ids: Sequence[str] | npt.NDArray[Any]) -> list[Places]:
    """Return the orders of examples that their ids suggest: as texts, and as they are counted.

    >>> [order.tolist() for order in orders_of(["q2", "q10", "q1"])]
    [[2, 1, 0], [2, 0, 1]]
    """
    texts = [str(one) for one in ids]
    keys = (texts, [_counted(text) for text in texts])
    return [np.array(sorted(range(len(texts)), key=key.__getitem__)) for key in keys]


def _counted(text: str) -> list[tuple[int, str]]:
    """Make a key that sorts texts by the sizes of the numbers in them: q2 before q10."""
    parts = _DIGITS.split(text)
    sizes = (part.lstrip("0") if i % 2 else part for i, part in enumerate(parts))
    return [(len(part) if i % 2 else 0, part) for i, part in enumerate(sizes)]
