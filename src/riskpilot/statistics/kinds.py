"""What is limited about a loss: its mean, its worst group, a gap between groups, its tail, how far
it lies above a reference."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from riskpilot.common import finite_number, is_flag, is_name, one_minus, percent, told
from riskpilot.errors import ProblemError


@dataclass(frozen=True)
class Mean:
    """The mean loss: E[L], or E[L given a condition] where some losses are NaN."""


@dataclass(frozen=True)
class WorstGroup:
    """The largest of the groups' mean losses.

    Parameters
    ----------
    groups : tuple of str, optional
        The names of the groups that count; None for all there are.

    Raises
    ------
    ProblemError
        Where the names are no texts or whole numbers, or one stands twice.
    """

    groups: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _name_groups(self, least=1)


@dataclass(frozen=True)
class GroupGap:
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

    groups: tuple[str, ...] | None = None
    directed: bool = False
    within: str | None = None

    def __post_init__(self) -> None:
        _name_groups(self, least=2)
        _two_if_directed(self)
        if self.within is not None:
            _check_beside(self, "within", self.within, "label")


@dataclass(frozen=True)
class Ratio:
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

    groups: tuple[str, ...] | None = None
    directed: bool = False

    def __post_init__(self) -> None:
        _name_groups(self, least=2)
        _two_if_directed(self)


@dataclass(frozen=True)
class Quantile:
    """The loss that a share of the examples stays at or below.

    Parameters
    ----------
    level : float, default 0.95
        The share, in (0, 1).

    Raises
    ------
    ProblemError
        Where the level is no share.
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        _check_level(self)


@dataclass(frozen=True)
class CVaR:
    """The mean of the worst ``1 - level`` share of the losses (conditional value at risk).

    Parameters
    ----------
    level : float, default 0.95
        The share of the losses that are better, in (0, 1).

    Raises
    ------
    ProblemError
        Where the level is no share.
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        _check_level(self)


@dataclass(frozen=True)
class Difference:
    """The mean loss less that of a reference on the same examples: what a change costs.

    Parameters
    ----------
    reference : str, default "reference"
        The name under which the losses of the reference stand beside the others.

    Raises
    ------
    ProblemError
        Where the reference is no name.
    """

    reference: str = "reference"

    def __post_init__(self) -> None:
        _check_beside(self, "reference", self.reference, "dense_model")


Grouped = WorstGroup | GroupGap | Ratio
Contrast = GroupGap | Ratio
Tail = Quantile | CVaR
Statistic = Mean | WorstGroup | GroupGap | Ratio | Quantile | CVaR | Difference

_KINDS: dict[str, type[Statistic]] = {
    "mean": Mean,
    "worst_group": WorstGroup,
    "group_gap": GroupGap,
    "ratio": Ratio,
    "quantile": Quantile,
    "cvar": CVaR,
    "difference": Difference,
}


def to_dict(statistic: Statistic) -> dict[str, Any]:
    """A JSON-ready form; `from_dict` reads it back.

    >>> to_dict(WorstGroup(groups=("a", "b")))
    {'kind': 'worst_group', 'groups': ['a', 'b']}
    """
    kind = next(name for name, cls in _KINDS.items() if type(statistic) is cls)
    fields = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(statistic).items()
        if value is not None or name != "within"
    }
    return {"kind": kind, **fields}


def from_dict(data: Mapping[str, Any]) -> Statistic:
    """Read a statistic from what `to_dict` made of it."""
    kind = data.get("kind") if isinstance(data, Mapping) else data
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ProblemError(
            f"A statistic is one of {', '.join(_KINDS)}, but it is {told(kind)}. "
            f"Name one of them; read a file with the version of riskpilot that wrote it."
        )
    fields = {str(name): value for name, value in data.items() if name != "kind"}
    try:
        return _KINDS[kind](**fields)
    except TypeError as error:
        raise ProblemError(
            f"A stored {kind} has the fields of {_KINDS[kind].__name__}, but this one has "
            f"{told(sorted(fields))}. Read a file with the version of riskpilot that wrote it."
        ) from error


def is_statistic(value: object) -> bool:
    """Whether a value is one of the statistics of this module."""
    return type(value) in _KINDS.values()


def words(statistic: Statistic, *, by: str | None = None, larger: bool = False) -> str:
    """What is limited, in words; empty for the mean.

    ``by``: the name under which the groups stand beside the losses, where it tells something.
    ``larger``: whether the limit is a lower one, on what is better when larger.

    >>> words(Quantile(0.9)), words(WorstGroup(), by="sex")
    ('90% quantile', "worst group's mean by sex")
    """
    grouped = "" if by is None else f" by {by}"
    match statistic:
        case WorstGroup():
            return f"worst group's mean{grouped}{_among(statistic)}"
        case GroupGap(groups=(first, second), directed=True):
            return f"mean of {first} minus mean of {second}{grouped}{_within(statistic)}"
        case GroupGap():
            return f"largest gap between groups{grouped}{_among(statistic)}{_within(statistic)}"
        case Ratio(groups=(first, second), directed=True):
            return f"{_one_minus_if(not larger)}ratio of {first} to {second}{grouped}"
        case Ratio():
            what = f"{_one_minus_if(not larger)}smallest ratio of groups"
            return f"{what}{grouped}{_among(statistic)}"
        case Quantile(level=level):
            return f"{percent(level)} quantile"
        case CVaR(level=level):
            return f"mean of the worst {percent(one_minus(level))}"
        case Difference(reference=reference):
            return f"mean loss minus that of {reference}"
    return ""


def _one_minus_if(said: bool) -> str:
    return "one minus the " if said else ""


def _among(statistic: Grouped) -> str:
    return "" if statistic.groups is None else f" among {', '.join(map(repr, statistic.groups))}"


def _within(statistic: GroupGap) -> str:
    return "" if statistic.within is None else f" within any {statistic.within}"


def _check_beside(statistic: Statistic, field: str, name: object, example: str) -> None:
    if not is_name(name):
        kind = type(statistic).__name__
        raise ProblemError(
            f"{kind}: {field} is the name of an array beside the losses, but it is {told(name)}. "
            f'Write {kind}({field}="{example}") and pass {{..., "{example}": array}}.'
        )


def _name_groups(statistic: Grouped, least: int) -> None:
    """Turn the names of the groups into a tuple of texts, each named once."""
    groups, kind = statistic.groups, type(statistic).__name__
    if groups is None:
        return
    several = groups.tolist() if isinstance(groups, np.ndarray) else groups
    if isinstance(several, str | bytes | Mapping) or not isinstance(several, Iterable):
        raise ProblemError(
            f"{kind}: groups is a tuple of names, but it is {told(groups)}. "
            f'Write groups=("female", "male").'
        )
    names = tuple(_group_name(kind, name) for name in several)
    object.__setattr__(statistic, "groups", names)
    if len(names) < least or len(set(names)) < len(names):
        raise ProblemError(
            f"{kind} needs at least {least} different groups, but groups is {told(names)}. "
            f"Name each once, or leave groups out for all that the data has."
        )


def _group_name(kind: str, name: object) -> str:
    """The name of a group as a text; nothing is guessed about what is neither text nor number."""
    if is_name(name) or (isinstance(name, int | np.integer) and not is_flag(name)):
        with suppress(ValueError):  # Python writes no whole number of thousands of digits
            return str(name)
    raise ProblemError(
        f"{kind}: a group is named by a text or a whole number, but one is {told(name)}. Write "
        f'the name as a text, as the data has it: groups=("female", "male"); decode bytes.'
    )


def _two_if_directed(statistic: Contrast) -> None:
    kind = type(statistic).__name__
    if not is_flag(statistic.directed):
        raise ProblemError(
            f"{kind}: directed is True or False, but it is {told(statistic.directed)}. "
            f"Leave it out for the largest of all comparisons."
        )
    object.__setattr__(statistic, "directed", bool(statistic.directed))
    if statistic.directed and (statistic.groups is None or len(statistic.groups) != 2):
        raise ProblemError(
            f"{kind}: a directed comparison is of the first group with the second, so that it "
            f"needs two names, but groups is {told(statistic.groups)}. "
            f'Write {kind}(groups=("female", "male"), directed=True).'
        )


def _check_level(statistic: Tail) -> None:
    level = finite_number(statistic.level)
    if level is None or not 0 < level < 1:
        raise ProblemError(
            f"{type(statistic).__name__}: the level is a share in (0, 1), but it is "
            f"{told(statistic.level)}. Use level=0.95 for the worst 5 % of the losses."
        )
    object.__setattr__(statistic, "level", level)
