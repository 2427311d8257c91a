"""Validation losses of many configurations, kept as sums: all that a test plan needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.bench.tasks import Task
from riskpilot.losses import (
    AnySummary,
    GroupSummary,
    RiskLosses,
    Summary,
    ValidationLosses,
    validation_losses,
)
from riskpilot.problem import Problem

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Seen:
    """What n configurations lose on validation, whatever the limits. ``free``: shape (n,)."""

    summaries: dict[str, AnySummary]
    digests: dict[str, tuple[bytes, ...]]
    free: FloatArray
    n_examples: int

    def under(self, problem: Problem) -> ValidationLosses:
        """The same losses under a problem with limits."""
        risks = {
            risk.name: RiskLosses(
                risk, None, self.n_examples, self.summaries[risk.name], self.digests[risk.name]
            )
            for risk in problem.risks
        }
        return ValidationLosses(problem, risks, self.free, None)

    def means(self, problem: Problem) -> FloatArray:
        """Validation means of the risks, shape (n, c)."""
        return np.column_stack(
            [risk.from_unit(self.summaries[risk.name].mean) for risk in problem.risks]
        )


def see(task: Task, configs: Sequence[dict[str, Any]]) -> Seen:
    """Evaluate configurations on validation one by one, so that a dense grid fits in memory."""
    rows = []
    for config in configs:
        table: dict[str, Any] = {k: v[None] for k, v in task.losses("validation", config).items()}
        table[task.problem.minimize] = np.array([task.free("validation", config, None)])
        rows.append(validation_losses(task.problem, table))
    names = task.problem.names
    return Seen(
        summaries={name: _joined([row.risks[name].summary for row in rows]) for name in names},
        digests={name: tuple(row.risks[name].row_digests[0] for row in rows) for name in names},
        free=np.concatenate([row.free for row in rows]),
        n_examples=rows[0].n_examples,
    )


def _joined(parts: Sequence[AnySummary]) -> AnySummary:
    first = parts[0]
    if isinstance(first, GroupSummary):
        groups = [part.sums for part in parts if isinstance(part, GroupSummary)]
        sums = tuple(_means(group) for group in zip(*groups, strict=True))
        return GroupSummary(first.statistic, first.names, sums)
    return _means([part for part in parts if isinstance(part, Summary)])


def _means(parts: Sequence[Summary]) -> Summary:
    return Summary(
        n=np.concatenate([part.n for part in parts]),
        total=np.concatenate([part.total for part in parts]),
        squares=np.concatenate([part.squares for part in parts]),
        above_zero=np.concatenate([part.above_zero for part in parts]),
        binary=all(part.binary for part in parts),
    )
