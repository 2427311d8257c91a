"""Patience with a storage that does not answer: it is asked again, for minutes, and said so once.

A database restarts, a connection is cut, a disk is full. None of that is the fault of an evaluation
that may have taken hours, so that whoever has losses to store waits until they can be stored.
"""

import errno
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from optuna.trial import FrozenTrial, TrialState

from riskpilot.errors import StudyError
from riskpilot.study.storages.notices import logger, say
from riskpilot.study.storages.optuna_internals import behind_cache

PATIENCE_SECONDS = 600.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
_PASSING_ERRNOS = {
    getattr(errno, name)
    for name in [
        "ENOSPC",
        "EDQUOT",
        "EFBIG",
        "EIO",
        "ESTALE",
        "EAGAIN",
        "ENOLCK",
        "ETIMEDOUT",
        "EINTR",
    ]
    if hasattr(errno, name)
}

Result = TypeVar("Result")

_this_thread = threading.local()


class StorageUnreachableError(StudyError):
    """Raised when a storage has not answered for as long as a worker was to wait for it, or is
    gone.
    """


def nothing_lost(_: Exception) -> None:
    """Say of no error that a storage is gone."""


class Patience:
    """How long one storage or folder is waited for, and what was said about it.

    Parameters
    ----------
    what : str
        The storage in words, without its password, to begin a sentence with.
    seconds : float
        How long a call is repeated before it is given up.
    reason_of : callable
        A function of an error that returns why it may pass in time, or None where it will not.
    loss_of : callable, optional
        A function of an error that will not pass, which returns why the storage is gone for good,
        or None where it is not.
    """

    def __init__(
        self,
        what: str,
        seconds: float,
        reason_of: Callable[[Exception], str | None],
        loss_of: Callable[[Exception], str | None] = nothing_lost,
    ) -> None:
        self.what = what
        self.seconds = seconds
        self.reason_of = reason_of
        self.loss_of = loss_of
        self._lock = threading.Lock()
        self._out_since: float | None = None
        self._back_since: float | None = None
        self._has_given_up = False

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __call__(self, call: Callable[[], Result]) -> Result:
        """Return what a call returns; repeat it while it fails for a reason that may pass."""
        begun: float | None = None
        pause = _FIRST_PAUSE
        while True:
            try:
                result = call()
            except Exception as error:
                reason = self.reason_of(error)
                if reason is None:
                    self._raise_if_lost(error)
                    raise
                now = time.monotonic()
                begun = now if begun is None else begun
                if is_hurried() or self._has_given_up or now + pause > begun + self.seconds:
                    # The chained error could show a password.
                    raise self._given_up(reason) from None
                self.note_failure(reason)
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self.note_answer()
                return result

    def note_failure(self, reason: str) -> None:
        """Remember that the storage does not answer, and say so the first time."""
        with self._lock:
            is_first = self._out_since is None
            if is_first:
                self._out_since = time.monotonic()
        if is_first:
            say(
                f"{self.what} does not work at the moment ({reason}). This worker waits for up to "
                f"{in_words(self.seconds)} and goes on when it does; no evaluation is lost."
            )

    def note_answer(self) -> None:
        """Remember that the storage answers, and say so where it had not."""
        if self._out_since is None:
            return
        with self._lock:
            out_since, self._out_since = self._out_since, None
            self._has_given_up = False
            self._back_since = time.monotonic()
        if out_since is not None:
            seconds = time.monotonic() - out_since
            logger.warning("%s works again after %.1f seconds", self.what, seconds)

    def was_out_within(self, seconds: float) -> bool:
        """Tell whether the storage does not answer, or did not at some time in the last seconds."""
        back = self._back_since
        return self._out_since is not None or (
            back is not None and time.monotonic() - back < seconds
        )

    def _raise_if_lost(self, error: Exception) -> None:
        """Raise one sentence where an error says that the storage is gone for good."""
        loss = self.loss_of(error)
        if loss is not None:
            raise StorageUnreachableError(
                f"{self.what} can no longer be used ({loss}): its file was removed, replaced, "
                f"damaged or protected from writing. Restore it from a copy, and load the study "
                f"again."
            ) from None

    def _given_up(self, reason: str) -> StorageUnreachableError:
        """Make the error that ends the waiting; later calls do not wait until one succeeds."""
        if not is_hurried():
            with self._lock:
                self._has_given_up = True
        return StorageUnreachableError(
            f"{self.what} has not worked for {in_words(self.seconds)} ({reason}), so this worker "
            f"stops. Losses that reached their folder are kept; start the worker again when the "
            f"storage is back, and they are used."
        )


def stand_in(trial_id: int) -> FrozenTrial | None:
    """Return a trial in the place of one whose end could not be written, or None where it could.

    Optuna asks for the state of such a trial while it handles the error of the storage. Where it
    gets none, or that of a running trial, it ends in an error of its own about an unbound variable
    or an assertion. A pruned trial is the one after which it raises the error of the storage.
    """
    if not isinstance(sys.exception(), StorageUnreachableError):
        return None
    return FrozenTrial(
        number=-1,
        state=TrialState.PRUNED,
        value=None,
        datetime_start=None,
        datetime_complete=None,
        params={},
        distributions={},
        user_attrs={},
        system_attrs={},
        intermediate_values={},
        trial_id=trial_id,
    )


@contextmanager
def hurried() -> Iterator[None]:
    """Let calls of this thread fail at once, because it has something to do first."""
    before = is_hurried()
    _this_thread.is_hurried = True
    try:
        yield
    finally:
        _this_thread.is_hurried = before  # who called may be in a hurry, too


@contextmanager
def unless_away() -> Iterator[None]:
    """Leave the rest of the block out where the storage does not answer at once.

    Losses go to the disk before anybody waits for a storage that is away.
    """
    with suppress(StorageUnreachableError), hurried():
        yield


def is_hurried() -> bool:
    """Tell whether calls of this thread are to fail at once."""
    return getattr(_this_thread, "is_hurried", False)


def patience_with(storage: object) -> Patience:
    """Return the patience of a storage; one that was opened elsewhere gets that of others."""
    own = getattr(behind_cache(storage), "patience", None)
    if isinstance(own, Patience):
        return own
    return Patience("The storage of the study", PATIENCE_SECONDS, disk_reason)


def disk_reason(error: Exception) -> str | None:
    """Say why an error of the operating system may pass, such as a full disk; None where not."""
    if isinstance(error, OSError) and error.errno in _PASSING_ERRNOS:
        return error.strerror or type(error).__name__
    return None


def in_words(seconds: float) -> str:
    """Write a time for a sentence.

    >>> in_words(600), in_words(60), in_words(2.5)
    ('10 minutes', '1 minute', '2.5 seconds')
    """
    number, unit = (seconds / 60, "minute") if seconds >= 60 else (seconds, "second")
    return f"{number:.3g} {unit}{'' if number == 1 else 's'}"
