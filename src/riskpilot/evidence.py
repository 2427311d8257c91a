"""log p-values of candidates from their calibration losses, for every statistic.

Every test is valid in finite samples. What must be fixed beforehand, the family and where a tail
begins, comes from validation data; the order in which examples are seen comes from a seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from riskpilot import p_values
from riskpilot.losses import RiskLosses
from riskpilot.measures import CVaR, GroupGap, Quantile, Ratio, WorstGroup
from riskpilot.problem import Risk
from riskpilot.statistics import GroupSummary, Summary, log_p_from_sums, pairs

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """What is fixed before calibration is opened. ``family``: of the p-value; ``delta``: the level
    that bets play for; ``seed``: of the order of the examples."""

    family: str
    delta: float
    seed: int


def log_p(
    risk: Risk,
    losses: RiskLosses,
    rows: Sequence[int],
    settings: Settings,
    *,
    thresholds: FloatArray | None = None,
    limit: float | None = None,
) -> FloatArray:
    """log p-values of "the risk is above its limit" for some rows, shape (len(rows),).

    ``thresholds``: where the tail of each row begins, on the unit scale. ``limit``: on the unit
    scale of the statistic; the risk's own where None.
    """
    limit = risk.unit_limit if limit is None else limit
    match risk.statistic:
        case WorstGroup():
            return _worst_group(losses, rows, settings, limit)
        case GroupGap() | Ratio():
            return _contrast(risk, losses, rows, settings, limit)
        case Quantile(level=level):
            values = losses.unit_rows(rows)
            above, n = (values > limit).sum(axis=1), (~np.isnan(values)).sum(axis=1)
            # The quantile is at most the limit where P(loss > limit) <= 1 - level.
            return p_values.log_binomial(above, n, round(1 - level, 12))
        case CVaR(level=level):
            assert thresholds is not None
            return _tail_mean(losses, rows, settings, limit, level, thresholds)
    if settings.family != "betting":
        assert isinstance(losses.summary, Summary)
        return log_p_from_sums(limit, settings.family, losses.summary)[list(rows)]
    values = losses.unit_rows(rows)[:, _shuffle(losses.n_examples, settings.seed)]
    return p_values.log_betting(values, limit, settings.delta)


def _shuffle(m: int, seed: int) -> npt.NDArray[np.intp]:
    """Betting sees the examples one after the other. A fixed shuffle makes it indifferent to the
    order in which they were stored, which may follow the label or the loss."""
    return np.random.default_rng(seed).permutation(m)


def _worst_group(
    losses: RiskLosses, rows: Sequence[int], settings: Settings, limit: float
) -> FloatArray:
    """Every group must be shown to keep the limit, so that the largest p-value counts, uncorrected
    (an intersection-union test): under the null one group at least is above the limit."""
    summary, groups = losses.summary, losses.groups
    assert isinstance(summary, GroupSummary)
    if settings.family != "betting":
        parts = [log_p_from_sums(limit, settings.family, part) for part in summary.sums]
        return np.asarray(np.max(parts, axis=0)[list(rows)])
    assert groups is not None
    values = losses.unit_rows(rows)
    shuffle = _shuffle(losses.n_examples, settings.seed)
    parts = []
    for g in range(len(groups.names)):
        members = shuffle[groups.codes[shuffle] == g]
        parts.append(p_values.log_betting(values[:, members], limit, settings.delta))
    return np.asarray(np.max(parts, axis=0))


def contrast_log_p(
    x: FloatArray, y: FloatArray, a: float, b: float, bound: float, delta: float
) -> FloatArray:
    """log p-values of "a E[x] + b E[y] is above ``bound``", shape (r,).

    ``x``, ``y``: losses in [0, 1] of two groups, shapes (r, n) and (r, k), without NaN. Each
    example of the smaller group stands against the mean of its own share of the larger one. That
    makes independent differences with the right mean and, by the shares, hardly any more variance
    than the difference of the two means; they are tested as the bounded losses that they are.
    """
    n = min(x.shape[1], y.shape[1])
    low = min(a, 0.0) + min(b, 0.0)
    width = abs(a) + abs(b)
    limit = (bound - low) / width
    if n == 0 or limit <= 0:
        return np.zeros(len(x))
    values = a * _shares(x, n) + b * _shares(y, n)
    unit = np.clip((values - low) / width, 0.0, 1.0)
    return p_values.log_betting(unit, min(limit, 1 - 1e-12), delta)


def _shares(values: FloatArray, n: int) -> FloatArray:
    """Means of n shares of the columns, as equal in size as can be; shape (r, n)."""
    k = values.shape[1]
    if k == n:
        return values
    starts = np.arange(n) * k // n
    sums: FloatArray = np.add.reduceat(values, starts, axis=1)
    return np.asarray(sums / np.diff(starts, append=k))


def _contrast(
    risk: Risk, losses: RiskLosses, rows: Sequence[int], settings: Settings, limit: float
) -> FloatArray:
    """Every comparison of two groups must be shown, so that the largest p-value counts."""
    groups, statistic = losses.groups, risk.statistic
    assert groups is not None
    assert isinstance(statistic, GroupGap | Ratio)
    if isinstance(statistic, GroupGap):
        gap = 2 * limit - 1 if statistic.directed else limit
        contrast = partial(contrast_log_p, a=1.0, b=-1.0, bound=gap, delta=settings.delta)
    else:  # r y - x <= 0
        contrast = partial(contrast_log_p, a=-1.0, b=1 - limit, bound=0.0, delta=settings.delta)
    values = losses.unit_rows(rows)
    shuffle = _shuffle(losses.n_examples, settings.seed)
    parts = [values[:, shuffle[groups.codes[shuffle] == g]] for g in range(len(groups.names))]
    found = []
    for i, j in pairs(statistic, len(groups.names)):
        x, y = parts[i], parts[j]
        if np.isnan(x).any() or np.isnan(y).any():
            found.append(_row_by_row(contrast, x, y))
        else:
            found.append(contrast(x, y))
    return np.asarray(np.max(found, axis=0))


def _row_by_row(contrast: Callable[..., FloatArray], x: FloatArray, y: FloatArray) -> FloatArray:
    """Where some losses do not count, every configuration has pairs of its own."""
    return np.array(
        [
            contrast(one[~np.isnan(one)][None], other[~np.isnan(other)][None])[0]
            for one, other in zip(x, y, strict=True)
        ]
    )


def _tail_mean(
    losses: RiskLosses,
    rows: Sequence[int],
    settings: Settings,
    limit: float,
    level: float,
    thresholds: FloatArray,
) -> FloatArray:
    """For any t fixed beforehand CVaR <= t + E[(L - t)+] / (1 - level), so that a limit on that
    mean is a limit on the CVaR; at the quantile the two are equal (Rockafellar and Uryasev)."""
    t = np.asarray(thresholds)
    room = np.maximum(1 - t, 1e-12)
    limits = (limit - t) * (1 - level) / room
    values = losses.unit_rows(rows)[:, _shuffle(losses.n_examples, settings.seed)]
    excess = np.clip((values - t[:, None]) / room[:, None], 0.0, 1.0)  # NaN stays NaN
    tested = p_values.log_betting(excess, np.clip(limits, 1e-12, 1 - 1e-12), settings.delta)
    return np.where((limits > 0) & (t < 1), tested, 0.0)
