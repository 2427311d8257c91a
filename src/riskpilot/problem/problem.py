"""What is limited, what is minimised, and how sure the promise must be."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from riskpilot.common import card, confidence, exact, finite_number, is_name, one_minus, percent
from riskpilot.errors import ProblemError, shown
from riskpilot.problem import names
from riskpilot.problem.risk import Risk

__all__ = ["Problem", "Risk"]

LARGEST_DELTA = 0.5
SMALLEST_DELTA = 1e-100


@dataclass(frozen=True)
class Problem:
    """Keep every risk within its limit with probability 1 - ``delta``; minimise one objective.

    Parameters
    ----------
    risks : iterable of Risk
        What is limited. The promise is that all limits hold at once.
    minimize : str
        The name of the free objective, which is made as small as the limits allow.
    delta : float, default 0.1
        The probability with which the promise may fail, in (0, 0.5].

    Raises
    ------
    ProblemError
        Where a risk, the free objective or delta cannot be meant.

    Examples
    --------
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
        try:
            several = tuple(risks)
        except TypeError as error:
            raise ProblemError(
                f"risks must be a list of Risk objects, but it is {shown(risks)}. "
                f'Give one: Problem([Risk("error", limit=0.1)], minimize="cost").'
            ) from error
        object.__setattr__(self, "risks", several)
        object.__setattr__(self, "minimize", minimize)
        object.__setattr__(self, "delta", _checked_delta(delta))
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
                    f"risks must hold Risk objects, but one is {shown(risk)} "
                    f'({type(risk).__name__}). Write Risk("error", limit=0.1).'
                )
        if not is_name(self.minimize):
            raise ProblemError(
                f"minimize names the free objective by a non-empty text without control "
                f'characters, but it is {shown(self.minimize)}. Name it: minimize="cost".'
            )
        names.check_minimized(self.minimize)
        used = [*self.names, self.minimize, *self.labels, *self.numbers]
        twice = next((name for name in used if used.count(name) > 1), None)
        if twice is not None:
            raise ProblemError(
                f"Every risk and the free objective need a name of their own, but {twice!r} is "
                f"used twice. To limit and minimise one quantity, record it under two names."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the risks, in order."""
        return tuple(risk.name for risk in self.risks)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The names under which texts stand beside the losses, each once."""
        return tuple(dict.fromkeys(name for risk in self.risks for name in risk.labels))

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The names under which numbers stand beside the losses, each once."""
        return tuple(dict.fromkeys(name for risk in self.risks for name in risk.numbers))

    @cached_property
    def beside(self) -> tuple[str, ...]:
        """All that stands beside the losses: groups, labels, losses of a reference, weights."""
        return self.labels + self.numbers

    @cached_property
    def known_names(self) -> frozenset[str]:
        """Every name under which losses, or what stands beside them, may be given."""
        return frozenset((*self.names, self.minimize, *self.beside))

    @property
    def has_open_limits(self) -> bool:
        """Whether the limit of some risk is still to be set."""
        return any(risk.limit is None for risk in self.risks)

    def with_limits(self, **limits: float | None) -> "Problem":
        """Make the same problem with some limits set, each in the words of its risk.

        Parameters
        ----------
        **limits : float
            The new limits by name of the risk: upper ones, and lower ones of risks that are better
            when larger. None leaves a limit open.

        Returns
        -------
        Problem
            With these limits; the others stay as they are.

        Raises
        ------
        ProblemError
            Where a name is none of the problem's, or a limit cannot be meant.

        Examples
        --------
        >>> Problem([Risk("error", limit=None)], "ddp").with_limits(error=0.2).risks[0].limit
        0.2
        >>> print(Problem([Risk("precision")], "cost").with_limits(precision=0.95).risks[0])
        precision >= 0.95
        """
        unknown = sorted(set(limits) - set(self.names))
        if unknown:
            raise ProblemError(
                f"Limits go to risks of the problem ({', '.join(self.names)}), "
                f"but {unknown[0]!r} is none of them. Use a name of the problem."
            )
        risks = [
            risk.with_bound(limits[risk.name]) if risk.name in limits else risk
            for risk in self.risks
        ]
        return Problem(risks, self.minimize, self.delta)

    def spending(self, share: float) -> "Problem":
        """Make the same problem with a share of its delta, as one question of several may use."""
        return Problem(self.risks, self.minimize, self.delta * share)

    def has_quantities_of(self, other: "Problem") -> bool:
        """Whether two problems are about the same numbers. Limits, tests and delta may differ."""
        described = [
            [{**risk.to_dict(), "limit": None, "p_value": None} for risk in problem.risks]
            for problem in (self, other)
        ]
        return self.minimize == other.minimize and described[0] == described[1]

    def to_dict(self) -> dict[str, Any]:
        """Write the problem in plain JSON values, which `from_dict` reads back.

        Returns
        -------
        dict
            The risks, the free objective and delta.
        """
        return {
            "risks": [risk.to_dict() for risk in self.risks],
            "minimize": self.minimize,
            "delta": self.delta,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read a problem from what `to_dict` made of it.

        Parameters
        ----------
        data : mapping
            The risks, the free objective and delta.

        Returns
        -------
        Problem
            The problem.

        Raises
        ------
        ProblemError
            Where something is missing or is not that of a problem.
        """
        fields = ("risks", "minimize", "delta")
        missing = [name for name in fields if not isinstance(data, Mapping) or name not in data]
        if missing or not isinstance(data["risks"], list | tuple):
            raise ProblemError(
                f"A stored problem needs risks, minimize and delta, but this one is not complete: "
                f"{shown(missing or data['risks'])}. Write problem.to_dict() to the file, whole."
            )
        risks = [Risk.from_dict(risk) for risk in data["risks"]]
        return cls(risks, data["minimize"], data["delta"])

    def _repr_html_(self) -> str:
        rows = [(str(risk), risk.p_value) for risk in self.risks]
        return card("Problem", [str(self)], head=("risk", "p-value"), rows=rows)

    @property
    def limits_in_words(self) -> str:
        """All limits in one sentence: "error <= 0.1 and cost <= 3"."""
        return " and ".join(map(str, self.risks))

    @property
    def confidence(self) -> str:
        """The probability with which the promise holds, in words: "90%"."""
        return confidence(self.delta)

    def __str__(self) -> str:
        return (
            f"Keep {self.limits_in_words} with probability at least {self.confidence}; "
            f"minimise {self.minimize}."
        )


def _checked_delta(delta: object) -> float:
    """The probability of failure as a float; one above a half is no promise, and often a slip."""
    number = finite_number(delta)
    if number is not None and SMALLEST_DELTA <= number <= LARGEST_DELTA:
        return number
    meant = "Use delta=0.1 for 90% confidence."
    if number is not None and 0 < number < SMALLEST_DELTA:
        meant = f"Below {SMALLEST_DELTA:g} nothing can be computed: use delta=0.001."
    if number is not None and LARGEST_DELTA < number < 1:
        meant = f"For {percent(number)} confidence write delta={exact(one_minus(number))}."
    raise ProblemError(
        f"delta is the probability with which the promise may fail and must lie in "
        f"(0, {LARGEST_DELTA:g}], but it is {shown(delta)}. {meant}"
    )
