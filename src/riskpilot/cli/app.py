"""The app: its commands, and how it says what is wrong with an input.

Exit codes: 0 certified, or holds; 1 a certificate that does not hold, or no longer; 2 input that
cannot be used; 3 nothing could be certified; 4 more labels are needed; 141 nobody read the output.
"""

import inspect
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import riskpilot
from riskpilot.cli import (
    bench,
    calibrate,
    dashboard,
    demo,
    gate,
    live,
    logs,
    plan,
    recertify,
    report,
    seal,
    select,
    status,
    terminal,
    verify,
    watch,
)
from riskpilot.common import hide_password, reason_of, shown_safely, without_password
from riskpilot.errors import RiskpilotError, visible

_TYPED = "riskpilot: what was typed"
# Typer's error for what cannot be understood, which it exports under the name of its child alone.
_UsageError: Any = typer.BadParameter.__base__


class _Command(TyperCommand):
    """A command whose help shows flags as what they are: they take no value."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options and arguments."""
        return _with_bare_flags(super().get_params(ctx))


class _Commands(TyperGroup):
    """Says what is wrong with an input in one message, without a traceback or a password."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options that stand before a command."""
        return _with_bare_flags(super().get_params(ctx))

    def main(self, *args: Any, **options: Any) -> Any:
        """Run what was typed; output that nobody reads ends it with an exit code of its own."""
        try:
            return super().main(*args, **options)
        except SystemExit as ended:
            if not _has_broken_pipe(ended):
                raise
        _drop_output()
        raise SystemExit(terminal.ExitCode.CLOSED_PIPE)

    def make_context(self, info_name: Any, args: list[str], *rest: Any, **options: Any) -> Any:
        """Remember what was typed, so that passwords in it can be hidden in messages."""
        typed = list(args)
        context = super().make_context(info_name, args, *rest, **options)
        context.meta[_TYPED] = typed
        return context

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an error of the input becomes a message and an exit code."""
        typed = ctx.meta[_TYPED]
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except _UsageError as error:  # Typer shows it, with what was typed
            error.message = visible(_without_passwords(error.message, typed))
            raise
        except RiskpilotError as error:
            terminal.show_error(_without_passwords(str(error), typed))
        except OSError as error:
            what = "" if error.filename is None else f" ({shown_safely(str(error.filename))})"
            terminal.show_error(
                f"{reason_of(error)}{what}. Check that the folder exists, can be written and has "
                f"space."
            )
        except MemoryError:
            terminal.show_error(
                "There is not enough memory for this input. Give fewer configurations or examples "
                "at once, or run it on a machine with more memory."
            )
        raise typer.Exit(terminal.ExitCode.BAD_INPUT)


def _with_bare_flags(parameters: list[Any]) -> list[Any]:
    """Let the help show no type behind flags: Typer writes <bool>, as if one could be given."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


def _has_broken_pipe(ended: BaseException) -> bool:
    """Tell whether a command ended because its output was closed: Rich and Typer exit with 1 then,
    which says something else here."""
    cause: BaseException | None = ended
    while cause is not None:
        if isinstance(cause, BrokenPipeError):
            return True
        cause = cause.__context__
    return False


def _drop_output() -> None:
    """Lead what is still to be written nowhere, so that Python's end does not complain of it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in filter(None, (sys.__stdout__, sys.__stderr__)):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())


def _without_passwords(message: str, typed: list[str]) -> str:
    """Hide the addresses of databases that were typed in the place of something else."""
    for word in typed:
        value = word.partition("=")[2] if word.startswith("-") else word
        if hide_password(value) != value:
            message = without_password(message, value)
    return message


class _App(typer.Typer):
    """An app all of whose commands have ``--verbose``."""

    def command(self, *names: Any, **settings: Any) -> Any:
        """Register a function as a command, with the option added."""
        register = super().command

        def added(function: Any) -> Any:
            known = {"cls": _Command, "help": _flowing(function.__doc__), **settings}
            return register(*names, **known)(logs.with_verbose(function))

        return added


def _flowing(text: str) -> str:
    """Put every paragraph on one line: it is broken where the terminal ends, not the source."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


app = _App(
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
app.command(epilog=calibrate.EXAMPLES)(calibrate.calibrate)
app.command(epilog=seal.EXAMPLES)(seal.seal)
app.command(epilog=verify.EXAMPLES)(verify.verify)
app.command(epilog=watch.EXAMPLES)(watch.watch)
app.command(epilog=recertify.EXAMPLES)(recertify.recertify)
app.command(epilog=report.EXAMPLES)(report.report)
app.command(epilog=live.EXAMPLES)(live.live)
app.command(epilog=dashboard.EXAMPLES)(dashboard.dashboard)
app.command(epilog=bench.EXAMPLES)(bench.bench)
app.command(epilog=status.EXAMPLES)(status.status)
