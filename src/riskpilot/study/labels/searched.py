"""What a search has looked at: no label, and no fresh example of a judge, is of it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import optuna

from riskpilot.guarantee import Progress
from riskpilot.losses import (
    IDS,
    CalibrationLosses,
    FreshScores,
    TextArray,
    ValidationLosses,
    calibration_losses,
    check_disjoint,
    check_unseen,
    check_unseen_ids,
    parted,
)
from riskpilot.selection import FrozenPlan
from riskpilot.study.kept.earlier import earlier_of
from riskpilot.study.kept.seen_ids import seen_ids
from riskpilot.study.labels.kept import Batch
from riskpilot.study.questions.asking import Settled


@dataclass(frozen=True)
class Searched:
    """The validation examples by which candidates were found.

    ``validation``: their losses; ``ids``: theirs and those of the studies before, where known;
    ``digests``: by risk, of validation losses of the study that this one was started from.
    """

    validation: ValidationLosses
    ids: TextArray | None
    digests: Mapping[str, Collection[str]]

    def check_fresh(self, fresh: FreshScores | None) -> None:
        """Refuse fresh examples of a judge by which the search went: the candidates were chosen
        because they did well there, so that their mean score there is no longer fair."""
        if fresh is not None:
            check_unseen_ids(fresh.ids, self.ids, "Fresh examples of a judge")

    def check_batch(self, progress: Progress, batch: Batch) -> None:
        """Refuse a batch of labels of validation examples; ``progress``: with the batch.

        Losses are compared once there are as many as validation examples.
        """
        check_unseen_ids(batch.table.get(IDS), self.ids, "Labelled examples")
        k = self.validation.n_examples
        first = batch.candidates[0]  # all candidates of a batch have got the same labels
        if batch.start < k <= progress.labels[first]:
            for position in batch.candidates:
                row = progress.plan.order[position]
                check_disjoint(self.validation, _losses(progress, position, k), [row])

    def check_labels(self, progress: Progress) -> None:
        """Refuse labels that are all the examples by which an earlier study searched."""
        if not self.digests:
            return
        for position, n in enumerate(map(int, progress.labels)):
            if n:
                check_unseen(_losses(progress, position, n), self.digests)


def searched_by(source: Settled | FrozenPlan, study: optuna.Study | None) -> Searched:
    """Say what the search of a study looked at, or the one that led to a frozen plan."""
    if study is None:
        ids = source.ids if isinstance(source, FrozenPlan) else None
        return Searched(source.validation, ids, {})
    earlier = earlier_of(study)
    digests = {} if earlier is None else earlier.digests
    return Searched(source.validation, seen_ids(study), digests)


def _losses(progress: Progress, position: int, n: int) -> CalibrationLosses:
    """Return the losses of one candidate on the first n labels."""
    table, _ = parted(progress.table)
    rows: Sequence[int] = [position]
    return calibration_losses(
        progress.plan.problem,
        {name: v[rows, :n] if v.ndim == 2 else v[:n] for name, v in table.items()},
    )
