"""Tables of losses on disk: arrays, the settings that made them, and a digest that is checked."""

import json
import lzma
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.bench.tasks.table_format import DIGEST, SETTINGS, digest, save
from riskpilot.errors import TableError

__all__ = ["Table", "load", "save", "unpack_bits"]


@dataclass(frozen=True)
class Table:
    """What a table file holds. ``arrays`` maps names to arrays, ``settings`` is plain JSON."""

    arrays: Mapping[str, npt.NDArray[Any]]
    settings: Mapping[str, Any]
    digest: str

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self.arrays:
            raise TableError(
                f"A table must hold the array {name!r}, but this one holds "
                f"{', '.join(sorted(self.arrays))}. Make the table again with its training script."
            )
        return self.arrays[name]


def load(path: str | Path) -> Table:
    """Read a table that `save` wrote, and check that it is as it was written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/table.npz", {"losses": np.eye(2)}, {"epochs": 3})
    ...     table = load(f"{folder}/table.npz")
    >>> table["losses"].shape, table.settings["epochs"]
    ((2, 2), 3)
    """
    path = Path(path)
    if not path.is_file():
        raise TableError(
            f"A table is a file, but there is none at {path}. "
            f"Make it with the training script of its experiment (--out {path.name})."
        )
    try:
        # Opened here, because numpy leaves a damaged file open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, lzma.LZMAError) as error:
        raise TableError(
            f"A table must be an npz of plain arrays (no pickled objects), but {path} cannot be "
            f"read: {error}. Fetch the file again, or make it with its training script."
        ) from error
    missing = [name for name in (SETTINGS, DIGEST) if name not in content]
    if missing:
        raise TableError(
            f"A table must hold {SETTINGS} and {DIGEST}, but {path} lacks "
            f"{' and '.join(missing)}. Write tables with riskpilot.bench.tasks.table.save."
        )
    stored = str(content.pop(DIGEST))
    found = digest(content)
    if found != stored:
        raise TableError(
            f"The digest of a table must match its arrays, but {path} says {stored[:12]}... and "
            f"holds {found[:12]}... The file was changed or damaged: fetch it again."
        )
    settings = json.loads(str(content.pop(SETTINGS)))
    return Table(content, settings, stored)


def unpack_bits(packed: npt.NDArray[np.uint8], n: int) -> npt.NDArray[np.bool_]:
    """The first ``n`` bits along the last axis of what `numpy.packbits` made.

    ``packed``: shape (..., ceil(n / 8)). Returns shape (..., n).
    """
    return np.unpackbits(packed, axis=-1, count=n).astype(np.bool_)
