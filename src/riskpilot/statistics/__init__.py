"""What number a sample of losses becomes, and the p-values that judge it."""

from riskpilot.statistics.kinds import (
    Contrast,
    CVaR,
    Difference,
    Grouped,
    GroupGap,
    Mean,
    Quantile,
    Ratio,
    Statistic,
    Tail,
    WorstGroup,
    from_dict,
)
from riskpilot.statistics.p_values import Start, largest_passing_mean, log_normal
from riskpilot.statistics.paired import log_trinomial

__all__ = [
    "CVaR",
    "Contrast",
    "Difference",
    "GroupGap",
    "Grouped",
    "Mean",
    "Quantile",
    "Ratio",
    "Start",
    "Statistic",
    "Tail",
    "WorstGroup",
    "from_dict",
    "largest_passing_mean",
    "log_normal",
    "log_trinomial",
]
