"""``riskpilot seal``: write down what will be asked, before it is asked."""

import json
from contextlib import suppress
from dataclasses import replace
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
from riskpilot.cli.outputs import check_outputs
from riskpilot.common import kept_in
from riskpilot.errors import CertificateError
from riskpilot.guarantee import Seal
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
    check_outputs({"--out": out}, storage, renewed={"--out": "a seal"})
    study = open_study(storage, study_name)
    problem = changed(problem_of(study), parse_risks(risk, p_value), delta, p_value)
    made = seal_study(study, problem=problem, procedure=PROCEDURES[procedure], seed=seed)
    made = _earlier(out, made) or made
    made.save(out)
    if as_json:
        terminal.print_json(json.loads(made.to_json()))
        return
    console = terminal.output()
    terminal.say(console, made)
    terminal.say(console, f"seal: {out}")


def _earlier(out: Path, made: Seal) -> Seal | None:
    """Return the seal that is there already, where it says the same: the earlier date counts."""
    if kept_in(out) != "a seal":
        return None
    with suppress(CertificateError):  # such as one that was edited: to save over it is refused
        found = Seal.load(out)
        if replace(found, created=made.created, versions=made.versions) == made:
            return found
    return None
