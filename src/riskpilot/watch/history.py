"""The past of a watch, in a bounded number of moments: for pages and tables, not for alarms."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from riskpilot.common.arrays import FloatArray
from riskpilot.errors import CertificateError
from riskpilot.watch.state import N_SUMS

# Moments are a number of labels apart that doubles whenever there are so many of them.
_MOST = 128
_FIRST_STEP = 8


@dataclass(frozen=True, eq=False)
class History:
    """The sums and the capital at moments that are equally many labels apart.

    Parameters
    ----------
    step : int
        How many labels there are between two moments.
    rows : tuple of int, length T
        After how many labels each moment is.
    times : tuple of str, length T
        When the label before each moment was taken, as the update said it.
    sums : array of shape (T, K, 5)
        The sums of each stream at each moment, as in `State`.
    wealth : array of shape (T, K)
        The capital of each stream, its reserve included.
    """

    step: int
    rows: tuple[int, ...]
    times: tuple[str, ...]
    sums: FloatArray
    wealth: FloatArray

    def until_next(self, rows: int) -> int:
        """Count the labels until the next moment, after that many labels."""
        return self.step - rows % self.step

    def noted(self, rows: int, time: str, sums: FloatArray, wealth: FloatArray) -> "History":
        """Add a moment; where there are too many, every second one goes."""
        grown = replace(
            self,
            rows=(*self.rows, rows),
            times=(*self.times, time),
            sums=np.concatenate((self.sums, sums[None])),
            wealth=np.concatenate((self.wealth, wealth[None])),
        )
        if len(grown.rows) < _MOST:
            return grown
        return History(
            step=2 * self.step,
            rows=grown.rows[1::2],
            times=grown.times[1::2],
            sums=grown.sums[1::2],
            wealth=grown.wealth[1::2],
        )

    def time_of(self, row: int) -> str | None:
        """Say when the label after that many came, or the next one of which it is known."""
        return next(
            (time for known, time in zip(self.rows, self.times, strict=True) if known > row), None
        )

    def to_dict(self) -> dict[str, Any]:
        """Write the history as plain numbers and texts."""
        return {
            "step": self.step,
            "rows": list(self.rows),
            "times": list(self.times),
            "sums": self.sums.tolist(),
            "wealth": self.wealth.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], n_streams: int) -> "History":
        """Read what `to_dict` wrote; CertificateError where it does not fit the streams."""
        n = len(data["rows"])
        sums = np.array(data["sums"], dtype=np.float64).reshape(n, n_streams, N_SUMS)
        wealth = np.array(data["wealth"], dtype=np.float64).reshape(n, n_streams)
        if len(data["times"]) != n or any(row % data["step"] for row in data["rows"]):
            raise CertificateError(
                "The history of a watch has a time for each of its moments, which are equally far "
                "apart, but this one has not. Go back to a copy, or begin a new watch."
            )
        return cls(data["step"], tuple(data["rows"]), tuple(data["times"]), sums, wealth)


def no_history(n_streams: int) -> History:
    """Begin a history, before the first label."""
    return History(_FIRST_STEP, (), (), np.zeros((0, n_streams, N_SUMS)), np.zeros((0, n_streams)))
