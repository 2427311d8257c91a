"""What is followed label by label: streams of values in [0, 1], each with a limit on its mean.

A statistic says which streams it consists of (`Statistic.streams`; the table of them stands in
`sequential.streams`). A candidate keeps its limit when every stream has been shown to keep its own.
Where a judge helps, its scores of the labelled examples come with their losses, and its scores of
fresh examples are there before the first label (`judged.testing`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from riskpilot.common import BoolArray, FloatArray, IntArray, Places
from riskpilot.statistics.judged.capital import Judged, start_judged
from riskpilot.statistics.judged.testing import add_judged
from riskpilot.statistics.sequential.capital import Capital, add_losses, start_capital
from riskpilot.statistics.sequential.counts import Counts, add_counts, start_counts

# The tests that may be looked at after every label; the last one with the help of a judge.
BOUNDARY = "sequential_boundary"
CAPITAL = "sequential_betting"
JUDGED_CAPITAL = "sequential_judged"

_INSIDE = 1e-12  # limits that cannot be tested are moved this far inside, and never pass


@dataclass(frozen=True)
class Labels:
    """The losses of one risk at the next b labels.

    ``own``: of n candidates in their own units, or differences, shape (n, b), NaN where a label
    does not count; ``unit``: the same on the unit scale. ``lowest``: the smallest number that
    ``own`` can hold. ``codes``: the position of each label's group among those that count, or -1,
    shape (b,); ``weights``: as shares of the largest, shape (b,). ``scores``: those of a judge for
    the same candidates and labels, on the unit scale, shape (n, b).
    """

    own: FloatArray
    unit: FloatArray
    lowest: float
    codes: IntArray | None = None
    weights: FloatArray | None = None
    scores: FloatArray | None = None


Values = Callable[[Labels, Places], FloatArray]
"""The values of a stream from labels of some candidates, whose positions are given; in [0, 1], or
NaN where a label does not count. Of the same shape as the losses."""


@dataclass(frozen=True)
class Stream:
    """Values whose mean is to be shown to be at most a limit.

    ``test``: `BOUNDARY`, `CAPITAL` or `JUDGED_CAPITAL`; ``limits``: on the unit scale, one for all
    candidates or one for each, shape (n,). A candidate whose limit is not in (0, 1) cannot be
    tested. ``conditional``: whether some values may be NaN.
    """

    test: str
    limits: float | FloatArray
    values: Values
    conditional: bool = False


@dataclass(frozen=True)
class Pool:
    """A judge's scores of fresh examples, fixed before the first label.

    ``scores``: on the unit scale, in the order in which they are used, shape (n, M), or (1, M)
    where they are the same for all candidates; NaN where an example does not count. ``binary``:
    whether losses are believed to be 0/1, which steers the bets.
    """

    scores: FloatArray
    binary: bool

    def of(self, at: Places) -> "Pool":
        """Take the scores of some candidates."""
        return self if len(self.scores) == 1 else replace(self, scores=self.scores[at])


@dataclass(frozen=True)
class Followed:
    """What the labels so far say of one stream of some candidates.

    ``testable``: which of them can be tested at all; ``state``: that of the boundary or capital;
    ``pool``: the fresh scores of a judge, where one helps.
    """

    stream: Stream
    positions: Places
    testable: BoolArray
    state: Counts | Capital | Judged
    pool: Pool | None = None

    @property
    def log_p(self) -> FloatArray:
        """The log p-values, shape (n,), valid at any time."""
        return np.where(self.testable, self.state.log_p, 0.0)

    @property
    def hopeless(self) -> BoolArray:
        """Which candidates can no longer be shown to keep this limit, shape (n,)."""
        if isinstance(self.state, Counts):
            return ~self.testable | self.state.hopeless
        over = self.state.labels >= self.state.horizon
        return ~self.testable | (over & ~self.state.crossed)

    @property
    def counted(self) -> IntArray:
        """How many labels counted for each candidate, shape (n,)."""
        return self.state.counted

    def add(self, labels: Labels) -> "Followed":
        """Take the next labels of these candidates."""
        values = self.stream.values(labels, self.positions)
        state: Counts | Capital | Judged
        if isinstance(self.state, Counts):
            state = add_counts(self.state, values)
        elif isinstance(self.state, Capital):
            state = add_losses(self.state, values)
        else:
            assert self.pool is not None
            assert labels.scores is not None
            state = add_judged(self.state, values, labels.scores, self.pool.scores)
        return replace(self, state=state)

    def of(self, rows: Sequence[int] | Places) -> "Followed":
        """Take some of the candidates alone."""
        at = np.asarray(rows, dtype=np.intp)
        return replace(
            self,
            positions=self.positions[at],
            testable=self.testable[at],
            state=_rows(self.state, at),
            pool=None if self.pool is None else self.pool.of(at),
        )


def follow(
    stream: Stream, n: int, delta: float, horizon: int, pool: Pool | None = None
) -> Followed:
    """Begin with n candidates, before the first label; ``pool``: where a judge helps."""
    limits = np.broadcast_to(np.asarray(stream.limits, dtype=np.float64), (n,))
    testable = np.asarray((limits > 0) & (limits < 1))
    inside = np.clip(limits, _INSIDE, 1 - _INSIDE)
    state: Counts | Capital | Judged
    if stream.test == BOUNDARY:
        state = start_counts(n, float(inside[0]), delta, horizon, conditional=stream.conditional)
    elif stream.test == JUDGED_CAPITAL:
        assert pool is not None
        size = pool.scores.shape[1]
        state = start_judged(n, inside, delta, horizon, size, binary=pool.binary)
    else:
        state = start_capital(n, inside, delta, horizon)
    return Followed(stream, np.arange(n), testable, state, pool)


def _rows(state: Counts | Capital | Judged, at: Places) -> Any:
    """Take the candidates at some places; what is common to all of them stays as it is."""
    if isinstance(state, Counts):
        return replace(
            state,
            walks=tuple(state.walks[i] for i in at),
            counts=state.counts[at],
            counted=state.counted[at],
            log_p=state.log_p[at],
        )
    chosen = _last_axis(state, at)
    if isinstance(state, Judged):
        chosen = replace(chosen, block=_last_axis(state.block, at))
    return chosen


def _last_axis(record: Any, at: Places) -> Any:
    """Take some places along the last axis, that of candidates, from every array of a record."""
    arrays = {
        field.name: value[..., at]
        for field in fields(record)
        if isinstance(value := getattr(record, field.name), np.ndarray)
    }
    return replace(record, **arrays)
