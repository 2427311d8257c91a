"""A journal file that several workers append to, and that survives a full disk.

Optuna appends a line for every change. A worker that dies, or a disk that is full, can leave half a
line at the end; the next line would be joined to it, and neither could be read.
"""

import contextlib
import functools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState

from riskpilot.errors import StudyError, shown
from riskpilot.study.storages.notices import logger
from riskpilot.study.storages.optuna_internals import (
    AdaptedJournal,
    distributions_in,
    end_of_known_lines,
    id_of,
    is_change,
)
from riskpilot.study.storages.patience import Patience, disk_reason, stand_in
from riskpilot.study.storages.reading import DAMAGES, read_distribution
from riskpilot.study.storages.retries import queue_again

HEARTBEAT_KEY = "riskpilot:heartbeat"
_BLOCK = 4096
_BEGIN = b'{"op_code":0,"worker_id":"'  # how a journal begins, as Optuna and riskpilot write it
_LONGEST = 1 << 20  # bytes that are read of the first line, which makes a study and is far shorter


class Journal(AdaptedJournal):
    """Optuna's storage in a journal file, with heartbeats.

    A heartbeat is a number that grows. Whoever sees that it has not grown for a while, by a clock
    of its own, takes the worker for dead. The clocks of the machines need not agree.
    """

    def __init__(self, file: "JournalFile", heartbeat_seconds: int, grace_seconds: float) -> None:
        self.file = file
        self.heartbeat_seconds = heartbeat_seconds
        self.grace_seconds = grace_seconds
        self.seen: dict[int, tuple[int, float]] = {}  # the last heartbeat of a trial, and when
        self.damage: StudyError | None = None
        super().__init__(file)

    def read_changes(self) -> None:
        """Read the new lines; one that Optuna cannot follow is an error now and later."""
        if self.damage is not None:
            raise self.damage
        try:
            super().read_changes()
        except StudyError:
            raise
        except DAMAGES as error:
            if self.is_own(self.file.last):  # what this worker asked for is not allowed
                raise
            self.damage = _damaged(self.file.path, f"{type(error).__name__}: {error}")
            raise self.damage from error

    def get_trial(self, trial_id: int) -> FrozenTrial:
        return stand_in(trial_id) or super().get_trial(trial_id)

    def get_heartbeat_interval(self) -> int:
        return self.heartbeat_seconds

    def get_heartbeat_stale_trial_callback(self) -> Callable[[optuna.Study, FrozenTrial], None]:
        return queue_again()

    def record_heartbeat(self, trial_id: int) -> None:
        # Optuna calls this in a thread that would end with an error. A heartbeat of a trial that
        # was finished or deleted meanwhile, or that could not be written, is not missed.
        with contextlib.suppress(UpdateFinishedTrialError, KeyError, OSError, StudyError):
            last = super().get_trial(trial_id).system_attrs.get(HEARTBEAT_KEY, 0)
            self.set_trial_system_attr(trial_id, HEARTBEAT_KEY, last + 1)

    def find_stale_trials(self, study_id: int) -> list[int]:
        running = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,))
        beats = {id_of(trial): trial.system_attrs.get(HEARTBEAT_KEY) for trial in running}
        now = time.monotonic()
        known, self.seen = self.seen, {}
        for trial_id, beat in beats.items():
            if beat is not None:
                earlier = known.get(trial_id)
                is_same = earlier is not None and earlier[0] == beat
                self.seen[trial_id] = earlier if earlier is not None and is_same else (beat, now)
        if self.file.patience.was_out_within(self.grace_seconds):
            return []  # those who live could not write, either
        return [i for i, (_, since) in self.seen.items() if now - since > self.grace_seconds]

    @staticmethod
    def unheard(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
        """Return those of some trials whose workers never wrote a heartbeat."""
        return [trial for trial in trials if HEARTBEAT_KEY not in trial.system_attrs]


class JournalFile(JournalFileBackend):
    """The lines of a journal. A line is there as a whole, or is not there."""

    def __init__(self, path: str, patience_seconds: float) -> None:
        # The lock is a link to the journal. A relative one in another folder would lead nowhere,
        # and those who wait for a worker that died would wait for ever.
        self.path = os.path.abspath(path)
        self.lock = JournalLock(self.path)
        self.patience = Patience(f"The journal {path}", patience_seconds, disk_reason, _lost_reason)
        self.last: dict[str, Any] = {}  # the line that was read last
        _check_first_line(self.path)
        super().__init__(self.path, lock_obj=self.lock)

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        """Read the lines from one on; the half of one at the end does not count."""
        self.patience(self._check_there)
        try:
            for line in super().read_logs(log_number_from):
                if not is_change(line):
                    raise ValueError(f"it is {shown(line, 60)}")
                for distribution in distributions_in(line):
                    read_distribution(distribution)
                self.last = line
                yield line
        except DAMAGES as error:
            raise _damaged(self.path, error) from error

    def _check_there(self) -> None:
        """Refuse a journal that was removed, or that lost lines which were read before."""
        if os.stat(self.path).st_size < end_of_known_lines(self):
            raise _LinesLostError

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append lines, one after the other, and wait where the disk is full."""
        for log in logs:
            line = json.dumps(log, separators=(",", ":")).encode() + b"\n"
            self.patience(functools.partial(self.append, line))

    def append(self, line: bytes) -> None:
        """Append a line under the lock, after the last whole one."""
        self.lock.acquire()
        try:
            self._check_there()
            file = os.open(self.path, os.O_RDWR | os.O_APPEND)
            try:
                self._append(file, line)
            finally:
                os.close(file)
        finally:
            self.lock.release()

    def _append(self, file: int, line: bytes) -> None:
        """Append a line to the open file, or leave the file as it was."""
        size = os.fstat(file).st_size
        end = _end_of_lines(file, size)
        self._check_last_line(file, end)
        if end < size:
            logger.warning("%s ended in half a line, which is dropped", self.path)
            os.ftruncate(file, end)
        try:
            _write(file, line)
            os.fsync(file)
        except OSError:
            # A worker that was stopped here has lost the lock, and others may have appended lines.
            if os.fstat(file).st_size <= end + len(line):
                os.ftruncate(file, end)
            raise

    def _check_last_line(self, file: int, end: int) -> None:
        """Refuse to append to a last whole line that is no change and was not read yet.

        Optuna passes over such a line as long as none follows it. It ends as a whole one does, so
        that it is no rest of a worker that died, and what it was is not known.
        """
        if end <= end_of_known_lines(self):
            return
        begin = _end_of_lines(file, end - 1)
        line = os.pread(file, end - begin, begin)
        if not _has_change(line):
            raise _damaged(self.path, f"the last one is {_as_text(line)}")


class _LinesLostError(Exception):
    """A journal is shorter than it was."""


def _lost_reason(error: Exception) -> str | None:
    """Say why a journal is gone for good; None where an error is another."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return "it lost lines" if isinstance(error, _LinesLostError) else None


def _damaged(path: str, reason: object) -> StudyError:
    """Make the error that says why a line of a journal cannot be read."""
    return StudyError(
        f"A journal has a change of a study in each line, but one of {path} cannot be read "
        f"({reason}). The file is no journal, or it was changed from outside: name another file, "
        f"or restore it from a copy."
    )


def _check_first_line(path: str) -> None:
    """Refuse a file that is no journal, before anything is written to it; an empty one is free.

    The first line of a journal may be the half of one, where the worker died that began the study.
    """
    try:
        with open(path, "rb") as file:
            line = file.readline(_LONGEST)
    except FileNotFoundError:
        return
    if line.endswith(b"\n"):
        is_journal = _has_change(line)
    else:
        is_journal = line.startswith(_BEGIN) or _BEGIN.startswith(line)
    if not is_journal:
        raise _damaged(path, f"it begins with {_as_text(line)}")


def _has_change(line: bytes) -> bool:
    """Tell whether a whole line of a file is a change of a study."""
    try:
        return is_change(json.loads(line))
    except (RecursionError, ValueError):
        return False


def _as_text(line: bytes) -> str:
    """Write the beginning of a line in a message."""
    return shown(line.decode(errors="replace").strip(), 60)


class JournalLock(JournalFileSymlinkLock):
    """Optuna's lock of a journal, which another worker may take from one that was stopped."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.place = f"{path}.lock"
        self.held: tuple[int, int] | None = None

    def acquire(self) -> bool:
        self.held = None
        is_acquired = super().acquire()
        self.held = self.seen()
        return is_acquired

    def release(self) -> None:
        held, self.held = self.held, None
        if held is not None and self.seen() != held:
            logger.warning("Another worker took the lock of %s from this one", self.place)
            return
        super().release()

    def seen(self) -> tuple[int, int] | None:
        """Return what tells this lock from the next one, or None where there is none."""
        try:
            found = os.lstat(self.place)
        except OSError:
            return None
        return found.st_ino, found.st_ctime_ns


def _end_of_lines(file: int, size: int) -> int:
    """Return where the last whole line of a file ends."""
    while size > 0:
        begin = max(0, size - _BLOCK)
        newline = os.pread(file, size - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        size = begin
    return 0


def _write(file: int, line: bytes) -> None:
    """Write all of a line; one call may write only a part of it."""
    while line:
        line = line[os.write(file, line) :]
