"""How a risk is tested: the family of its p-values, the p-values, and the examples it takes."""

from collections.abc import Sequence

from riskpilot.common import FloatArray
from riskpilot.losses import RiskLosses
from riskpilot.problem import Risk
from riskpilot.statistics import AnySummary, Limit, Start, TestSettings, smallest_n


def family(risk: Risk, binary: bool) -> str:
    """The p-value family that tests ``risk``; ``binary`` as seen on validation data.

    The choice is made from validation data, before calibration is opened: a test picked after a
    look at the calibration losses would not be valid. The binomial test stays valid should a
    calibration loss lie between 0 and 1 after all, because it counts every loss above zero.
    """
    weighted = risk.weights is not None
    return risk.statistic.family(risk.p_value, binary=binary, weighted=weighted)


def steering_family(risk: Risk, name: str) -> str:
    """The family whose largest passing mean steers searches: of means their own, otherwise the
    normal approximation. No test uses it."""
    return name if risk.statistic.steers and risk.weights is None else "normal"


def fewest_examples(risk: Risk, name: str, delta: float) -> int:
    """How many examples, all of them as good as can be, it takes to pass: with fewer, nothing can.

    In every group, for a statistic of groups.

    >>> from riskpilot import Quantile
    >>> fewest_examples(Risk("slow", 0.5, statistic=Quantile(0.95)), "binomial", 0.1)
    45
    """
    return smallest_n(name, risk.statistic.limit_of_zeros(risk.unit_limit), delta)


def log_p_for_order(risk: Risk, name: str, summary: AnySummary) -> FloatArray:
    """Approximate log p-values on validation data, shape (n_configs,): they order, nothing more."""
    family = steering_family(risk, name)
    return risk.statistic.log_p_for_order(summary, family, risk.unit_limit)


def starts(risk: Risk, summary: AnySummary) -> tuple[Start, ...]:
    """What validation losses say of the losses that `log_p` bets on, of every configuration.

    Empty where bets are on something else than the summary is about, such as weighted losses.
    """
    return () if risk.weights is not None else risk.statistic.starts(summary)


def log_p(
    risk: Risk,
    losses: RiskLosses,
    rows: Sequence[int],
    settings: TestSettings,
    *,
    limit: float | None = None,
) -> FloatArray:
    """log p-values of "the risk is above its limit" for some rows, shape (len(rows),).

    ``limit``: on the unit scale of the statistic; the risk's own where None.
    """
    if limit is None:
        unit = risk.unit_limit
        assert risk.limit is not None
        tested = Limit(unit, risk.limit)
    else:
        tested = Limit(limit, risk.from_unit(limit))
    return risk.statistic.log_p(losses, rows, settings, tested)
