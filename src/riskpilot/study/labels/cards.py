"""How a calibration shows itself in a notebook."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from riskpilot.common import card
from riskpilot.guarantee import config_in_words
from riskpilot.problem import Problem

_MOST = 12  # rows of a card: the first candidates, which are tested first


def calibration_card(
    problem: Problem,
    message: str,
    candidates: Sequence[Mapping[str, Any]],
    labels: Sequence[int],
    certified: Sequence[bool],
    needed: Sequence[int],
) -> str:
    """Show where a calibration stands: each candidate with its labels and what they say of it."""

    def rows() -> Iterator[tuple[object, ...]]:
        for i, config in enumerate(candidates[:_MOST]):
            state = "needs labels" if i in needed else "not certified"
            state = "certified" if certified[i] else state
            yield i + 1, config_in_words(config, 60), f"{labels[i]:,}", state

    left_out = len(candidates) - _MOST
    more = [f"{left_out:,} further candidates are not shown."] if left_out > 0 else []
    head = ("number in the test", "candidate", "labels", "so far")
    good = True if any(certified) else None if needed else False
    lines = [str(problem), message, *more]
    return card("Calibration", lines, head=head, rows=rows(), good=good)
