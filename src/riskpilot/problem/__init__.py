"""What is limited, what is minimised, how sure the promise must be, and what names mean."""

from riskpilot.problem.metrics import Codes, Metric
from riskpilot.problem.names import KNOWN, Meaning, check_minimized, meaning, near
from riskpilot.problem.notation import number, parse_risk
from riskpilot.problem.problem import Problem, Risk
from riskpilot.problem.risk_checks import check_scale
from riskpilot.problem.risk_words import column_of

__all__ = [
    "KNOWN",
    "Codes",
    "Meaning",
    "Metric",
    "Problem",
    "Risk",
    "check_minimized",
    "check_scale",
    "column_of",
    "meaning",
    "near",
    "number",
    "parse_risk",
]
