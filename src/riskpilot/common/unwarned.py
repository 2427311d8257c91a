"""Warnings of others that are left out where they do not concern the user."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# Python keeps one list of filters for all threads; two that change it at once spoil each other's.
_filters = threading.RLock()


@contextmanager
def unwarned(category: type[Warning] = Warning) -> Iterator[None]:
    """Leave out warnings of a category inside, in one thread at a time."""
    with _filters, warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
