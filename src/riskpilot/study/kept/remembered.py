"""What was computed from a finished trial, kept for as long as the trial is in memory."""

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from optuna.trial import FrozenTrial

T = TypeVar("T")


class _Reference(weakref.ref[FrozenTrial]):
    """A reference to a trial that knows the key of the trial."""

    __slots__ = ("key",)

    key: int


class Remembered(Generic[T]):
    """A function of a trial whose results are kept for trials that are finished.

    Optuna's storages hand out the same object for a finished trial again and again, and no longer
    change it. A study of 20,000 trials is read several times for every proposal, so that each trial
    is looked at once. A result is forgotten with its trial, and copies to other processes are
    empty.
    """

    def __init__(self, compute: Callable[[FrozenTrial], T]) -> None:
        self._compute = compute
        # Trials cannot be hashed, so that the key is the identity of the object.
        self._known: dict[int, tuple[_Reference, T]] = {}
        known = self._known  # one function for all trials, which does not keep this object
        self._forget = lambda gone: known.pop(gone.key, None)

    def __call__(self, trial: FrozenTrial) -> T:
        """Return the result for a trial."""
        key = id(trial)
        known = self._known.get(key)
        if known is not None and known[0]() is trial:
            return known[1]
        result = self._compute(trial)
        if trial.state.is_finished():
            reference = _Reference(trial, self._forget)
            reference.key = key
            self._known[key] = reference, result
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return Remembered, (self._compute,)
