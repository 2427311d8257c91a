"""Which examples earlier questions and watches were about, by their ids: none of these is fresh."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import optuna

from riskpilot.common import parse
from riskpilot.errors import LeakageError, shown
from riskpilot.losses import Seen, TextArray
from riskpilot.study.kept.attributes import WATCH_KEY
from riskpilot.study.kept.seen_ids import kept_calibration_ids
from riskpilot.study.storages import storage_of

# What a study of a new sample says of the one that its trials come from.
ORIGIN_KEY = "riskpilot:recertifies"


def asked_about(study: optuna.Study, ids: TextArray | None) -> set[str]:
    """Name the studies of the same candidates whose calibration examples have one of these ids."""
    if ids is None:
        return set()
    return {
        name
        for name, attributes in _relatives(study).items()
        if np.isin(ids, kept_calibration_ids(study, attributes)).any()
    }


def check_unwatched(study: optuna.Study, ids: TextArray | None) -> None:
    """Refuse examples that a watch in a study of the same candidates has counted."""
    if ids is None:
        return
    for name, attributes in _relatives(study).items():
        counted = _watched(attributes).known_among(ids, len(ids))
        if counted.any():
            raise LeakageError(
                f"Fresh examples must not have made anybody look, but {counted.sum():,} were "
                f"counted by the watch in the study {name!r}, such as "
                f"{shown(str(ids[int(np.argmax(counted))]))}. Take labels that no watch has "
                f"counted."
            )


def _watched(attributes: Mapping[str, Any]) -> Seen:
    """Read which ids the watch of a study has counted; a changed watch is refused by itself."""
    with suppress(LookupError, TypeError, ValueError):
        return Seen.from_text(parse(attributes[WATCH_KEY])["seen"])
    return Seen()


def _relatives(study: optuna.Study) -> dict[str, Mapping[str, Any]]:
    """Find the studies whose trials come from one search, the first one and all after it, and
    return their attributes by name."""
    every = {one.study_name: one.user_attrs for one in storage_of(study).get_all_studies()}

    def first(name: str) -> str:
        passed: set[str] = set()  # a storage that was changed may lead in a circle
        while name not in passed:
            passed.add(name)
            origin = every[name].get(ORIGIN_KEY)
            before = origin.get("study") if isinstance(origin, Mapping) else None
            name = before if before in every else name
        return name

    mine = first(study.study_name)
    return {name: attributes for name, attributes in every.items() if first(name) == mine}
