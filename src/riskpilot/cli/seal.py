"""``riskpilot seal``: write down what will be asked, before it is asked."""

import json
from pathlib import Path
from typing import Annotated

import typer

from riskpilot.cli import terminal
from riskpilot.cli.options import (
    PROCEDURES,
    JsonOption,
    ProcedureOption,
    PValueOption,
    RiskOption,
    SeedOption,
    StorageArgument,
    StudyDeltaOption,
    StudyNameOption,
    changed,
    examples,
    parse_risks,
)
from riskpilot.study import open_study, problem_of
from riskpilot.study import seal as seal_study

EXAMPLES = examples(
    "riskpilot seal study.db --out seal.json",
    'riskpilot seal sqlite:///study.db --study-name adult --risk "error<=0.15"',
    "Deposit the file, or its digest alone, where you cannot change it; then select with the same "
    "options, and check with riskpilot verify --seal.",
)


def seal(
    storage: StorageArgument,
    risk: RiskOption = [],  # noqa: B006 - typer copies it
    delta: StudyDeltaOption = None,
    procedure: ProcedureOption = "fixed_sequence",
    p_value: PValueOption = "auto",
    seed: SeedOption = 0,
    study_name: StudyNameOption = None,
    out: Annotated[Path, typer.Option(help="Write the seal here.")] = Path("seal.json"),
    as_json: JsonOption = False,
) -> None:
    """Write down what will be asked, before it is asked, for others to keep."""
    study = open_study(storage, study_name)
    problem = changed(problem_of(study), parse_risks(risk, p_value), delta, p_value)
    made = seal_study(study, problem=problem, procedure=PROCEDURES[procedure], seed=seed)
    made.save(out)
    if as_json:
        terminal.print_json(json.loads(made.to_json()))
        return
    console = terminal.output()
    terminal.say(console, made)
    terminal.say(console, f"seal: {out}")
