"""Losses on their way in: checked, counted, digested, and kept apart by purpose."""

from riskpilot.losses.beside import digest_of_numbers
from riskpilot.losses.counted_ids import Seen
from riskpilot.losses.counts import CountedLosses
from riskpilot.losses.deployed import DeployedLosses, read_deployed
from riskpilot.losses.deployed_scores import read_deployed_scores
from riskpilot.losses.evaluation import (
    Evaluation,
    LossMapping,
    check_names,
    was_used_as_number,
)
from riskpilot.losses.example_ids import ExampleIds, read_example_ids, read_ids, whole_id
from riskpilot.losses.fresh_scores import FreshScores, read_fresh, read_label_scores
from riskpilot.losses.intake import (
    NumbersOfTexts,
    TextArray,
    as_read,
    is_missing,
    number_array,
    plain_array,
    same_number,
)
from riskpilot.losses.judges import (
    JudgeMapping,
    JudgeScores,
    check_judged,
    judged_risks,
    read_judge,
)
from riskpilot.losses.labels import (
    IDS,
    LabelTable,
    digest_of_labels,
    labels_of,
    parted,
    read_label_table,
    score_name,
    some_labels,
)
from riskpilot.losses.leakage import (
    check_disjoint,
    check_evaluated,
    check_evaluated_by_row,
    check_fresh,
    check_memory,
    check_order,
    check_overlap_by_row,
    check_unseen,
    check_unseen_ids,
    depths_of,
    digest_in_any_order,
    refuse_shared,
    same_sums,
    sketch_of_row,
)
from riskpilot.losses.packed import PackedLosses
from riskpilot.losses.predictions import check_losses, losses_from_predictions, turned_round
from riskpilot.losses.ranges import as_given
from riskpilot.losses.risk_losses import RiskLosses, summary_of
from riskpilot.losses.same_sample import (
    Patterns,
    Sketch,
    counts_tell,
    order_tells,
    orders_of,
    overlap_tells,
    patterns_of,
)
from riskpilot.losses.splits import (
    ANY_FREE,
    LARGEST_FREE,
    CalibrationLosses,
    ValidationLosses,
    calibration_losses,
    check_free,
    free_objective_alone,
    is_usable_free,
    validation_losses,
)
from riskpilot.losses.texts import text_array
from riskpilot.losses.values import measure, value_of, weighted

__all__ = [
    "ANY_FREE",
    "IDS",
    "LARGEST_FREE",
    "CalibrationLosses",
    "CountedLosses",
    "DeployedLosses",
    "Evaluation",
    "ExampleIds",
    "FreshScores",
    "JudgeMapping",
    "JudgeScores",
    "LabelTable",
    "LossMapping",
    "NumbersOfTexts",
    "PackedLosses",
    "Patterns",
    "RiskLosses",
    "Seen",
    "Sketch",
    "TextArray",
    "ValidationLosses",
    "as_given",
    "as_read",
    "calibration_losses",
    "check_disjoint",
    "check_evaluated",
    "check_evaluated_by_row",
    "check_free",
    "check_fresh",
    "check_judged",
    "check_losses",
    "check_memory",
    "check_names",
    "check_order",
    "check_overlap_by_row",
    "check_unseen",
    "check_unseen_ids",
    "counts_tell",
    "depths_of",
    "digest_in_any_order",
    "digest_of_labels",
    "digest_of_numbers",
    "free_objective_alone",
    "is_missing",
    "is_usable_free",
    "judged_risks",
    "labels_of",
    "losses_from_predictions",
    "measure",
    "number_array",
    "order_tells",
    "orders_of",
    "overlap_tells",
    "parted",
    "patterns_of",
    "plain_array",
    "read_deployed",
    "read_deployed_scores",
    "read_example_ids",
    "read_fresh",
    "read_ids",
    "read_judge",
    "read_label_scores",
    "read_label_table",
    "refuse_shared",
    "same_number",
    "same_sums",
    "score_name",
    "sketch_of_row",
    "some_labels",
    "summary_of",
    "text_array",
    "turned_round",
    "validation_losses",
    "value_of",
    "was_used_as_number",
    "weighted",
    "whole_id",
]
