"""The verdict: what was chosen, in words and on a page, and its verification."""

from riskpilot.selection.verdict import (
    Selection,
    check_limits,
    conclude,
    left_out_in_words,
    select_from_losses,
)
from riskpilot.selection.verification import Array, Brought, Configs, Verification, compare

__all__ = [
    "Array",
    "Brought",
    "Configs",
    "Selection",
    "Verification",
    "check_limits",
    "compare",
    "conclude",
    "left_out_in_words",
    "select_from_losses",
]
