"""``riskpilot verify``: compute a certificate again from the losses, and say what differs."""

from pathlib import Path
from typing import Annotated

import typer

from riskpilot.cli import terminal
from riskpilot.cli.options import ArtifactsOption, JsonOption, StudyNameOption, examples
from riskpilot.study import audit

SCHEMA = "riskpilot-verify/1"

EXAMPLES = examples(
    "riskpilot verify certificate.json --losses losses.npz",
    "riskpilot verify certificate.json --losses sqlite:///study.db --study-name adult",
    "riskpilot verify certificate.json --losses study.db --seal seal.json",
    "Exit code: 0 the certificate holds, 1 it does not, 2 bad input.",
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
        Path | None, typer.Option(help="The seal that was made before the question was asked.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute a certificate again from the losses, and say what differs."""
    with terminal.waiting(f"Checking {certificate}"):
        result = audit(certificate, losses, study_name, artifacts, seal)
    if as_json:
        terminal.print_json(
            {
                "holds": result.ok,
                "differences": list(result.differences),
                "trusted": list(result.trusted),
            },
            schema=SCHEMA,
        )
    else:
        terminal.show_verdict(terminal.output(), str(result), good=result.ok)
    if not result.ok:
        raise typer.Exit(terminal.ExitCode.DOES_NOT_HOLD)
