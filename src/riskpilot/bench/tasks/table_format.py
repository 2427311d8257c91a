"""How a table of losses is written. Needs numpy alone, so that training machines can use it."""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SETTINGS = "settings"
DIGEST = "digest"
RESERVED = (SETTINGS, DIGEST)


def digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """The sha256 of names, types, shapes and values; the order of the arrays does not matter.

    >>> digest({"a": np.zeros(2), "b": np.ones(1)}) == digest({"b": np.ones(1), "a": np.zeros(2)})
    True
    """
    hasher = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        hasher.update(f"{name}|{array.dtype.str}|{arrays[name].shape}|".encode())
        hasher.update(array.tobytes())
    return hasher.hexdigest()


def write_npz(path: str | Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays as an npz whose members are LZMA-compressed; `numpy.load` reads it.

    The bytes depend on the arrays alone: members carry no time stamp.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=False)
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_LZMA
            archive.writestr(member, buffer.getvalue())


def save(
    path: str | Path, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]
) -> None:
    """Write a table: the arrays, the settings that made them (JSON), and a digest of both."""
    clash = next((name for name in RESERVED if name in arrays), None)
    if clash is not None:
        raise ValueError(
            f"A table keeps the names {' and '.join(RESERVED)} for itself, "
            f"but an array is called {clash!r}. Rename the array."
        )
    content = {
        **{name: np.asanyarray(array) for name, array in arrays.items()},
        SETTINGS: np.array(json.dumps(dict(settings), sort_keys=True)),
    }
    write_npz(path, {**content, DIGEST: np.array(digest(content))})
