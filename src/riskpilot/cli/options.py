"""Options that several commands share, and how what people type is read."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from riskpilot.errors import ProblemError
from riskpilot.guarantee import Procedure, bonferroni, fixed_sequence, holm
from riskpilot.problem import Problem, Risk, number, parse_risk
from riskpilot.statistics import P_VALUES

ProcedureName = Literal["fixed_sequence", "bonferroni", "holm"]

PROCEDURES: dict[ProcedureName, Procedure] = {
    "fixed_sequence": fixed_sequence,
    "bonferroni": bonferroni,
    "holm": holm,
}

RiskOption = Annotated[
    list[str],
    typer.Option(
        "--risk",
        "-r",
        help='A limit: "error<=0.1"; "correct>=0.85", where 1 is good; with a range, '
        '"drop<=0.05 in \\[-1,1]"; "... conditional" where empty losses do not count; '
        '"error<=0.2 as worst_group by sex" (group_gap, ratio, quantile(0.95), cvar(0.95), '
        "difference(COLUMN)). Repeat it for several risks.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
StudyNameOption = Annotated[
    str | None, typer.Option(help="Which study of the storage, where it holds several.")
]
ArtifactsOption = Annotated[
    Path | None,
    typer.Option(help="The folder of a study's losses, where it is not beside the storage's file."),
]
PValueOption = Annotated[
    str,
    typer.Option(
        "--p-value",
        metavar=f"[{'|'.join(P_VALUES)}]",
        help="The test; auto: binomial for 0/1 losses, betting for others.",
    ),
]
ProcedureOption = Annotated[ProcedureName, typer.Option(help="How several candidates are tested.")]
SeedOption = Annotated[
    int, typer.Option(min=0, help="Another one draws another order of the examples for bets.")
]
StudyDeltaOption = Annotated[
    float | None, typer.Option(help="How often the promise may fail; that of the study.")
]
OutOption = Annotated[Path | None, typer.Option(help="Write the certificate here.")]
ReportOption = Annotated[Path | None, typer.Option(help="Write an HTML page here.")]
StorageArgument = Annotated[
    str, typer.Argument(help="The storage of a study: an address, or a SQLite or journal file.")
]


def examples(*lines: str) -> str:
    """Write the end of a command's help: examples, then remarks, each in a line of its own."""
    return "\n\n".join(["[bold]Examples[/bold]", *lines])


def parse_risks(texts: Sequence[str], p_value: str) -> list[Risk]:
    """Read the limits that were typed, all with the same test."""
    return [parse_risk(text, p_value) for text in texts]


def parse_numbers(texts: Sequence[str], what: str) -> dict[str, float]:
    """Read numbers by name.

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
    """Put what was typed in the place of the limits, delta and test of a study's problem."""
    tests = [
        risk if p_value == "auto" else replace(risk, p_value=p_value)
        for risk in (risks or problem.risks)
    ]
    return Problem(tests, problem.minimize, problem.delta if delta is None else delta)
