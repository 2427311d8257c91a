"""The live page: optuna-dashboard with riskpilot's figure of a running study, kept up to date.

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

from riskpilot.plots import Background, search_plane, with_theme
from riskpilot.study import (
    PROBLEM_KEY,
    SETTINGS_KEY,
    as_storage,
    problem_of,
    record_of,
    sampler_for,
    validation_of,
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
    """The trade-off of a study as it stands, from validation data alone; None before any trial."""
    problem = problem_of(study)
    trials = [
        trial
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if record_of(trial) is not None
    ]
    records = [record for trial in trials if (record := record_of(trial)) is not None]
    if not records:
        return None
    search = None
    if not problem.has_open_limits:
        seed = study.user_attrs.get(SETTINGS_KEY, {}).get("seed", 0)
        search = sampler_for(study, problem, seed).picture(study, problem)
    background = Background([t.params for t in trials], [t.number for t in trials])
    figure = search_plane(validation_of(problem, records), search, background)
    figure = with_theme(figure, "neutral")
    # The dashboard's box is low and narrow; what does not fit is cut off.
    figure.update_layout(height=460, legend={"font": {"size": 11}, "y": -0.2})
    return figure


def update_figure(study: optuna.Study, trial: FrozenTrial | None = None) -> None:
    """Store the figure with the study, where optuna-dashboard shows it.

    For studies that another server shows: ``study.optimize(..., callbacks=[update_figure])``.
    `serve` does it by itself.
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
        The storage whose studies are shown, or its address.

    Returns
    -------
    callable
        The application, for any WSGI server.
    """
    opened = as_storage(storage)
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
        The storage whose studies are shown, or its address.
    host : str, default "127.0.0.1"
        The address on which the page is served. By default only this machine can see it.
    port : int, default 8080
        The port of the page. 0 takes a free one, which is then ``server.server_port``.
    ready : callable
        A function that is called with the server once it listens.
    """
    with make_server(
        host, port, application(storage), server_class=_Server, handler_class=_Quiet
    ) as server:
        ready(server)
        server.serve_forever(poll_interval=0.2)


def _renew(storage: BaseStorage, study_id: int, drawn: dict[int, int]) -> None:
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
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """A line for every poll of every page would drown what matters."""
