"""The ids of examples: one for each, no two alike, and none in both splits."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskpilot.common import how_many
from riskpilot.errors import LeakageError, LossError, shown
from riskpilot.losses.intake import NumbersOfTexts, TextArray, is_missing, plain_array
from riskpilot.losses.texts import text_array

# A whole number with zeros behind its point, as tables write ids whose column had an empty cell.
_WHOLE = re.compile(r"([+-]?(?:0|[1-9]\d*))\.0*")


@dataclass(frozen=True)
class ExampleIds:
    """The ids of validation and of calibration examples as texts, shapes (k,) and (m,).

    None where they are not known. `read_ids` makes them.
    """

    validation: TextArray | None = None
    calibration: TextArray | None = None

    def check_size(self, split: str, n: int) -> None:
        """Refuse another number of ids than there are examples."""
        ids = getattr(self, split)
        if ids is not None and len(ids) != n:
            raise LossError(
                f"{split}_ids holds one id for each of the {n:,} {split} examples, but there are "
                f"{len(ids):,}. Give the ids in the order of the losses."
            )

    @property
    def digests(self) -> dict[str, str]:
        """The SHA-256 digest of the ids in their order, by split, of those that are known."""
        found = {"validation": self.validation, "calibration": self.calibration}
        return {
            split: hashlib.sha256(ids.dtype.str.encode() + ids.tobytes()).hexdigest()
            for split, ids in found.items()
            if ids is not None
        }


def read_ids(validation_ids: Any, calibration_ids: Any) -> ExampleIds:
    """Read the ids of both splits, and refuse those that say nothing or occur in both."""
    ids = ExampleIds(
        read_example_ids(validation_ids, "validation_ids"),
        read_example_ids(calibration_ids, "calibration_ids"),
    )
    if ids.validation is None or ids.calibration is None:
        return ids
    shared = np.intersect1d(ids.validation, ids.calibration)
    if len(shared):
        raise LeakageError(
            f"Validation and calibration must not share examples, but "
            f"{how_many(len(shared), 'id occurs', 'ids occur')} in "
            f"both, such as {shown(str(shared[0]))}. Remove them from one of the two."
        )
    return ids


def whole_id(text: str) -> str:
    """Write the id of an example as it is, but 7.0 as 7: many a table writes whole numbers so.

    >>> whole_id("7.0"), whole_id("07"), whole_id("q7.0"), whole_id("7.05")
    ('7', '07', 'q7.0', '7.05')
    """
    whole = _WHOLE.fullmatch(text)
    return text if whole is None else whole[1]


def read_example_ids(given: Any, what: str) -> TextArray | None:
    """Read the ids of some examples as texts, no two alike; one may have several parts, such as
    (file, row). ``what``: the name of the argument, for messages."""
    if given is None:
        return None
    if isinstance(given, NumbersOfTexts):
        return text_array(given, what)  # which refuses them in words
    columns = _columns(given, what)
    missing = [value for column in columns for value in column if is_missing(value)]
    if missing:
        raise LossError(
            f"{what} holds one id for each example, but {len(missing):,} are missing, such as "
            f"{shown(missing[0])}. Number the examples, or leave the ids out."
        )
    parts = [text_array(column, what) for column in columns]
    if nested := [column for column, part in zip(columns, parts, strict=True) if part.ndim != 1]:
        raise LossError(
            f"The parts of an id are single values, but in {what} some are lists, such as "
            f"{shown(nested[0][0])}. Write an id as a text or a number, or as (file, row)."
        )
    texts = [_with_whole_numbers(part) for part in parts]
    ids = texts[0]
    if len(texts) > 1:
        rows = zip(*(column.tolist() for column in texts), strict=True)
        ids = np.array([json.dumps(row) for row in rows], dtype=np.str_)
    unique, counts = np.unique(ids, return_counts=True)
    if len(unique) < len(ids):
        twice = int(np.argmax(counts))
        raise LossError(
            f"{what} tells every example from all others, but {shown(str(unique[twice]))} occurs "
            f"{counts[twice]:,} times. Give each example an id of its own."
        )
    return ids


def _with_whole_numbers(ids: TextArray) -> TextArray:
    """Write whole numbers in one way, so that no example has two ids."""
    if not (np.char.find(ids, ".") >= 0).any():
        return ids
    return np.array([whole_id(text) for text in ids.tolist()], dtype=np.str_)


def _columns(given: Any, what: str) -> list[list[Any]]:
    """The parts of the ids, each as a list with one entry for each example."""
    ids = given if isinstance(given, list | tuple) else plain_array(given, what).tolist()
    if not isinstance(ids, list | tuple) or not ids:
        raise LossError(
            f"{what} holds one id for each example, but it is {shown(given)}. "
            f"Write a list of ids, such as {what}=range(300)."
        )
    rows = [tuple(one) if isinstance(one, list | tuple) else (one,) for one in ids]
    lengths = {len(row) for row in rows}
    if len(lengths) > 1 or 0 in lengths:
        raise LossError(
            f"{what} holds ids of one kind, but they have {sorted(lengths)} parts. "
            f"Give every id the same parts, such as (file, row)."
        )
    return [list(column) for column in zip(*rows, strict=True)]
