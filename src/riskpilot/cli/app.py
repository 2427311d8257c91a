"""The command line: demo, plan, select, seal, verify; more in `cli_more`.

Exit codes: 0 certified, or holds; 1 a certificate that does not hold; 2 input that cannot be used;
3 nothing could be certified.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.text import Text
from typer.core import TyperGroup

import riskpilot
from riskpilot.cli import terminal
from riskpilot.cli.more import bench, dashboard, report
from riskpilot.cli.options import changed, parse_numbers
from riskpilot.cli.status_terminal import show_status
from riskpilot.errors import ProblemError, RiskpilotError
from riskpilot.guarantee import (
    Procedure,
    RiskPlan,
    bonferroni,
    fixed_sequence,
    holm,
    plan_calibration,
    split_labelled,
)
from riskpilot.problem import Problem, parse_risk
from riskpilot.selection import Selection, select_from_losses
from riskpilot.study import audit, hide_password, is_storage, open_study, problem_of, study_status
from riskpilot.study import seal as seal_study
from riskpilot.study import select as select_from_study
from riskpilot.tables import read_losses

DOES_NOT_HOLD, BAD_INPUT, NOTHING_CERTIFIED = 1, 2, 3

ProcedureName = Literal["fixed_sequence", "bonferroni", "holm"]
PValueName = Literal["auto", "binomial", "betting", "hoeffding_bentkus", "hoeffding"]

_PROCEDURES: dict[str, Procedure] = {
    "fixed_sequence": fixed_sequence,
    "bonferroni": bonferroni,
    "holm": holm,
}


class _Commands(TyperGroup):
    """Says what is wrong with an input in one message, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except RiskpilotError as error:
            terminal.show_error(str(error))
        except OSError as error:
            terminal.show_error(f"{error}. Check that the folder exists and can be written.")
        raise typer.Exit(BAD_INPUT)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,  # a local variable can hold a password
    context_settings={"help_option_names": ["-h", "--help"]},
)

RiskOption = Annotated[
    list[str],
    typer.Option(
        "--risk",
        "-r",
        help='A limit: "error<=0.1"; with a range, "drop<=0.05 in \\[-1,1]"; '
        '"... conditional" where empty losses do not count; "error<=0.2 as worst_group by sex" '
        "(group_gap, ratio, quantile(0.95), cvar(0.95), difference(COLUMN)). Repeat it for several "
        "risks.",
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
    PValueName,
    typer.Option("--p-value", help="The test; auto: binomial for 0/1 losses, betting for others."),
]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"riskpilot {riskpilot.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Choose a model configuration that keeps the limits you set, with a guarantee."""


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "riskpilot demo\n\n"
    "riskpilot demo --quick --out /tmp/demo\n\n"
    "riskpilot demo --limit 0.145 --seed 3"
)
def demo(
    out: Annotated[Path, typer.Option(help="The folder for what it writes.")] = Path("demo"),
    limit: Annotated[
        float | None, typer.Option(help="The largest error allowed; 0.15, quick 0.165.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=2, help="How many models to train; 14, quick 9.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same run.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Small models, in seconds.")] = False,
) -> None:
    """Train, search, test and certify on real census data, in less than two minutes."""
    # Only this command trains models, and importing what that takes would slow down the others.
    from riskpilot.cli.demo_story import tell

    tell(out, limit, trials, seed, quick)


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    'riskpilot select losses.npz --risk "error<=0.1" --minimize cost --out certificate.json\n\n'
    'riskpilot select losses.csv -r "miss<=0.05 conditional" -r "drop<=0.02 in \\[-1,1]" '
    "--minimize cost --report report.html\n\n"
    "riskpilot select sqlite:///study.db --json\n\n"
    "Exit code: 0 certified, 3 nothing could be certified, 2 bad input."
)
def select(
    losses: Annotated[
        str,
        typer.Argument(help="A table of losses (.npz, .csv, .parquet), or the storage of a study."),
    ],
    risk: RiskOption = [],  # noqa: B006 - typer copies it
    minimize: Annotated[
        str | None, typer.Option("--minimize", "-m", help="The free objective.")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="How often the promise may fail; 0.1, or that of the study."),
    ] = None,
    procedure: Annotated[
        ProcedureName, typer.Option(help="How several candidates are tested.")
    ] = "fixed_sequence",
    p_value: PValueOption = "auto",
    seed: Annotated[
        int, typer.Option(min=0, help="Another one draws another order of the examples for bets.")
    ] = 0,
    study_name: StudyNameOption = None,
    artifacts: ArtifactsOption = None,
    out: Annotated[Path | None, typer.Option(help="Write the certificate here.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page here.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Choose the best configuration that is shown to keep every limit."""
    with terminal.errors().status(f"Reading and testing {hide_password(losses)}"):
        risks = [parse_risk(text, p_value) for text in risk]
        if is_storage(losses):
            study = open_study(losses, study_name, artifacts)
            problem = changed(problem_of(study), risks, delta, p_value)
            if minimize not in (None, problem.minimize):
                raise ProblemError(
                    f"The study minimises {problem.minimize!r}, so {minimize!r} cannot be chosen. "
                    f"Leave --minimize out."
                )
            selection = select_from_study(
                study, problem=problem, procedure=_PROCEDURES[procedure], seed=seed
            )
        else:
            if not risks or minimize is None:
                raise ProblemError(
                    "A table of losses needs --risk and --minimize, and one of them is missing. "
                    'Write --risk "error<=0.1" --minimize cost.'
                )
            problem = Problem(risks, minimize, 0.1 if delta is None else delta)
            selection = _select_from_table(problem, losses, _PROCEDURES[procedure], seed)
        if out is not None:
            selection.certificate.save(out)
        if report is not None:
            selection.report(report)
    _show_selection(selection, out, report, as_json)
    if selection.config is None:
        raise typer.Exit(NOTHING_CERTIFIED)


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    'riskpilot plan --risk "error<=0.05" --samples 5000\n\n'
    'riskpilot plan -r "error<=0.05" --labelled 7500\n\n'
    'riskpilot plan -r "error<=0.1" -n 500 -n 5000 --true-risk error=0.08\n\n'
    'riskpilot plan -r "cost<=3 in \\[0,10]" -n 2000 --deviation cost=1.5 --true-risk cost=2.8'
)
def plan(
    risk: RiskOption,
    samples: Annotated[
        list[int],
        typer.Option("--samples", "-n", help="Calibration examples. Repeat it to compare sizes."),
    ] = [],  # noqa: B006
    labelled: Annotated[
        list[int],
        typer.Option(help="Labelled examples in all: a third is for validation, the rest counts."),
    ] = [],  # noqa: B006
    true_risk: Annotated[
        list[str],
        typer.Option(help='What a configuration is believed to risk: "error=0.08".'),
    ] = [],  # noqa: B006
    deviation: Annotated[
        list[str],
        typer.Option(help='Standard deviation of losses that are not 0/1: "cost=1.5".'),
    ] = [],  # noqa: B006
    delta: Annotated[float, typer.Option(help="How often the promise may fail.")] = 0.1,
    target_power: Annotated[
        float, typer.Option(help="The probability of passing to aim for.")
    ] = 0.9,
    p_value: PValueOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Before data is spent: what can pass, and how many examples a margin needs."""
    problem = Problem([parse_risk(text, p_value) for text in risk], "the free objective", delta)
    true_risks = parse_numbers(true_risk, "true risk")
    deviations = parse_numbers(deviation, "deviation")
    if not samples and not labelled:
        raise ProblemError(
            "A plan needs a number of examples. Write --samples 5000 for calibration examples, or "
            "--labelled 7500 for labelled ones that are still to be split."
        )
    splits = [split_labelled(n) for n in labelled]
    sizes = [*samples, *(n_calibration for _, n_calibration in splits)]
    plans = _plans(problem, sizes, true_risks, deviations, target_power)
    if as_json:
        _print_json({"delta": delta, "plans": [_plan_json(one) for one in plans]})
        return
    console = terminal.output()
    for n_validation, n_calibration in splits:
        console.print(
            f"Of {n_validation + n_calibration:,} labelled examples, drawn at random: "
            f"{n_validation:,} for validation, {n_calibration:,} for calibration."
        )
    terminal.show_plans(console, plans, delta)


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "riskpilot seal study.db --out seal.json\n\n"
    'riskpilot seal sqlite:///study.db --study-name adult --risk "error<=0.15"\n\n'
    "Deposit the file, or its digest alone, where you cannot change it; then select with the same "
    "options, and check with riskpilot verify --seal."
)
def seal(
    storage: Annotated[
        str, typer.Argument(help="The storage of a study: an address, or a SQLite or journal file.")
    ],
    risk: RiskOption = [],  # noqa: B006 - typer copies it
    delta: Annotated[
        float | None, typer.Option(help="How often the promise may fail; that of the study.")
    ] = None,
    procedure: Annotated[
        ProcedureName, typer.Option(help="How several candidates are tested.")
    ] = "fixed_sequence",
    p_value: PValueOption = "auto",
    seed: Annotated[
        int, typer.Option(min=0, help="Of the order in which betting sees the examples.")
    ] = 0,
    study_name: StudyNameOption = None,
    out: Annotated[Path, typer.Option(help="Write the seal here.")] = Path("seal.json"),
    as_json: JsonOption = False,
) -> None:
    """Write down what will be asked, before calibration is opened, for others to keep."""
    study = open_study(storage, study_name)
    risks = [parse_risk(text, p_value) for text in risk]
    problem = changed(problem_of(study), risks, delta, p_value)
    made = seal_study(study, problem=problem, procedure=_PROCEDURES[procedure], seed=seed)
    made.save(out)
    if as_json:
        _print_json(json.loads(made.to_json()))
        return
    console = terminal.output()
    console.print(Text(str(made)))
    console.print(Text(f"seal: {out}"))


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "riskpilot verify certificate.json --losses losses.npz\n\n"
    "riskpilot verify certificate.json --losses sqlite:///study.db --study-name adult\n\n"
    "riskpilot verify certificate.json --losses study.db --seal seal.json\n\n"
    "Exit code: 0 the certificate holds, 1 it does not, 2 bad input."
)
def verify(
    certificate: Annotated[Path, typer.Argument(help="The certificate, a JSON file.")],
    losses: Annotated[
        str,
        typer.Option(help="The table of losses, or the storage of the study, that it was made of."),
    ],
    study_name: StudyNameOption = None,
    artifacts: ArtifactsOption = None,
    seal: Annotated[
        Path | None, typer.Option(help="The seal that was made before calibration was opened.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute a certificate again from the losses, and say what differs."""
    with terminal.errors().status(f"Checking {certificate}"):
        result = audit(certificate, losses, study_name, artifacts, seal)
    if as_json:
        _print_json(
            {
                "holds": result.ok,
                "differences": list(result.differences),
                "trusted": list(result.trusted),
            }
        )
    else:
        terminal.show_verdict(terminal.output(), str(result), good=result.ok)
    if not result.ok:
        raise typer.Exit(DOES_NOT_HOLD)


for _command in (report, dashboard, bench):
    app.command()(_command)


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "riskpilot status sqlite:///study.db\n\n"
    "riskpilot status study.log --study-name adult --json"
)
def status(
    storage: Annotated[
        str, typer.Argument(help="The storage of a study: an address, or a SQLite or journal file.")
    ],
    study_name: StudyNameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Where a study stands: trials, failures, budget, region, ledger; calibration stays sealed."""
    found = study_status(open_study(storage, study_name))
    if as_json:
        _print_json(found.to_json())
    else:
        show_status(terminal.output(), found)


def _select_from_table(problem: Problem, path: str, procedure: Procedure, seed: int) -> Selection:
    table = read_losses(path, problem.labels)
    table = table.only([*problem.names, *problem.beside], problem.minimize)
    return select_from_losses(
        problem,
        validation=table.validation,
        calibration=table.calibration,
        configs=table.configs,
        procedure=procedure,
        validation_ids=table.validation_ids,
        calibration_ids=table.calibration_ids,
        seed=seed,
    )


def _show_selection(
    selection: Selection, out: Path | None, report: Path | None, as_json: bool
) -> None:
    if as_json:
        _print_json(
            {
                "certified": selection.config is not None,
                "config": selection.config,
                "message": selection.message,
                "certificate": json.loads(selection.certificate.to_json()),
            }
        )
        return
    console = terminal.output()
    terminal.show_candidates(console, selection)
    terminal.show_verdict(console, selection.message, good=selection.config is not None)
    for name, path in (("certificate", out), ("report", report)):
        if path is not None:
            console.print(Text(f"{name + ':':<13}{path}"))


def _plans(
    problem: Problem,
    samples: list[int],
    true_risks: dict[str, float],
    deviations: dict[str, float],
    target_power: float,
) -> list[RiskPlan]:
    bad = [name for name, value in deviations.items() if not value > 0]
    if bad:
        raise ProblemError(
            f"A standard deviation is above 0, but that of {bad[0]!r} is {deviations[bad[0]]:g}."
        )
    plans = []
    for n in samples:
        # The losses are 0/1 unless a deviation says otherwise, for each risk on its own.
        by_kind = [
            plan_calibration(
                problem,
                n,
                true_risks=true_risks,
                target_power=target_power,
                binary=binary,
                deviations=deviations,
            )
            for binary in (True, False)
        ]
        for binary_plan, other_plan in zip(*by_kind, strict=True):
            plans.append(other_plan if binary_plan.risk.name in deviations else binary_plan)
    return plans


def _plan_json(one: RiskPlan) -> dict[str, Any]:
    return {**asdict(one), "risk": one.risk.to_dict(), "message": str(one)}


def _print_json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2))
