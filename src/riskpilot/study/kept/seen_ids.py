"""The ids of the examples that a search looked at, none of which is for calibration, and of those
that are."""

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import optuna

from riskpilot.common import ShapeError, optional
from riskpilot.losses import IDS, ExampleIds, TextArray
from riskpilot.study.kept.attributes import attributes_of, changed
from riskpilot.study.kept.earlier import earlier_of
from riskpilot.study.kept.loss_bytes import decode, encode
from riskpilot.study.kept.loss_store import get, put, store_of
from riskpilot.study.kept.records import ARTIFACT

# Where the ids of the validation examples are, as the first trial that had ids had them.
_SEEN_KEY = "riskpilot:seen"
# Where the ids of the calibration examples are, likewise.
_SEALED_KEY = "riskpilot:calibration-ids"

_known: weakref.WeakKeyDictionary[optuna.Study, TextArray | None] = weakref.WeakKeyDictionary()


def keep_seen(study: optuna.Study, ids: ExampleIds) -> None:
    """Keep the ids of validation and calibration examples, where no earlier trial had any."""
    for key, found in ((_SEEN_KEY, ids.validation), (_SEALED_KEY, ids.calibration)):
        if found is not None and attributes_of(study).get(key) is None:
            study.set_user_attr(key, stored_ids(store_of(study), found))


def stored_ids(store: Any, ids: TextArray | None) -> dict[str, str] | None:
    """Write ids to an artifact store, and return where they are."""
    return None if ids is None else put(store, encode({IDS: ids}))


def copy_seen(study: optuna.Study, copy: optuna.Study) -> None:
    """Let a new study with the same artifact store know of the same validation examples."""
    entry = attributes_of(study).get(_SEEN_KEY)
    if entry is not None:
        copy.set_user_attr(_SEEN_KEY, entry)


def seen_ids(study: optuna.Study) -> TextArray | None:
    """Read the ids of all examples that the search of a study, and of those before it, looked at.

    None where none are known.
    """
    own = _read(study, _entry(study, attributes_of(study), _SEEN_KEY))
    found = [ids for ids in (own, earlier_ids(study)) if ids is not None]
    return np.unique(np.concatenate(found)) if found else None


def kept_calibration_ids(study: optuna.Study, attributes: Mapping[str, Any]) -> TextArray:
    """Read the ids of calibration examples that the attributes of a study point to, if any.

    ``study``: that one, or another one with the same artifact store.
    """
    found = _read(study, _entry(study, attributes, _SEALED_KEY))
    return np.empty(0, dtype=np.str_) if found is None else found


def _entry(study: optuna.Study, attributes: Mapping[str, Any], key: str) -> Any:
    """Return where ids are, if attributes say so in the form in which it was written."""
    try:
        optional(ARTIFACT)(attributes.get(key), "the place of the ids of examples")
    except ShapeError as error:
        raise changed(study, "attributes", error) from error
    return attributes.get(key)


def earlier_ids(study: optuna.Study) -> TextArray | None:
    """Read the ids of the examples that the studies looked at that a study was started from.

    They never change, so that they are read once.
    """
    earlier = earlier_of(study)
    if earlier is None:
        return None
    if study not in _known:
        _known[study] = _read(study, earlier.ids)
    return _known[study]


def _read(study: optuna.Study, entry: Any) -> TextArray | None:
    """Read the ids of an entry."""
    if entry is None:
        return None
    what = f"The ids of the examples of study {study.study_name!r}"
    ids: TextArray = decode(get(store_of(study), dict(entry), what))[IDS]
    return ids
