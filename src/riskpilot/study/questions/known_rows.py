"""Digests by which a ledger knows calibration losses again, whatever order they are listed in."""

import hashlib
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.common import IntArray
from riskpilot.losses import TextArray, counts_tell, order_tells, orders_of, patterns_of

# The same losses may be given in single precision, where some can no longer be told apart.
_KINDS = (np.float64, np.float32)


def known_rows(tables: Sequence[npt.ArrayLike], ids: TextArray | None = None) -> list[str]:
    """Return short digests of the candidates' losses, for losses that another sample hardly has.

    ``tables``: the losses of each risk, shape (n_candidates, m); ``ids``: of the m examples, where
    they are known. A digest is that of the examples' places when they are sorted by their losses,
    equal losses in one place, as the examples are listed and in the orders of their ids. Others
    stand for the losses in any order: of each candidate, and of all candidates together. None of
    them hangs on what a risk makes of the losses: on weights and groups, the declared range, a
    reference, their type and unit.
    """
    arrays = [np.asarray(table) for table in tables]
    orders = [] if ids is None else orders_of(ids)
    found: set[str] = set()
    # Row by row, because the losses of all candidates may be all that the memory holds.
    for row in chain.from_iterable(arrays):
        for kind in _KINDS:
            places = _places(row, kind)
            if order_tells(places):
                listed = [places, *(places[order] for order in orders)]
                found.update(_digest(each.astype("<i8")) for each in listed)
            found.update(_in_any_order([row], kind))
    for kind in _KINDS:
        found.update(_in_any_order(list(chain.from_iterable(arrays)), kind))
    return sorted(found)


def _in_any_order(rows: Sequence[npt.NDArray[Any]], kind: type[np.floating[Any]]) -> list[str]:
    """Return the digest of rows in any order of their examples, if it says anything."""
    patterns = patterns_of(rows, kind)
    return [f"any:{_digest(np.sort(patterns))}"] if counts_tell(patterns) else []


def _places(losses: npt.NDArray[Any], kind: type[np.floating[Any]]) -> IntArray:
    """Number the different losses of a row from the smallest on; those that do not count are last.

    ``kind``: the precision in which they are compared.
    """
    with np.errstate(over="ignore"):  # beyond the range of single precision all are alike
        compared = losses.astype(kind)
    return np.unique(compared, return_inverse=True)[1].astype(np.int64)


def _digest(numbers: npt.NDArray[Any]) -> str:
    """Compute a short digest."""
    return hashlib.sha256(numbers.tobytes()).hexdigest()[:16]
