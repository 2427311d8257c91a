"""Which examples a watch has counted, so that none is counted twice or taken for fresh."""

import base64
import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from riskpilot.common.arrays import BoolArray
from riskpilot.errors import LossError
from riskpilot.losses.example_ids import whole_id
from riskpilot.losses.texts import text_array

_BYTES = 8  # of a digest; among a million ids two are taken for one with a chance of 3 in 10^8


class Seen:
    """The ids that were counted, as short digests: 8 bytes on the disk for each."""

    def __init__(self, digests: Iterable[bytes] = ()) -> None:
        self._digests = set(digests)

    def __len__(self) -> int:
        return len(self._digests)

    def new_among(self, ids: Any, n: int) -> tuple[BoolArray, list[bytes]]:
        """Say which of n examples were not counted yet, each id once, and give their digests.

        Nothing is remembered until `add`: an update that is refused leaves no trace.
        """
        digests = _digests(ids, n)
        is_new = np.zeros(n, dtype=bool)
        found: dict[bytes, None] = {}
        for place, digest in enumerate(digests):
            if digest not in self._digests and digest not in found:
                found[digest], is_new[place] = None, True
        return is_new, list(found)

    def known_among(self, ids: Any, n: int) -> BoolArray:
        """Say which of n examples were counted before."""
        return np.array([digest in self._digests for digest in _digests(ids, n)], dtype=bool)

    def add(self, digests: Iterable[bytes]) -> None:
        """Remember digests that `new_among` gave."""
        self._digests.update(digests)

    def to_text(self) -> str:
        """Write all digests as one text."""
        return base64.b64encode(b"".join(sorted(self._digests))).decode()

    @classmethod
    def from_text(cls, text: str) -> "Seen":
        """Read what `to_text` wrote."""
        whole = base64.b64decode(text, validate=True)
        return cls(whole[i : i + _BYTES] for i in range(0, len(whole), _BYTES))


def _digests(ids: Any, n: int) -> list[bytes]:
    """Compute the short digests of the ids of n examples."""
    texts = text_array(ids, "ids")
    if texts.shape != (n,):
        raise LossError(
            f"ids name the examples, one for each, shape ({n},), but their shape is "
            f"{texts.shape}. Give every example the id that tells it from all others."
        )
    return [_digest(whole_id(text)) for text in texts.tolist()]


def _digest(text: str) -> bytes:
    """Compute the short digest of an id."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_BYTES]
