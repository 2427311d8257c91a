"""Limits as people write them: "error <= 0.1", "precision >= 0.9", "cost <= 3 as quantile(0.95)".

This is the one grammar, for the command line and for scikit-learn: a name, a sign, a number, and
then clauses in any order: ``as STATISTIC``, ``by GROUPS``, ``weighted by WEIGHTS up to LARGEST``,
``in [LOW, HIGH]``, ``conditional``.
"""

import math
import re
from typing import Any

from riskpilot.errors import ProblemError, shown
from riskpilot.problem.problem import Risk
from riskpilot.statistics import STATISTICS, Statistic, argument_of, from_dict

_LIMIT = re.compile(r"\s*(?P<name>[^<>=≤≥]+?)\s*(?P<sign><=|≤|>=|≥)\s*(?P<limit>[^\s\[\]<>=≤≥]+)")
_CLAUSES = {
    "as": re.compile(r"\s+as\s+(?P<kind>\w+)(?:\(\s*(?P<argument>[^)]*?)\s*\))?(?=\s|$)"),
    "by": re.compile(r"\s+by\s+(?P<groups>\S+)"),
    "weighted by": re.compile(
        r"\s+weighted\s+by\s+(?P<weights>\S+)\s+up\s+to\s+(?P<largest>[^\s\[\]]+)"
    ),
    "in": re.compile(r"\s+in\s*\[\s*(?P<low>[^,\s]+)\s*,\s*(?P<high>[^\]\s]+)\s*\](?=\s|$)"),
    "conditional": re.compile(r"\s+(?P<conditional>conditional)(?=\s|$)"),
}


def parse_risk(text: str, p_value: str = "auto") -> Risk:
    """A risk as it is written.

    Parameters
    ----------
    text : str
        A name and its limit; then, in any order, what is limited, by which groups, weights, the
        range of the losses and "conditional". A name that says what is limited needs no more.
    p_value : str, default "auto"
        The test.

    Returns
    -------
    Risk
        What the text says.

    Raises
    ------
    ProblemError
        Where the text cannot be read, or says what cannot be meant.

    Examples
    --------
    >>> parse_risk("drop <= 0.05 in [-1, 1] conditional")
    Risk(name='drop', limit=0.05, low=-1.0, high=1.0, conditional=True, p_value='auto')
    >>> print(parse_risk("error <= 0.2 by sex as worst_group"))
    error <= 0.2 (worst group's mean by sex)
    """
    found = _LIMIT.match(text) if isinstance(text, str) else None
    if found is None:
        raise _unreadable(text)
    parts = _clauses(text, found.end())
    fields: dict[str, Any] = {"conditional": "conditional" in parts}
    if "kind" in parts:
        fields["statistic"] = _statistic(parts["kind"], parts.get("argument"), text)
    if "groups" in parts:
        fields["groups"] = parts["groups"]
    if "weights" in parts:
        fields["weights"] = parts["weights"]
        fields["largest_weight"] = number(parts["largest"], text)
    if "low" in parts:
        fields |= {"low": number(parts["low"], text), "high": number(parts["high"], text)}
    direction = "at_most" if found["sign"] in ("<=", "≤") else "at_least"
    fields[direction] = number(found["limit"], text)
    return Risk(found["name"], p_value=p_value, **fields)


def number(text: str, whole: str) -> float:
    """A finite number as it is written; ``whole``: the text that it stands in."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ProblemError(
            f"{text.strip()!r} in {whole!r} is not a finite number. Write it with a point: 0.05."
        )
    return value


def _clauses(text: str, start: int) -> dict[str, str]:
    """What stands behind the limit, by name; each clause once, in any order."""
    parts: dict[str, str] = {}
    seen: set[str] = set()
    while text[start:].strip():
        matches = ((name, pattern.match(text, start)) for name, pattern in _CLAUSES.items())
        name, match = next((pair for pair in matches if pair[1] is not None), ("", None))
        if match is None:
            raise _unreadable(text)
        if name in seen:
            raise ProblemError(f"{text!r} says {name!r} twice. Say it once.")
        seen.add(name)
        parts |= {key: value for key, value in match.groupdict().items() if value is not None}
        start = match.end()
    return parts


def _unreadable(text: object) -> ProblemError:
    return ProblemError(
        f"A limit is written NAME<=NUMBER or NAME>=NUMBER, with a statistic, groups, weights, its "
        f"range and a condition where it has them, but this is {shown(text)}. Write "
        f'"error<=0.1", "precision>=0.9", "error<=0.2 as worst_group by sex" or '
        f'"drop<=0.05 in [-1,1] conditional".'
    )


def _statistic(kind: str, argument: str | None, text: str) -> Statistic:
    kinds = [statistic.kind for statistic in STATISTICS]
    if kind not in kinds:
        raise ProblemError(
            f"{kind!r} in {text!r} is no statistic. Write one of those that there are: "
            f"{', '.join(kinds)}."
        )
    fields: dict[str, Any] = {}
    if argument:
        taken = argument_of(kind)
        if taken is None:
            raise ProblemError(
                f"{kind!r} in {text!r} takes no argument, but it has {argument!r}. Leave it out; "
                f"the column of the groups follows as in: as {kind} by sex."
            )
        field, holds = taken
        fields[field] = number(argument, text) if holds is float else argument
    return from_dict({"kind": kind, **fields})
