"""Artifact stores for losses: a folder whose files are whole or not there, or memory."""

import contextlib
import hashlib
import io
import os
import re
import uuid
import weakref
from pathlib import Path
from typing import Any, BinaryIO

import optuna
from optuna.artifacts.exceptions import ArtifactNotFound
from optuna.storages import BaseStorage

from riskpilot.common import (
    LOSSES,
    open_ordinary,
    other_than_file,
    read_stream,
    reason_of,
    write_whole,
)
from riskpilot.errors import StudyError, shown
from riskpilot.study.storages import (
    PATIENCE_SECONDS,
    Patience,
    disk_reason,
    earlier_names_of,
    file_of,
    is_in_memory,
    patience_with,
    storage_of,
)

# The store of each storage, because a storage other than a file cannot say where its losses are.
_stores: "weakref.WeakKeyDictionary[BaseStorage, Any]" = weakref.WeakKeyDictionary()
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class MemoryArtifactStore:
    """An artifact store for studies that live in memory."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    def open_reader(self, artifact_id: str) -> BinaryIO:
        """Open an artifact for reading."""
        if artifact_id not in self._blobs:
            raise ArtifactNotFound("not found")
        return io.BytesIO(self._blobs[artifact_id])

    def write(self, artifact_id: str, content_body: BinaryIO) -> None:
        """Store an artifact."""
        self._blobs[artifact_id] = content_body.read()

    def remove(self, artifact_id: str) -> None:
        """Delete an artifact, if it is there."""
        self._blobs.pop(artifact_id, None)


class FolderStore:
    """A folder of losses. A file appears under its name when all of it is on the disk.

    ``others``: folders that are looked into as well, but not written to.
    """

    def __init__(
        self,
        folder: str | Path,
        *others: Path,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._folder = Path(folder)
        self._others = others
        self.patience = Patience(f"The folder {folder}", patience_seconds, disk_reason)

    def open_reader(self, artifact_id: str) -> BinaryIO:
        """Open an artifact for reading."""
        try:
            return open_ordinary(
                self._found(artifact_id),
                "A file of losses",
                StudyError,
                "The folder was changed from outside; restore it from a copy.",
            )
        except FileNotFoundError as error:
            raise ArtifactNotFound("not found") from error
        except OSError as error:
            raise StudyError(
                f"A file of losses in the folder {shown(str(self._folder))} cannot be read: "
                f"{reason_of(error)}. Check its permissions, or restore it from a copy."
            ) from error

    def write(self, artifact_id: str, content_body: BinaryIO) -> None:
        """Store an artifact, and wait where the disk is full."""
        path, content = self._path(artifact_id), content_body.read()
        self.patience(lambda: self._write(path, content))

    def _write(self, path: Path, content: bytes) -> None:
        """Write a file as a whole, or leave nothing behind."""
        kind = other_than_file(path)
        if kind is not None:
            raise StudyError(
                f"A file of losses must be an ordinary file, but {shown(str(path))} is {kind}. "
                f"Remove it, and go on."
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)

    def remove(self, artifact_id: str) -> None:
        """Delete an artifact, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            self._found(artifact_id).unlink()

    def _found(self, artifact_id: str) -> Path:
        """Return the file of an artifact in the first folder that has it."""
        path = self._path(artifact_id)
        elsewhere = (folder / artifact_id for folder in self._others)
        return next((place for place in (path, *elsewhere) if place.exists()), path)

    def _path(self, artifact_id: str) -> Path:
        """Return the file of an artifact."""
        check_id(artifact_id)
        return self._folder / artifact_id


def check_id(artifact_id: object) -> None:
    """Refuse whatever could name a file outside the folder of losses."""
    if not isinstance(artifact_id, str) or not _ID.fullmatch(artifact_id):
        raise StudyError(
            f"Losses are kept under names that riskpilot makes, but a trial asks for "
            f"{artifact_id!r}. The storage was changed from outside; restore it from a copy."
        )


def chosen_store(storage: str | BaseStorage | None, artifact_store: Any) -> Any:
    """Settle where losses go: the given store or folder, or a folder beside the storage's file.

    None where a place must be named and none was.
    """
    if isinstance(artifact_store, str | Path):
        name = str(artifact_store)
        kind = "a file" if os.path.isfile(name) else other_than_file(name)
        if "\0" in name or not name.strip():
            kind = "none that a system takes"
        if "://" in name:
            kind = "an address, for which Optuna has stores such as Boto3ArtifactStore"
        if kind not in (None, "a folder"):
            raise StudyError(
                f"artifact_store is the name of a folder, but {shown(artifact_store)} is {kind}. "
                f'Name a folder, or one that is yet to be made: artifact_store="losses".'
            )
        return FolderStore(artifact_store)
    if artifact_store is not None:
        methods = ("open_reader", "write")
        if not all(callable(getattr(artifact_store, name, None)) for name in methods):
            raise StudyError(
                f"artifact_store is a folder or an Optuna artifact store, which has the methods "
                f"{' and '.join(methods)}, but it is {shown(artifact_store)}. "
                f'Name a folder: artifact_store="losses".'
            )
        return artifact_store
    if is_in_memory(storage):
        # Another study in the same memory has its losses there already.
        known = _stores.get(storage) if isinstance(storage, BaseStorage) else None
        return known or MemoryArtifactStore()
    return _store_beside(storage)


def _store_beside(storage: str | BaseStorage | None) -> FolderStore | None:
    """Return the folder of losses beside the file of a storage; None where it has no file.

    Studies of earlier versions go on in the folder that they have, under the name of then.
    """
    file = file_of(storage)
    if file is None:
        return None
    folder = Path(f"{file}{LOSSES}")
    earlier = [Path(f"{name}{LOSSES}") for name in earlier_names_of(storage)]
    there = [place for place in (folder, *earlier) if place.is_dir()]
    return FolderStore(*(there or [folder]))


def attach_store(study: optuna.Study, store: Any) -> None:
    """Remember where the losses of a study go, for as long as its storage is in use."""
    if store is None:
        return
    _stores[storage_of(study)] = store
    if isinstance(store, FolderStore):
        store.patience.seconds = patience_with(storage_of(study)).seconds


def store_of(study: optuna.Study) -> Any:
    """Return the store that holds the losses of a study."""
    storage = storage_of(study)
    store = _stores.get(storage)
    if store is None:
        store = _store_beside(storage)
        if store is None:
            raise StudyError(
                f"The losses of study {study.study_name!r} are not at hand. Load it with "
                f"riskpilot.load_study(storage=..., artifact_store=...), naming the store or the "
                f"folder it was made with; a command takes the folder by --artifacts."
            )
        _stores[storage] = store
    return store


def put(store: Any, blob: bytes) -> dict[str, str]:
    """Write bytes, read them back, and return where they are with their digest."""
    artifact_id = str(uuid.uuid4())
    store.write(artifact_id, io.BytesIO(blob))
    with store.open_reader(artifact_id) as reader:
        if reader.read() != blob:
            raise StudyError(
                "The artifact store did not give back the losses that were written to it. "
                "Check the disk or the bucket behind it."
            )
    return {"id": artifact_id, "sha256": hashlib.sha256(blob).hexdigest()}


def get(store: Any, entry: dict[str, str], what: str) -> bytes:
    """Read the bytes of an entry that `put` returned, if they are still what they were."""
    check_id(entry["id"])
    try:
        with store.open_reader(entry["id"]) as reader:
            blob = read_stream(reader, what, StudyError)
    except ArtifactNotFound as error:
        raise StudyError(
            f"{what} are not in the artifact store. Restore the folder of losses that belongs to "
            f"the storage, or name the one they are in: --artifacts in a command, "
            f"load_study(..., artifact_store=...) in Python."
        ) from error
    if hashlib.sha256(blob).hexdigest() != entry["sha256"]:
        raise StudyError(
            f"{what} were changed after they were recorded (their digest differs). "
            f"Restore them from a copy, or evaluate the trial again."
        )
    return blob
