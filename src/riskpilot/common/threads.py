"""One thread for many small matrices: handing them to several costs more than it gains."""

import contextlib
import functools
import threading
from collections.abc import Iterator

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

# Limits are the process's own, so that two proposals at once would restore each other's.
_turn = threading.Lock()
_of_this_thread = threading.local()


@functools.cache
def _linear_algebra() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes milliseconds


@contextlib.contextmanager
def one_thread(controller: ThreadpoolController | None = None) -> Iterator[None]:
    """Linear algebra on one thread. ``controller``: of libraries that were loaded later."""
    with _turn, (controller or _linear_algebra()).limit(limits=1):
        _of_this_thread.has_turn = True
        try:
            yield
        finally:
            _of_this_thread.has_turn = False


def has_turn() -> bool:
    """Tell whether this thread is inside `one_thread`, which another one would wait for."""
    return getattr(_of_this_thread, "has_turn", False)
