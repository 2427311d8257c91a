"""What people type on the command line: true risks, deviations, and changes to a problem."""

from collections.abc import Sequence
from dataclasses import replace

from riskpilot.errors import ProblemError
from riskpilot.problem import Problem, Risk, number


def parse_numbers(texts: Sequence[str], what: str) -> dict[str, float]:
    """Numbers by name.

    >>> parse_numbers(["error=0.08"], "true risk")
    {'error': 0.08}
    """
    result: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ProblemError(
                f'A {what} is written NAME=NUMBER, but this is {text!r}. Write "error=0.08".'
            )
        if name in result:
            raise ProblemError(f"The {what} of {name!r} is given twice. Give it once.")
        result[name] = number(value, text)
    return result


def changed(problem: Problem, risks: Sequence[Risk], delta: float | None, p_value: str) -> Problem:
    """The problem of a study, with what was typed in its place."""
    tests = [
        risk if p_value == "auto" else replace(risk, p_value=p_value)
        for risk in (risks or problem.risks)
    ]
    return Problem(tests, problem.minimize, problem.delta if delta is None else delta)
