"""``riskpilot live``: the page of a search under way, which renews itself."""

import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from riskpilot.cli import terminal
from riskpilot.cli.options import StorageArgument, StudyNameOption, examples
from riskpilot.errors import StudyError
from riskpilot.study import open_study

if TYPE_CHECKING:
    from riskpilot.live import Served

EXAMPLES = examples(
    "riskpilot live adult.db",
    "riskpilot live postgresql+psycopg://me@host/studies --study-name adult --open",
)


def live(
    storage: StorageArgument,
    study_name: StudyNameOption = None,
    host: Annotated[str, typer.Option(help="Who may look: this machine only by default.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        int, typer.Option(help="Where the page is served; 0 takes a free port.")
    ] = 8090,
    browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = False,
) -> None:
    """Serve a page that shows a search and renews itself, from validation data alone.

    The page is read-only, and calibration data stays sealed. After a selection it shows the
    verdict.
    """
    # The page needs packages of an extra, and only this command needs the page.
    try:
        from riskpilot.live import serve
    except ImportError as error:
        raise StudyError(
            f"The live page needs Starlette and uvicorn, one of which is not installed ({error}). "
            f"Install them, in a clone of riskpilot: pip install '.[live]'."
        ) from error

    def say_where(served: "Served") -> None:
        terminal.say(terminal.output(), f"Serving on {served.address} (stop with Ctrl-C)")
        if not served.is_local:
            terminal.say(
                terminal.errors(),
                "Everybody who can reach this machine can read the page: configurations, "
                "validation results and errors. It has no login, and nothing is encrypted. For "
                "this machine alone, leave --host out.",
                "yellow",
            )
        if browser:
            webbrowser.open(served.address)

    study = open_study(storage, study_name)
    with suppress(KeyboardInterrupt):
        serve(study, host, port, ready=say_where)
