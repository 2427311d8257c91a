"""The largest difference between two groups' mean losses."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from riskpilot.common import FloatArray
from riskpilot.statistics.contrasts import Claim, Contrast
from riskpilot.statistics.grouped import by_name
from riskpilot.statistics.kinds.base import check_beside


@final
@dataclass(frozen=True)
class GroupGap(Contrast):
    """The largest difference between two groups' mean losses.

    Parameters
    ----------
    groups : tuple of str, optional
        The names of the groups that count; None for all there are.
    directed : bool, default False
        Whether only the mean of the first named group minus that of the second counts, which may
        be negative.
    within : str, optional
        The name under which labels stand beside the losses. Examples are then compared with those
        of their own label alone, and the label with the largest gap counts. Of positive
        predictions within the true labels this is equalised odds.

    Raises
    ------
    ProblemError
        Where the names of groups or labels are of no use, or a direction lacks its two groups.
    """

    kind: ClassVar[str] = "group_gap"
    noun: ClassVar[str] = "gap"

    within: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.within is not None:
            check_beside(self, "within", self.within, "label")

    def words(self, *, by: str | None = None, larger: bool = False) -> str:
        within = "" if self.within is None else f" within any {self.within}"
        if self.directed and self.groups is not None:
            first, second = self.groups
            return f"mean of {first} minus mean of {second}{by_name(by)}{within}"
        return f"largest gap between groups{by_name(by)}{self._among}{within}"

    def better_when_larger(self, metric: bool) -> bool:
        return False

    @property
    def of_complements(self) -> bool:
        return not self.directed

    @property
    def label_name(self) -> str | None:
        return self.within

    def value_range(self, low: float, high: float) -> tuple[float, float]:
        return low - high if self.directed else 0.0, high - low

    @property
    def largest_deviation(self) -> float:
        of_gap = 1 / math.sqrt(2)  # of a difference of two independent losses that are 0 or 1
        return of_gap / 2 if self.directed else of_gap

    def limit_of_zeros(self, limit: float) -> float:
        return limit  # a gap of 0 leaves as much room below its limit as losses of 0 do

    def value(self, one: FloatArray, other: FloatArray) -> FloatArray:
        return (one - other + 1) / 2 if self.directed else one - other

    def error(
        self, one: FloatArray, error_one: FloatArray, other: FloatArray, error_other: FloatArray
    ) -> FloatArray:
        error: FloatArray = np.sqrt(error_one**2 + error_other**2)
        return error / 2 if self.directed else error

    def claim(self, limit: float) -> Claim:
        return Claim(1.0, -1.0, 2 * limit - 1 if self.directed else limit)
