"""The ledger beside a table of losses: every question that was put to it, in a chain."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from riskpilot.common import (
    ShapeError,
    anything,
    digest,
    digest_of,
    list_of,
    moment,
    optional,
    parse,
    record,
    text,
    whole,
)
from riskpilot.errors import TableError
from riskpilot.guarantee import CONTENT, VERSIONS, Question, Use, stamp

_ENTRY = record(
    use=whole(1),
    question=digest,
    problem=text,
    **CONTENT,
    table=optional(anything),
    calibration=digest,
    created=moment,
    versions=VERSIONS,
    previous=text,
    digest=digest,
)


def ledger_beside(path: str | Path) -> Path:
    """Return where the ledger of a table lies.

    >>> str(ledger_beside("runs/losses.csv"))
    'runs/losses.csv.ledger.json'
    """
    place = Path(path)
    return place.with_name(f"{place.name}.ledger.json")


def enter(path: Path, question: Question, opened: str) -> Use:
    """Record a question before its answer is known; the same one keeps its number and date.

    ``opened``: the digest of the calibration losses of the candidates, in testing order.
    """
    entries = read_ledger(path)
    asked = question.entry
    for entry in entries:
        if (entry["question"], entry["calibration"]) == (asked["question"], opened):
            return use_of(entry)
    entry = {
        "use": len(entries) + 1,
        **asked,
        "table": None if question.table is None else dict(question.table),
        "calibration": opened,
        **stamp(),
        "previous": entries[-1]["digest"] if entries else "",
    }
    entry["digest"] = digest_of(entry)
    _write(path, [*entries, entry])
    return use_of(entry)


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """Read the questions of a ledger, oldest first; none where it is not there yet."""
    try:
        entries = parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, TypeError, ValueError) as error:
        raise _changed(path, str(error)) from error
    try:
        list_of(_ENTRY)(entries, "the list of entries")
    except ShapeError as error:
        raise _changed(path, str(error)) from None
    previous = ""
    for number, entry in enumerate(entries, 1):
        rest = {name: value for name, value in entry.items() if name != "digest"}
        in_place = entry["use"] == number and entry["previous"] == previous
        if not in_place or entry["digest"] != digest_of(rest):
            raise _changed(path, f"entry {number} is not the one that was written")
        previous = entry["digest"]
    return list(entries)


def use_of(entry: Mapping[str, Any]) -> Use:
    """Return which use of the calibration data an entry is."""
    return Use(entry["use"], entry["digest"], (), entry["created"], entry["versions"])


def recorded_draw(path: Path, table: Mapping[str, Any]) -> int | None:
    """Find the seed with which the examples of a table were drawn before, for the same share."""
    wanted = {name: table[name] for name in ("example", "split")}
    for entry in read_ledger(path):
        known = entry["table"]
        if isinstance(known, Mapping) and {name: known.get(name) for name in wanted} == wanted:
            draw = known.get("draw")
            return int(draw) if draw is not None else None
    return None


def _write(path: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Put a new ledger in the place of the old one, whole or not at all."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(json.dumps(entries, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise TableError(
            f"The ledger of the table cannot be written to {str(path)!r}: {error}. Copy the table "
            f"to a folder that can be written, or go without a ledger: --no-ledger, or ledger=None."
        ) from error


def _changed(path: Path, reason: str) -> TableError:
    """Make the error of a ledger that is not as it was written."""
    return TableError(
        f"The ledger {str(path)!r} was changed: {reason}. Restore it from a copy; without its "
        f"ledger nobody can say how often the calibration data was used."
    )
