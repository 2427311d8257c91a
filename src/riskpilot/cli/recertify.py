"""``riskpilot recertify``: the candidates of a study again, on fresh labelled examples."""

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer

from riskpilot.cli import terminal
from riskpilot.cli.options import (
    PROCEDURES,
    ArtifactsOption,
    JsonOption,
    OutOption,
    ProcedureOption,
    PValueOption,
    ReportOption,
    RiskOption,
    SeedOption,
    StorageArgument,
    StudyDeltaOption,
    StudyNameOption,
    changed,
    examples,
    parse_risks,
)
from riskpilot.cli.outputs import RENEWED, check_outputs
from riskpilot.cli.select import finish
from riskpilot.common import Array, Places, parse
from riskpilot.errors import ProblemError, TableError
from riskpilot.problem import Problem
from riskpilot.study import open_study, problem_of
from riskpilot.study import recertify as recertify_study
from riskpilot.tables import column_names, example_id, named_columns, read_rows, wanted_columns

_IDS = "example"  # the column of ids, where no other is named

EXAMPLES = examples(
    "riskpilot recertify study.db --losses fresh.parquet --out new.json",
    'riskpilot recertify study.db --losses fresh.csv --risk "error<=0.2" '
    "--config '{\"depth\": 3}' --out new.json --report new.html",
    "Exit code: 0 certified, 3 nothing could be certified, 2 bad input.",
)


def recertify(
    storage: StorageArgument,
    losses: Annotated[
        str,
        typer.Option(
            help="Losses on fresh examples: a .csv, .parquet or .json file with a column trial, "
            "the trial's number, and one per risk, which holds what its name says (under "
            "correct>=0.85, 1 is good); every trial has the same examples, in the same "
            "order or with their ids in a column."
        ),
    ],
    risk: RiskOption = [],  # noqa: B006 - typer copies it
    delta: StudyDeltaOption = None,
    config: Annotated[
        str | None,
        typer.Option(help="The one configuration to certify again, as JSON; all by default."),
    ] = None,
    trial: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="The number of the one trial to certify again, also where others have its "
            "configuration.",
        ),
    ] = None,
    example: Annotated[
        str | None,
        typer.Option(help="The column of the examples' ids; example, where there is one."),
    ] = None,
    procedure: ProcedureOption = "fixed_sequence",
    p_value: PValueOption = "auto",
    seed: SeedOption = 0,
    study_name: StudyNameOption = None,
    artifacts: ArtifactsOption = None,
    out: OutOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Certify again after an alarm: the candidates of a study, on fresh labelled examples."""
    outputs = {"--out": out, "--report": report}
    check_outputs(outputs, storage, losses, artifacts=artifacts, renewed=RENEWED)
    with terminal.waiting(f"Reading and testing {losses}"):
        study = open_study(storage, study_name, artifacts)
        problem = changed(problem_of(study), parse_risks(risk, p_value), delta, p_value)
        fresh, ids = _by_trial(problem, losses, example)
        selection = recertify_study(
            study,
            fresh,
            calibration_ids=ids,
            problem=problem,
            config=None if config is None else _config(config),
            trial=trial,
            procedure=PROCEDURES[procedure],
            seed=seed,
        )
    if ids is None:
        _say_unused(problem, losses)
    finish(selection, out, report, as_json=as_json)


def _say_unused(problem: Problem, path: str) -> None:
    """Say which columns of a table without ids were not used: one of them may hold ids."""
    known = {"trial", problem.minimize, *problem.names, *problem.beside}
    unused = [name for name in column_names(path) if name not in known]
    if unused:
        terminal.say(
            terminal.errors(),
            f"Not used: the columns {', '.join(unused[:20])}. If one holds ids of the examples, "
            f"name it, so that they are compared with those of the search: --example {unused[0]}.",
        )


def _by_trial(
    problem: Problem, path: str, example: str | None
) -> tuple[dict[int, dict[str, Any]], list[str] | None]:
    """Read losses on fresh examples, by the number of the trial, and the ids of the examples.

    ``example``: the column of these ids, where one is named.
    """
    wanted = replace(wanted_columns(problem), losses=problem.names)
    if example is not None:
        named_columns("trial", example, 0.5)  # refuses what can be no column of ids
    elif _IDS in column_names(path):
        example = _IDS
    read = read_rows(path, wanted, ("trial",) if example is None else ("trial", example))
    numbers, ids = read.pop("trial"), None if example is None else read.pop(example)
    odd = next((n for n in numbers if n is None or not n.isdecimal()), None)
    if len(numbers) == 0 or odd is not None or None in numbers:
        raise TableError(
            f"The column trial holds the numbers of the study's trials, but one is {odd!r}. Write "
            f"one row per trial and example, with the number of the trial."
        )
    rows = {int(n): np.flatnonzero(numbers == n) for n in np.unique(numbers.astype(str))}
    names = None
    if ids is not None:
        rows = _aligned(rows, ids, example)
        names = [example_id(one) for one in ids[next(iter(rows.values()))]]
    losses = {
        number: {name: values[mine] for name, values in read.items()}
        for number, mine in rows.items()
    }
    return losses, names


def _aligned(rows: dict[int, Places], ids: Array, example: str | None) -> dict[int, Places]:
    """Bring the rows of all trials into the order in which the file first lists their examples,
    which must be the same."""
    if any(one is None or not str(one).strip() for one in ids):
        raise TableError(
            f"Every row needs an id in the column {example}, but one is empty. Fill it, or leave "
            f"the column out and write the examples of every trial in the same order."
        )
    _, first, code = np.unique(ids.astype(str), return_index=True, return_inverse=True)
    place = first[code]
    for number, mine in rows.items():
        if len(np.unique(place[mine])) != len(mine) or len(mine) != len(first):
            raise TableError(
                f"Every trial needs the same examples, each once, but trial {number} has an "
                f"example twice, or others than the first. Complete it, or remove what is double."
            )
    return {number: mine[np.argsort(place[mine])] for number, mine in rows.items()}


def _config(text: str) -> dict[str, Any]:
    """Read a configuration that was typed as JSON."""
    try:
        found = parse(text)
    except ValueError as error:
        raise ProblemError(
            f"--config is the JSON of a configuration, but it cannot be read: {error}. Write "
            f"--config '{{\"depth\": 3}}'."
        ) from None
    if not isinstance(found, dict):
        raise ProblemError(
            f"--config is a JSON object of parameters and values, but it is {text!r}. Write "
            f"--config '{{\"depth\": 3}}'."
        )
    return found
