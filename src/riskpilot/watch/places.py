"""Where a watch is kept: in a file, or in the attributes of a study; one writer at a time."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import optuna

from riskpilot.common import (
    check_replaceable,
    kept_in,
    other_than_file,
    parse,
    reason_of,
    shown_safely,
    signed_files,
)
from riskpilot.errors import CertificateError, shown
from riskpilot.study import (
    WATCH_KEY,
    attributes_of,
    exclusive,
    file_lock,
    is_storage,
    open_study,
)

_STATE = "the state of a watch"  # what a file with a watch is, in words


class Place(ABC):
    """Somewhere to keep the text of a watch. ``name``: as messages show it."""

    name: str

    @abstractmethod
    def exists(self) -> bool:
        """Tell whether there is a watch."""

    @abstractmethod
    def read(self) -> str:
        """Return the text that was written last."""

    @abstractmethod
    def write(self, text: str) -> None:
        """Put a text in the place of the last one, whole or not at all."""

    @abstractmethod
    def held(self) -> AbstractContextManager["Place"]:
        """Keep others away while a block runs, in which the place may be written."""

    def check_unchanged(self, expected: str | None) -> None:
        """Refuse to write over a watch that is not the one with this digest."""
        if not self.exists():
            return
        found = _digest_in(self.read())
        if found is None or found != expected:
            raise CertificateError(
                f"A watch is saved over itself alone, but what lies in {self.name} is not what "
                f"this one was loaded from or saved as: another process went on with it, or it is "
                f"another watch or another file. Use Watch.open(place), which lets one writer in "
                f"at a time; or save in another place."
            )


class FilePlace(Place):
    """A file, which is always whole."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self.name = str(path)

    def exists(self) -> bool:
        return self._path.exists()

    def read(self) -> str:
        return signed_files.load(self._path, "watch")

    def write(self, text: str) -> None:
        signed_files.save(self._path, text, "watch", renewed=_STATE)

    @contextmanager
    def held(self) -> Iterator[Place]:
        self._check_place()  # no lock is laid beside what the watch has nothing to do with
        try:
            lock = file_lock(self._path, "watch")
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"The watch cannot be kept in {shown_safely(self._path)}: {reason_of(error)}. "
                f"Check that the folder exists and can be written."
            ) from None
        with lock:
            yield self

    def _check_place(self) -> None:
        """Refuse what is there and is no watch, and places where other things are kept."""
        check_replaceable(self._path, "watch", CertificateError, renewed=_STATE)
        kind = other_than_file(self._path)
        if kind is None and os.path.exists(self._path) and kept_in(self._path) != _STATE:
            kind = "something else"
        if kind is not None:
            raise CertificateError(
                f"A watch is kept in a file of its own, but {shown_safely(self._path)} is {kind}. "
                f'Name another file: "watch.json".'
            )


class StudyPlace(Place):
    """An attribute of a study."""

    def __init__(self, study: optuna.Study) -> None:
        self._study = study
        self.name = f"the study {study.study_name!r}"

    def exists(self) -> bool:
        return WATCH_KEY in attributes_of(self._study)

    def read(self) -> str:
        text = attributes_of(self._study).get(WATCH_KEY)
        if not isinstance(text, str):
            raise CertificateError(
                f"There is no watch in {self.name}. Begin one: Watch(certificate), then "
                f"watch.save(study)."
            )
        return text

    def write(self, text: str) -> None:
        self._study.set_user_attr(WATCH_KEY, text)

    @contextmanager
    def held(self) -> Iterator[Place]:
        with exclusive(self._study, "ledger"):
            yield self


def place_of(place: str | Path | optuna.Study) -> Place:
    """Find out what a place is."""
    if isinstance(place, optuna.Study):
        return StudyPlace(place)
    if isinstance(place, str) and is_storage(place):
        return StudyPlace(open_study(place))
    if isinstance(place, str | Path):
        return FilePlace(place)
    raise CertificateError(
        f"A watch is kept in a file, in a study, or in the storage of one, but the place is "
        f'{shown(place)}. Write watch.save("watch.json").'
    )


def _digest_in(text: str) -> str | None:
    """Return the digest that a saved watch carries; None where there is none."""
    try:
        data = parse(text)
    except ValueError:
        return None
    found = data.get("digest") if isinstance(data, dict) else None
    return found if isinstance(found, str) else None
