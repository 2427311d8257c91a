"""What is common to capitals over labels that arrive: their record, their checks and their blocks.

Bets stay the same for a short block of labels, which makes the computation fast. The blocks end at
label numbers that follow from the horizon alone, and sums are made in the order of the labels, so
that a result never depends on how the labels were divided into batches.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import BoolArray, FloatArray, IntArray
from riskpilot.errors import LossError, LossRangeError, ProblemError


@dataclass(frozen=True)
class Bettor:
    """What every bet on n candidates, label by label, is made with.

    Attributes
    ----------
    limit : array of shape (n,)
        Limits on the unit scale, in (0, 1).
    delta, power : float
        The level that is played for, and how early: see `riskpilot.statistics.sequential.bets`.
    horizon : int
        The number of labels that the bets are made for.
    labels : int
        How many labels there were.
    best, target : array of shape (n,)
        Logs of the largest capital so far, and of the one that is played for.
    counted : array of int, shape (n,)
        How many labels counted.
    block_end : int
        The label after which bets are made anew.
    """

    limit: FloatArray
    delta: float
    power: float
    horizon: int
    labels: int
    best: FloatArray
    target: FloatArray
    counted: IntArray
    block_end: int

    @property
    def log_p(self) -> FloatArray:
        """log p-values of "the risk is at its limit or above", shape (n,); valid at any time."""
        return -self.best

    @property
    def crossed(self) -> BoolArray:
        """Which candidates have been shown to keep their limit at level delta, shape (n,)."""
        return self.log_p < math.log(self.delta)

    @property
    def next_block_end(self) -> int:
        """The label at which the block ends that begins now."""
        return block_end_after(self.labels, self.horizon)

    @property
    def all_counted(self) -> FloatArray:
        """How many labels will have counted at the horizon, if they go on at the rate so far."""
        rate = (self.counted + 1) / (self.labels + 1)
        return np.asarray(self.counted + rate * max(self.horizon - self.labels, 1))

    def next_target(self, log_capital: FloatArray) -> FloatArray:
        """Return the logs of the capital to play for. Past a target it is the next one, since the
        largest capital is kept whatever comes."""
        beyond = log_capital + math.log(1 / self.delta)
        return np.where(log_capital >= self.target, beyond, self.target)


AnyBettor = TypeVar("AnyBettor", bound=Bettor)


def at_the_start(
    n: int, limit: npt.ArrayLike, delta: float, horizon: int, power: float
) -> dict[str, Any]:
    """Return the fields of a `Bettor` before the first label, with a capital of 1; checked."""
    limits = np.broadcast_to(np.asarray(limit, dtype=np.float64), (n,)).copy()
    if not ((limits > 0) & (limits < 1)).all() or not 0 < delta < 1 or horizon < 1:
        raise ProblemError(
            f"Betting needs limits and delta in (0, 1) and a horizon of at least 1, but they are "
            f"{limit!r}, {delta!r} and {horizon!r}. Put the losses on the unit scale first."
        )
    return {
        "limit": limits,
        "delta": float(delta),
        "power": float(power),
        "horizon": int(horizon),
        "labels": 0,
        "best": np.zeros(n),
        "target": np.full(n, math.log(1 / delta)),
        "counted": np.zeros(n, np.int64),
        "block_end": 0,
    }


def block_end_after(labels: int, horizon: int) -> int:
    """The label at which the block ends that begins after ``labels`` labels.

    Blocks are short against the past, whose statistics they use, and against the time left, after
    which every bet must have been made.

    >>> [block_end_after(labels, 1000) for labels in (0, 7, 100, 990)]
    [1, 8, 109, 991]
    """
    return labels + max(1, min(labels // 4, (horizon - labels) // 100))


def in_blocks(
    state: AnyBettor,
    n_labels: int,
    add: Callable[[AnyBettor, slice], AnyBettor],
    settle: Callable[[AnyBettor], AnyBettor],
) -> AnyBettor:
    """Add the next labels block by block.

    ``add``: takes the labels of a part of one block; ``settle``: makes the bets of the next block.
    """
    start = 0
    while start < n_labels:
        stop = min(start + state.block_end - state.labels, n_labels)
        state = add(state, slice(start, stop))
        if state.labels == state.block_end:
            state = settle(state)
        start = stop
    return state


def running_sums(start: FloatArray, terms: FloatArray) -> FloatArray:
    """Running sums along the last axis that go on from ``start``, which lacks that axis.

    >>> running_sums(np.array([1.0]), np.array([[2.0, 3.0]]))
    array([[3., 6.]])
    """
    joined = np.concatenate([start[..., None], terms], axis=-1)
    return np.asarray(np.add.accumulate(joined, axis=-1)[..., 1:])


def losses_of(n: int, losses: npt.ArrayLike) -> FloatArray:
    """Return the losses of n candidates at the next b labels as an array of shape (n, b)."""
    values = np.asarray(losses, dtype=np.float64)
    if values.ndim != 2 or len(values) != n:
        raise LossError(
            f"Losses of {n} candidates need the shape ({n}, b), but they have {values.shape}. "
            f"Pass one row for each candidate and one column for each label."
        )
    return values


def check_unit(what: str, values: FloatArray) -> None:
    """Refuse numbers outside [0, 1]; NaN is none. ``what``: how the error calls them."""
    if (values < 0).any() or (values > 1).any():
        worst = float(values.flat[np.nanargmax(np.abs(values - 0.5))])
        raise LossRangeError(
            f"{what} lie in [0, 1] on the unit scale, but one is {worst:g}. Declare the range of "
            f"the losses before the labels are seen, and bring all numbers to it."
        )
