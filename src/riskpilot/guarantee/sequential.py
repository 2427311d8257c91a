"""A frozen plan that is tested label by label; its answer holds whenever one stops.

Along the frozen order a candidate is certified when it and all before it have been shown to keep
every limit. The first candidate of the order that breaks a limit has to be shown to keep it,
wrongly, for any error to happen, and that has probability at most delta, over all labels up to the
horizon together. So nothing is lost by looking after every label, by stopping when one likes, or by
giving a candidate its losses later than others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from riskpilot.common import digest_of
from riskpilot.common.arrays import Array, BoolArray, FloatArray, IntArray
from riskpilot.errors import LossError, ProblemError, shown
from riskpilot.guarantee.procedures import fixed_sequence
from riskpilot.guarantee.testing import Labelling, TestPlan, TestResult
from riskpilot.losses import (
    LabelTable,
    LossMapping,
    digest_of_labels,
    labels_of,
    read_label_table,
    some_labels,
    value_of,
)
from riskpilot.problem import Risk
from riskpilot.statistics import BOUNDARY, Followed, Limit, exact_boundary, follow

MOST_LABELS = 5_000_000


def label_by_label(plan: TestPlan, horizon: int) -> TestPlan:
    """Make the same plan with tests that may be looked at after every label.

    Parameters
    ----------
    plan : TestPlan
        The candidates and their order, frozen from validation data.
    horizon : int
        The largest number of labels.

    Returns
    -------
    TestPlan
        With a family for each risk that holds at any time.

    Raises
    ------
    ProblemError
        If the horizon is no whole number of at least 1, or a risk cannot be tested this way.
    """
    m = check_horizon(horizon)
    families = {
        risk.name: risk.statistic.family_by_label(plan.families[risk.name], _limit(risk))
        for risk in plan.problem.risks
    }
    made = replace(plan, families=families, horizon=m)
    for risk in plan.problem.risks:  # a statistic that cannot be followed says so now
        risk.statistic.streams(
            made.settings(risk), _limit(risk), _n_groups(made, risk), risk.conditional
        )
    return made


def check_horizon(horizon: int) -> int:
    """Return the largest number of labels as a plain integer, or refuse it."""
    whole = isinstance(horizon, int | np.integer) and not isinstance(horizon, bool | np.timedelta64)
    if not whole or not 1 <= horizon <= MOST_LABELS:
        raise ProblemError(
            f"horizon is the largest number of labels, a whole number from 1 to {MOST_LABELS:,}, "
            f"but it is {shown(horizon)}. Name how many labels there can be at most, such as "
            f"horizon=1000."
        )
    return int(horizon)


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
    none (yet); ``looks``: after how many labels somebody looked.
    """

    plan: TestPlan
    cohorts: tuple[_Cohort, ...]
    table: LabelTable
    looks: tuple[int, ...] = ()

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

        ``table``: as `read_label_table` makes it, with one row for each of the candidates.
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
            if name in problem.names:
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
            ),
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


def begin_labels(plan: TestPlan) -> Progress:
    """Return the progress of a plan of `label_by_label` before the first label."""
    n = len(plan.order)
    assert plan.horizon is not None
    followed = {
        risk.name: tuple(
            follow(stream, n, plan.problem.delta, plan.horizon)
            for stream in risk.statistic.streams(
                plan.settings(risk), _limit(risk), _n_groups(plan, risk), risk.conditional
            )
        )
        for risk in plan.problem.risks
    }
    return Progress(plan, (_Cohort(tuple(range(n)), 0, followed),), {})


def labels_again(
    plan: TestPlan,
    given: LossMapping,
    labels: Sequence[int],
    looks: Sequence[int],
    rows: Sequence[int],
) -> Progress:
    """Compute the progress of a plan again from losses in the order of the labels.

    ``given``: the losses of some configurations, in which the candidates are ``rows``; ``labels``:
    how many each candidate got. What a candidate did not get may be anything.
    """
    progress = begin_labels(plan)
    for t in sorted({int(t) for t in labels if t}, reverse=True):
        positions = [i for i, own in enumerate(labels) if own == t]
        table = read_label_table(
            plan.problem, given, plan.groups, rows=[rows[i] for i in positions], most=t
        )
        if table[plan.problem.names[0]].shape[1] < t:
            raise LossError(
                f"labels: {t:,} labels were used, but there are only "
                f"{table[plan.problem.names[0]].shape[1]:,}. Bring all of them, in their order."
            )
        progress = progress.add(table, positions)
    return replace(progress, looks=tuple(looks))


def boundary_steps(plan: TestPlan, risk: Risk) -> tuple[int, ...] | None:
    """The first label at which a count of 0, 1, 2, ... crosses; None where there is no boundary, or
    one that depends on which labels count."""
    every_label = not risk.conditional and not risk.needs_groups
    if plan.families[risk.name] != BOUNDARY or not every_label or risk.statistic.reference_name:
        return None
    assert plan.horizon is not None
    stream = risk.statistic.streams(plan.settings(risk), _limit(risk), 0, False)[0]
    return steps_of_boundary(float(np.max(stream.limits)), plan.problem.delta, plan.horizon)


@cache
def steps_of_boundary(limit: float, delta: float, horizon: int) -> tuple[int, ...]:
    """The first label at which a count of 0, 1, 2, ... crosses; the limit is on the unit scale."""
    critical = exact_boundary(limit, delta, horizon).critical
    counts = np.arange(int(critical[-1]) + 1)
    return tuple(map(int, np.searchsorted(critical, counts) + 1))


def _limit(risk: Risk) -> Limit:
    unit = risk.unit_limit
    assert risk.limit is not None
    return Limit(unit, risk.limit)


def _n_groups(plan: TestPlan, risk: Risk) -> int:
    return len(plan.groups.get(risk.name, ()))


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
