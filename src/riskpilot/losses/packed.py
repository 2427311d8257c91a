"""0/1 losses as packed bits: an eighth of a byte for each loss, as a table on disk is read."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.common import Array


@dataclass(frozen=True, eq=False)
class PackedLosses:
    """The 0/1 losses of n configurations on m examples, of which every one counts.

    ``bits``: as `numpy.packbits` packs each row, shape (n, ceil(m / 8)). NumPy reads the object as
    an array of booleans of shape (n, m).
    """

    bits: npt.NDArray[np.uint8]
    n_examples: int

    @property
    def shape(self) -> tuple[int, int]:
        """How many configurations and examples there are."""
        return len(self.bits), self.n_examples

    def __len__(self) -> int:
        return len(self.bits)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        unpacked = np.unpackbits(self.bits, axis=1, count=self.n_examples).view(np.bool_)
        return unpacked if dtype is None else unpacked.astype(dtype)
