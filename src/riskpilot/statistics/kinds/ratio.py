"""One minus the smallest ratio of two groups' mean losses."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from riskpilot.common import FloatArray
from riskpilot.statistics.contrasts import Claim, Contrast
from riskpilot.statistics.grouped import by_name


@final
@dataclass(frozen=True)
class Ratio(Contrast):
    """One minus the smallest ratio of two groups' mean losses: 0 where all groups are alike.

    "The rate of every group is at least 80 % of any other's" is a limit of 0.2, or
    ``at_least=0.8``.

    Parameters
    ----------
    groups : tuple of str, optional
        The names of the groups that count; None for all there are.
    directed : bool, default False
        Whether only the ratio of the first named group to the second counts.

    Raises
    ------
    ProblemError
        Where the names of groups are of no use, or a direction lacks its two groups.
    """

    kind: ClassVar[str] = "ratio"
    noun: ClassVar[str] = "ratio"
    from_zero: ClassVar[bool] = True
    assumed: ClassVar[str] = "the groups' means are about 0.8; it takes more where they are smaller"
    power_hangs_on: ClassVar[str | None] = "how large the groups' means are"

    def words(self, *, by: str | None = None, larger: bool = False) -> str:
        less = "" if larger else "one minus the "
        if self.directed and self.groups is not None:
            first, second = self.groups
            return f"{less}ratio of {first} to {second}{by_name(by)}"
        return f"{less}smallest ratio of groups{by_name(by)}{self._among}"

    def better_when_larger(self, metric: bool) -> bool:
        return True

    @property
    def of_complements(self) -> bool:
        return False

    def value_range(self, low: float, high: float) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def largest_deviation(self) -> float:
        return 1 / math.sqrt(2)  # as that of a gap, which it is of means near 1

    @property
    def widest_deviation(self) -> float:
        return math.inf  # the smaller the means, the wider their ratio is spread

    def limit_of_zeros(self, limit: float) -> float:
        # Of r y - x in [-1, r] at 0. The best that two groups can be in both directions is alike.
        return 1 / (2 - limit) if self.directed else limit

    def value(self, one: FloatArray, other: FloatArray) -> FloatArray:
        return 1 - _ratio(one, other)

    def error(
        self, one: FloatArray, error_one: FloatArray, other: FloatArray, error_other: FloatArray
    ) -> FloatArray:
        ratio, base = _ratio(one, other), np.maximum(other, 1e-12)
        return np.minimum(np.sqrt(error_one**2 + (ratio * error_other) ** 2) / base, 1.0)

    def claim(self, limit: float) -> Claim:
        return Claim(-1.0, 1 - limit, 0.0)  # r y - x <= 0


def _ratio(one: FloatArray, other: FloatArray) -> FloatArray:
    """Divide two means; where the second is 0 the ratio is 1, since none is below nothing."""
    return np.where(other > 0, one / np.maximum(other, 1e-12), 1.0)
