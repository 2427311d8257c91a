"""``--verbose``: what a command does, step by step, on standard error."""

import functools
import inspect
import logging
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from riskpilot.errors import visible
from riskpilot.guarantee import stamp

VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Log every step, with its time, on standard error."),
]

logger = logging.getLogger("riskpilot")


class _OneLine(logging.Formatter):
    """Writes a record without the control characters that a name in it could hold."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the time, the level and the message."""
        return visible(super().format(record))


def with_verbose(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--verbose``, which its own function need not know."""

    @functools.wraps(command)
    def run(*, verbose: bool, **options: Any) -> Any:
        if not verbose:
            return command(**options)
        with _logged(command.__name__):
            return command(**options)

    signature = inspect.signature(command)
    option = inspect.Parameter(
        "verbose", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=VerboseOption
    )
    parameters = [*signature.parameters.values(), option]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


@contextmanager
def _logged(name: str) -> Iterator[None]:
    """Show the log on standard error for as long as a command runs."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    begin = time.perf_counter()
    packages = ", ".join(f"{package} {number}" for package, number in stamp()["versions"].items())
    logger.info("riskpilot %s with Python %s, %s", name, platform.python_version(), packages)
    try:
        yield
    finally:
        logger.info("riskpilot %s ended after %.2f seconds", name, time.perf_counter() - begin)
        logger.setLevel(level)
        logger.removeHandler(handler)
