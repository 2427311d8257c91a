"""What one configuration loses, as users hand it over."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy.typing as npt

from riskpilot.errors import LossError, shown, type_in_words

LossMapping = Mapping[str, npt.ArrayLike]
"""Losses, and what stands beside them, by name."""

# Whether an Evaluation was used as a number in this thread since `was_used_as_number` was asked.
_used = threading.local()


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What one configuration loses on validation data and, sealed until `select`, on calibration.

    Parameters
    ----------
    validation : mapping of str to array of shape (k,)
        The losses of every risk by its name, what stands beside them (groups, weights), and the
        free objective, which may be a single number. Its values lie between -1e100 and 1e100.
    calibration : mapping of str to array of shape (m,), optional
        The same for calibration data, without the free objective. It can be left out where
        ``select(study, calibrate=...)`` computes it later.
    judge : mapping, optional
        Scores of a judge that was fixed beforehand, as in `select_from_losses`:
        ``{"labelled": {"error": (m,)}, "unlabelled": {"error": (M,)}}``, of M fresh examples that
        are neither labelled nor validation examples; their ``"ids"`` may stand beside them. Where
        evaluations bring scores, all do.

    Raises
    ------
    LossError
        Where one of them is no mapping.

    Examples
    --------
    >>> evaluation = Evaluation({"error": [0, 1, 0], "cost": 3.0}, {"error": [0, 0, 1]})
    >>> evaluation
    Evaluation(validation: error, cost; calibration: error, sealed)
    """

    validation: LossMapping
    calibration: LossMapping | None = None
    judge: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for split in ("validation", "calibration", "judge"):
            value = getattr(self, split)
            if not isinstance(value, Mapping) and not (split != "validation" and value is None):
                raise LossError(
                    f"Evaluation: {split} must map names to losses, but it is "
                    f'{type_in_words(value)}. Write Evaluation({split}={{"error": array, ...}}).'
                )

    def __repr__(self) -> str:
        """Name what there is, and show none of it: logs print this, and calibration is sealed."""
        validation = ", ".join(map(str, self.validation)) or "nothing"
        calibration = "none"
        if self.calibration is not None:
            calibration = f"{', '.join(map(str, self.calibration)) or 'nothing'}, sealed"
        judge = "" if self.judge is None else "; judge: scores, sealed"
        return f"{type(self).__name__}(validation: {validation}; calibration: {calibration}{judge})"

    def __float__(self) -> NoReturn:
        """Refuse to be a number, which Optuna asks for where riskpilot does not stand between."""
        _used.as_number = True
        raise LossError(
            "An Evaluation is no number. Give it to riskpilot: "
            "study.optimize(riskpilot.objective(study, evaluate)) where evaluate returns it, or "
            "riskpilot.tell(study, trial, evaluation)."
        )


def was_used_as_number() -> bool:
    """Tell whether an `Evaluation` was used as a number in this thread, and forget it."""
    used = getattr(_used, "as_number", False)
    _used.as_number = False
    return used


def check_names(losses: LossMapping, split: str) -> None:
    """Refuse losses under anything but a text: 1 and "1" are different keys."""
    odd = [name for name in losses if not isinstance(name, str)]
    if odd:
        raise LossError(
            f"{split}: losses are named by texts, but one name is {shown(odd[0])}, "
            f"{type_in_words(odd[0])}. Use the name of the risk or of the free objective."
        )
