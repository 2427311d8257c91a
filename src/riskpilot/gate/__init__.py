"""A gate for changes: a pull request passes where it is shown to keep its limits."""

from riskpilot.gate.checking import CheckedRisk, Gate, check_change
from riskpilot.gate.gate_ledger import Entry, share_of
from riskpilot.gate.written import as_json, as_junit, as_markdown, in_words

__all__ = [
    "CheckedRisk",
    "Entry",
    "Gate",
    "as_json",
    "as_junit",
    "as_markdown",
    "check_change",
    "in_words",
    "share_of",
]
