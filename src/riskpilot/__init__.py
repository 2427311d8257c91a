"""Choose a model configuration that keeps the limits you set, with a statistical guarantee."""

from riskpilot.asking import seal, select
from riskpilot.audit import verify
from riskpilot.certificate import Certificate
from riskpilot.errors import (
    CertificateError,
    LeakageError,
    LossError,
    LossRangeError,
    ProblemError,
    RiskpilotError,
    StudyError,
    TableError,
)
from riskpilot.ledger import ledger
from riskpilot.losses import Evaluation
from riskpilot.measures import CVaR, Difference, GroupGap, Mean, Quantile, Ratio, WorstGroup
from riskpilot.planner import RiskPlan, plan_calibration, split_labelled
from riskpilot.predictions import check_losses, losses_from_predictions
from riskpilot.problem import Problem, Risk
from riskpilot.procedures import Graphical, bonferroni, chain, fixed_sequence, holm
from riskpilot.sampler import GUIDED, HVI, ONE_SIDED, PAPER, GuidedSampler, Strategy
from riskpilot.seals import Seal
from riskpilot.selection import Selection, select_from_losses
from riskpilot.study import (
    LimitSuggestion,
    create_study,
    load_study,
    objective,
    set_limits,
    suggest_limits,
)
from riskpilot.values import measure, weighted
from riskpilot.verification import Verification

__version__ = "0.1.0"

__all__ = [
    "GUIDED",
    "HVI",
    "ONE_SIDED",
    "PAPER",
    "CVaR",
    "Certificate",
    "CertificateError",
    "Difference",
    "Evaluation",
    "Graphical",
    "GroupGap",
    "GuidedSampler",
    "LeakageError",
    "LimitSuggestion",
    "LossError",
    "LossRangeError",
    "Mean",
    "Problem",
    "ProblemError",
    "Quantile",
    "Ratio",
    "Risk",
    "RiskPlan",
    "RiskpilotError",
    "Seal",
    "Selection",
    "Strategy",
    "StudyError",
    "TableError",
    "Verification",
    "WorstGroup",
    "bonferroni",
    "chain",
    "check_losses",
    "create_study",
    "fixed_sequence",
    "holm",
    "ledger",
    "load_study",
    "losses_from_predictions",
    "measure",
    "objective",
    "plan_calibration",
    "seal",
    "select",
    "select_from_losses",
    "set_limits",
    "split_labelled",
    "suggest_limits",
    "verify",
    "weighted",
]
