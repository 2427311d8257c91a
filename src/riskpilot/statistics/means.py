"""What statistics that are tested as means share: bets on the losses, counts, one mean of all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riskpilot.common import BoolArray, FloatArray, IntArray, Places
from riskpilot.statistics.families import Start, family_named
from riskpilot.statistics.kinds.base import Statistic
from riskpilot.statistics.samples import Groups, Limit, Sample, TestSettings
from riskpilot.statistics.sequential.following import Labels, Stream, Values
from riskpilot.statistics.sequential.streams import weighted as weigh
from riskpilot.statistics.summaries import AnySummary, Recorded, Summary, stacked
from riskpilot.statistics.sums import Gatherer, WeightedSums

Read = Callable[[slice, Places], FloatArray]
"""Numbers in [0, 1] of some of the rows, for some examples."""

_COUNTED = 250_000  # losses that are counted at a time


@dataclass(frozen=True)
class OneMean(Statistic):
    """A statistic that is the mean of one number per example."""

    takes_weights: ClassVar[bool] = True

    def gatherer(
        self, groups: Groups | None, weights: FloatArray | None, n_configs: int, m: int
    ) -> Gatherer | None:
        return None if weights is None else WeightedSums(weights, n_configs)

    def summary_of(self, records: Sequence[Recorded]) -> AnySummary:
        return summary_of_means(records)

    def limit_of_zeros(self, limit: float) -> float:
        return limit

    def starts(self, summary: AnySummary) -> tuple[Start, ...]:
        assert isinstance(summary, Summary)
        return (start_of(summary.mean, summary.standard_deviation, summary.n),)

    def log_p_for_order(self, summary: AnySummary, family: str, limit: float) -> FloatArray:
        assert isinstance(summary, Summary)
        return summary.log_p_for_order(family, limit)

    def streams(
        self, settings: TestSettings, limit: Limit, n_groups: int, conditional: bool
    ) -> tuple[Stream, ...]:
        return (
            stream_of(settings.family, limit.unit, lambda labels, at: labels.unit, conditional),
        )


def stream_of(test: str, limits: float | FloatArray, values: Values, conditional: bool) -> Stream:
    """A stream of values, weighed where the labels have weights."""

    def weighed(labels: Labels, at: Places) -> FloatArray:
        plain = values(labels, at)
        if labels.weights is None:
            return plain
        return weigh(
            plain, labels.weights, limits[at] if isinstance(limits, np.ndarray) else limits
        )

    return Stream(test, limits, weighed, conditional)


def summary_of_means(records: Sequence[Recorded]) -> Summary:
    """Join the records of a statistic without groups."""
    fields = ("n", "total", "squares", "above_zero", "binary", "threshold")
    return stacked([{name: getattr(row, name) for name in fields} for row in records])


def start_of(mean: FloatArray, deviation: FloatArray, n: IntArray) -> Start:
    """What bets begin with, from the mean, the deviation and the number of validation losses."""
    return Start(
        mean=np.asarray(np.round(np.clip(mean, 0.0, 1.0), 6), dtype=np.float64),
        variance=np.asarray(np.round(np.minimum(deviation**2, 0.25), 9), dtype=np.float64),
        n=np.asarray(n, dtype=np.float64),
    )


def log_p_of_mean(
    sample: Sample,
    sums: Summary,
    rows: Sequence[int],
    settings: TestSettings,
    limit: float,
    group: int | None = None,
) -> FloatArray:
    """Log p-values of "the mean is above the limit" for some rows, shape (len(rows),).

    ``sums``: those of the whole sample, or of the one group that is named.
    """
    from_sums = family_named(settings.family).log_p_from_sums
    if from_sums is not None:
        return from_sums(sums.of(rows), limit)
    at = np.asarray(rows, dtype=np.intp)

    def read(block: slice, columns: Places) -> FloatArray:
        return sample.unit_part(at[block], columns)

    return bet(sample, read, len(at), settings, limit, group=group)


def bet(
    sample: Sample,
    read: Read,
    n_rows: int,
    settings: TestSettings,
    limit: float | FloatArray,
    *,
    group: int | None = None,
    conditional: bool | None = None,
) -> FloatArray:
    """Bet on the examples in a shuffled order, of one group where one is named; shape (n_rows,).

    ``conditional``: whether numbers may be NaN; as the losses of the sample are by default.
    With weights w, as shares of the largest, the claim E[w L] / E[w] <= limit is that
    limit + w (L - limit) has a mean of at most the limit; and that lies in [0, 1] as the losses do.
    """
    family = family_named(settings.family)
    if family.log_p_by_parts is None:
        raise family.lacks("p-value from one loss after another")
    order = shuffled(sample.n_examples, settings.seed)
    if group is not None:
        assert sample.groups is not None
        order = order[sample.groups.codes[order] == group]
    base = np.broadcast_to(limit, (n_rows,))[:, None]

    def part(block: slice, times: slice) -> FloatArray:
        values = read(block, order[times])
        if sample.weights is None:
            return values
        return np.asarray(base[block] + sample.weights[order[times]] * (values - base[block]))

    return family.log_p_by_parts(
        part,
        (n_rows, len(order)),
        limit,
        settings.aim,
        settings.start(group),
        conditional=sample.may_be_nan if conditional is None else conditional,
    )


def shuffled(m: int, seed: int) -> Places:
    """The order in which betting sees m examples, one after the other. It must not depend on their
    losses, as the order in which they are stored may: people sort by label."""
    return np.random.default_rng(seed).permutation(m)


def count_losses(
    sample: Sample, rows: Sequence[int], *which: Callable[[FloatArray], BoolArray]
) -> list[IntArray]:
    """How many losses of each row are of each kind, in their own units; shape (len(rows),) each.

    On the unit scale losses that differ may become one number.
    """
    found = [np.empty(len(rows), np.int64) for _ in which]
    step = max(1, _COUNTED // sample.n_examples)
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        values = sample.rows(rows[block])
        for counts, kind in zip(found, which, strict=True):
            counts[block] = kind(values).sum(axis=1)
    return found


def is_there(values: FloatArray) -> BoolArray:
    """Which losses count."""
    return ~np.isnan(values)
