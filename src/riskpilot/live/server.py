"""The server of the live page: it answers GET alone, on this machine unless told otherwise."""

import contextlib
import functools
import gzip
import hashlib
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files

import optuna
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from riskpilot.common import unusable_address
from riskpilot.errors import RiskpilotError, StudyError
from riskpilot.live.page import write_live_page
from riskpilot.live.snapshot import snapshot_of, version_of
from riskpilot.plots import asset
from riskpilot.study import SameFile, StorageUnreachableError, StudyGoneError, hurried, still

_LOOK_SECONDS = 0.5  # however many pages are open, the storage is read no more often than this
_HEADERS = {
    # No script or style but those of this server; plotly sets the style of what it draws.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class Served:
    """A page that is being served: where, whether other machines may read it, and how to stop."""

    address: str
    is_local: bool
    stop: Callable[[], None]


def serve(
    study: optuna.Study,
    host: str = "127.0.0.1",
    port: int = 8090,
    *,
    ready: Callable[[Served], None] = lambda served: None,
) -> None:
    """Serve the live page of a study until interrupted.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`. It is read, and never written.
    host : str, default "127.0.0.1"
        The address on which the page is served. By default only this machine can see it.
    port : int, default 8090
        The port of the page. 0 takes a free one.
    ready : callable, optional
        A function that is called with a `Served` once pages can be asked for.

    Raises
    ------
    StudyError
        If nothing can listen on this host and port, or the study cannot be read.
    """
    still(study)  # what cannot be read is refused here, not in a browser
    with _listening(host, port) as listener:
        place, number = listener.getsockname()[:2]
        shown = _shown(host, place)
        page = application(study, [host, "localhost", socket.gethostname()])
        settings = uvicorn.Config(page, log_level="error", access_log=False, lifespan="off")
        server = uvicorn.Server(settings)

        def stop() -> None:
            server.should_exit = True

        ready(Served(f"http://{shown}:{number}", _numeric(place).is_loopback, stop))
        server.run(sockets=[listener])


def application(study: optuna.Study, names: Iterable[str] = ("localhost",)) -> Starlette:
    """Make the ASGI application of the live page of a study.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`. It is read, and never written.
    names : iterable of str, default ("localhost",)
        The names of this machine by which pages may be asked for, beside numeric addresses.

    Returns
    -------
    starlette.applications.Starlette
        The application, for any ASGI server.
    """
    kept = _Kept(study)

    def page(request: Request) -> Response:
        try:
            name, content = kept.page()
        except StorageUnreachableError:
            return PlainTextResponse("The storage of the study does not answer.", 503)
        except StudyGoneError:  # who reads the page cannot load another study
            return PlainTextResponse(f"The study {study.study_name!r} was deleted.", 503)
        except RiskpilotError as error:
            return PlainTextResponse(str(error), 503)
        return _answer(request, content, "text/html", name)

    routes = [Route("/", page, methods=["GET"]), *_assets()]
    return Starlette(routes=routes, middleware=[Middleware(_Guard, names=frozenset(names))])


class _Kept:
    """The page of a study, which is written again when the study has changed."""

    def __init__(self, study: optuna.Study) -> None:
        self._study = study
        self._same_file = SameFile(study)
        self._turn = threading.Lock()
        self._looked = -float("inf")
        self._page = "", b""

    def page(self) -> tuple[str, bytes]:
        """Return the name of the state of the study, and its page."""
        with self._turn:
            if time.monotonic() - self._looked < _LOOK_SECONDS:
                return self._page
            if not self._same_file:
                raise StudyError(
                    "The file of the study was removed or replaced, so that this page cannot "
                    "follow it any more. Start riskpilot live again."
                )
            with hurried():  # a worker waits for its storage; whoever looks asks again
                now = still(self._study)
            name = version_of(now)
            if name != self._page[0]:
                self._page = name, write_live_page(snapshot_of(now), name).encode()
            self._looked = time.monotonic()
            return self._page


class _Guard:
    """Answers only who asks for this machine by its address or a known name, with safe headers.

    A page of somebody else, whose name was pointed at this machine, could read the answers
    otherwise.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app = app
        self._names = {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        asked = Headers(scope=scope).get("host", "")
        if self._is_known(asked):
            await self._app(scope, receive, send_safely)
            return
        refusal = PlainTextResponse(
            "This page is asked for by the address of its machine, or by the name that --host "
            "gave, but the request named another one. Open the address that riskpilot live says.",
            400,
        )
        await refusal(scope, receive, send_safely)

    def _is_known(self, asked: str) -> bool:
        """Tell whether a Host header names this machine; a numeric address cannot be pointed."""
        name = asked.rpartition(":")[0] if _has_port(asked) else asked
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(name.strip("[]"))
            return True
        return name.lower() in self._names


def _has_port(asked: str) -> bool:
    """Tell whether a Host header ends in a port; an IPv6 address has colons of its own."""
    return ":" in asked and not asked.endswith("]")


def _listening(host: str, port: int) -> socket.socket:
    """Open a socket that listens on a host and a port."""
    if host == "":  # which would mean every address of this machine
        raise unusable_address(host, port, "the host is empty")
    if not 0 <= port < 2**16:
        raise unusable_address(host, port, "there is no such port")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, ValueError) as error:
        raise unusable_address(host, port, error) from error


def _shown(host: str, place: str) -> str:
    """Write the host of a page as it stands in an address; all addresses go by the own name."""
    if _numeric(place).is_unspecified:
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _numeric(place: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Read the numeric address of a socket, which may name its network card."""
    return ipaddress.ip_address(place.partition("%")[0])


@functools.cache
def _assets() -> list[Route]:
    """Make the routes of scripts and stylesheets, which are the same for every study."""
    own = files("riskpilot.live") / "assets"
    contents = {name: asset(name) for name in ("page.css", "figures.js", "points.js")}
    contents |= {name: (own / name).read_bytes() for name in ("live.css", "live.js")}
    packed = {name: gzip.compress(content, mtime=0) for name, content in contents.items()}
    packed["plotly.js"] = asset("plotly-basic.min.js.gz")
    return [_route(name, content) for name, content in packed.items()]


def _route(name: str, packed: bytes) -> Route:
    """Make the route of a script or a stylesheet, which is sent as gzip has packed it."""
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    digest = hashlib.sha256(packed).hexdigest()[:16]

    def send(request: Request) -> Response:
        return _answer(request, packed, kind, digest, {"Content-Encoding": "gzip"})

    return Route(f"/{name}", send, methods=["GET"])


def _answer(
    request: Request,
    content: bytes,
    kind: str,
    name: str,
    headers: dict[str, str] | None = None,
) -> Response:
    """Send a content, unless whoever asks has it already; ``name``: which state of it this is."""
    tag = f'"{name}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return Response(content, media_type=kind, headers={"ETag": tag, **(headers or {})})
