"""What people type: limits, true risks and deviations, as text."""

import re
from collections.abc import Sequence
from dataclasses import replace

from riskpilot.errors import ProblemError
from riskpilot.problem import Problem, Risk

_RISK = re.compile(
    r"""\s*(?P<name>[^<>=≤]+?)\s*(?:<=|≤)\s*(?P<limit>[^\s\[\]]+)
        (?:\s+in\s*\[\s*(?P<low>[^,\s]+)\s*,\s*(?P<high>[^\]\s]+)\s*\])?
        (?P<conditional>\s+conditional)?\s*""",
    re.VERBOSE,
)


def parse_risk(text: str, p_value: str = "auto") -> Risk:
    """A risk as typed: its name, its limit and, where needed, its range and "conditional".

    >>> parse_risk("drop <= 0.05 in [-1, 1] conditional")
    Risk(name='drop', limit=0.05, low=-1.0, high=1.0, conditional=True, p_value='auto')
    """
    match = _RISK.fullmatch(text)
    if match is None:
        raise ProblemError(
            f"A risk is written NAME<=LIMIT, with its range and a condition where it has them, but "
            f'this is {text!r}. Write "error<=0.1" or "drop<=0.05 in [-1,1] conditional".'
        )
    low, high = match["low"], match["high"]
    return Risk(
        match["name"],
        limit=_number(match["limit"], text),
        low=0.0 if low is None else _number(low, text),
        high=1.0 if high is None else _number(high, text),
        conditional=match["conditional"] is not None,
        p_value=p_value,
    )


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
