"""What labels that arrive one after another say of the candidates of a frozen plan."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from riskpilot.common import digest_of, how_many
from riskpilot.common.arrays import Array, BoolArray, FloatArray, IntArray
from riskpilot.errors import LossError, ProblemError
from riskpilot.guarantee.judging import help_with_labels, pool_of
from riskpilot.guarantee.procedures import fixed_sequence
from riskpilot.guarantee.sequential import boundary_steps, streams_of
from riskpilot.guarantee.testing import Labelling, TestPlan, TestResult
from riskpilot.losses import (
    FreshScores,
    JudgeMapping,
    LabelTable,
    LossMapping,
    digest_of_labels,
    labels_of,
    read_label_scores,
    read_label_table,
    some_labels,
    value_of,
)
from riskpilot.problem import Risk
from riskpilot.statistics import BOUNDARY, Followed, Stream, follow
from riskpilot.statistics.sequential.boundary import MOST_LABELS, check_labels

_LOOKS = 60  # points of a path in a picture


@dataclass(frozen=True)
class _Cohort:
    """Candidates that have got the same number of labels, with what is followed of each risk."""

    members: tuple[int, ...]
    labels: int
    followed: Mapping[str, tuple[Followed, ...]]

    def of(self, rows: Sequence[int]) -> "_Cohort":
        """Take some of the members alone."""
        return _Cohort(
            tuple(self.members[row] for row in rows),
            self.labels,
            {name: tuple(one.of(rows) for one in parts) for name, parts in self.followed.items()},
        )

    @property
    def log_p(self) -> FloatArray:
        """The log p-value of each member and risk, shape (members, c)."""
        return np.column_stack(
            [np.max([one.log_p for one in parts], axis=0) for parts in self.followed.values()]
        )

    @property
    def hopeless(self) -> BoolArray:
        """Which members can no longer be certified by their own losses."""
        every = [one.hopeless for parts in self.followed.values() for one in parts]
        return np.asarray(np.any(every, axis=0))

    @property
    def counted(self) -> IntArray:
        """How many labels counted, of a risk of groups in all of them; shape (members, c)."""
        return np.column_stack(
            [np.sum([one.counted for one in parts], axis=0) for parts in self.followed.values()]
        )


@dataclass(frozen=True)
class Progress:
    """What the labels so far say of the candidates of a plan.

    ``table``: the losses of all candidates in the order of the labels, NaN where a candidate has
    none (yet); ``looks``: after how many labels somebody looked; ``fresh``: a judge's scores of
    fresh examples, where one helps.
    """

    plan: TestPlan
    cohorts: tuple[_Cohort, ...]
    table: LabelTable
    looks: tuple[int, ...] = ()
    fresh: FreshScores | None = None

    @property
    def horizon(self) -> int:
        """The largest number of labels."""
        assert self.plan.horizon is not None
        return self.plan.horizon

    @property
    def labels(self) -> IntArray:
        """How many labels each candidate has got, shape (n,)."""
        found = np.zeros(len(self.plan.order), np.int64)
        for cohort in self.cohorts:
            found[list(cohort.members)] = cohort.labels
        return found

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return int(self.labels.max(initial=0))

    @property
    def log_p(self) -> FloatArray:
        """The log p-value of each candidate and risk, shape (n, c); valid at any time."""
        found = np.zeros((len(self.plan.order), len(self.plan.problem.risks)))
        for cohort in self.cohorts:
            found[list(cohort.members)] = cohort.log_p
        return found

    @property
    def passed(self) -> BoolArray:
        """Which candidates are certified, shape (n,)."""
        return fixed_sequence(self.log_p.max(axis=1), self.plan.problem.delta)

    @property
    def needed(self) -> tuple[int, ...]:
        """The positions of the candidates for which further losses could change something."""
        undecided = self.log_p.max(axis=1) >= np.log(self.plan.problem.delta)
        hopeless = np.zeros(len(undecided), dtype=bool)
        for cohort in self.cohorts:
            hopeless[list(cohort.members)] = cohort.hopeless
        # Behind a candidate that cannot be certified any more, nothing can be.
        out_of_reach = np.logical_or.accumulate(hopeless & undecided)
        return tuple(map(int, np.flatnonzero(undecided & ~out_of_reach)))

    def add(self, table: LabelTable, positions: Sequence[int]) -> "Progress":
        """Take the next labels of some candidates, which have got the same number so far.

        ``table``: as `read_label_table` and `read_label_scores` make it, with one row for each of
        the candidates.
        """
        start = int(self.labels[list(positions)][0])
        b = table[self.plan.problem.names[0]].shape[1]
        row_of = {position: row for row, position in enumerate(positions)}
        cohorts: list[_Cohort] = []
        for cohort in self.cohorts:
            kept = [i for i, member in enumerate(cohort.members) if member not in row_of]
            taken = [i for i, member in enumerate(cohort.members) if member in row_of]
            if kept:
                cohorts.append(cohort.of(kept) if taken else cohort)
            if taken:
                chosen = cohort.of(taken) if kept else cohort
                rows = [row_of[member] for member in chosen.members]
                cohorts.append(self._advanced(chosen, table, rows))
        looks = tuple(sorted({*self.looks, start + b}))
        return replace(
            self,
            cohorts=tuple(cohorts),
            table=self._written(table, positions, start),
            looks=looks,
        )

    def _advanced(self, cohort: _Cohort, table: LabelTable, rows: Sequence[int]) -> _Cohort:
        """Take the next labels of all members of a cohort, which are these rows of the table."""
        problem = self.plan.problem
        mine = some_labels(problem, table, rows, slice(None))
        followed = {}
        for risk in problem.risks:
            labels = labels_of(risk, mine, self.plan.groups.get(risk.name))
            followed[risk.name] = tuple(one.add(labels) for one in cohort.followed[risk.name])
        b = table[problem.names[0]].shape[1]
        return _Cohort(cohort.members, cohort.labels + b, followed)

    def _written(self, table: LabelTable, positions: Sequence[int], start: int) -> LabelTable:
        """Write the next labels of some candidates into the table of all."""
        problem = self.plan.problem
        stop = start + table[problem.names[0]].shape[1]
        known = self.n_labels
        result: LabelTable = {}
        for name, values in table.items():
            if values.ndim == 2:  # losses or scores, not what stands beside them
                width = max(known, stop)
                wider = np.full((len(self.plan.order), width), np.nan)
                if name in self.table:
                    wider[:, :known] = self.table[name]
                wider[list(positions), start:stop] = values
                result[name] = wider
                continue
            before = self.table[name] if name in self.table else values[:0]
            overlap = min(known, stop)
            if not _same(before[start:overlap], values[: max(overlap - start, 0)]):
                raise LossError(
                    f"labels: what stands beside the losses belongs to the label, but {name!r} is "
                    f"not what it was for the same labels of other candidates. Give the losses of "
                    f"the same examples in the same order."
                )
            result[name] = np.concatenate([before, values[max(known - start, 0) :]])
        return result

    def result(self) -> TestResult:
        """What the labels so far say, in the form in which every test says it."""
        plan, problem = self.plan, self.plan.problem
        labels = self.labels
        counted = np.zeros((len(plan.order), len(problem.risks)), np.int64)
        for cohort in self.cohorts:
            counted[list(cohort.members)] = cohort.counted
        parts = [
            digest_of_labels(problem, some_labels(problem, self.table, [i], slice(0, int(t))))
            for i, t in enumerate(labels)
            if t
        ]
        return TestResult(
            log_p=self.log_p,
            passed=self.passed,
            means=self._values(),
            n=counted,
            n_calibration=self.n_labels,
            calibration_digest=digest_of(parts),
            labelling=Labelling(
                self.horizon,
                labels,
                self.looks,
                {
                    risk.name: steps
                    for risk in problem.risks
                    if (steps := boundary_steps(plan, risk)) is not None
                },
                self.table,
                self.fresh,
                self.needed,
            ),
            judge=None
            if self.fresh is None
            else help_with_labels(self.fresh, self.table, labels, self.horizon),
        )

    def _values(self) -> FloatArray:
        """The value of each risk on the labels so far, shape (n, c), in the units of losses.

        The worst there can be where no label, or none of some group, has come.
        """
        problem, labels = self.plan.problem, self.labels
        found = np.empty((len(labels), len(problem.risks)))
        for i, t in enumerate(labels):
            mine = some_labels(problem, self.table, [i], slice(0, int(t))) if t else {}
            for j, risk in enumerate(problem.risks):
                found[i, j] = _value(risk, mine)
        return found


def begin_labels(plan: TestPlan, fresh: FreshScores | None = None) -> Progress:
    """Return the progress of a plan of `label_by_label` before the first label.

    ``fresh``: the scores that the plan was made with, where a judge helps.
    """
    n = len(plan.order)
    assert plan.horizon is not None
    check_boundaries(plan, plan.horizon)
    followed = {}
    for risk in plan.problem.risks:
        pool = None
        if fresh is not None and risk.name in plan.judged:
            pool = pool_of(risk, fresh, shuffle=plan.shuffle, binary=plan.judged[risk.name])
        followed[risk.name] = tuple(
            follow(stream, n, plan.problem.delta, plan.horizon, pool)
            for stream in streams_of(plan, risk)
        )
    return Progress(plan, (_Cohort(tuple(range(n)), 0, followed),), {}, fresh=fresh)


def begin_within_reach(plan: TestPlan, fresh: FreshScores | None = None) -> Progress:
    """Do what `begin_labels` does, but refuse a horizon with which nothing could be certified,
    whatever the labels will be."""
    progress = begin_labels(plan, fresh)
    if progress.needed:
        return progress
    (first,) = progress.cohorts
    for name, parts in first.followed.items():
        if not all(one.testable[0] for one in parts):
            raise ProblemError(
                f"A candidate is certified where all before it are, but of the first one the risk "
                f"{name!r} cannot pass label by label at any horizon: on validation data its tail "
                f"begins where the limit leaves no room. Raise the limit, or collect all labels "
                f"first and use select_from_losses."
            )

    wanted = _enough_labels(plan)
    rule = (
        f"The horizon must be long enough for something to pass, but with at most "
        f"{how_many(progress.horizon, 'label')} nothing can, whatever the losses are."
    )
    try:
        while not begin_labels(replace(plan, horizon=wanted), fresh).needed:
            wanted += 1  # where rounding decides
    except ProblemError:
        raise ProblemError(
            f"{rule} It would take {wanted:,}, and exact boundaries are computed for at most "
            f"{MOST_LABELS:,} in all. Raise the limit, or collect all labels first and use "
            f"select_from_losses."
        ) from None
    raise ProblemError(f"{rule} {wanted:,} would do: horizon={wanted}, or more.")


def check_boundaries(plan: TestPlan, horizon: int) -> None:
    """Refuse a horizon for which the exact boundaries of a plan would take too long to compute.

    Those of all labels are computed before the first one. A boundary that depends on which labels
    count is walked on with the labels, and needs a horizon within reach of one.
    """
    streams = _boundary_streams(plan)
    if streams:
        limits = {_limit_of(stream) for stream in streams if not stream.conditional}
        check_labels(horizon, max(len(limits), 1))


def _boundary_streams(plan: TestPlan) -> list[Stream]:
    """Return the streams of a plan that are held against an exact boundary."""
    every = (stream for risk in plan.problem.risks for stream in streams_of(plan, risk))
    return [stream for stream in every if stream.test == BOUNDARY]


def _limit_of(stream: Stream) -> float:
    """Return the limit of an exact boundary, which is the same for all candidates."""
    return float(np.max(stream.limits))


def _enough_labels(plan: TestPlan) -> int:
    """Compute with how many labels every boundary can be passed, up to rounding.

    Labels without any loss pass where (1 - limit)^m <= delta, since all of delta may be spent at
    the horizon; each group of a risk needs so many of its own.
    """
    log_delta = math.log(plan.problem.delta)
    enough = 1
    for risk in plan.problem.risks:
        streams = [stream for stream in streams_of(plan, risk) if stream.test == BOUNDARY]
        for stream in streams:
            labels = math.ceil(log_delta / math.log1p(-_limit_of(stream)))
            enough = max(enough, len(streams) * labels)
    return enough


def labels_again(
    plan: TestPlan,
    given: LossMapping,
    labels: Sequence[int],
    looks: Sequence[int],
    rows: Sequence[int],
    fresh: FreshScores | None = None,
    judge: JudgeMapping | None = None,
) -> Progress:
    """Compute the progress of a plan again from losses in the order of the labels.

    ``given``: the losses of some configurations, in which the candidates are ``rows``; ``labels``:
    how many each candidate got. What a candidate did not get may be anything. ``fresh``, ``judge``:
    where a judge helps, its scores of fresh examples for the candidates, and of labelled ones with
    rows as the losses have.
    """
    progress = begin_labels(plan, fresh)
    names = () if fresh is None else fresh.names
    for t in sorted({int(t) for t in labels if t}, reverse=True):
        positions = [i for i, own in enumerate(labels) if own == t]
        chosen = [rows[i] for i in positions]
        table = read_label_table(plan.problem, given, plan.groups, rows=chosen, most=t)
        shape = np.shape(given[plan.problem.names[0]])
        table |= read_label_scores(plan.problem, judge, names, table, shape, chosen)
        if table[plan.problem.names[0]].shape[1] < t:
            raise LossError(
                f"labels: {how_many(t, 'label was', 'labels were')} used, but there are only "
                f"{table[plan.problem.names[0]].shape[1]:,}. Bring all of them, in their order."
            )
        progress = progress.add(table, positions)
    return replace(progress, looks=tuple(looks))


def evidence_paths(
    plan: TestPlan, labelling: Labelling, positions: Sequence[int]
) -> dict[str, list[tuple[IntArray, FloatArray]]]:
    """Follow again how the evidence for some candidates grew, by risk and candidate.

    Returns after which labels it was looked at, and the log of one over the p-value as a share of
    the one that certifies.
    """
    progress = begin_labels(plan, labelling.fresh)
    problem = plan.problem
    last = int(labelling.labels[list(positions)].max(initial=0))
    ends = np.unique(np.linspace(0, last, min(last, _LOOKS) + 1).astype(np.int64))
    seen: list[list[int]] = [[0] for _ in positions]
    found: dict[str, list[list[float]]] = {
        name: [[0.0] for _ in positions] for name in problem.names
    }
    for start, stop in pairwise(ends.tolist()):
        for i, position in enumerate(positions):
            columns = slice(start, min(stop, int(labelling.labels[position])))
            if columns.start >= columns.stop:
                continue
            table = some_labels(problem, labelling.table, [position], columns)
            progress = progress.add(table, [position])
            seen[i].append(columns.stop)
            for j, name in enumerate(problem.names):
                found[name][i].append(float(progress.log_p[position, j] / np.log(problem.delta)))
    return {
        name: [(np.array(x), np.array(y)) for x, y in zip(seen, rows, strict=True)]
        for name, rows in found.items()
    }


def _value(risk: Risk, table: LabelTable) -> float:
    """The value of one candidate's risk; the worst there can be where it is not known yet."""
    if not table:
        return float(risk.top)
    try:
        return float(value_of(risk, {k: v for k, v in table.items() if k in _names(risk)})[0])
    except LossError:  # some group has no label yet
        return float(risk.top)


def _names(risk: Risk) -> tuple[str, ...]:
    return (risk.name, *risk.labels, *risk.numbers)


def _same(one: Array, other: Array) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
