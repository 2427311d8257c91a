"""What is limited, what is minimised, and how sure the promise must be."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from riskpilot.errors import ProblemError
from riskpilot.notebook import card

Number = TypeVar("Number", float, npt.NDArray[np.float64])

P_VALUES = ("auto", "binomial", "betting", "hoeffding_bentkus", "hoeffding")


@dataclass(frozen=True)
class Risk:
    """A mean loss that must stay at or below ``limit``.

    Losses lie in ``[low, high]``. With ``conditional=True`` a NaN loss means that the example does
    not count for this risk (the risk is a mean given a condition); without it a NaN is an error.
    ``limit=None`` leaves the limit open until the first evaluations are there (`suggest_limits`).
    ``p_value`` names the test; ``"auto"`` is exact binomial for 0/1 losses and betting otherwise.

    >>> Risk("error", limit=0.175)
    Risk(name='error', limit=0.175, low=0.0, high=1.0, conditional=False, p_value='auto')
    """

    name: str
    limit: float | None
    low: float = 0.0
    high: float = 1.0
    conditional: bool = False
    p_value: str = "auto"

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str) or not name.strip():
            raise ProblemError(
                f"A risk is named by a non-empty string, but the name is {name!r}. "
                f'Name it: Risk("error", limit=0.1).'
            )
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
        if self.limit is not None and not self.low < self.limit < self.high:
            raise ProblemError(
                f"Risk {name!r}: the limit must lie strictly inside the range of the losses, "
                f"({self.low}, {self.high}), but it is {self.limit}. A limit at an end is either "
                f"always or never kept; move the limit, or declare the range with low= and high=."
            )
        if self.p_value not in P_VALUES:
            raise ProblemError(
                f"Risk {name!r}: p_value must be one of {', '.join(P_VALUES)}, "
                f"but it is {self.p_value!r}. Leave it out for 'auto'."
            )

    @property
    def unit_limit(self) -> float:
        """The limit after the range is mapped to [0, 1]."""
        if self.limit is None:
            raise ProblemError(
                f"Risk {self.name!r}: its limit is still open. "
                f"Set it with problem.with_limits({self.name}=...) or rp.set_limits(study, ...)."
            )
        return (self.limit - self.low) / (self.high - self.low)

    def from_unit(self, value: Number) -> Number:
        """A number of the [0, 1] scale, or an array of them, in the units of the losses."""
        return self.low + value * (self.high - self.low)


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
        names = [*self.names, self.minimize]
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
            "risks": [
                {
                    "name": risk.name,
                    "limit": risk.limit,
                    "low": risk.low,
                    "high": risk.high,
                    "conditional": risk.conditional,
                    "p_value": risk.p_value,
                }
                for risk in self.risks
            ],
            "minimize": self.minimize,
            "delta": self.delta,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        try:
            return cls([Risk(**risk) for risk in data["risks"]], data["minimize"], data["delta"])
        except (KeyError, TypeError) as error:
            raise ProblemError(
                f"A stored problem needs risks, minimize and delta, but this one is not complete: "
                f"{error}. Write problem.to_dict() to the file, whole."
            ) from error

    def _repr_html_(self) -> str:
        rows = [
            (risk.name, "open" if risk.limit is None else f"<= {risk.limit:g}", risk.p_value)
            for risk in self.risks
        ]
        return card("Problem", [str(self)], head=("risk", "limit", "p-value"), rows=rows)

    def __str__(self) -> str:
        limits = " and ".join(
            f"{risk.name} <= {'(open)' if risk.limit is None else f'{risk.limit:g}'}"
            for risk in self.risks
        )
        return (
            f"Keep {limits} with probability at least {100 * (1 - self.delta):g}%; "
            f"minimise {self.minimize}."
        )


def _is_finite_number(value: object) -> bool:
    try:
        return math.isfinite(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
