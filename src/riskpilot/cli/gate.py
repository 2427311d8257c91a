"""``riskpilot gate``: pass a change only where it is shown to keep its limits."""

import json
from pathlib import Path
from typing import Annotated

import typer

from riskpilot.cli import terminal
from riskpilot.cli.options import JsonOption, PValueOption, examples, parse_risks
from riskpilot.cli.outputs import check_outputs
from riskpilot.common import write_whole
from riskpilot.gate import as_json, as_junit, as_markdown, check_change, in_words

EXAMPLES = examples(
    'riskpilot gate new.eval --reference main.eval --risk "accuracy_drop<=0.03" --out gate.json',
    'riskpilot gate new.eval --reference main.eval -r "accuracy_drop<=0.03" -r "error<=0.2" '
    "--ledger gate.db --junit gate.xml --summary gate.md",
    "Exit code: 0 passed, 1 not shown, 2 bad input.",
)


def gate(
    new: Annotated[
        str,
        typer.Argument(
            help="The evaluation log of the change, or a table with one row for each example."
        ),
    ],
    reference: Annotated[
        str | None, typer.Option(help="The same of the reference, on the same examples.")
    ] = None,
    risk: Annotated[
        list[str],
        typer.Option(
            "--risk",
            "-r",
            help='A limit on a mean over all examples: "error<=0.1", "correct>=0.85" (1 is good); '
            'with a range, "seconds<=2 in \\[0,60]"; or on how far it is worse than that of the '
            'reference: "accuracy_drop<=0.03". Repeat it for several risks.',
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    delta: Annotated[
        float,
        typer.Option(help="How often a change that breaks its limits may pass, over the ledger."),
    ] = 0.05,
    p_value: PValueOption = "auto",
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="The file that counts the questions, so that all of them together keep delta."
        ),
    ] = None,
    spend: Annotated[
        float | None,
        typer.Option(
            help="The share of delta for this question; by default 6 / (pi^2 k^2) for the k-th one "
            "of the ledger."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the answer as JSON here.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    summary: Annotated[Path | None, typer.Option(help="Write Markdown here.")] = None,
    to_json: JsonOption = False,
) -> None:
    """Pass a change only where it is shown to keep its limits."""
    check_outputs({"--ledger": ledger}, new, reference, renewed={"--ledger": "a database"})
    outputs = {"--out": out, "--junit": junit, "--summary": summary}
    check_outputs(outputs, new, reference, ledger)
    with terminal.errors().status(f"Checking {new}"):
        answer = check_change(
            new,
            reference=reference,
            risks=parse_risks(risk, p_value),
            delta=delta,
            ledger=ledger,
            spend=spend,
        )
        forms = ((out, as_json), (junit, as_junit), (summary, as_markdown))
        for path, write in forms:
            if path is not None:
                write_whole(path, write(answer) + "\n")
    if to_json:
        terminal.print_json(json.loads(as_json(answer)))
    else:
        console = terminal.output()
        terminal.show_verdict(console, in_words(answer), good=answer.passed)
        terminal.show_files(console, {"answer": out, "JUnit": junit, "summary": summary})
    if not answer.passed:
        raise typer.Exit(terminal.ExitCode.DOES_NOT_HOLD)
