"""What is limited, what is minimised, and how sure the promise must be."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from riskpilot import measures
from riskpilot.errors import ProblemError
from riskpilot.measures import (
    CVaR,
    Difference,
    GroupGap,
    Mean,
    Quantile,
    Ratio,
    Statistic,
    WorstGroup,
)
from riskpilot.metrics import check_direction, named
from riskpilot.notebook import card

Number = TypeVar("Number", float, npt.NDArray[np.float64])

P_VALUES = ("auto", "binomial", "betting", "hoeffding_bentkus", "hoeffding")
_MEAN = Mean()
# The tests of statistics that not every family can test.
_TESTS: dict[type[Statistic], tuple[str, ...]] = {
    GroupGap: ("auto", "betting"),
    Ratio: ("auto", "betting"),
    Quantile: ("auto", "binomial"),
    CVaR: ("auto", "betting"),
    Difference: ("auto", "betting"),
}


@dataclass(frozen=True, repr=False)
class Risk:
    """A number made of losses, their mean unless said otherwise, that must not exceed ``limit``.

    Losses lie in ``[low, high]``. With ``conditional=True`` a NaN loss means that the example does
    not count for this risk (the risk is a mean given a condition); without it a NaN is an error.
    ``limit=None`` leaves the limit open until the first evaluations are there (`suggest_limits`).
    ``p_value`` names the test; ``"auto"`` is exact binomial for 0/1 losses and betting otherwise.

    ``statistic``: what is limited, such as `WorstGroup` or `CVaR`. ``groups``: for a statistic of
    groups, the name under which the groups of the examples stand beside the losses. ``weights``:
    likewise for weights of the examples, which lie in [0, ``largest_weight``]; every mean is then
    the weighted one.

    ``at_most`` and ``at_least`` give the limit in the words of a metric that is known by its name:
    the condition and the statistic follow from the name, and `losses_from_predictions` makes the
    losses. With ``at_least`` the losses, and ``limit``, are those of one minus the metric.

    >>> Risk("error", limit=0.175)
    Risk(name='error', limit=0.175, low=0.0, high=1.0, conditional=False, p_value='auto')
    >>> print(Risk("precision", at_least=0.9), Risk("precision", at_least=0.9).limit)
    precision >= 0.9 0.1
    """

    name: str
    limit: float | None = None
    low: float = 0.0
    high: float = 1.0
    conditional: bool = False
    p_value: str = "auto"
    statistic: Statistic = _MEAN
    groups: str = "groups"
    complement: bool = False
    """Whether the losses are one minus what the name says."""
    weights: str | None = None
    largest_weight: float | None = None
    at_most: InitVar[float | None] = None
    at_least: InitVar[float | None] = None

    def __post_init__(self, at_most: float | None, at_least: float | None) -> None:
        name = self.name
        if not isinstance(name, str) or not name.strip():
            raise ProblemError(
                f"A risk is named by a non-empty string, but the name is {name!r}. "
                f'Name it: Risk("error", limit=0.1).'
            )
        if at_most is not None or at_least is not None:
            self._read_bound(at_most, at_least)
        for field in ("low", "high", "limit"):
            value = getattr(self, field)
            if value is None and field == "limit":
                continue
            if isinstance(value, bool) or not _is_finite_number(value):
                raise ProblemError(
                    f"Risk {name!r}: {field} must be a finite number, but it is {value!r}. "
                    f"Give it as a float, such as {field}=0.1."
                )
            object.__setattr__(self, field, float(value))
        if not self.low < self.high:
            raise ProblemError(
                f"Risk {name!r}: the range needs low < high, but it is [{self.low}, {self.high}]. "
                f"Declare the smallest and the largest loss that can occur."
            )
        self._check_statistic()
        self._check_weights()
        if self.limit is not None and not self.bottom < self.limit < self.top:
            what = self.words
            raise ProblemError(
                f"Risk {name!r}: the limit must lie strictly inside the range of the "
                f"{what or 'losses'}, ({self.bottom}, {self.top}), but it is {self.limit}. A limit "
                f"at an end is either always or never kept; move the limit, or declare the range "
                f"of the losses with low= and high=."
            )
        if self.p_value not in P_VALUES:
            raise ProblemError(
                f"Risk {name!r}: p_value must be one of {', '.join(P_VALUES)}, "
                f"but it is {self.p_value!r}. Leave it out for 'auto'."
            )

    def _read_bound(self, at_most: float | None, at_least: float | None) -> None:
        name = self.name
        if self.limit is not None or (at_most is not None and at_least is not None):
            raise ProblemError(
                f"Risk {name!r}: a risk has one limit, but more than one of limit, at_most and "
                f"at_least is given. Keep one of them."
            )
        bound = at_most if at_least is None else at_least
        if isinstance(bound, bool) or not _is_finite_number(bound):
            raise ProblemError(
                f"Risk {name!r}: the limit must be a finite number, but it is {bound!r}. "
                f"Give it as a float, such as at_most=0.1."
            )
        check_direction(name, at_least is not None, isinstance(self.statistic, Ratio))
        known = named(name)
        if known is not None:
            object.__setattr__(self, "conditional", self.conditional or known.metric.conditional)
            if self.statistic == Mean():
                object.__setattr__(self, "statistic", known.statistic)
        assert bound is not None
        if at_least is not None:
            object.__setattr__(self, "complement", True)
            # 1 - 0.9 is 0.09999999999999998; the promise should read as it was asked for.
            bound = round(1 - float(bound), 12)
        object.__setattr__(self, "limit", float(bound))

    def _check_statistic(self) -> None:
        name, statistic = self.name, self.statistic
        if not isinstance(statistic, Statistic):
            raise ProblemError(
                f"Risk {name!r}: the statistic says what is limited about the losses, but it is "
                f"{statistic!r}. Use Mean(), WorstGroup(), GroupGap(), Ratio(), Quantile(0.95), "
                f"CVaR(0.95) or Difference()."
            )
        if isinstance(statistic, Ratio) and self.low != 0:
            raise ProblemError(
                f"Risk {name!r}: a ratio of means needs losses from 0 upwards, but low is "
                f"{self.low:g}. Shift the losses, or limit a GroupGap."
            )
        if self.p_value in P_VALUES and self.p_value not in self.tests:
            told, what = " or ".join(self.tests), type(statistic).__name__
            if self.weights is not None:
                what += " with weights"
            raise ProblemError(
                f"Risk {name!r}: a {what} is tested by {told}, "
                f"but p_value is {self.p_value!r}. Leave it out."
            )
        if not isinstance(self.groups, str) or not self.groups:
            raise ProblemError(
                f"Risk {name!r}: groups is the name under which the groups stand beside the "
                f'losses, but it is {self.groups!r}. Write groups="sex" and pass '
                f'{{"{name}": losses, "sex": array}}.'
            )

    def _check_weights(self) -> None:
        name, largest = self.name, self.largest_weight
        if self.weights is None and largest is None:
            return
        if not isinstance(self.weights, str) or not self.weights:
            raise ProblemError(
                f"Risk {name!r}: weights is the name under which the weights of the examples stand "
                f'beside the losses, but it is {self.weights!r}. Write weights="weights" and pass '
                f'{{"{name}": losses, "weights": array}}.'
            )
        if isinstance(largest, bool) or not _is_finite_number(largest) or not float(largest) > 0:  # type: ignore[arg-type]
            raise ProblemError(
                f"Risk {name!r}: weights need the largest weight that there can be, known "
                f"beforehand, but largest_weight is {largest!r}. Without a bound no test is valid: "
                f"clip the weights, and write largest_weight= the point where they are clipped."
            )
        object.__setattr__(self, "largest_weight", float(largest))  # type: ignore[arg-type]
        if isinstance(self.statistic, GroupGap | Ratio):
            raise ProblemError(
                f"Risk {name!r}: no valid test is known here for a {type(self.statistic).__name__} "
                f"of weighted examples, but weights is {self.weights!r}. Limit the WorstGroup; or, "
                f"where the weights are known to have mean 1 in every group, weight the losses "
                f"beforehand with riskpilot.weighted."
            )

    @property
    def tests(self) -> tuple[str, ...]:
        """What ``p_value`` may be for this statistic."""
        if self.weights is not None:
            return ("auto", "betting")
        return _TESTS.get(type(self.statistic), P_VALUES)

    @property
    def needs_groups(self) -> bool:
        return isinstance(self.statistic, WorstGroup | GroupGap | Ratio)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names under which texts stand beside the losses: groups, and labels within which
        they are compared."""
        if not self.needs_groups:
            return ()
        within = self.statistic.within if isinstance(self.statistic, GroupGap) else None
        return (self.groups,) if within is None else (self.groups, within)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names under which numbers stand beside the losses: those of a reference, weights."""
        reference = self.statistic.reference if isinstance(self.statistic, Difference) else None
        return tuple(name for name in (reference, self.weights) if name is not None)

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest number of one example: of a difference, where that is
        limited."""
        if isinstance(self.statistic, Difference):
            return self.low - self.high, self.high - self.low
        return self.low, self.high

    @property
    def bottom(self) -> float:
        """The smallest value that the statistic can have."""
        match self.statistic:
            case Difference() | GroupGap(directed=True):
                return self.low - self.high
            case GroupGap() | Ratio():
                return 0.0
        return self.low

    @property
    def top(self) -> float:
        """The largest value that the statistic can have."""
        match self.statistic:
            case Difference() | GroupGap():
                return self.high - self.low
            case Ratio():
                return 1.0
        return self.high

    @property
    def label(self) -> str:
        """What the numbers of this risk are called."""
        return f"1 - {self.name}" if self.complement else self.name

    @property
    def words(self) -> str:
        """What is limited, in words; empty for the mean.

        >>> Risk("error", 0.1, weights="w", largest_weight=4).words
        'mean, weighted by w'
        """
        told = measures.words(self.statistic)
        return told if self.weights is None else f"{told or 'mean'}, weighted by {self.weights}"

    @property
    def unit_limit(self) -> float:
        """The limit after the range of the statistic is mapped to [0, 1]."""
        if self.limit is None:
            raise ProblemError(
                f"Risk {self.name!r}: its limit is still open. "
                f"Set it with problem.with_limits({self.name}=...) or rp.set_limits(study, ...)."
            )
        return self.to_unit(self.limit)

    def to_unit(self, value: Number) -> Number:
        """A value of the statistic, or an array of them, on the [0, 1] scale."""
        return (value - self.bottom) / (self.top - self.bottom)

    def from_unit(self, value: Number) -> Number:
        """A number of the [0, 1] scale, or an array of them, in the units of the statistic."""
        return self.bottom + value * (self.top - self.bottom)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form: what differs from a limit on a mean is told, and no more."""
        data: dict[str, Any] = {
            "name": self.name,
            "limit": self.limit,
            "low": self.low,
            "high": self.high,
            "conditional": self.conditional,
            "p_value": self.p_value,
        }
        if self.statistic != Mean():
            data["statistic"] = measures.to_dict(self.statistic)
        if self.needs_groups:
            data["groups"] = self.groups
        if self.complement:
            data["complement"] = True
        if self.weights is not None:
            data |= {"weights": self.weights, "largest_weight": self.largest_weight}
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        statistic = data.get("statistic")
        return cls(
            **{**data, "statistic": Mean() if statistic is None else measures.from_dict(statistic)}
        )

    def __repr__(self) -> str:
        told: dict[str, Any] = {
            "name": self.name,
            "limit": self.limit,
            "low": self.low,
            "high": self.high,
            "conditional": self.conditional,
            "p_value": self.p_value,
        }
        if self.statistic != Mean():
            told["statistic"] = self.statistic
        if self.needs_groups:
            told["groups"] = self.groups
        if self.complement:
            told["complement"] = True
        if self.weights is not None:
            told |= {"weights": self.weights, "largest_weight": self.largest_weight}
        return f"Risk({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    def __str__(self) -> str:
        if self.limit is None:
            return f"{self.label} <= (open)"
        if self.complement:
            return f"{self.name} >= {round(1 - self.limit, 12):g}"
        return f"{self.name} <= {self.limit:g}"


@dataclass(frozen=True)
class Problem:
    """Keep every risk at or below its limit with probability 1 - ``delta``; minimise one objective.

    >>> problem = Problem([Risk("error", limit=0.175)], minimize="ddp", delta=0.1)
    >>> print(problem)
    Keep error <= 0.175 with probability at least 90%; minimise ddp.
    """

    risks: tuple[Risk, ...]
    minimize: str
    delta: float = 0.1

    def __init__(self, risks: Iterable[Risk], minimize: str, delta: float = 0.1) -> None:
        if isinstance(risks, Risk):
            risks = (risks,)
        if not isinstance(risks, Iterable):
            raise ProblemError(
                f"risks must be a list of Risk objects, but it is {risks!r}. "
                f'Give one: Problem([Risk("error", limit=0.1)], minimize="cost").'
            )
        object.__setattr__(self, "risks", tuple(risks))
        object.__setattr__(self, "minimize", minimize)
        object.__setattr__(self, "delta", delta)
        self._check()

    def _check(self) -> None:
        if not self.risks:
            raise ProblemError(
                "A problem needs at least one risk with a limit, but risks is empty. "
                'Give one: Problem([Risk("error", limit=0.1)], minimize="cost").'
            )
        for risk in self.risks:
            if not isinstance(risk, Risk):
                raise ProblemError(
                    f"risks must hold Risk objects, but one is {risk!r} ({type(risk).__name__}). "
                    f'Write Risk("error", limit=0.1).'
                )
        if not isinstance(self.minimize, str) or not self.minimize.strip():
            raise ProblemError(
                f"minimize names the free objective by a non-empty string, "
                f'but it is {self.minimize!r}. Name it: minimize="cost".'
            )
        names = [*self.names, self.minimize, *self.labels, *self.numbers]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ProblemError(
                f"Every risk and the free objective need a name of their own, but {twice!r} is "
                f"used twice. To limit and minimise one quantity, record it under two names."
            )
        if (
            isinstance(self.delta, bool)
            or not _is_finite_number(self.delta)
            or not 0 < self.delta < 1
        ):
            raise ProblemError(
                f"delta is the probability with which the promise may fail and must lie in (0, 1), "
                f"but it is {self.delta!r}. Use delta=0.1 for 90% confidence."
            )
        object.__setattr__(self, "delta", float(self.delta))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the risks, in order."""
        return tuple(risk.name for risk in self.risks)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names under which texts stand beside the losses, each once."""
        return tuple(dict.fromkeys(name for risk in self.risks for name in risk.labels))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names under which numbers stand beside the losses, each once."""
        return tuple(dict.fromkeys(name for risk in self.risks for name in risk.numbers))

    @property
    def beside(self) -> tuple[str, ...]:
        """All that stands beside the losses: groups, labels, losses of a reference, weights."""
        return self.labels + self.numbers

    @property
    def has_open_limits(self) -> bool:
        return any(risk.limit is None for risk in self.risks)

    def with_limits(self, **limits: float) -> "Problem":
        """The same problem with some limits set.

        >>> Problem([Risk("error", limit=None)], "ddp").with_limits(error=0.2).risks[0].limit
        0.2
        """
        unknown = sorted(set(limits) - set(self.names))
        if unknown:
            raise ProblemError(
                f"Limits go to risks of the problem ({', '.join(self.names)}), "
                f"but {unknown[0]!r} is none of them. Use a name of the problem."
            )
        risks = [replace(risk, limit=limits.get(risk.name, risk.limit)) for risk in self.risks]
        return Problem(risks, self.minimize, self.delta)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form; `from_dict` reads it back."""
        return {
            "risks": [risk.to_dict() for risk in self.risks],
            "minimize": self.minimize,
            "delta": self.delta,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        try:
            risks = [Risk.from_dict(risk) for risk in data["risks"]]
            return cls(risks, data["minimize"], data["delta"])
        except (KeyError, TypeError) as error:
            raise ProblemError(
                f"A stored problem needs risks, minimize and delta, but this one is not complete: "
                f"{error}. Write problem.to_dict() to the file, whole."
            ) from error

    def _repr_html_(self) -> str:
        rows = [
            (risk.label, "open" if risk.limit is None else f"<= {risk.limit:g}", risk.p_value)
            for risk in self.risks
        ]
        return card("Problem", [str(self)], head=("risk", "limit", "p-value"), rows=rows)

    def __str__(self) -> str:
        limits = " and ".join(map(str, self.risks))
        return (
            f"Keep {limits} with probability at least {100 * (1 - self.delta):g}%; "
            f"minimise {self.minimize}."
        )


def _is_finite_number(value: object) -> bool:
    try:
        return math.isfinite(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
