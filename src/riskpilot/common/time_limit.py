"""Evaluations that may take a limited time."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from riskpilot.errors import RiskpilotError

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class TimeLimitError(RiskpilotError):
    """An evaluation that took longer than it may."""


class _GivenUp(BaseException):
    """Raised inside an evaluation whose time is over; not an error that its code should catch."""


def within(
    seconds: float | None,
    function: Callable[[Argument], Result],
    argument: Argument,
    spent: float = 0.0,
) -> Result:
    """``function(argument)``, or a `TimeLimitError` after so many seconds.

    ``spent``: how many of them earlier steps of the same evaluation took.

    Nothing can end a Python thread from outside. Its evaluation gets an exception at its next step
    in Python code; in a call that never returns it stays behind as a daemon, and what it may still
    return is dropped.

    >>> within(5.0, abs, -3)
    3
    """
    if seconds is None:
        return function(argument)
    if spent >= seconds:  # a short step would be done before anybody looks at the clock
        raise _time_is_over(seconds)
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function(argument))
        except _GivenUp:
            pass
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="riskpilot-evaluation", daemon=True)
    thread.start()
    thread.join(max(seconds - spent, 0.0))
    if thread.is_alive() and not results and not errors:
        _stop(thread)
        raise _time_is_over(seconds)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _time_is_over(seconds: float) -> TimeLimitError:
    """Make the error for an evaluation that took longer than it may."""
    return TimeLimitError(
        f"An evaluation may take {seconds:g} seconds, and this one was not done by then. "
        f"Raise time_limit, or make the evaluation faster."
    )


def _stop(thread: threading.Thread) -> None:
    set_exception: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_exception(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_GivenUp))
