"""The ledger beside a table of losses: every question that was put to it, in a chain."""

import glob
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from riskpilot.common import (
    ShapeError,
    anything,
    digest,
    digest_of,
    list_of,
    moment,
    one_at_a_time,
    optional,
    parse,
    read_json_file,
    reason_of,
    record,
    shown_safely,
    text,
    whole,
    write_whole,
)
from riskpilot.errors import TableError, shown
from riskpilot.guarantee import CONTENT, VERSIONS, Question, Use, stamp
from riskpilot.tables import LEDGER, local_files, local_path

_SIGNS = re.compile(r"[*?\[\]]+")  # of a glob
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
    """Return where the ledger of a table lies; that of a glob is in the folder it begins with.

    A file has one ledger however its path is written: through a link, or as a glob that finds
    nothing else.

    >>> str(ledger_beside("runs/losses.csv")), str(ledger_beside("runs/*/part-*.csv"))
    ('runs/losses.csv.ledger.json', 'runs/_-part-_.csv.ledger.json')
    """
    place = Path(local_path(path))
    if not place.name:
        raise TableError(
            f"A table, a study or a record is a file with a name, but the path is "
            f"{shown(str(path))}. Give the path of a file; an empty one may come from a "
            f"variable that is not set."
        )
    found = local_files(place)
    if len(found) == 1:
        real = Path(found[0]).resolve()
        return real.with_name(real.name + LEDGER)
    signs = (i for i, part in enumerate(place.parts) if glob.has_magic(part))
    first = next(signs, None)
    if first is None:
        return place.with_name(place.name + LEDGER)
    name = _SIGNS.sub("_", "-".join(place.parts[first:]))
    return Path(*place.parts[:first]) / (name + LEDGER)


def ledger_place(ledger: Any) -> Path | None:
    """Return the path of a ledger as it was given, or None where no count is kept."""
    if ledger is None or isinstance(ledger, Path):
        return ledger
    if not isinstance(ledger, str):
        raise TableError(
            f"ledger is the file that counts the questions to a table, or None, but it is "
            f"{shown(ledger)}. Give its path, or leave it out."
        )
    return Path(ledger)


def enter(path: Path, question: Question, opened: str, drawn_from: str | None = None) -> Use:
    """Record a question before its answer is known; the same one keeps its number and date.

    ``opened``: the digest of the calibration losses of the candidates, in testing order;
    ``drawn_from``: that of the examples, where their split was drawn.
    """
    entry = _recorded(read_ledger(path), question, opened)
    return use_of(_add(path, question, opened, drawn_from) if entry is None else entry)


def _recorded(
    entries: Sequence[dict[str, Any]], question: Question, opened: str
) -> dict[str, Any] | None:
    """Find the entry of a question that was put to the same calibration losses before."""
    asked = question.entry["question"]
    same = (e for e in entries if (e["question"], e["calibration"]) == (asked, opened))
    return next(same, None)


def _add(path: Path, question: Question, opened: str, drawn_from: str | None) -> dict[str, Any]:
    """Write the entry of a new question, while no other process can write one."""
    drawn = {} if drawn_from is None else {"examples": drawn_from}
    try:
        with one_at_a_time(path):
            entries = read_ledger(path)  # again: another process may have written in the meantime
            recorded = _recorded(entries, question, opened)
            if recorded is not None:
                return recorded
            entry = {
                "use": len(entries) + 1,
                **question.entry,
                "table": None if question.table is None else {**question.table, **drawn},
                "calibration": opened,
                **stamp(),
                "previous": entries[-1]["digest"] if entries else "",
            }
            entry["digest"] = digest_of(entry)
            written = json.dumps([*entries, entry], indent=2, allow_nan=False)
            write_whole(path, f"{written}\n")
            return entry
    except OSError as error:
        raise TableError(
            f"The ledger of the table cannot be written to {shown_safely(path)}: "
            f"{reason_of(error)}. Copy the table to a folder that can be written, or go without a "
            f"ledger: --no-ledger, or ledger=None."
        ) from error


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """Read the questions of a ledger, oldest first; none where it is not there yet."""
    try:
        entries = parse(read_json_file(path, "The ledger", TableError))
    except FileNotFoundError:
        return []
    except TableError:
        raise
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
    """Find the seed with which the examples of a table were drawn before.

    Another share than before is refused: it would move examples from one split to the other.
    """
    drawn = (known for known in _known(path, table, ("example",)) if known.get("draw") is not None)
    first = next(drawn, None)
    if first is None:
        return None
    if first["split"] != table["split"]:
        raise TableError(
            f"An example stays in the split that it was drawn for, and the examples of this table "
            f"were drawn with a share of {first['split']:g} for validation, but now it is "
            f"{table['split']:g}. Ask with split={first['split']:g}, or give the split in a "
            f"column; another seed= draws anew, and then calibration examples may have been looked "
            f"at before."
        )
    return int(first["draw"])


def check_draw(path: Path, file: str, table: Mapping[str, Any], drawn_from: str) -> None:
    """Refuse to draw from other examples than before with one seed: some would change sides.

    ``drawn_from``: the digest of the examples.
    """
    for known in _known(path, table, ("example", "split", "draw")):
        if known.get("examples", drawn_from) != drawn_from:
            raise TableError(
                f"{file!r}: an example stays in the split that it was drawn for, but the table has "
                f"other examples than when its split was drawn, and a share of {table['split']:g} "
                f"of them would move some from validation to calibration. Give the split in a "
                f"column, or put the question to the table as it was; another seed= draws anew, "
                f"and then calibration examples may have been looked at before."
            )


def _known(
    path: Path, table: Mapping[str, Any], names: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """Find the tables of a ledger's entries, oldest first, that are read in the same way."""
    for entry in read_ledger(path):
        known = entry["table"]
        if isinstance(known, Mapping) and all(known.get(name) == table[name] for name in names):
            yield known


def _changed(path: Path, reason: str) -> TableError:
    """Make the error of a ledger that is not as it was written."""
    return TableError(
        f"The ledger {str(path)!r} was changed: {reason}. Restore it from a copy; without its "
        f"ledger nobody can say how often the calibration data was used."
    )
