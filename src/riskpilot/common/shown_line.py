"""One line that says how far something is: renewed where it stands, in a terminal or a notebook.

Where lines cannot be renewed, such as in a log file, only news are written. All of it goes to
standard error, because standard output is for results.
"""

import importlib
import logging
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from riskpilot.common.notebook import card
from riskpilot.errors import visible

_SOON = 2.0  # seconds: what takes no longer is not worth a line in a log


class _Place(Protocol):
    """Where a line is shown: whether it is renewed in place, how, and what ends it."""

    is_in_place: bool

    def show(self, words: str) -> None: ...

    def close(self) -> None: ...


class ShownLine:
    """A line that is shown where this process shows its progress.

    It ends when it is closed, when nothing refers to it any more, or with the process. ``keep``:
    whether it can still be read afterwards.
    """

    def __init__(self, *, keep: bool) -> None:
        self._place = _place(keep)
        self.close: Callable[[], object] = weakref.finalize(self, self._place.close)

    @property
    def is_in_place(self) -> bool:
        """Whether a text replaces the one before, so that it may be shown as often as one likes."""
        return self._place.is_in_place

    def show(self, words: str) -> None:
        """Show a text; what would colour or move a terminal is written as its code."""
        self._place.show(visible(words))


@contextmanager
def shown_steps(is_shown: bool) -> Iterator[Callable[..., None]]:
    """Give a function that says which step of a long computation goes on, with a detail.

    The steps are shown while they last. A log gets those that begin after some seconds, without
    their details.
    """
    if not is_shown:
        yield lambda step, detail="": None
        return
    line, begin = ShownLine(keep=False), time.monotonic()
    said = ""

    def say(step: str, detail: str = "") -> None:
        nonlocal said
        is_new, said = step != said, step
        if line.is_in_place:
            line.show(f"{step}{detail}")
        elif is_new and time.monotonic() - begin > _SOON:
            line.show(step)

    try:
        yield say
    finally:
        line.close()


def _place(keep: bool) -> _Place:
    """Find out where this process shows its progress."""
    # rich takes as long to load as half of riskpilot, and only those who look need it.
    from rich.console import Console

    if _is_notebook():
        return _InNotebook(keep)
    console = Console(stderr=True, highlight=False)
    return _InTerminal(console, keep) if console.is_terminal else _InLog()


def _is_notebook() -> bool:
    """Tell whether this code runs in a cell of a notebook: its shell belongs to a kernel."""
    shell_of = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return getattr(shell_of(), "kernel", None) is not None


class _InTerminal:
    """A line at the bottom of a terminal; what others print goes above it."""

    is_in_place = True

    def __init__(self, console: Any, keep: bool) -> None:
        from rich.live import Live

        self._live = Live(console=console, auto_refresh=False, transient=not keep)
        before = (sys.stdout, sys.stderr)
        self._live.start()
        # Logs would write into the line: they hold the stream that stood in its place before.
        self._moved = [
            (handler, handler.stream)
            for handler in _stream_handlers()
            if any(handler.stream is stream for stream in before)
        ]
        for handler, _ in self._moved:
            handler.setStream(sys.stderr)

    def show(self, words: str) -> None:
        from rich.text import Text

        self._live.update(Text(words), refresh=True)

    def close(self) -> None:
        for handler, stream in self._moved:
            handler.setStream(stream)
        self._live.stop()


class _InNotebook:
    """A card under the cell, which is renewed."""

    is_in_place = True

    def __init__(self, keep: bool) -> None:
        self._keep = keep
        self._display = importlib.import_module("IPython.display")
        self._shown: Any = None

    def show(self, words: str) -> None:
        made = self._display.HTML(card(words))
        if self._shown is None:
            self._shown = self._display.display(made, display_id=True)
        else:
            self._shown.update(made)

    def close(self) -> None:
        if self._shown is not None and not self._keep:
            self._shown.update(self._display.HTML(""))


class _InLog:
    """Lines one after another."""

    is_in_place = False

    def show(self, words: str) -> None:
        print(words, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the lines as they are."""


def _stream_handlers() -> Iterator["logging.StreamHandler[Any]"]:
    """Find the handlers of all loggers that write to a stream."""
    loggers = [logging.getLogger(), *map(logging.getLogger, list(logging.root.manager.loggerDict))]
    for logger in loggers:
        for handler in logger.handlers:
            if isinstance(handler, logging.StreamHandler):
                yield handler
