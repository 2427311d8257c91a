"""What a statistic reads: losses with what stands beside them, and how they are to be tested."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from riskpilot.common import FloatArray, IntArray, Places
from riskpilot.statistics.families import Start
from riskpilot.statistics.summaries import AnySummary, GroupName


@dataclass(frozen=True)
class Groups:
    """``names`` of the groups, and for each example the position of its group among them, or -1
    where it belongs to none of them; shape (m,)."""

    names: tuple[GroupName, ...]
    codes: IntArray


class Sample(Protocol):
    """The losses of n configurations on m examples, checked; what is per example has shape (m,).

    ``summary``: their sums. ``weights``: as shares of the largest. ``span``: the smallest and the
    largest loss, or difference, that there can be. ``may_be_nan``: whether some may not count.
    """

    @property
    def n_examples(self) -> int: ...
    @property
    def summary(self) -> AnySummary: ...
    @property
    def groups(self) -> Groups | None: ...
    @property
    def weights(self) -> FloatArray | None: ...
    @property
    def span(self) -> tuple[float, float]: ...
    @property
    def may_be_nan(self) -> bool: ...

    def rows(self, rows: Sequence[int]) -> FloatArray:
        """Return the losses of some configurations in their own units, shape (len(rows), m)."""

    def unit_rows(self, rows: Sequence[int]) -> FloatArray:
        """Return the losses of some configurations on the unit scale, shape (len(rows), m)."""

    def unit_part(self, rows: Places, columns: Places) -> FloatArray:
        """Return some losses on the unit scale, shape (len(rows), len(columns))."""


@dataclass(frozen=True)
class Limit:
    """A limit on the ``unit`` scale of the statistic, and in its ``own`` units."""

    unit: float
    own: float


@dataclass(frozen=True)
class TestSettings:
    """What is fixed before calibration is opened.

    ``family``: of the p-value; ``aim``: the level at which p-values are to be sharp, one for all
    rows or one for each; ``seed``: of the order of the examples; ``starts``: what validation data
    says of the losses that are bet on, one for each group of a worst group, one otherwise; none
    where it says nothing. ``thresholds``: where the tail of each row begins, on the unit scale;
    None where no tail is tested.
    """

    __test__: ClassVar[bool] = False  # not a test case, whatever its name says

    family: str
    aim: float | FloatArray
    seed: int
    starts: tuple[Start, ...] = ()
    thresholds: FloatArray | None = None

    def start(self, group: int | None = None) -> Start | None:
        """What bets on the losses begin with, those of one group where one is named."""
        return self.starts[group or 0] if self.starts else None
