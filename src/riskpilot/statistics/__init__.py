"""What number a sample of losses becomes, and the p-values that judge it."""

from riskpilot.statistics.families import (
    P_VALUES,
    Start,
    family_named,
    largest_passing_mean,
    log_normal,
    log_trinomial,
)
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

__all__ = [
    "P_VALUES",
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
    "family_named",
    "from_dict",
    "largest_passing_mean",
    "log_normal",
    "log_trinomial",
]
