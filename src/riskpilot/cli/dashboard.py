"""``riskpilot dashboard``: Optuna's dashboard with riskpilot's figure."""

from typing import Annotated
from wsgiref.simple_server import WSGIServer

import typer

from riskpilot.cli import terminal
from riskpilot.cli.options import StorageArgument, examples
from riskpilot.errors import StudyError

EXAMPLES = examples("riskpilot dashboard adult.db", "riskpilot dashboard sqlite:///adult.db")


def dashboard(
    storage: StorageArgument,
    host: Annotated[str, typer.Option(help="Who may look: this machine only by default.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        int, typer.Option(help="Where the page is served; 0 takes a free port.")
    ] = 8080,
) -> None:
    """Serve Optuna's dashboard with riskpilot's figure, live, from validation data alone."""
    # The dashboard is an extra package, and only this command needs it.
    try:
        from riskpilot.dashboard import serve
    except ImportError as error:
        raise StudyError(
            f"This command needs optuna-dashboard, which is not installed ({error}). "
            f"Install it, in a clone of riskpilot: pip install '.[dashboard]'."
        ) from error

    def say_where(server: WSGIServer) -> None:
        address = f"http://{host}:{server.server_port}"
        terminal.say(terminal.output(), f"Serving on {address} (stop with Ctrl-C)")

    serve(storage, host, port, ready=say_where)
