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
from riskpilot.statistics.judged.testing import log_judged
from riskpilot.statistics.judged.worth import judged_power, labels_worth
from riskpilot.statistics.kinds.base import JUDGED, Statistic
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
from riskpilot.statistics.sequential.boundary import Boundary, exact_boundary
from riskpilot.statistics.sequential.following import (
    BOUNDARY,
    CAPITAL,
    JUDGED_CAPITAL,
    Followed,
    Labels,
    Pool,
    Stream,
    follow,
)
from riskpilot.statistics.sequential.operating import Outlook, outlook
from riskpilot.statistics.summaries import (
    AnySummary,
    GroupName,
    GroupSummary,
    Recorded,
    Summary,
    name_in_words,
)

__all__ = [
    "BOUNDARY",
    "CAPITAL",
    "JUDGED",
    "JUDGED_CAPITAL",
    "P_VALUES",
    "STATISTICS",
    "AnySummary",
    "Boundary",
    "CVaR",
    "Difference",
    "Followed",
    "GroupGap",
    "GroupName",
    "GroupSummary",
    "Grouped",
    "Groups",
    "Labels",
    "Limit",
    "Mean",
    "Outlook",
    "Pool",
    "Quantile",
    "Ratio",
    "Recorded",
    "Start",
    "Statistic",
    "Stream",
    "Summary",
    "TestSettings",
    "WorstGroup",
    "argument_of",
    "exact_boundary",
    "family_named",
    "follow",
    "from_dict",
    "is_statistic",
    "judged_power",
    "labels_worth",
    "largest_passing_mean",
    "log_judged",
    "log_normal",
    "name_in_words",
    "outlook",
    "shuffled",
    "smallest_n",
]
