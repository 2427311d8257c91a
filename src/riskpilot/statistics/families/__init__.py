"""The families of p-values: each is one record in a module of its own, and one line here."""

from riskpilot.common import FloatArray
from riskpilot.errors import ProblemError
from riskpilot.statistics.families.base import Family, Start, Sums
from riskpilot.statistics.families.betting import (
    BETTING,
    LARGEST_BET,
    log_betting,
    log_betting_by_parts,
)
from riskpilot.statistics.families.binomial import BINOMIAL, log_binomial
from riskpilot.statistics.families.hoeffding import HOEFFDING, log_hoeffding
from riskpilot.statistics.families.hoeffding_bentkus import HOEFFDING_BENTKUS, log_hoeffding_bentkus
from riskpilot.statistics.families.normal import NORMAL, log_normal
from riskpilot.statistics.families.trinomial import TRINOMIAL, log_trinomial

FAMILIES: tuple[Family, ...] = (
    BINOMIAL,
    BETTING,
    HOEFFDING_BENTKUS,
    HOEFFDING,
    TRINOMIAL,
    NORMAL,
)
P_VALUES = ("auto", *(family.name for family in FAMILIES if family.offered))
"""What a risk may ask for."""

__all__ = [
    "FAMILIES",
    "LARGEST_BET",
    "P_VALUES",
    "Family",
    "Start",
    "Sums",
    "family_named",
    "largest_passing_mean",
    "log_betting",
    "log_betting_by_parts",
    "log_binomial",
    "log_hoeffding",
    "log_hoeffding_bentkus",
    "log_normal",
    "log_p_from_sums",
    "log_trinomial",
    "smallest_n",
]

_BY_NAME = {family.name: family for family in FAMILIES}


def family_named(name: str) -> Family:
    """Find a family by its name, or raise an error that lists them."""
    if name not in _BY_NAME:
        raise ProblemError(
            f"There is no p-value family {name!r} here. Use one of {', '.join(_BY_NAME)}."
        )
    return _BY_NAME[name]


def largest_passing_mean(
    family: str, limit: float, n: int, delta: float, std: float | None = None
) -> float | None:
    """The largest empirical mean of ``n`` losses whose p-value is below ``delta``, or None.

    For Hoeffding it is the paper's alpha_max, and its analogue for other families. The betting test
    depends on more than the mean: there it is the mean that passes about half of the time for
    losses of standard deviation ``std`` (two-point losses where None).

    >>> round(largest_passing_mean("hoeffding", 0.05, 5000, 0.1), 4)
    0.0348
    >>> largest_passing_mean("binomial", 0.05, 40, 0.1) is None
    True
    """
    return family_named(family).largest_passing_mean(limit, n, delta, std)


def smallest_n(family: str, limit: float, delta: float) -> int:
    """How many losses, all of them zero, it takes to pass: with fewer, nothing can.

    >>> smallest_n("binomial", 0.05, 0.1)
    45
    """
    return family_named(family).smallest_n(limit, delta)


def log_p_from_sums(family: str, sums: Sums, limit: float) -> FloatArray:
    """Compute log p-values that need sums alone, shape (n,); ``limit``: on the unit scale."""
    found = family_named(family)
    if found.log_p_from_sums is None:
        raise found.lacks("p-value from sums")
    return found.log_p_from_sums(sums, limit)
