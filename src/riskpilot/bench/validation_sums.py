"""Validation losses of many configurations, kept as sums: all that a test plan needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskpilot.bench.tasks import Task
from riskpilot.common.arrays import FloatArray
from riskpilot.losses import RiskLosses, ValidationLosses, validation_losses
from riskpilot.problem import Problem
from riskpilot.statistics import AnySummary, GroupSummary, Summary


@dataclass(frozen=True)
class ValidationSums:
    """The validation losses of n configurations, whatever the limits.

    ``free``: shape (n,); ``changes``: by risk, how often losses change from one to the next.
    """

    summaries: dict[str, AnySummary]
    digests: dict[str, tuple[bytes, ...]]
    changes: dict[str, int]
    free: FloatArray
    n_examples: int

    def under(self, problem: Problem) -> ValidationLosses:
        """Return the same losses under a problem with limits."""
        risks = {
            risk.name: RiskLosses(
                risk,
                None,
                self.n_examples,
                self.summaries[risk.name],
                self.digests[risk.name],
                known_changes=self.changes[risk.name],
            )
            for risk in problem.risks
        }
        return ValidationLosses(problem, risks, self.free, None)


def sum_validation(task: Task, configs: Sequence[dict[str, Any]]) -> ValidationSums:
    """Evaluate configurations on validation one by one, so that a dense grid fits in memory."""
    rows = []
    for config in configs:
        table: dict[str, Any] = {k: v[None] for k, v in task.losses("validation", config).items()}
        table[task.problem.minimize] = np.array([task.free("validation", config, None)])
        rows.append(validation_losses(task.problem, table))
    names = task.problem.names
    return ValidationSums(
        summaries={name: _joined([row.risks[name].summary for row in rows]) for name in names},
        digests={name: tuple(row.risks[name].row_digests[0] for row in rows) for name in names},
        changes={name: max(row.risks[name].most_changes() for row in rows) for name in names},
        free=np.concatenate([row.free for row in rows]),
        n_examples=rows[0].n_examples,
    )


def _joined(parts: Sequence[AnySummary]) -> AnySummary:
    """Join the sums of single configurations."""
    first = parts[0]
    if isinstance(first, GroupSummary):
        groups = [part.sums for part in parts if isinstance(part, GroupSummary)]
        sums = tuple(_joined_plain(group) for group in zip(*groups, strict=True))
        return GroupSummary(first.statistic, first.names, sums)
    return _joined_plain([part for part in parts if isinstance(part, Summary)])


def _joined_plain(parts: Sequence[Summary]) -> Summary:
    """Join sums that are not split by groups."""
    return Summary(
        n=np.concatenate([part.n for part in parts]),
        total=np.concatenate([part.total for part in parts]),
        squares=np.concatenate([part.squares for part in parts]),
        above_zero=np.concatenate([part.above_zero for part in parts]),
        binary=all(part.binary for part in parts),
    )
