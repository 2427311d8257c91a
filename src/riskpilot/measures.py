"""What is limited about a loss: its mean, its worst group, a gap between groups, its tail, how far
it lies above a reference."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from riskpilot.errors import ProblemError


@dataclass(frozen=True)
class Mean:
    """The mean loss: E[L], or E[L given a condition] where some losses are NaN."""


@dataclass(frozen=True)
class WorstGroup:
    """The largest of the groups' mean losses. ``groups``: their names; None for all there are."""

    groups: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _name_groups(self, least=1)


@dataclass(frozen=True)
class GroupGap:
    """The largest difference between two groups' mean losses.

    ``groups``: their names; None for all there are. With ``directed=True`` it is the mean of the
    first named group minus that of the second, which may be negative. ``within``: the name under
    which labels stand beside the losses; examples are then compared with those of their own label
    alone, and the label with the largest gap counts. Of positive predictions within the true
    labels this is equalised odds.
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
    ``at_least=0.8``. ``groups``: their names; None for all there are. With ``directed=True`` only
    the ratio of the first named group to the second counts.
    """

    groups: tuple[str, ...] | None = None
    directed: bool = False

    def __post_init__(self) -> None:
        _name_groups(self, least=2)
        _two_if_directed(self)


@dataclass(frozen=True)
class Quantile:
    """The loss that a share ``level`` of the examples stays at or below."""

    level: float = 0.95

    def __post_init__(self) -> None:
        _check_level(self)


@dataclass(frozen=True)
class CVaR:
    """The mean of the worst ``1 - level`` share of the losses (conditional value at risk)."""

    level: float = 0.95

    def __post_init__(self) -> None:
        _check_level(self)


@dataclass(frozen=True)
class Difference:
    """The mean loss less that of a reference on the same examples: what a change costs.

    ``reference``: the name under which the losses of the reference stand beside the others.
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
    kind = data.get("kind")
    if kind not in _KINDS:
        raise ProblemError(
            f"A statistic is one of {', '.join(_KINDS)}, but it is {kind!r}. "
            f"Name one of them; read a file with the version of riskpilot that wrote it."
        )
    fields = {name: value for name, value in data.items() if name != "kind"}
    if fields.get("groups") is not None:
        fields["groups"] = tuple(fields["groups"])
    return _KINDS[kind](**fields)


def words(statistic: Statistic) -> str:
    """What is limited, in words; empty for the mean.

    >>> words(Quantile(0.9))
    '90% quantile'
    """
    match statistic:
        case WorstGroup():
            return "worst group's mean"
        case GroupGap(groups=groups, directed=True):
            assert groups is not None
            return f"mean of {groups[0]} minus mean of {groups[1]}{_within(statistic)}"
        case GroupGap():
            return f"largest gap between groups{_within(statistic)}"
        case Ratio(groups=groups, directed=True):
            assert groups is not None
            return f"one minus the ratio of {groups[0]} to {groups[1]}"
        case Ratio():
            return "one minus the smallest ratio of groups"
        case Quantile(level=level):
            return f"{100 * level:g}% quantile"
        case CVaR(level=level):
            return f"mean of the worst {round(100 * (1 - level), 9):g}%"
        case Difference(reference=reference):
            return f"mean minus that of {reference}"
    return ""


def _within(statistic: GroupGap) -> str:
    return "" if statistic.within is None else f" within any {statistic.within}"


def _check_beside(statistic: Statistic, field: str, name: object, example: str) -> None:
    if not isinstance(name, str) or not name.strip():
        kind = type(statistic).__name__
        raise ProblemError(
            f"{kind}: {field} is the name of an array beside the losses, but it is {name!r}. "
            f'Write {kind}({field}="{example}") and pass {{..., "{example}": array}}.'
        )


def _name_groups(statistic: Grouped, least: int) -> None:
    groups, kind = statistic.groups, type(statistic).__name__
    if groups is None:
        return
    if isinstance(groups, str):
        raise ProblemError(
            f"{kind}: groups is a tuple of names, but it is {groups!r}. "
            f'Write groups=("female", "male").'
        )
    names = tuple(map(str, groups))
    object.__setattr__(statistic, "groups", names)
    if len(names) < least or len(set(names)) < len(names):
        raise ProblemError(
            f"{kind} needs at least {least} different groups, but groups is {names!r}. "
            f"Name each once, or leave groups out for all that the data has."
        )


def _two_if_directed(statistic: Contrast) -> None:
    if statistic.directed and (statistic.groups is None or len(statistic.groups) != 2):
        kind = type(statistic).__name__
        raise ProblemError(
            f"{kind}: a directed comparison is of the first group with the second, so that it "
            f"needs two names, but groups is {statistic.groups!r}. "
            f'Write {kind}(groups=("female", "male"), directed=True).'
        )


def _check_level(statistic: Tail) -> None:
    level = statistic.level
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise ProblemError(
            f"{type(statistic).__name__}: the level is a share in (0, 1), but it is {level!r}. "
            f"Use level=0.95 for the worst 5 % of the losses."
        )
