"""The verdict: what was chosen, in words and on a page, and its verification."""

from riskpilot.selection.differing import differing_marks
from riskpilot.selection.file_ledger import ledger_beside, read_ledger
from riskpilot.selection.from_counts import select_from_counts
from riskpilot.selection.from_frame import select_from_frame, whole_table
from riskpilot.selection.from_table import check_limits, checked_evaluated, select_from_losses
from riskpilot.selection.frozen import FrozenPlan, freeze, frozen_again
from riskpilot.selection.verdict import Selection, conclude
from riskpilot.selection.verification import (
    Brought,
    Configs,
    Verification,
    compare,
)
from riskpilot.selection.words import ended_rows, first_examples, left_out_in_words

__all__ = [
    "Brought",
    "Configs",
    "FrozenPlan",
    "Selection",
    "Verification",
    "check_limits",
    "checked_evaluated",
    "compare",
    "conclude",
    "differing_marks",
    "ended_rows",
    "first_examples",
    "freeze",
    "frozen_again",
    "ledger_beside",
    "left_out_in_words",
    "read_ledger",
    "select_from_counts",
    "select_from_frame",
    "select_from_losses",
    "whole_table",
]
