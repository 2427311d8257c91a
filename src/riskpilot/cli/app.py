"""The app: its commands, and how it says what is wrong with an input.

Exit codes: 0 certified, or holds; 1 a certificate that does not hold; 2 input that cannot be used;
3 nothing could be certified.
"""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import riskpilot
from riskpilot.cli import (
    bench,
    dashboard,
    demo,
    gate,
    plan,
    report,
    seal,
    select,
    status,
    terminal,
    verify,
)
from riskpilot.errors import RiskpilotError


class _Commands(TyperGroup):
    """Says what is wrong with an input in one message, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an error of the input becomes a message and an exit code."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except RiskpilotError as error:
            terminal.show_error(str(error))
        except OSError as error:
            terminal.show_error(f"{error}. Check that the folder exists and can be written.")
        raise typer.Exit(terminal.ExitCode.BAD_INPUT)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,  # a local variable can hold a password
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    """Show the version and end, where that was asked for."""
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


# In the order in which --help lists them.
app.command(epilog=demo.EXAMPLES)(demo.demo)
app.command(epilog=select.EXAMPLES)(select.select)
app.command(epilog=gate.EXAMPLES)(gate.gate)
app.command(epilog=plan.EXAMPLES)(plan.plan)
app.command(epilog=seal.EXAMPLES)(seal.seal)
app.command(epilog=verify.EXAMPLES)(verify.verify)
app.command(epilog=report.EXAMPLES)(report.report)
app.command(epilog=dashboard.EXAMPLES)(dashboard.dashboard)
app.command(epilog=bench.EXAMPLES)(bench.bench)
app.command(epilog=status.EXAMPLES)(status.status)
