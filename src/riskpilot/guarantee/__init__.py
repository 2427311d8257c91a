"""From validation losses to a frozen test, and from calibration losses to a certificate."""

from riskpilot.guarantee.bounds import upper_bounds
from riskpilot.guarantee.certificate import Certificate, Use, issue, now, p_in_words, versions
from riskpilot.guarantee.certificate_shape import (
    ELSEWHERE,
    SCHEMA,
    TOLD,
    VERSIONS,
    check_certificate,
)
from riskpilot.guarantee.evidence import Settings, log_p, shuffled
from riskpilot.guarantee.pareto import hypervolume_improvement, non_dominated
from riskpilot.guarantee.power import (
    MOST_EXAMPLES,
    RiskPlan,
    as_number,
    is_whole,
    passing_probability,
    plan_calibration,
    planning_family,
    samples_to_pass,
    split_labelled,
)
from riskpilot.guarantee.procedures import (
    Graphical,
    Procedure,
    bonferroni,
    chain,
    check_procedure,
    fixed_sequence,
    from_description,
    holm,
)
from riskpilot.guarantee.question import (
    Question,
    config_of,
    groups_in_words,
    numbers_of,
    question_digest,
)
from riskpilot.guarantee.region import DELTA_PRIME, Interval, interval
from riskpilot.guarantee.seals import Seal, differences_from_seal, make_seal
from riskpilot.guarantee.testing import TestPlan, TestResult, freeze_plan, run_test

__all__ = [
    "DELTA_PRIME",
    "ELSEWHERE",
    "MOST_EXAMPLES",
    "SCHEMA",
    "TOLD",
    "VERSIONS",
    "Certificate",
    "Graphical",
    "Interval",
    "Procedure",
    "Question",
    "RiskPlan",
    "Seal",
    "Settings",
    "TestPlan",
    "TestResult",
    "Use",
    "as_number",
    "bonferroni",
    "chain",
    "check_certificate",
    "check_procedure",
    "config_of",
    "differences_from_seal",
    "fixed_sequence",
    "freeze_plan",
    "from_description",
    "groups_in_words",
    "holm",
    "hypervolume_improvement",
    "interval",
    "is_whole",
    "issue",
    "log_p",
    "make_seal",
    "non_dominated",
    "now",
    "numbers_of",
    "p_in_words",
    "passing_probability",
    "plan_calibration",
    "planning_family",
    "question_digest",
    "run_test",
    "samples_to_pass",
    "shuffled",
    "split_labelled",
    "upper_bounds",
    "versions",
]
