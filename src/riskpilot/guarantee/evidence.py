"""log p-values of candidates from their calibration losses, for every statistic.

Every test is valid in finite samples. What must be fixed beforehand, the family, where a tail
begins and what bets begin with, comes from validation data; the order in which examples are seen
comes from a seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from riskpilot.errors import ProblemError
from riskpilot.losses import AnySummary, GroupSummary, RiskLosses, Summary, log_p_from_sums, pairs
from riskpilot.problem import Risk
from riskpilot.statistics import (
    CVaR,
    Difference,
    GroupGap,
    Mean,
    Quantile,
    Ratio,
    Start,
    WorstGroup,
    log_trinomial,
    p_values,
)

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Change = Callable[[FloatArray, slice], FloatArray]

_CHUNK = 4_000_000  # losses that are compared at a time
_COUNTED = 250_000  # losses that are counted at a time
_EXCEEDING = Risk("exceeding", conditional=True)  # whether a loss is above a limit: 0, 1 or NaN
_ALIKE = 1.1  # comparisons whose sizes differ by less are tested together


@dataclass(frozen=True)
class Settings:
    """What is fixed before calibration is opened.

    ``family``: of the p-value; ``aim``: the level at which p-values are to be sharp, one for all
    rows or one for each; ``seed``: of the order of the examples; ``starts``: what validation data
    says of the losses that are bet on, one for each group of a worst group, one otherwise; none
    where it says nothing.
    """

    family: str
    aim: float | FloatArray
    seed: int
    starts: tuple[Start, ...] = ()

    def start(self, group: int | None = None) -> Start | None:
        """What bets on the losses begin with, those of one group where one is named."""
        return self.starts[group or 0] if self.starts else None


def starts(risk: Risk, summary: AnySummary) -> tuple[Start, ...]:
    """What validation losses say of the losses that `log_p` bets on, of every configuration.

    Empty where bets are on something else than the summary is about: on weighted losses, or on
    differences between groups. Numbers are rounded, so that a plan does not hang on how another
    machine rounds its sums.
    """
    if risk.weights is not None:
        return ()
    match risk.statistic, summary:
        case WorstGroup(), GroupSummary():
            return tuple(
                _start(part.mean, part.standard_deviation, part.n) for part in summary.sums
            )
        case CVaR(level=level), Summary(threshold=t) if t is not None:
            share = (1 - level) / np.maximum(1 - t, 1e-12)  # from the tail's mean to its excess
            spread = share * summary.standard_deviation
            return (_start(share * (summary.mean - t), spread, summary.n),)
        case Mean() | Difference(), Summary():
            return (_start(summary.mean, summary.standard_deviation, summary.n),)
    return ()


def _start(mean: FloatArray, deviation: FloatArray, n: npt.NDArray[np.int64]) -> Start:
    return Start(
        mean=np.asarray(np.round(np.clip(mean, 0.0, 1.0), 6), dtype=np.float64),
        variance=np.asarray(np.round(np.minimum(deviation**2, 0.25), 9), dtype=np.float64),
        n=np.asarray(n, dtype=np.float64),
    )


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
    own_limit = risk.limit if limit is None else risk.from_unit(limit)
    limit = risk.unit_limit if limit is None else limit
    assert own_limit is not None
    match risk.statistic:
        case WorstGroup():
            return _worst_group(losses, rows, settings, limit)
        case GroupGap() | Ratio():
            return _contrast(risk, losses, rows, settings, limit)
        case Quantile(level=level):
            return _quantile(losses, rows, settings, own_limit, round(1 - level, 12))
        case CVaR(level=level):
            assert thresholds is not None
            return _tail_mean(losses, rows, settings, limit, level, thresholds)
    match settings.family:
        case "betting":
            return _betting(losses, rows, settings, limit)
        case "trinomial":
            return _difference(losses, rows, settings, limit)
        case "binomial" | "hoeffding" | "hoeffding_bentkus":
            assert isinstance(losses.summary, Summary)
            return log_p_from_sums(limit, settings.family, losses.summary.of(rows))
    raise _unknown(risk, settings.family)


def _unknown(risk: Risk, family: str) -> ProblemError:
    return ProblemError(
        f"Risk {risk.name!r}: there is no p-value family {family!r} for {risk.statistic}. "
        f'Use p_value="auto".'
    )


def _betting(
    losses: RiskLosses,
    rows: Sequence[int],
    settings: Settings,
    limit: float | FloatArray,
    *,
    group: int | None = None,
    change: Change | None = None,
) -> FloatArray:
    """Bets on the examples in a shuffled order, of one group where one is named; shape
    (len(rows),). ``change``: what is made of the losses of some of the rows beforehand.

    With weights w, as shares of the largest, the claim E[w L] / E[w] <= limit is that
    limit + w (L - limit) has a mean of at most the limit; and that lies in [0, 1] as the losses do.
    """
    order = shuffled(losses.n_examples, settings.seed)
    if group is not None:
        assert losses.groups is not None
        order = order[losses.groups.codes[order] == group]
    at = np.asarray(rows, dtype=np.intp)
    base = np.broadcast_to(limit, (len(at),))[:, None]

    def part(block: slice, times: slice) -> FloatArray:
        values = _unit_part(losses, at[block], order[times])
        if change is not None:
            values = change(values, block)
        if losses.weights is None:
            return values
        return np.asarray(base[block] + losses.weights[order[times]] * (values - base[block]))

    return p_values.log_betting_by_parts(
        part,
        (len(at), len(order)),
        limit,
        settings.aim,
        settings.start(group),
        conditional=losses.risk.conditional and not losses.packed,
    )


def _unit_part(
    losses: RiskLosses, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]
) -> FloatArray:
    """Losses on the unit scale, shape (len(rows), len(columns)), without unpacking all of a row."""
    values = losses.values
    assert values is not None
    if losses.packed:
        bits = values[np.ix_(rows, columns >> 3)] >> (7 - (columns & 7)).astype(np.uint8)
        return np.asarray(bits & 1, dtype=np.float64)
    chosen = replace(losses, values=values[np.ix_(rows, columns)], n_examples=len(columns))
    return chosen.unit_rows(range(len(rows)))


def _counts(
    losses: RiskLosses, rows: Sequence[int], *which: Callable[[FloatArray], BoolArray]
) -> list[npt.NDArray[np.int64]]:
    """How many losses of each row are of each kind, in their own units; shape (len(rows),) each.

    On the unit scale losses that differ may become one number.
    """
    found = [np.empty(len(rows), np.int64) for _ in which]
    step = max(1, _COUNTED // losses.n_examples)
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        values = losses.rows(rows[block])
        for counts, kind in zip(found, which, strict=True):
            counts[block] = kind(values).sum(axis=1)
    return found


def _is_there(values: FloatArray) -> BoolArray:
    return ~np.isnan(values)


def _quantile(
    losses: RiskLosses, rows: Sequence[int], settings: Settings, limit: float, share: float
) -> FloatArray:
    """The quantile is at most the limit where P(loss > limit) <= share.

    ``limit``: in the units of the losses, with which it is compared. A loss on it is not above it.
    """
    if losses.weights is None:
        above, n = _counts(losses, rows, lambda values: values > limit, _is_there)
        return p_values.log_binomial(above, n, share)
    is_above = np.empty((len(rows), losses.n_examples), np.float16)
    for i, row in enumerate(rows):
        values = losses.rows([row])[0]
        is_above[i] = np.where(_is_there(values), values > limit, np.nan)
    exceeding = replace(losses, risk=_EXCEEDING, values=is_above, packed=False)
    return _betting(exceeding, range(len(rows)), settings, share)


def _difference(
    losses: RiskLosses, rows: Sequence[int], settings: Settings, limit: float
) -> FloatArray:
    """Differences between the three values are rounded up: that raises their mean."""
    lowest = losses.risk.span[0]
    worse, better, n = _counts(
        losses, rows, lambda values: values > 0, lambda values: values <= lowest, _is_there
    )
    # 2 * 0.55 - 1 is 0.10000000000000009: a mean of 0.1 sits at the limit, not below it.
    bound = round(2 * limit - 1, 12)
    aims = np.broadcast_to(settings.aim, (len(rows),))
    found = np.empty(len(rows))
    for aim in np.unique(aims):
        some = aims == aim
        found[some] = log_trinomial(worse[some], better[some], n[some], bound, float(aim))
    return found


def shuffled(m: int, seed: int) -> npt.NDArray[np.intp]:
    """The order in which betting sees m examples, one after the other. It must not depend on their
    losses, as the order in which they are stored may: people sort by label."""
    return np.random.default_rng(seed).permutation(m)


def _worst_group(
    losses: RiskLosses, rows: Sequence[int], settings: Settings, limit: float
) -> FloatArray:
    """Every group must be shown to keep the limit, so that the largest p-value counts, uncorrected
    (an intersection-union test): under the null one group at least is above the limit."""
    summary, groups = losses.summary, losses.groups
    assert isinstance(summary, GroupSummary)
    match settings.family:
        case "betting":
            assert groups is not None
            places = range(len(groups.names))
            parts = [_betting(losses, rows, settings, limit, group=g) for g in places]
        case "binomial" | "hoeffding" | "hoeffding_bentkus":
            sums = summary.sums
            parts = [log_p_from_sums(limit, settings.family, part.of(rows)) for part in sums]
        case _:
            raise _unknown(losses.risk, settings.family)
    return np.asarray(np.max(parts, axis=0))


@dataclass(frozen=True)
class Contrast:
    """The claim a E[x] + b E[y] <= ``bound`` about the losses x and y, in [0, 1], of two groups.

    Each example of the smaller group stands against the mean of its own share of the larger one.
    That makes independent differences with the right mean and, by the shares, hardly any more
    variance than the difference of the two means; they are tested as the bounded losses they are.
    """

    a: float
    b: float
    bound: float

    def differences(self, x: FloatArray, y: FloatArray, n: int) -> FloatArray:
        """``n`` of them for each configuration, on the unit scale, shape (r, n).

        ``x``, ``y``: shapes (r, at least n), without NaN.
        """
        low, width = self._range
        values = self.a * _shares(x, n) + self.b * _shares(y, n)
        return np.clip((values - low) / width, 0.0, 1.0)

    def log_p(self, differences: FloatArray, delta: float | FloatArray) -> FloatArray:
        """log p-values of "the claim is wrong", shape (r,); ``delta`` as in `log_betting`."""
        low, width = self._range
        limit = (self.bound - low) / width
        if limit <= 0 or differences.shape[1] == 0:
            return np.zeros(len(differences))
        return p_values.log_betting(differences, min(limit, 1 - 1e-12), delta)

    @property
    def _range(self) -> tuple[float, float]:
        return min(self.a, 0.0) + min(self.b, 0.0), abs(self.a) + abs(self.b)


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
        claim = Contrast(1.0, -1.0, 2 * limit - 1 if statistic.directed else limit)
    else:
        claim = Contrast(-1.0, 1 - limit, 0.0)  # r y - x <= 0
    shuffle = shuffled(losses.n_examples, settings.seed)
    aims = np.broadcast_to(settings.aim, (len(rows),))
    members = [shuffle[groups.codes[shuffle] == g] for g in range(len(groups.names))]
    compared = pairs(statistic, groups.names)
    step = max(1, _CHUNK // (losses.n_examples * len(groups.names)))
    parts = []
    for start in range(0, len(rows), step):
        values, some = losses.unit_rows(rows[start : start + step]), aims[start : start + step]
        by_group = [values[:, columns] for columns in members]
        if np.isnan(values).any():  # every configuration has examples, and pairs, of its own
            found = [
                _of_one(claim, [part[i] for part in by_group], compared, some[i : i + 1])
                for i in range(len(values))
            ]
            parts.append(np.array(found))
        else:
            parts.append(_of_many(claim, by_group, compared, some))
    return np.concatenate(parts)


def _of_one(
    claim: Contrast, parts: list[FloatArray], compared: list[tuple[int, int]], aim: FloatArray
) -> float:
    counted = [part[~np.isnan(part)][None] for part in parts]
    return float(_of_many(claim, counted, compared, aim)[0])


def _of_many(
    claim: Contrast, parts: list[FloatArray], compared: list[tuple[int, int]], aims: FloatArray
) -> FloatArray:
    """Comparisons of about the same size are tested together, with as many differences as the
    smallest of them has examples: many short arrays would take longer than one."""
    if not compared:
        return np.zeros(len(parts[0]))  # nothing was shown
    sizes = {(i, j): min(parts[i].shape[1], parts[j].shape[1]) for i, j in compared}
    left = sorted(compared, key=lambda pair: sizes[pair])
    worst = np.full(len(parts[0]), -np.inf)
    while left:
        n = sizes[left[0]]
        together = [pair for pair in left if sizes[pair] <= _ALIKE * n]
        left = left[len(together) :]
        stacked = np.concatenate([claim.differences(parts[i], parts[j], n) for i, j in together])
        log_p = claim.log_p(stacked, np.tile(aims, len(together))).reshape(len(together), -1)
        np.maximum(worst, log_p.max(axis=0), out=worst)
    return worst


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

    def excess(values: FloatArray, block: slice) -> FloatArray:
        beyond = (values - t[block, None]) / room[block, None]
        return np.clip(beyond, 0.0, 1.0)  # keeps NaN

    between = np.clip(limits, 1e-12, 1 - 1e-12)
    tested = _betting(losses, rows, settings, between, change=excess)
    return np.where((limits > 0) & (t < 1), tested, 0.0)
