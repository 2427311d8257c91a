"""How much memory a file may take: its size is checked before any of it is read.

A small file can claim, or expand to, more than any machine holds. Everything that riskpilot reads
is held against one limit, 2 GiB unless the environment variable RISKPILOT_MEMORY says otherwise.
"""

import io
import os
import re
import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np

from riskpilot.common.ordinary_files import check_ordinary, open_passed
from riskpilot.common.passwords import shown_safely
from riskpilot.errors import ProblemError, RiskpilotError, shown

SETTING = "RISKPILOT_MEMORY"

_DEFAULT = 2 * 2**30
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"\s*([0-9]{1,15})\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)
_CHUNK = 1 << 16  # bytes that are read at once
# What is made of a JSON text takes up to about this many times its length: 1 byte of text such as
# the comma in [0,0,0] stands for a pointer of 8 bytes, and an object takes tens of bytes more.
_JSON_FACTOR = 16


def memory_limit() -> int:
    """Return how many bytes of memory a file may take.

    The environment variable RISKPILOT_MEMORY holds it as bytes, or with a unit: ``8GB``.
    """
    setting = os.environ.get(SETTING, "").strip()
    if not setting:
        return _DEFAULT
    found = _SIZE.fullmatch(setting)
    size = 0 if found is None else int(found[1]) * _UNITS[found[2].upper()]
    if size == 0:
        raise ProblemError(
            f"{SETTING} is how much memory a file that is read may take, such as 8GB, but it is "
            f"{shown(setting)}. Write a whole number of bytes, KB, MB, GB or TB."
        )
    return size


def check_memory(n_bytes: int, what: str, error: type[RiskpilotError]) -> None:
    """Refuse what would take more memory than the limit. ``what``: its name in the message."""
    limit = memory_limit()
    if n_bytes > limit:
        raise error(
            f"{what} would take {_in_words(n_bytes)} of memory, and riskpilot reads what takes at "
            f"most {_in_words(limit)}. If you trust it and have the memory, set the environment "
            f"variable {SETTING}, for example {SETTING}={_more(n_bytes)}."
        )


def check_file(path: Path, what: str, error: type[RiskpilotError]) -> None:
    """Refuse a file that is larger than the limit, and what is no ordinary file."""
    size = check_ordinary(path, what, error).st_size
    check_memory(size, f"{what} {shown_safely(path)}", error)


def read_json_file(path: str | Path, what: str, error: type[RiskpilotError]) -> str:
    """Read a text that holds JSON, whose values take several times the memory of the text.

    A pipe that a shell passed, which does not say how long it is, is read until it ends or reaches
    the limit.
    """
    named = f"{what} {shown_safely(path)}"
    with open_passed(path, what, error) as file:
        check_memory(_JSON_FACTOR * os.fstat(file.fileno()).st_size, named, error)
        return read_json_stream(file, named, error)


def read_json_stream(stream: BinaryIO, what: str, error: type[RiskpilotError]) -> str:
    """Read a text that holds JSON from a stream, and no further than the limit."""
    content = read_stream(stream, what, error, _JSON_FACTOR)
    with io.TextIOWrapper(io.BytesIO(content), encoding="utf-8") as text:
        return text.read()


def read_stream(stream: BinaryIO, what: str, error: type[RiskpilotError], factor: int = 1) -> bytes:
    """Read a stream to its end, and no further than the limit.

    ``factor``: how many bytes of memory one byte takes.
    """
    most = memory_limit() // factor
    content = bytearray()
    while chunk := stream.read(_CHUNK):
        content += chunk
        if len(content) > most:
            check_memory(factor * len(content), what, error)
    return bytes(content)


def check_archive(file: BinaryIO, what: str, error: type[RiskpilotError]) -> None:
    """Refuse an .npz file whose arrays would take more than the limit, or more than they have.

    Only the list of its arrays and their headers are read. A file that is no archive, or damaged,
    ends in `zipfile.BadZipFile` or a ValueError. ``file`` is at its beginning again afterwards.
    """
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        check_memory(sum(member.file_size for member in members), what, error)
        total = 0
        for member in members:
            if member.filename.endswith(".npy"):
                with archive.open(member) as stream:
                    claimed, pickled = _claimed(stream)
                total += claimed
                check_memory(total, what, error)
                if claimed > member.file_size and not pickled:
                    raise error(
                        f"{what} is damaged or made up: its array "
                        f"{shown(member.filename.removesuffix('.npy'))} claims "
                        f"{claimed:,} bytes, but it has at most {member.file_size:,}. Take the "
                        f"original again."
                    )
    file.seek(0)


def _claimed(stream: object) -> tuple[int, bool]:
    """Return how many bytes the header of an array claims, and whether it holds Python objects."""
    header = np.lib.format
    version = header.read_magic(stream)  # type: ignore[arg-type]
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array in the unknown format {version}")
    read = header.read_array_header_1_0 if version == (1, 0) else header.read_array_header_2_0
    try:
        shape, _, dtype = read(stream)  # type: ignore[arg-type]
    except (MemoryError, RecursionError, SyntaxError, TypeError, OverflowError) as reason:
        raise ValueError(f"an array whose header cannot be read ({reason})") from None
    size = dtype.itemsize
    for length in shape:
        size *= int(length)
    return max(size, 0), bool(dtype.hasobject)


def _in_words(n_bytes: int) -> str:
    """Write a size in the unit that suits it.

    >>> _in_words(2**31), _in_words(10**13), _in_words(1500)
    ('2 GiB', '9.09 TiB', '1.46 KiB')
    """
    size = float(min(n_bytes, 10**30))
    units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.3g} {units[0]}"


def _more(n_bytes: int) -> str:
    """Write a setting that is large enough, in whole gigabytes."""
    return f"{-(-n_bytes // 2**30)}GB"
