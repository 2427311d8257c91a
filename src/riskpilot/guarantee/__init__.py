"""From validation losses to a frozen test, and from calibration losses to a certificate."""

from riskpilot.guarantee.background import (
    Background,
    SearchOutline,
    config_in_words,
    with_short_numbers,
)
from riskpilot.guarantee.bounds import upper_bounds
from riskpilot.guarantee.certificate import Certificate, check_certificate, issue
from riskpilot.guarantee.certificate_shape import (
    CONTENT,
    ELSEWHERE,
    FORETOLD,
    SCHEMA,
    VERSIONS,
    check_foretold,
)
from riskpilot.guarantee.dominance import non_dominated
from riskpilot.guarantee.judging import JudgeHelp
from riskpilot.guarantee.label_planning import JudgePlan, LabelsPlan, plan_judge, plan_labels
from riskpilot.guarantee.label_progress import (
    Progress,
    begin_labels,
    begin_within_reach,
    evidence_paths,
    labels_again,
)
from riskpilot.guarantee.labelled_split import split_labelled
from riskpilot.guarantee.order_of_bets import check_seed
from riskpilot.guarantee.passing import (
    MOST_EXAMPLES,
    passing_probability,
    planning_family,
    samples_to_pass,
    unit_risk,
)
from riskpilot.guarantee.power import (
    RiskPlan,
    as_number,
    is_whole,
    plan_calibration,
    power_is_unknown,
)
from riskpilot.guarantee.procedure_names import custom_name, from_description
from riskpilot.guarantee.procedures import (
    Graphical,
    Procedure,
    bonferroni,
    chain,
    check_procedure,
    fixed_sequence,
    holm,
)
from riskpilot.guarantee.promise_words import p_in_words
from riskpilot.guarantee.question import (
    Question,
    config_of,
    evaluated_rows,
    foretold_rows,
    groups_in_words,
    numbers_of,
    question_digest,
    runs,
)
from riskpilot.guarantee.region import DELTA_PRIME, DOUBT, TRUST, Interval, interval, region_of
from riskpilot.guarantee.risk_tests import family, fewest_examples, log_p, steering_family
from riskpilot.guarantee.seals import Seal, differences_from_seal, make_seal
from riskpilot.guarantee.sequential import label_by_label, question_by_label
from riskpilot.guarantee.testing import Labelling, TestPlan, TestResult, freeze_plan, run_test
from riskpilot.guarantee.uses import Use, stamp

__all__ = [
    "CONTENT",
    "DELTA_PRIME",
    "DOUBT",
    "ELSEWHERE",
    "FORETOLD",
    "MOST_EXAMPLES",
    "SCHEMA",
    "TRUST",
    "VERSIONS",
    "Background",
    "Certificate",
    "Graphical",
    "Interval",
    "JudgeHelp",
    "JudgePlan",
    "Labelling",
    "LabelsPlan",
    "Procedure",
    "Progress",
    "Question",
    "RiskPlan",
    "Seal",
    "SearchOutline",
    "TestPlan",
    "TestResult",
    "Use",
    "as_number",
    "begin_labels",
    "begin_within_reach",
    "bonferroni",
    "chain",
    "check_certificate",
    "check_foretold",
    "check_procedure",
    "check_seed",
    "config_in_words",
    "config_of",
    "custom_name",
    "differences_from_seal",
    "evaluated_rows",
    "evidence_paths",
    "family",
    "fewest_examples",
    "fixed_sequence",
    "foretold_rows",
    "freeze_plan",
    "from_description",
    "groups_in_words",
    "holm",
    "interval",
    "is_whole",
    "issue",
    "label_by_label",
    "labels_again",
    "log_p",
    "make_seal",
    "non_dominated",
    "numbers_of",
    "p_in_words",
    "passing_probability",
    "plan_calibration",
    "plan_judge",
    "plan_labels",
    "planning_family",
    "power_is_unknown",
    "question_by_label",
    "question_digest",
    "region_of",
    "run_test",
    "runs",
    "samples_to_pass",
    "split_labelled",
    "stamp",
    "steering_family",
    "unit_risk",
    "upper_bounds",
    "with_short_numbers",
]
