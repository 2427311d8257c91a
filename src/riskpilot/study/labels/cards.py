"""How a calibration shows itself in a notebook."""

from typing import TYPE_CHECKING

from riskpilot.common import card, how_many
from riskpilot.guarantee import config_in_words

if TYPE_CHECKING:
    from riskpilot.study.labels.calibration import Calibration

_MOST = 12  # rows of a card: the first candidates, which are tested first


def calibration_card(calibration: "Calibration") -> str:
    """Show where a calibration stands: each candidate with its labels and what they say of it."""
    certified, needed = calibration.certified, calibration.needed
    rows = [
        (i + 1, config_in_words(config, 60), f"{labels:,}", _state(i, i < len(certified), needed))
        for i, (config, labels) in enumerate(
            zip(calibration.candidates[:_MOST], calibration.labels, strict=False)
        )
    ]
    left_out = len(calibration.candidates) - _MOST
    further = how_many(left_out, "further candidate is", "further candidates are")
    more = [f"{further} not shown."] if left_out > 0 else []
    head = ("number in the test", "candidate", "labels", "so far")
    good = True if certified else None if needed else False
    lines = [str(calibration.problem), calibration.message, *more]
    return card("Calibration", lines, head=head, rows=rows, good=good)


def _state(position: int, certified: bool, needed: list[int]) -> str:
    """Say what the labels say of a candidate."""
    if certified:
        return "certified"
    return "needs labels" if position in needed else "not certified"
