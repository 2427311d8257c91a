"""The statistics that there are, each in a module of its own."""

from collections.abc import Mapping
from typing import Any

from riskpilot.errors import ProblemError, shown
from riskpilot.statistics.kinds.base import Statistic
from riskpilot.statistics.kinds.cvar import CVaR
from riskpilot.statistics.kinds.difference import Difference
from riskpilot.statistics.kinds.group_gap import GroupGap
from riskpilot.statistics.kinds.mean import Mean
from riskpilot.statistics.kinds.quantile import Quantile
from riskpilot.statistics.kinds.ratio import Ratio
from riskpilot.statistics.kinds.worst_group import WorstGroup

STATISTICS: tuple[type[Statistic], ...] = (
    Mean,
    WorstGroup,
    GroupGap,
    Ratio,
    Quantile,
    CVaR,
    Difference,
)

_KINDS = {statistic.kind: statistic for statistic in STATISTICS}


def from_dict(data: Mapping[str, Any]) -> Statistic:
    """Read a statistic from what `Statistic.to_dict` made of it.

    >>> from_dict({"kind": "worst_group", "groups": ["a", "b"]})
    WorstGroup(groups=('a', 'b'))
    """
    kind = data.get("kind") if isinstance(data, Mapping) else data
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ProblemError(
            f"A statistic is one of {', '.join(_KINDS)}, but it is {shown(kind)}. "
            f"Name one of them; read a file with the version of riskpilot that wrote it."
        )
    fields = {str(name): value for name, value in data.items() if name != "kind"}
    try:
        return _KINDS[kind](**fields)
    except TypeError as error:
        raise ProblemError(
            f"A stored {kind} has the fields of {_KINDS[kind].__name__}, but this one has "
            f"{shown(sorted(fields))}. Read a file with the version of riskpilot that wrote it."
        ) from error


def argument_of(kind: str) -> tuple[str, type[float] | type[str]] | None:
    """Return the field of a statistic that stands in brackets behind its name, and what it holds.

    >>> argument_of("cvar"), argument_of("mean")
    (('level', <class 'float'>), None)
    """
    return _KINDS[kind].argument if kind in _KINDS else None


def is_statistic(value: object) -> bool:
    """Whether a value is one of the statistics of this package."""
    return type(value) in _KINDS.values()
