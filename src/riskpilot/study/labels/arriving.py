"""The next batch of labels, checked before anything is written: rows, losses, scores and ids."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from riskpilot.errors import LeakageError, LossError, shown
from riskpilot.guarantee import Progress
from riskpilot.losses import (
    IDS,
    LabelTable,
    LossMapping,
    parted,
    read_example_ids,
    read_label_scores,
    read_label_table,
)
from riskpilot.study.labels.kept import Batch


def read_batch(
    progress: Progress,
    losses: LossMapping,
    candidates: Sequence[int] | None,
    judge: Any,
    ids: Any,
) -> Batch | None:
    """Check the next labels of some candidates; None where none of these needs any."""
    positions = _positions(candidates, len(progress.plan.order))
    wanted = [row for row, position in enumerate(positions) if position in progress.needed]
    if not wanted:
        return None
    chosen = [positions[row] for row in wanted]
    start = _common_start(progress, chosen)
    plan = progress.plan
    most = progress.horizon - start
    table = read_label_table(
        plan.problem, losses, plan.groups, n_rows=len(positions), rows=wanted, most=most
    )
    shape = np.shape(losses[plan.problem.names[0]])
    names = () if progress.fresh is None else progress.fresh.names
    table |= read_label_scores(plan.problem, judge, names, table, shape, wanted)
    table |= _ids(progress, ids, start, shape[1], most)
    return Batch(start, tuple(chosen), table)


def read_kept(progress: Progress, batch: Batch) -> Batch | None:
    """Check a batch that was kept in a storage, as if it were given now."""
    losses, judge = parted(batch.table)
    return read_batch(progress, losses, batch.candidates, judge, batch.table.get(IDS))


def _positions(candidates: Sequence[int] | None, n: int) -> list[int]:
    """Return the positions that rows belong to, each once and each that of a candidate."""
    if candidates is None:
        return list(range(n))
    given = np.asarray(candidates)
    whole = given.ndim == 1 and given.dtype.kind in "iu" and given.size > 0
    named = set(given.tolist()) if whole else set()
    if not whole or not named <= set(range(n)) or len(named) < len(given):
        raise LossError(
            f"candidates are positions from 0 to {n - 1}, each named once, but they are "
            f"{shown(candidates)}. Use those of `needed`."
        )
    return [int(position) for position in given]


def _common_start(progress: Progress, chosen: Sequence[int]) -> int:
    """Return how many labels candidates have got, if it is the same number for all of them."""
    starts = sorted({int(start) for start in progress.labels[list(chosen)]})
    if len(starts) > 1:
        raise LossError(
            f"Candidates that get losses together must have got the same labels so far, but "
            f"some have {starts[0]:,} and others {starts[-1]:,}. Give those that are behind "
            f"their losses first: add(losses, candidates=[...])."
        )
    return starts[0]


def _ids(progress: Progress, given: Any, start: int, n_labels: int, most: int) -> LabelTable:
    """Check the ids of the next examples: each is labelled once, and none is a fresh one."""
    ids = read_example_ids(given, "ids")
    known = progress.table.get(IDS)
    if progress.n_labels and (ids is None) != (known is None):
        raise LossError(
            "ids tell labelled examples apart, so that every batch has them or none has, but this "
            f"one {'has none' if ids is None else 'has, and earlier ones had none'}. Give the ids "
            "with all labels: add(losses, ids=...)."
        )
    if ids is None:
        return {}
    if len(ids) != n_labels:
        raise LossError(
            f"ids holds one id for each of the {n_labels:,} labels, but there are {len(ids):,}. "
            f"Give the ids in the order of the losses."
        )
    seen = [] if known is None else known.tolist()
    twice = sorted(set(ids[max(len(seen) - start, 0) :].tolist()) & set(seen))
    if twice:
        raise LossError(
            f"An example is labelled once, but {shown(twice[0])} has been labelled before. Remove "
            f"it from this batch."
        )
    if progress.fresh is not None and progress.fresh.ids is not None:
        shared = np.intersect1d(ids, progress.fresh.ids)
        if len(shared):
            raise LeakageError(
                f"Fresh examples of a judge are never labelled, but {len(shared)} of them are, "
                f"such as {shown(str(shared[0]))}. Label other examples: the scores of fresh ones "
                f"were settled before the first label."
            )
    return {IDS: ids[:most]}
