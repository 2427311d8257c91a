"""The labels of an update on their way into a watch: checked, weighed, each counted once."""

import time
from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from riskpilot.common import FloatArray, exact, is_name
from riskpilot.errors import LeakageError, LossError, shown
from riskpilot.losses import (
    DeployedLosses,
    LossMapping,
    number_array,
    read_deployed,
    read_deployed_scores,
    read_example_ids,
)
from riskpilot.watch.blocks import Block
from riskpilot.watch.record import Subject, WatchRecord

LONGEST_TIME = 40


class Given(NamedTuple):
    """What is given beside the losses of an update, as `Watch.update` names it."""

    groups: npt.ArrayLike | None = None
    weights: npt.ArrayLike | None = None
    ids: npt.ArrayLike | None = None
    judge: Mapping[str, Any] | None = None


class Taken(NamedTuple):
    """What an update brings: values, weights and scores of the new labels in each stream, shape
    (b, K); the blocks that they fill; the digests of new ids, of labels and of a judge's fresh
    examples; and how many labels were given."""

    values: FloatArray
    weights: FloatArray | None
    scores: FloatArray | None
    blocks: tuple[tuple[Block, ...], ...]
    digests: list[bytes]
    fresh: list[bytes]
    n: int


def read_update(record: WatchRecord, losses: LossMapping, given: Given) -> Taken:
    """Check the next labels; nothing of the watch is changed."""
    subject = record.subject
    labels = read_deployed(subject.problem, _with_groups(subject, losses, given.groups))
    n = len(next(iter(labels.values())).own)
    shares = _sampling_shares(subject, given.weights, n)
    ids = given.ids
    is_new, digests = (None, []) if ids is None else record.seen.new_among(ids, n)
    _check_never_fresh(record, ids, n)
    helped, fresh_digests = _judged(record, labels, given)
    if is_new is not None and not is_new.all():
        labels = {name: _only(part, is_new) for name, part in labels.items()}
        shares = None if shares is None else shares[is_new]
        helped = {name: (own[is_new], fresh) for name, (own, fresh) in helped.items()}
    columns, blocks = [], []
    for promise, filled in zip(subject.promises, record.blocks, strict=True):
        values, rest = promise.values(labels[promise.risk.name], filled)
        columns.append(values)
        blocks.append(tuple(rest))
    values = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
    return Taken(
        values,
        _weights(subject, labels, shares),
        _scores(record, helped, len(values)) if helped else None,
        tuple(blocks),
        digests,
        fresh_digests,
        n,
    )


def _judged(
    record: WatchRecord, labels: Mapping[str, DeployedLosses], given: Given
) -> tuple[dict[str, tuple[FloatArray, FloatArray]], list[bytes]]:
    """Check a judge's scores, and drop those of fresh examples that were used before."""
    if given.judge is None:
        return {}, []
    subject = record.subject
    ids = given.judge.get("ids") if isinstance(given.judge, Mapping) else None
    fresh_ids = read_example_ids(ids, "judge, ids")
    n_fresh = None if fresh_ids is None else len(fresh_ids)
    found = read_deployed_scores(subject.problem, given.judge, subject.judged, labels, n_fresh)
    if fresh_ids is None:
        return found, []
    labelled = read_example_ids(given.ids, "ids")
    shared = [] if labelled is None else np.intersect1d(labelled, fresh_ids).tolist()
    if shared:
        raise LeakageError(
            f"Fresh examples of a judge are not labelled, but {len(shared)} of them are, such as "
            f"{shown(shared[0])}. Keep labelled and fresh examples apart."
        )
    unlabelled = ~record.seen.known_among(fresh_ids, len(fresh_ids))
    is_new, digests = record.fresh.new_among(fresh_ids, len(fresh_ids))
    used = [one for one, ok in zip(digests, unlabelled[is_new], strict=True) if ok]
    is_new &= unlabelled
    return {name: (own, fresh[is_new]) for name, (own, fresh) in found.items()}, used


def _check_never_fresh(record: WatchRecord, ids: npt.ArrayLike | None, n: int) -> None:
    """Refuse labels of examples whose scores were used as fresh ones.

    Such a score is in the bets on other labels, which would no longer be independent of this one.
    """
    if ids is None:
        return
    was_fresh = record.fresh.known_among(ids, n)
    if was_fresh.any():
        first = np.asarray(ids, dtype=np.object_)[int(np.argmax(was_fresh))]
        raise LeakageError(
            f"Fresh examples of a judge are never labelled, but {int(was_fresh.sum()):,} of these "
            f"labels are of examples that were fresh in an earlier update, such as {shown(first)}. "
            f"Nothing of this update was counted. Leave these labels out, and give as fresh only "
            f"examples that will never be labelled."
        )


def _scores(
    record: WatchRecord, helped: Mapping[str, tuple[FloatArray, FloatArray]], n: int
) -> FloatArray:
    """Subtract from each label's score the mean of the fresh ones that belong to it alone.

    Fresh scores are shared out over the labels in an order that is drawn anew for every update: it
    must not depend on the scores, as the order in which they are stored may. Returns shape (n, K);
    0 where a label has no fresh score.
    """
    columns = []
    for promise in record.subject.promises:
        scores = np.zeros((n, len(promise.streams)))
        if promise.risk.name in helped and n:
            own, fresh = helped[promise.risk.name]
            order = np.random.default_rng([record.subject.entropy or 0, record.accounts.rows])
            pool = order.permutation(fresh)
            label = np.arange(len(pool)) * n // max(len(pool), 1)
            counts = ~np.isnan(pool)
            sizes = np.bincount(label[counts], minlength=n)
            sums = np.bincount(label[counts], weights=pool[counts], minlength=n)
            means = sums / np.maximum(sizes, 1)
            scores[:, 0] = np.where((sizes > 0) & ~np.isnan(own), own - means, 0.0)
        columns.append(scores)
    return np.concatenate(columns, axis=1)


def _with_groups(
    subject: Subject, losses: LossMapping, groups: npt.ArrayLike | None
) -> LossMapping:
    """Put groups that were given beside the losses under the name that the certificate has."""
    if groups is None or not isinstance(losses, Mapping):
        return losses
    problem = subject.problem
    names = sorted({risk.groups for risk in problem.risks if risk.needs_groups})
    if len(names) != 1 or names[0] in losses:
        known = ", ".join(names) or "none"
        raise LossError(
            f"groups= is for a certificate that knows groups under one name, which is not "
            f"among the losses, but this one knows {known}. Put them beside the losses: "
            f'{{"{problem.names[0]}": losses, "sex": array}}.'
        )
    return {**losses, names[0]: groups}


def _sampling_shares(subject: Subject, weights: npt.ArrayLike | None, n: int) -> FloatArray | None:
    """Return sampling weights as shares of the largest, if they are as declared."""
    largest = subject.largest_weight
    if (weights is None) != (largest is None):
        raise LossError(
            f"Weights for labels that were sampled with different probabilities are given with "
            f"every update or with none, as declared when the watch began, but weights are "
            f"{'missing' if weights is None else 'given'} here and largest_weight is "
            f"{largest}. Begin with Watch(certificate, largest_weight=1 / smallest "
            f"probability); weights that the certificate knows stand beside the losses."
        )
    if weights is None or largest is None:
        return None
    w = np.asarray(number_array(weights, "update: the weights"), dtype=np.float64)
    if w.shape != (n,) or not ((w >= 0) & (w <= largest)).all():
        raise LossError(
            f"Every example has a weight in [0, {exact(largest)}], one over the probability "
            f"with which it was chosen, but these have shape {w.shape} for {n} examples, or "
            f"one lies outside. Sample every example at least as often as declared, or begin a "
            f"new watch with a larger largest_weight."
        )
    return w / largest


def _weights(
    subject: Subject, labels: Mapping[str, DeployedLosses], shares: FloatArray | None
) -> FloatArray | None:
    """Make the weights of each label in each stream, shape (b, K); None where none has any."""
    if not subject.weighted:
        return None
    columns = []
    for promise in subject.promises:
        part = labels[promise.risk.name]
        w = np.ones(len(part.own)) if part.weights is None else part.weights
        w = w if shares is None else w * shares
        columns.append(np.repeat(w[:, None], len(promise.streams), axis=1))
    return np.concatenate(columns, axis=1)


def _only(labels: DeployedLosses, wanted: npt.NDArray[np.bool_]) -> DeployedLosses:
    """Keep some of the labels."""
    groups = labels.groups
    return DeployedLosses(
        own=labels.own[wanted],
        unit=labels.unit[wanted],
        groups=None if groups is None else [groups[i] for i in np.flatnonzero(wanted).tolist()],
        weights=None if labels.weights is None else labels.weights[wanted],
    )


def time_of(at: str | date | None) -> str:
    """Write when labels came."""
    if at is None:
        return _written(int(time.time()))
    text = at.isoformat() if isinstance(at, date) else at
    if not is_name(text) or len(text) > LONGEST_TIME:
        raise LossError(
            f"at says when the labels came, in at most {LONGEST_TIME} characters, but it is "
            f'{shown(at)}. Write at="2026-03-01", or leave it out for now.'
        )
    return text


@lru_cache(maxsize=1)  # labels that come one by one come many in a second
def _written(second: int) -> str:
    """Write a time, given in seconds since 1970."""
    return datetime.fromtimestamp(second, UTC).isoformat(timespec="seconds")
