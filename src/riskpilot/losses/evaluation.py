"""What one configuration loses, as users hand it over."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy.typing as npt

from riskpilot.errors import LossError, shown

LossMapping = Mapping[str, npt.ArrayLike]
"""Losses, and what stands beside them, by name."""


@dataclass(frozen=True)
class Evaluation:
    """What one configuration loses on validation data and, sealed until `select`, on calibration.

    Parameters
    ----------
    validation : mapping of str to array of shape (k,)
        The losses of every risk by its name, what stands beside them (groups, weights), and the
        free objective, which may be a single number.
    calibration : mapping of str to array of shape (m,), optional
        The same for calibration data, without the free objective. It can be left out where
        ``select(study, calibrate=...)`` computes it later.

    Raises
    ------
    LossError
        Where one of them is no mapping.

    Examples
    --------
    >>> evaluation = Evaluation({"error": [0, 1, 0], "cost": 3.0}, {"error": [0, 0, 1]})
    >>> sorted(evaluation.validation)
    ['cost', 'error']
    """

    validation: LossMapping
    calibration: LossMapping | None = None

    def __post_init__(self) -> None:
        for split in ("validation", "calibration"):
            value = getattr(self, split)
            if not isinstance(value, Mapping) and not (split == "calibration" and value is None):
                raise LossError(
                    f"Evaluation: {split} must map names to losses, but it is a "
                    f'{type(value).__name__}. Write Evaluation({split}={{"error": array, ...}}).'
                )


def check_names(losses: LossMapping, split: str) -> None:
    """Refuse losses under anything but a text: 1 and "1" are different keys."""
    odd = [name for name in losses if not isinstance(name, str)]
    if odd:
        raise LossError(
            f"{split}: losses are named by texts, but one name is {shown(odd[0])}, a "
            f"{type(odd[0]).__name__}. Use the name of the risk or of the free objective."
        )
