"""What people type: limits, true risks and deviations, as text."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from riskpilot.errors import ProblemError
from riskpilot.measures import Mean, Statistic, from_dict
from riskpilot.metrics import named
from riskpilot.problem import Problem, Risk

_RISK = re.compile(
    r"""\s*(?P<name>[^<>=≤≥]+?)\s*(?P<sign><=|≤|>=|≥)\s*(?P<limit>[^\s\[\]]+)
        (?:\s+as\s+(?P<kind>\w+)(?:\(\s*(?P<argument>[^)]*?)\s*\))?)?
        (?:\s+by\s+(?P<groups>\S+))?
        (?:\s+weighted\s+by\s+(?P<weights>\S+)\s+up\s+to\s+(?P<largest>\S+))?
        (?:\s+in\s*\[\s*(?P<low>[^,\s]+)\s*,\s*(?P<high>[^\]\s]+)\s*\])?
        (?P<conditional>\s+conditional)?\s*""",
    re.VERBOSE,
)


def parse_risk(text: str, p_value: str = "auto") -> Risk:
    """A risk as typed: its name and its limit; where needed what is limited and by which groups,
    weights, its range and "conditional". A name that says what is limited needs no more.

    >>> parse_risk("drop <= 0.05 in [-1, 1] conditional")
    Risk(name='drop', limit=0.05, low=-1.0, high=1.0, conditional=True, p_value='auto')
    >>> parse_risk("error <= 0.2 as worst_group by sex").statistic
    WorstGroup(groups=None)
    """
    match = _RISK.fullmatch(text)
    if match is None:
        raise ProblemError(
            f"A risk is written NAME<=LIMIT, with its range and a condition where it has them, but "
            f'this is {text!r}. Write "error<=0.1", "error<=0.2 as worst_group by sex" or '
            f'"drop<=0.05 in [-1,1] conditional".'
        )
    low, high, bound = match["low"], match["high"], _number(match["limit"], text)
    told: dict[str, Any] = {}
    if match["kind"] is not None:
        told["statistic"] = _statistic(match["kind"], match["argument"], text)
    if match["groups"] is not None:
        told["groups"] = match["groups"]
    if match["weights"] is not None:
        told |= {"weights": match["weights"], "largest_weight": _number(match["largest"], text)}
    known = named(match["name"])
    if match["sign"] in (">=", "≥"):
        told["at_least"] = bound
    elif match["kind"] is None and known is not None and known.statistic != Mean():
        told["at_most"] = bound  # the name says what is limited
    else:
        told["limit"] = bound
    return Risk(
        match["name"],
        low=0.0 if low is None else _number(low, text),
        high=1.0 if high is None else _number(high, text),
        conditional=match["conditional"] is not None,
        p_value=p_value,
        **told,
    )


def _statistic(kind: str, argument: str | None, text: str) -> Statistic:
    fields: dict[str, Any] = {}
    if argument:
        field = {"quantile": "level", "cvar": "level", "difference": "reference"}.get(kind)
        if field is None:
            raise ProblemError(
                f"{kind!r} in {text!r} takes no argument, but it has {argument!r}. Leave it out; "
                f"the column of the groups follows as in: as {kind} by sex."
            )
        fields[field] = _number(argument, text) if field == "level" else argument
    return from_dict({"kind": kind, **fields})


def parse_numbers(texts: Sequence[str], what: str) -> dict[str, float]:
    """Numbers by name.

    >>> parse_numbers(["error=0.08"], "true risk")
    {'error': 0.08}
    """
    result: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ProblemError(
                f'A {what} is written NAME=NUMBER, but this is {text!r}. Write "error=0.08".'
            )
        if name in result:
            raise ProblemError(f"The {what} of {name!r} is given twice. Give it once.")
        result[name] = _number(number, text)
    return result


def changed(problem: Problem, risks: Sequence[Risk], delta: float | None, p_value: str) -> Problem:
    """The problem of a study, with what was typed in its place."""
    tests = [
        risk if p_value == "auto" else replace(risk, p_value=p_value)
        for risk in (risks or problem.risks)
    ]
    return Problem(tests, problem.minimize, problem.delta if delta is None else delta)


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ProblemError(
            f"{text.strip()!r} in {whole!r} is not a number. Write it with a point: 0.05."
        ) from None
