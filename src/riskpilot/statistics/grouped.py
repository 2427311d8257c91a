"""What statistics of groups share: names of groups, sums by group, records."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riskpilot.common import Array, FloatArray, IntArray, Places, is_flag, is_name
from riskpilot.errors import LossError, ProblemError, shown
from riskpilot.statistics.kinds.base import Statistic
from riskpilot.statistics.samples import Groups
from riskpilot.statistics.summaries import (
    AnySummary,
    GroupName,
    GroupSummary,
    Recorded,
    recorded_name,
    stacked,
)
from riskpilot.statistics.sums import Gatherer, GroupSums, WeightedSums


@dataclass(frozen=True)
class Grouped(Statistic):
    """A statistic of the means of groups. ``groups``: the names of those that count, or None for
    all; ``least_groups``: how many it takes."""

    needs_groups: ClassVar[bool] = True
    least_groups: ClassVar[int]

    groups: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _name_groups(self)

    def gatherer(
        self, groups: Groups | None, weights: FloatArray | None, n_configs: int, m: int
    ) -> Gatherer:
        assert groups is not None
        if weights is not None:
            return WeightedSums(weights, n_configs, self, groups)
        return GroupSums(self, groups, n_configs)

    def summary_of(self, records: Sequence[Recorded]) -> AnySummary:
        """A group that only some of the records know has no examples in the others."""
        groups = [{recorded_name(part): part for part in row.groups or ()} for row in records]
        known = tuple(sorted({name for row in groups for name in row}))
        parted = self.label_name is not None
        names: tuple[GroupName, ...] = known if parted or self.groups is None else self.groups
        if not names:
            raise LossError(
                f"A limit on the {self.words()} is about groups, but the records of the trials "
                f"name none. The storage was changed from outside; restore it from a copy."
            )
        nothing = {"n": 0, "total": 0.0, "squares": 0.0, "above_zero": 0, "binary": True}
        sums = tuple(stacked([row.get(name, nothing) for row in groups]) for name in names)
        return GroupSummary(self, names, sums)

    @abstractmethod
    def worst(
        self, names: tuple[GroupName, ...], mean: FloatArray, error: FloatArray, n: IntArray
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return value, standard error and size of the group, or pair of groups, with the largest
        value, shape (n_configs,), from those of each group, shape (n_groups, n_configs)."""

    @property
    def _among(self) -> str:
        return "" if self.groups is None else f" among {', '.join(map(repr, self.groups))}"


def _name_groups(statistic: Grouped) -> None:
    """Turn the names of the groups into a tuple of texts, each named once."""
    groups, kind = statistic.groups, type(statistic).__name__
    least = statistic.least_groups
    if groups is None:
        return
    several = groups.tolist() if isinstance(groups, np.ndarray) else groups
    if isinstance(several, str | bytes | Mapping) or not isinstance(several, Iterable):
        raise ProblemError(
            f"{kind}: groups is a tuple of names, but it is {shown(groups)}. "
            f'Write groups=("female", "male").'
        )
    names = tuple(_group_name(kind, name) for name in several)
    object.__setattr__(statistic, "groups", names)
    if len(names) < least or len(set(names)) < len(names):
        raise ProblemError(
            f"{kind} needs at least {least} different groups, but groups is {shown(names)}. "
            f"Name each once, or leave groups out for all that the data has."
        )


def _group_name(kind: str, name: object) -> str:
    """The name of a group as a text; nothing is guessed about what is neither text nor number."""
    if is_name(name) or (isinstance(name, int | np.integer) and not is_flag(name)):
        with suppress(ValueError):  # Python writes no whole number of thousands of digits
            return str(name)
    raise ProblemError(
        f"{kind}: a group is named by a text or a whole number, but one is {shown(name)}. Write "
        f'the name as a text, as the data has it: groups=("female", "male"); decode bytes.'
    )


def at_position(positions: Places, table: Array) -> Array:
    """One number of each column, shape (n,), from a table of shape (n_groups, n)."""
    return np.asarray(np.take_along_axis(table, positions[None], axis=0)[0])


def by_name(by: str | None) -> str:
    """Say by what the groups are, where the name says something."""
    return "" if by is None else f" by {by}"
