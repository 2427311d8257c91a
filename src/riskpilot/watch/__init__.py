"""A certificate after deployment: an alarm soon after a risk has gone above its limit."""

from riskpilot.watch.blocks import Block, Claim, Contrast, fill_blocks, gap, ratio
from riskpilot.watch.bounds import lower_bound, upper_bound
from riskpilot.watch.capital import update, wealth
from riskpilot.watch.estimates import Estimate, segment_estimates, since_begin, since_change
from riskpilot.watch.findings import WatchAlarm, WatchedRisk
from riskpilot.watch.metrics import metrics, write_metrics
from riskpilot.watch.rule import Rule, make_rule
from riskpilot.watch.state import Alarm, Segment, State, begin, from_dict, to_dict
from riskpilot.watch.streams import (
    difference_values,
    group_shares,
    group_values,
    quantile_values,
    sampling_weights,
    tail_values,
    to_unit,
)
from riskpilot.watch.watching import Watch

__all__ = [
    "Alarm",
    "Block",
    "Claim",
    "Contrast",
    "Estimate",
    "Rule",
    "Segment",
    "State",
    "Watch",
    "WatchAlarm",
    "WatchedRisk",
    "begin",
    "difference_values",
    "fill_blocks",
    "from_dict",
    "gap",
    "group_shares",
    "group_values",
    "lower_bound",
    "make_rule",
    "metrics",
    "quantile_values",
    "ratio",
    "sampling_weights",
    "segment_estimates",
    "since_begin",
    "since_change",
    "tail_values",
    "to_dict",
    "to_unit",
    "update",
    "upper_bound",
    "wealth",
    "write_metrics",
]
