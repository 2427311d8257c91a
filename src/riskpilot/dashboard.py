"""Optuna's dashboard with riskpilot's figure of a running study, kept up to date.

The figure comes from validation data alone, so that looking at it as often as one likes does not
weaken the promise.
"""

import re
import threading
import warnings
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import optuna
import plotly.graph_objects as go
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from riskpilot.common import unusable_address
from riskpilot.plots import search_plane, with_theme
from riskpilot.study import (
    PROBLEM_KEY,
    as_storage,
    existing_storage,
    search_so_far,
)

with warnings.catch_warnings():
    # Where BoTorch is installed the dashboard loads it, and that uses what torch has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from optuna_dashboard import (  # type: ignore[import-untyped]
        save_plotly_graph_object,
        wsgi,
    )

FIGURE_ID = "riskpilot-trade-off"

_STUDY_REQUEST = re.compile(r"^/api/studies/(\d+)$")
_Answer = Callable[..., Any]
Application = Callable[[dict[str, Any], _Answer], Iterable[bytes]]


def study_figure(study: optuna.Study) -> go.Figure | None:
    """Draw the trade-off of a study as it stands, from validation data alone.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`.

    Returns
    -------
    plotly.graph_objects.Figure, or None
        The figure; None before any trial has finished.
    """
    found = search_so_far(study)
    if found is None:
        return None
    figure = with_theme(search_plane(*found), "neutral")
    # The dashboard's box is low and narrow; what does not fit is cut off.
    figure.update_layout(height=460, legend={"font": {"size": 11}, "y": -0.2})
    return figure


def update_figure(study: optuna.Study, trial: FrozenTrial | None = None) -> None:
    """Store the figure with the study, where optuna-dashboard shows it.

    For studies that another server shows: ``study.optimize(..., callbacks=[update_figure])``.
    `serve` does it by itself.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`.
    trial : optuna.trial.FrozenTrial, optional
        The trial that has finished, which Optuna passes to callbacks. It is not needed.
    """
    figure = study_figure(study)
    if figure is not None:
        save_plotly_graph_object(study, figure, graph_object_id=FIGURE_ID)


def application(storage: str | BaseStorage) -> Application:
    """Make a WSGI application of optuna-dashboard in which every study has an up-to-date figure.

    The figure is renewed when a page asks for its study and a trial has finished since. Asking and
    renewing take turns, so that no page sees half a figure.

    Parameters
    ----------
    storage : str or BaseStorage
        The storage whose studies are shown, its address, or its SQLite or journal file.

    Returns
    -------
    callable
        The application, for any WSGI server.

    Raises
    ------
    TableError
        If the storage cannot be opened or its file does not exist.
    """
    is_open = isinstance(storage, BaseStorage)
    opened = as_storage(storage if is_open else existing_storage(str(storage)))
    inner = wsgi(opened)
    turn = threading.Lock()
    drawn: dict[int, int] = {}

    def answer(environ: dict[str, Any], start_response: _Answer) -> Iterable[bytes]:
        asked = _STUDY_REQUEST.match(environ.get("PATH_INFO", ""))
        with turn:
            if asked and environ.get("REQUEST_METHOD") == "GET":
                _renew(opened, int(asked.group(1)), drawn)
            content: Iterable[bytes] = inner(environ, start_response)
            return content

    return answer


def serve(
    storage: str | BaseStorage,
    host: str = "127.0.0.1",
    port: int = 8080,
    *,
    ready: Callable[[WSGIServer], None] = lambda server: None,
) -> None:
    """Show every study of a storage until interrupted.

    Parameters
    ----------
    storage : str or BaseStorage
        The storage whose studies are shown, its address, or its SQLite or journal file.
    host : str, default "127.0.0.1"
        The address on which the page is served. By default only this machine can see it.
    port : int, default 8080
        The port of the page. 0 takes a free one, which is then ``server.server_port``.
    ready : callable, optional
        A function that is called with the server once it listens.

    Raises
    ------
    StudyError
        If nothing can listen on this host and port.
    TableError
        If the storage cannot be opened or its file does not exist.
    """
    page = application(storage)
    if host == "":  # which would mean every address of this machine
        raise unusable_address(host, port, "the host is empty")
    try:
        server = make_server(host, port, page, server_class=_Server, handler_class=_Quiet)
    except (OSError, OverflowError, TypeError, ValueError) as error:
        raise unusable_address(host, port, error) from error
    with server:
        ready(server)
        server.serve_forever(poll_interval=0.2)


def _renew(storage: BaseStorage, study_id: int, drawn: dict[int, int]) -> None:
    """Draw a study's figure again if a trial has finished since; ``drawn`` counts them."""
    try:
        attributes = storage.get_study_user_attrs(study_id)
    except KeyError:
        return  # the dashboard itself says that there is no such study
    if PROBLEM_KEY not in attributes:
        return
    finished = storage.get_n_trials(study_id, state=(TrialState.COMPLETE,))
    if drawn.get(study_id) == finished:
        return
    name = storage.get_study_name_from_id(study_id)
    update_figure(optuna.load_study(study_name=name, storage=storage))
    drawn[study_id] = finished


class _Server(ThreadingMixIn, WSGIServer):
    """Answers every request in a thread of its own."""

    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    """Answers requests without a log."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a line for every poll of every page would drown what matters."""
