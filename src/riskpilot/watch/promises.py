"""What is watched of each risk of a certificate: one place turns limits into streams.

A risk becomes one or more streams of values in [0, 1], each with a limit (see `streams`). What a
statistic becomes is one class here, and one line in the table of them; a statistic that is not in
the table is refused.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, final

from riskpilot.common import FloatArray, exact, one_minus
from riskpilot.errors import ProblemError, type_in_words
from riskpilot.losses import DeployedLosses
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import (
    CVaR,
    Difference,
    GroupGap,
    Mean,
    Quantile,
    Ratio,
    Statistic,
    WorstGroup,
)
from riskpilot.watch.blocks import Block, Contrast, fill_blocks, gap, ratio
from riskpilot.watch.streams import group_shares, group_values, quantile_values, tail_values

GroupKey = str | tuple[str, str]
"""The name of a group, or a group and a label, where groups are compared within labels."""


@dataclass(frozen=True)
class Stream:
    """One stream of a risk, in the words and units in which people hear of it.

    ``group``: the group, or the pair of groups, that it is about, in words; None where it is about
    all examples. ``what``: what its numbers are. ``limit``: in the units of these numbers, which
    are ``offset + factor * value``. ``unit_limit``: the limit of the values. ``share``: of the
    false alarms of its risk. ``counted``: what each value is made of.
    """

    group: str | None
    what: str
    limit: float
    unit_limit: float
    share: float = 1.0
    offset: float = 0.0
    factor: float = 1.0
    counted: str = "labels"

    def shown(self, value: float) -> float:
        """Return a value of the unit scale, or a bound on one, in the units of the numbers."""
        return self.offset + self.factor * value


@dataclass(frozen=True)
class Promise(ABC):
    """The promise of one risk, as it is watched. Its classes are abstract or final.

    ``names``: the groups that the certificate names for the risk, none where it has no groups.
    ``sampled``: whether examples are labelled with probabilities that differ.
    """

    takes_samples: ClassVar[bool] = True

    risk: Risk
    names: tuple[GroupKey, ...] = ()
    sampled: bool = False

    def __post_init__(self) -> None:
        if self.sampled and not self.takes_samples:
            raise ProblemError(
                f"Risk {self.risk.name!r}: no valid watch is known here for "
                f"{type_in_words(self.risk.statistic)} of examples that are labelled with "
                f"different probabilities, but largest_weight is given. Label every example with "
                f"the same probability, and leave largest_weight out."
            )

    @property
    def weighted(self) -> bool:
        """Whether the labels of this risk have weights."""
        return self.sampled or self.risk.weights is not None

    @property
    @abstractmethod
    def streams(self) -> tuple[Stream, ...]:
        """The streams of the risk; their shares sum to 1."""

    @property
    def n_blocks(self) -> int:
        """How many blocks of examples are filled between two updates."""
        return 0

    @abstractmethod
    def values(
        self, labels: DeployedLosses, blocks: Sequence[Block]
    ) -> tuple[FloatArray, Sequence[Block]]:
        """Turn labels into values of shape (b, streams), and fill the blocks further."""


@final
class MeanPromise(Promise):
    """The losses themselves, or differences from a reference, on the unit scale."""

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        risk = self.risk
        return (
            Stream(
                group=None,
                what=risk.title,
                limit=_limit(risk),
                unit_limit=risk.unit_limit,
                offset=risk.bottom,
                factor=risk.width,
            ),
        )

    def values(
        self, labels: DeployedLosses, blocks: Sequence[Block]
    ) -> tuple[FloatArray, Sequence[Block]]:
        return labels.unit[:, None], blocks


@final
class GroupsPromise(Promise):
    """The losses of each group, and those of all groups together."""

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        risk, shares = self.risk, group_shares(len(self.names))
        together = ["all groups together"] if len(self.names) > 1 else []
        by = f" by {risk.groups}" if risk.groups != "groups" else ""
        return tuple(
            Stream(
                group=group,
                what=f"{risk.label} of a group{by}",
                limit=_limit(risk),
                unit_limit=risk.unit_limit,
                share=share,
                offset=risk.bottom,
                factor=risk.width,
            )
            for group, share in zip([*together, *map(in_words, self.names)], shares, strict=True)
        )

    def values(
        self, labels: DeployedLosses, blocks: Sequence[Block]
    ) -> tuple[FloatArray, Sequence[Block]]:
        assert labels.groups is not None
        return group_values(labels.unit, labels.groups, self.names), blocks


@final
class QuantilePromise(Promise):
    """Whether a loss is above the limit, of which a share is allowed to be."""

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        risk = self.risk
        assert isinstance(risk.statistic, Quantile)
        allowed = one_minus(risk.statistic.level)
        what = f"share of examples with {risk.label} above {exact(_limit(risk))}"
        return (Stream(group=None, what=what, limit=allowed, unit_limit=allowed),)

    def values(
        self, labels: DeployedLosses, blocks: Sequence[Block]
    ) -> tuple[FloatArray, Sequence[Block]]:
        return quantile_values(labels.own, _limit(self.risk))[:, None], blocks


@final
class TailPromise(Promise):
    """The losses above the limit; all others are counted as the smallest loss."""

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        risk = self.risk
        assert isinstance(risk.statistic, CVaR)
        share = one_minus(risk.statistic.level)
        limit = _limit(risk)
        what = f"mean {risk.label}, losses up to {exact(limit)} counted as {exact(risk.low)}"
        unit_limit = share * risk.unit_limit
        return (
            Stream(
                group=None,
                what=what,
                limit=risk.from_unit(unit_limit),
                unit_limit=unit_limit,
                offset=risk.bottom,
                factor=risk.width,
            ),
        )

    def values(
        self, labels: DeployedLosses, blocks: Sequence[Block]
    ) -> tuple[FloatArray, Sequence[Block]]:
        return tail_values(labels.unit, self.risk.unit_limit)[:, None], blocks


@dataclass(frozen=True)
class ContrastPromise(Promise):
    """Comparisons of two groups, in blocks of examples."""

    takes_samples: ClassVar[bool] = False

    @abstractmethod
    def _contrast(self, first: GroupKey, second: GroupKey) -> Contrast:
        """Make the claims about two groups."""

    @abstractmethod
    def _words(self, contrast: Contrast, claim: int) -> tuple[str, str, float]:
        """Say which groups a claim compares, what its numbers are, and their limit."""

    @property
    def _directed(self) -> bool:
        statistic = self.risk.statistic
        assert isinstance(statistic, GroupGap | Ratio)
        return statistic.directed

    @cached_property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The pairs of groups that are compared: those of the same label, where labels part them.
        A directed comparison is of the first named group with the second."""
        statistic = self.risk.statistic
        assert isinstance(statistic, GroupGap | Ratio)
        pairs = [(a, b) for a, b in combinations(self.names, 2) if _label(a) == _label(b)]
        if statistic.directed:
            assert statistic.groups is not None
            first = statistic.groups[0]
            pairs = [(a, b) if _group(a) == first else (b, a) for a, b in pairs]
        return tuple(self._contrast(a, b) for a, b in pairs)

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        claims = [(contrast, i) for contrast in self.contrasts for i in range(len(contrast.claims))]
        width = self.risk.high - self.risk.low
        found = []
        for contrast, i in claims:
            claim = contrast.claims[i]
            group, what, limit = self._words(contrast, i)
            found.append(
                Stream(
                    group=group,
                    what=what,
                    limit=limit,
                    unit_limit=claim.limit,
                    share=1 / len(claims),
                    offset=width * claim.low,
                    factor=width * claim.width,
                    counted="blocks of labels",
                )
            )
        return tuple(found)

    @property
    def n_blocks(self) -> int:
        return len(self.contrasts)

    def values(
        self, labels: DeployedLosses, blocks: Sequence[Block]
    ) -> tuple[FloatArray, Sequence[Block]]:
        assert labels.groups is not None
        return fill_blocks(self.contrasts, blocks, labels.unit, labels.groups)


@final
class GapPromise(ContrastPromise):
    """The mean of one group minus that of another, in one direction or in both."""

    def _contrast(self, first: GroupKey, second: GroupKey) -> Contrast:
        unit = self.risk.unit_limit
        return gap(first, second, 2 * unit - 1 if self._directed else unit, directed=self._directed)

    def _words(self, contrast: Contrast, claim: int) -> tuple[str, str, float]:
        one, other = _pair(contrast, claim)
        return f"{one} minus {other}", f"gap of {self.risk.name} between groups", _limit(self.risk)


@final
class RatioPromise(ContrastPromise):
    """A share of the mean of one group minus the mean of another, which must not be above 0."""

    def _contrast(self, first: GroupKey, second: GroupKey) -> Contrast:
        return ratio(first, second, self.risk.unit_limit, directed=self._directed)

    def _words(self, contrast: Contrast, claim: int) -> tuple[str, str, float]:
        one, other = _pair(contrast, claim)
        kept = exact(one_minus(self.risk.unit_limit))
        what = f"{kept} times the mean {self.risk.name} of one group minus that of the other"
        return f"{kept} times {other} minus {one}", what, 0.0


_WATCHED: Mapping[type[Statistic], type[Promise]] = {
    Mean: MeanPromise,
    Difference: MeanPromise,
    WorstGroup: GroupsPromise,
    GroupGap: GapPromise,
    Ratio: RatioPromise,
    Quantile: QuantilePromise,
    CVaR: TailPromise,
}


def promises_of(
    problem: Problem, groups: Mapping[str, Sequence[Any]], *, sampled: bool
) -> tuple[Promise, ...]:
    """Say how each risk of a problem is watched.

    Parameters
    ----------
    problem : Problem
        That of the certificate.
    groups : mapping of str to sequence
        The groups that the certificate names, by risk.
    sampled : bool
        Whether examples are labelled with probabilities that differ.

    Returns
    -------
    tuple of Promise
        One for each risk, in the order of the problem.

    Raises
    ------
    ProblemError
        Where no valid watch of a statistic is known.
    """
    found = []
    for risk in problem.risks:
        kind = _WATCHED.get(type(risk.statistic))
        if kind is None:
            raise ProblemError(
                f"Risk {risk.name!r}: no watch is known for {type_in_words(risk.statistic)}. "
                f"Watch a certificate of another statistic: "
                f"{', '.join(each.__name__ for each in _WATCHED)}."
            )
        names = tuple(
            name if isinstance(name, str) else (name[0], name[1])
            for name in groups.get(risk.name, ())
        )
        found.append(kind(risk, names, sampled))
    return tuple(found)


def in_words(key: Hashable) -> str:
    """Write the key of a group for people.

    >>> in_words("female"), in_words(("female", "1"))
    ('female', 'female of label 1')
    """
    return key if isinstance(key, str) else f"{_group(key)} of label {_label(key)}"


def _limit(risk: Risk) -> float:
    """Return the limit of a risk, which a certificate always has."""
    assert risk.limit is not None
    return risk.limit


def _group(key: Any) -> str:
    return str(key) if isinstance(key, str) else str(key[0])


def _label(key: Any) -> str | None:
    return None if isinstance(key, str) else str(key[1])


def _pair(contrast: Contrast, claim: int) -> tuple[str, str]:
    """Name the groups of a claim: the second claim is the first one with the groups exchanged."""
    pair = in_words(contrast.first), in_words(contrast.second)
    return pair if claim == 0 else (pair[1], pair[0])
