"""``riskpilot select``: choose the best configuration that is shown to keep every limit."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

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
    StudyNameOption,
    changed,
    examples,
    parse_risks,
)
from riskpilot.cli.outputs import RENEWED, check_outputs
from riskpilot.errors import ProblemError
from riskpilot.guarantee import Procedure, config_in_words, p_in_words, with_short_numbers
from riskpilot.problem import Problem
from riskpilot.selection import (
    Selection,
    ledger_beside,
    select_from_frame,
    select_from_losses,
    whole_table,
)
from riskpilot.study import hide_password, is_storage, open_study, problem_of
from riskpilot.study import select as select_from_study
from riskpilot.tables import is_archive, is_log, named_columns, with_example

SCHEMA = "riskpilot-select/1"

EXAMPLES = examples(
    'riskpilot select losses.npz --risk "error<=0.1" --minimize cost --out certificate.json',
    'riskpilot select losses.csv -r "miss<=0.05 conditional" -r "drop<=0.02 in \\[-1,1]" '
    "--minimize cost --report report.html",
    "riskpilot select answers.parquet --config-columns model,prompt_id --example question_id -r "
    '"correct>=0.85" --minimize cost',
    "riskpilot select 'logs/*.eval' -r \"error<=0.1\" --minimize cost",
    "riskpilot select sqlite:///study.db --json",
    "Exit code: 0 certified, 3 nothing could be certified, 2 bad input.",
)


def select(
    losses: Annotated[
        str,
        typer.Argument(
            help="A table of losses (.npz, .csv, .parquet, .json, .jsonl; a glob or an address of "
            "such files), logs of Inspect AI, lm-evaluation-harness or promptfoo, or the "
            "storage of a study. A column holds what its name says (under correct>=0.85, 1 is "
            "good); the arrays of an .npz file are losses."
        ),
    ],
    risk: RiskOption = [],  # noqa: B006 - typer copies it
    minimize: Annotated[
        str | None, typer.Option("--minimize", "-m", help="The free objective.")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="How often the promise may fail; 0.1, or that of the study."),
    ] = None,
    procedure: ProcedureOption = "fixed_sequence",
    p_value: PValueOption = "auto",
    seed: SeedOption = 0,
    config_columns: Annotated[
        str,
        typer.Option(help="The columns of a table that make up a configuration, with commas."),
    ] = "config",
    example: Annotated[
        str | None,
        typer.Option(
            help="The column of the examples' ids; that named example by default, if there is one."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="The column that says validation or calibration; or the share of the examples "
            "that is drawn for validation, such as 0.5. Without it the column split, and a third "
            "of the examples of logs."
        ),
    ] = None,
    ledger: Annotated[
        bool,
        typer.Option(
            help="Whether a ledger beside the table, of the same name with .ledger.json, counts "
            "the questions to it."
        ),
    ] = True,
    study_name: StudyNameOption = None,
    artifacts: ArtifactsOption = None,
    out: OutOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose the best configuration that is shown to keep every limit."""
    outputs = {"--out": out, "--report": report}
    check_outputs(outputs, losses, artifacts=artifacts, renewed=RENEWED)
    with terminal.waiting(f"Reading and testing {hide_password(losses)}"):
        risks = parse_risks(risk, p_value)
        if is_storage(losses):
            study = open_study(losses, study_name, artifacts)
            problem = changed(problem_of(study), risks, delta, p_value)
            if minimize not in (None, problem.minimize):
                raise ProblemError(
                    f"The study minimises {problem.minimize!r}, so {minimize!r} cannot be chosen. "
                    f"Leave --minimize out."
                )
            selection = select_from_study(
                study, problem=problem, procedure=PROCEDURES[procedure], seed=seed
            )
        else:
            if not risks or minimize is None:
                raise ProblemError(
                    "A table of losses needs --risk and --minimize, and one of them is missing. "
                    'Write --risk "error<=0.1" --minimize cost.'
                )
            problem = Problem(risks, minimize, 0.1 if delta is None else delta)
            chosen = PROCEDURES[procedure]
            if is_archive(losses):
                beside = ledger_beside(losses) if ledger else None
                selection = _select_from_archive(problem, losses, chosen, seed, beside)
            else:
                columns = _columns(losses, config_columns, example, split)
                counted_in = "beside" if ledger else None
                selection = select_from_frame(
                    problem, losses, **columns, procedure=chosen, seed=seed, ledger=counted_in
                )
    finish(selection, out, report, as_json=as_json)


def finish(selection: Selection, out: Path | None, report: Path | None, *, as_json: bool) -> None:
    """Write the files of a selection, show it, and exit with 3 where nothing was certified."""
    if out is not None:
        selection.certificate.save(out)
    if report is not None:
        selection.report(report)
    if as_json:
        terminal.print_json(
            {
                "certified": selection.config is not None,
                "config": selection.config,
                "message": selection.message,
                "certificate": json.loads(selection.certificate.to_json()),
            },
            schema=SCHEMA,
        )
    else:
        console = terminal.output()
        show_candidates(console, selection)
        show_message(console, selection)
        terminal.show_files(console, {"certificate": out, "report": report})
    if selection.config is None:
        raise typer.Exit(terminal.ExitCode.NOTHING_CERTIFIED)


def show_message(console: Console, selection: Selection) -> None:
    """Show the verdict; numbers of the configuration have six digits, and files have them all."""
    words = with_short_numbers(selection.message, selection.candidates[selection.closest])
    terminal.show_verdict(console, words, good=selection.config is not None)


def _columns(path: str, config: str, example: str | None, split: str | None) -> dict[str, Any]:
    """Read which columns of a table are which, as they were typed."""
    names = [name.strip() for name in config.split(",")]
    share: str | float = 1 / 3 if split is None and is_log(path) else split or "split"
    with suppress(ValueError):
        share = float(share)
    columns = with_example(path, named_columns(names, example, "split"))
    return {"config": names, "example": columns.example, "split": share}


def _select_from_archive(
    problem: Problem, path: str, procedure: Procedure, seed: int, ledger: Path | None
) -> Selection:
    """Read an archive of losses and select from it."""
    table = whole_table(problem, path)
    return select_from_losses(
        problem,
        validation=table.validation,
        calibration=table.calibration,
        configs=table.configs,
        procedure=procedure,
        validation_ids=table.validation_ids,
        calibration_ids=table.calibration_ids,
        seed=seed,
        ledger=ledger,
        n_evaluated=table.n_evaluated,
    )


def show_candidates(console: Console, selection: Selection, most: int = 12) -> None:
    """Show the tested configurations in testing order; of a long list those around the choice."""
    chosen = selection.certificate.chosen
    total = len(selection.candidates)
    start = 0 if chosen is None else max(0, min(chosen - most // 2, total - most))
    heads = ["verdict", "p-value"]
    for risk in selection.problem.risks:
        heads += [f"{risk.title}, calibration", f"{risk.title}, validation"]
    heads += [f"{selection.problem.minimize}, validation", "configuration"]
    rows = []
    for i in range(start, min(start + most, total)):
        passed = bool(selection.result.passed[i])
        verdict = "chosen" if i == chosen else "passed" if passed else "-"
        p = p_in_words(float(selection.result.worst_log_p[i]), selection.plan.aims[i])
        cells = [verdict, p]
        for j in range(len(selection.problem.risks)):
            cells += [f"{selection.result.means[i, j]:.4g}", f"{selection.plan.risks[i][j]:.4g}"]
        cells += [f"{selection.plan.free[i]:.4g}", config_in_words(selection.candidates[i])]
        rows.append((cells, "bold green" if i == chosen else None if passed else "dim"))
    shown = "" if total <= most else f" ({len(rows)} of {total} shown)"
    terminal.show_table(console, f"Tested configurations, in testing order{shown}", heads, rows)
