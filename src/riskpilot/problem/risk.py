"""A limit on a number made of losses: what is limited, in which direction, and in which words."""

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from riskpilot.common import exact, one_minus
from riskpilot.errors import ProblemError, shown
from riskpilot.problem import names, risk_words
from riskpilot.problem.risk_checks import (
    check_direction,
    check_limit,
    check_range,
    check_statistic,
    check_weights,
    check_words,
    number_of,
    the_one_limit,
)
from riskpilot.statistics import Mean, Statistic, WorstGroup, from_dict

Number = TypeVar("Number", float, npt.NDArray[np.float64])


@dataclass(frozen=True, repr=False)
class Risk:
    """A number made of losses, their mean unless said otherwise, that is kept within a limit.

    A name that riskpilot knows, such as ``"recall"`` or ``"worst_group_error"``, says what the
    losses are (`loss_words`), which examples count, what is limited and whether larger is better;
    all of it holds however the limit is given. Any other name is one's own and says nothing.

    Parameters
    ----------
    name : str
        The name under which the losses stand in what is passed to a selection or a study.
    limit : float, optional
        The largest value allowed, in the units of the losses. None leaves it open until the first
        evaluations are there (`suggest_limits`). Refused under names that are better when larger:
        these take ``at_least``.
    low : float, default 0.0
        The smallest loss that can occur, known beforehand.
    high : float, default 1.0
        The largest loss that can occur, known beforehand.
    conditional : bool, default False
        Whether a NaN loss means that the example does not count, so that the risk is a mean given
        a condition. Without it a NaN is an error. Follows from a known name.
    p_value : str, default "auto"
        The test; "auto" is exact binomial for 0/1 losses and betting otherwise.
    statistic : statistic, optional
        What is limited, such as `WorstGroup` or `CVaR`. By default what the name says, and the
        mean under a name of one's own. One that contradicts the name is refused.
    groups : str, default "groups"
        For a statistic of groups, the name under which the groups of the examples stand beside the
        losses.
    complement : bool, default False
        Whether the losses are one minus what the name says. Follows from ``at_least`` under names
        that are known to be better when larger, or that say so themselves, such as "correct".
    weights : str, optional
        The name under which weights of the examples stand beside the losses; every mean is then
        the weighted one.
    largest_weight : float, optional
        The largest weight that there can be, known beforehand; weights lie in
        [0, ``largest_weight``].
    at_most, at_least : float, optional
        The limit in the words of the name, instead of ``limit``. With ``at_least`` the losses, and
        ``limit``, are those of one minus it.

    Raises
    ------
    ProblemError
        Where name, limit, direction and statistic cannot be meant together.

    Examples
    --------
    >>> Risk("error", limit=0.175)
    Risk(name='error', limit=0.175, low=0.0, high=1.0, conditional=False, p_value='auto')
    >>> print(Risk("precision", at_least=0.9), Risk("precision", at_least=0.9).limit)
    precision >= 0.9 0.1
    >>> print(Risk("worst_group_error", 0.2))
    worst_group_error <= 0.2 (worst group's mean)
    """

    name: str
    limit: float | None = None
    low: float = 0.0
    high: float = 1.0
    conditional: bool = False
    p_value: str = "auto"
    statistic: Statistic = None  # type: ignore[assignment]  # never None once it is made
    groups: str = "groups"
    complement: bool = False
    weights: str | None = None
    largest_weight: float | None = None
    at_most: InitVar[float | None] = None
    at_least: InitVar[float | None] = None

    def __post_init__(self, at_most: float | None, at_least: float | None) -> None:
        check_words(self)
        for field in ("conditional", "complement"):
            self._set(field, bool(getattr(self, field)))
        self._set("statistic", names.statistic_of(self.name, self.statistic))
        known = names.meaning(self.name)
        self._set("conditional", self.conditional or (known is not None and known.conditional))
        self._read_range()
        self._read_limit(at_most, at_least)
        check_weights(self)
        if self.largest_weight is not None:
            self._set("largest_weight", float(self.largest_weight))
        check_statistic(self)
        check_limit(self)

    def _set(self, field: str, value: object) -> None:
        object.__setattr__(self, field, value)

    def _read_range(self) -> None:
        for field in ("low", "high"):
            self._set(field, number_of(self.name, field, getattr(self, field)))
        check_range(self)

    def _read_limit(self, at_most: float | None, at_least: float | None) -> None:
        """Bring the limit into the units of the losses, whichever way it was given."""
        given = {"limit": self.limit, "at_most": at_most, "at_least": at_least}
        field, bound = the_one_limit(self.name, given)
        check_direction(self, field, bound)
        larger = names.larger_is_better(names.meaning(self.name), self.statistic)
        if field == "at_least" or (larger and field is None):
            self._set("complement", True)
        if field == "at_least" and bound is not None:
            bound = one_minus(bound)
        self._set("limit", bound)

    @property
    def tests(self) -> tuple[str, ...]:
        """What ``p_value`` may be for this statistic."""
        if self.weights is not None:
            return ("auto", "betting")
        return self.statistic.p_values

    @property
    def needs_groups(self) -> bool:
        return self.statistic.needs_groups

    @property
    def labels(self) -> tuple[str, ...]:
        """The names under which texts stand beside the losses: groups, and labels within which
        they are compared."""
        if not self.needs_groups:
            return ()
        label = self.statistic.label_name
        return (self.groups,) if label is None else (self.groups, label)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names under which numbers stand beside the losses: those of a reference, weights."""
        names = (self.statistic.reference_name, self.weights)
        return tuple(name for name in names if name is not None)

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest number of one example: of a difference, where that is
        limited."""
        return self.statistic.span(self.low, self.high)

    @property
    def _value_range(self) -> tuple[float, float]:
        return self.statistic.value_range(self.low, self.high)

    @property
    def bottom(self) -> float:
        """The smallest value that the statistic can have."""
        return self._value_range[0]

    @property
    def top(self) -> float:
        """The largest value that the statistic can have."""
        return self._value_range[1]

    @property
    def width(self) -> float:
        """How far the largest value that the statistic can have lies above the smallest."""
        bottom, top = self._value_range
        return top - bottom

    @property
    def label(self) -> str:
        """What the numbers of this risk are called: "1 - recall", where they are those of misses.

        >>> from riskpilot import GroupGap
        >>> Risk("recall", 0.1, statistic=GroupGap()).label
        'gap of recall'
        """
        return f"1 - {self.subject}" if self.complement else self.subject

    @property
    def subject(self) -> str:
        """What the limit is on: the name, and before it what turns its direction."""
        return names.subject(self.name, self.statistic, lower=self.complement)

    @property
    def words(self) -> str:
        """What is limited, in words; empty for the mean of all examples.

        Examples
        --------
        >>> Risk("error", 0.1, weights="w", largest_weight=4).words
        'mean, weighted by w'
        >>> Risk("wrong", 0.1, conditional=True).words
        'mean of the examples that count'
        """
        return risk_words.limited(self)

    @property
    def title(self) -> str:
        """What the numbers of this risk are called, and what is limited: for tables and axes.

        >>> from riskpilot import Quantile
        >>> Risk("latency", 50, high=1000, statistic=Quantile(0.95)).title
        'latency (95% quantile)'
        """
        return f"{self.label} ({self.words})" if self.words else self.label

    @property
    def loss_words(self) -> str:
        """The losses of one example in words, as far as the name says it.

        Examples
        --------
        >>> Risk("precision", at_least=0.9).loss_words
        '1 where a positive prediction is wrong, 0 where it is right, NaN for all other predictions'
        """
        return risk_words.losses(self)

    @property
    def losses_are_complement(self) -> bool:
        """Whether the loss of an example is one minus what the name says of it.

        >>> [Risk(name, at_least=0.9).losses_are_complement for name in ("recall", "correct")]
        [True, True]
        """
        known = names.meaning(self.name)
        if known is None:
            return self.complement and isinstance(self.statistic, Mean | WorstGroup)
        return known.metric.better_when_larger and known.statistic is None

    @property
    def bound(self) -> float | None:
        """The limit in the words of the name: of ``precision >= 0.9`` it is 0.9, not 0.1."""
        return None if self.limit is None else self.in_words(self.limit)

    def in_words(self, value: float) -> float:
        """A value of the losses' statistic as a value of what the name says, and back."""
        return one_minus(value) if self.complement else value

    def with_bound(self, bound: float | None) -> "Risk":
        """Make the same risk with another limit, in the words of the name.

        Parameters
        ----------
        bound : float or None
            The limit: a lower one where larger is better, otherwise an upper one. None leaves it
            open.

        Returns
        -------
        Risk
            The risk with this limit.

        Raises
        ------
        ProblemError
            Where the limit is no number inside the range.

        Examples
        --------
        >>> print(Risk("precision").with_bound(0.95))
        precision >= 0.95
        """
        if bound is None:
            return replace(self, limit=None)
        return replace(self, limit=self.in_words(number_of(self.name, "the limit", bound)))

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
        return (value - self.bottom) / self.width

    def from_unit(self, value: Number) -> Number:
        """A number of the [0, 1] scale, or an array of them, in the units of the statistic."""
        return self.bottom + value * self.width

    def _fields(self) -> dict[str, Any]:
        """The fields that say something about this risk, by name."""
        fields: dict[str, Any] = {
            "name": self.name,
            "limit": self.limit,
            "low": self.low,
            "high": self.high,
            "conditional": self.conditional,
            "p_value": self.p_value,
            "statistic": self.statistic,
        }
        if self.needs_groups:
            fields["groups"] = self.groups
        if self.complement:
            fields["complement"] = True
        if self.weights is not None:
            fields |= {"weights": self.weights, "largest_weight": self.largest_weight}
        return fields

    def to_dict(self) -> dict[str, Any]:
        """Write the risk in plain JSON values, which `from_dict` reads back.

        Returns
        -------
        dict
            The fields that say something about this risk, by name.
        """
        return {**self._fields(), "statistic": self.statistic.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read a risk from what `to_dict` made of it.

        Parameters
        ----------
        data : mapping
            The fields of a risk by name.

        Returns
        -------
        Risk
            The risk.

        Raises
        ------
        ProblemError
            Where the fields are not those of a risk.
        """
        try:
            fields = dict(data)
            if fields.get("statistic") is not None:
                fields["statistic"] = from_dict(fields["statistic"])
            return cls(**fields)
        except (TypeError, ValueError) as error:
            if isinstance(error, ProblemError):
                raise
            raise ProblemError(
                f"A stored risk has the fields of Risk, but this one is {shown(data)}: {error}. "
                f"Write risk.to_dict() to the file, whole."
            ) from error

    def __repr__(self) -> str:
        fields = self._fields()
        if self.statistic == Mean():
            del fields["statistic"]
        return f"Risk({', '.join(f'{name}={value!r}' for name, value in fields.items())})"

    def says(
        self,
        number: Callable[[float], str] = exact,
        at_most: str = "<=",
        at_least: str = ">=",
    ) -> str:
        """The limit in words: what is limited, in which direction, how far, and which statistic.

        Parameters
        ----------
        number : callable, default the number in as few digits as tell it apart
            How a limit is written.
        at_most, at_least : str
            The words for the two directions.

        Examples
        --------
        >>> from riskpilot import Quantile
        >>> Risk("seconds", 2, high=60, statistic=Quantile(0.95)).says(at_most="of at most")
        'seconds of at most 2 (95% quantile)'
        """
        direction = at_least if self.complement else at_most
        limit = "(open)" if self.bound is None else number(self.bound)
        return f"{self.subject} {direction} {limit}{f' ({self.words})' if self.words else ''}"

    def __str__(self) -> str:
        return self.says()
