"""What number a sample of losses becomes, and the p-values that judge it."""

from riskpilot.statistics.families import (
    P_VALUES,
    Start,
    family_named,
    largest_passing_mean,
    log_normal,
    smallest_n,
)
from riskpilot.statistics.grouped import Grouped
from riskpilot.statistics.kinds.base import Statistic
from riskpilot.statistics.kinds.cvar import CVaR
from riskpilot.statistics.kinds.difference import Difference
from riskpilot.statistics.kinds.group_gap import GroupGap
from riskpilot.statistics.kinds.mean import Mean
from riskpilot.statistics.kinds.quantile import Quantile
from riskpilot.statistics.kinds.ratio import Ratio
from riskpilot.statistics.kinds.registry import STATISTICS, argument_of, from_dict, is_statistic
from riskpilot.statistics.kinds.worst_group import WorstGroup
from riskpilot.statistics.means import shuffled
from riskpilot.statistics.samples import Groups, Limit, TestSettings
from riskpilot.statistics.summaries import (
    AnySummary,
    GroupName,
    GroupSummary,
    Recorded,
    Summary,
    name_in_words,
)

__all__ = [
    "P_VALUES",
    "STATISTICS",
    "AnySummary",
    "CVaR",
    "Difference",
    "GroupGap",
    "GroupName",
    "GroupSummary",
    "Grouped",
    "Groups",
    "Limit",
    "Mean",
    "Quantile",
    "Ratio",
    "Recorded",
    "Start",
    "Statistic",
    "Summary",
    "TestSettings",
    "WorstGroup",
    "argument_of",
    "family_named",
    "from_dict",
    "is_statistic",
    "largest_passing_mean",
    "log_normal",
    "name_in_words",
    "shuffled",
    "smallest_n",
]
