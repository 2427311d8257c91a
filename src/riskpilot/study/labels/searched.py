"""What a search has looked at: no label, and no fresh example of a judge, is of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from riskpilot.common import Array, BoolArray
from riskpilot.errors import StudyError
from riskpilot.guarantee import Progress
from riskpilot.losses import (
    IDS,
    CalibrationLosses,
    FreshScores,
    TextArray,
    ValidationLosses,
    calibration_losses,
    check_disjoint,
    check_order,
    check_unseen,
    check_unseen_ids,
    depths_of,
    parted,
    patterns_of,
    refuse_shared,
)
from riskpilot.selection import FrozenPlan
from riskpilot.study.as_tables import validation_table
from riskpilot.study.kept.earlier import Earlier, earlier_of
from riskpilot.study.kept.seen_ids import seen_ids
from riskpilot.study.labels.kept import Batch
from riskpilot.study.questions.asking import Settled


@dataclass(frozen=True)
class Searched:
    """The validation examples by which candidates were found.

    ``validation``: their losses, or their sums alone; ``ids``: theirs and those of the studies
    before, where known; ``earlier``: what is known of the study that this one was started
    from; ``read``: returns the losses of the candidates, as they were given, by risk;
    ``evaluated``: on how many of its first examples each candidate was evaluated, where losses of
    others are foretold.
    """

    validation: ValidationLosses
    ids: TextArray | None
    earlier: Earlier | None
    read: Callable[[], Mapping[str, Array]]
    evaluated: Sequence[int]

    def check_fresh(self, fresh: FreshScores | None) -> None:
        """Refuse fresh examples of a judge by which the search went: the candidates were chosen
        because they did well there, so that their mean score there is no longer fair."""
        if fresh is not None:
            check_unseen_ids(fresh.ids, self.ids, "Fresh examples of a judge")

    def check_batch(self, before: Progress, progress: Progress, batch: Batch) -> None:
        """Refuse a batch of labels of validation examples; ``progress``: with the batch.

        Losses are compared once there are as many as validation examples, and whenever a candidate
        passes.
        """
        check_unseen_ids(batch.table.get(IDS), self.ids, "Labelled examples")
        k = self.validation.n_examples
        first = batch.candidates[0]  # all candidates of a batch have got the same labels
        if batch.start < k <= progress.labels[first]:
            for position in batch.candidates:
                row = progress.plan.order[position]
                check_disjoint(self.validation, _losses(progress, position, k), [row])
        self._check_passed(progress, progress.passed & ~before.passed)

    def check_labels(self, progress: Progress) -> None:
        """Refuse labels that are the examples by which this study searched, or an earlier one."""
        self._check_passed(progress, progress.passed)
        earlier = self.earlier
        if earlier is None:
            return
        for position, n in enumerate(map(int, progress.labels)):
            if n:
                check_unseen(_losses(progress, position, n), earlier.digests, earlier.evaluated)

    def _check_passed(self, progress: Progress, passed: BoolArray) -> None:
        """Refuse the labels by which candidates passed, where the search has seen their losses.

        The losses of an example are compared together, of all candidates that have got them.
        """
        names = progress.plan.problem.names
        if not passed.any() or not set(names) <= self.read().keys():
            return
        for n in np.unique(progress.labels[passed]).tolist():
            labelled = np.flatnonzero(progress.labels >= n).tolist()
            for depth in depths_of(self.evaluated[row] for row in labelled):
                rows = [row for row in labelled if self.evaluated[row] >= depth]
                self._check_rows(progress, rows, depth, n)

    def _check_rows(self, progress: Progress, rows: Sequence[int], depth: int, n: int) -> None:
        """Refuse the first n labels of some candidates, where the search has seen their losses.

        ``depth``: on how many of its first examples each of them was evaluated.
        """
        names = progress.plan.problem.names
        seen, fresh = (
            patterns_of((table[name][row][:size] for name in names for row in rows), by_range=False)
            for table, size in ((self.read(), depth), (progress.table, n))
        )
        check_order(seen, fresh)
        refuse_shared(seen, fresh, " and ".join(map(repr, names)), self.validation.n_examples)


def searched_by(source: Settled | FrozenPlan, study: optuna.Study | None) -> Searched:
    """Say what the search of a study looked at, or the one that led to a frozen plan."""
    order, k = source.question.plan.order, source.validation.n_examples
    evaluated = [source.question.evaluated.get(row, k) for row in order]
    if isinstance(source, FrozenPlan):
        given = {n: v[list(order)] for n, v in source.given.items() if n in source.problem.names}
        return Searched(source.validation, source.ids, None, lambda: given, evaluated)
    assert study is not None
    earlier = earlier_of(study)
    trials = [source.trials[row] for row in order]
    read = cache(lambda: _validation(study, trials))
    return Searched(source.validation, seen_ids(study), earlier, read, evaluated)


def _validation(study: optuna.Study, trials: Sequence[FrozenTrial]) -> dict[str, Array]:
    """Read the validation losses of trials; nothing where they are no longer at hand."""
    try:
        return validation_table(study, trials)
    except StudyError:
        return {}


def _losses(progress: Progress, position: int, n: int) -> CalibrationLosses:
    """Return the losses of one candidate on the first n labels."""
    table, _ = parted(progress.table)
    rows: Sequence[int] = [position]
    return calibration_losses(
        progress.plan.problem,
        {name: v[rows, :n] if v.ndim == 2 else v[:n] for name, v in table.items()},
    )
