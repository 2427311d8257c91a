"""Calibration losses tested with the help of a judge: what it was worth is told with the result."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskpilot.common import digest_of
from riskpilot.common.arrays import FloatArray, IntArray, Places
from riskpilot.losses import (
    FreshScores,
    JudgeScores,
    LabelTable,
    RiskLosses,
    digest_of_numbers,
    score_name,
)
from riskpilot.problem import Risk
from riskpilot.statistics import Pool, labels_worth, log_judged, shuffled

_SIGNIFICANT = 2  # digits of a number of labels that is only about right


@dataclass(frozen=True)
class JudgeHelp:
    """What a judge did for a test.

    ``unlabelled``: how many fresh examples it scored, by risk; ``correlation``: of each candidate's
    losses and scores on the calibration examples, by risk; ``saved``: about how many labels the
    scores were worth, beyond those that there were, by candidate and risk; ``digest``: of all
    scores of the candidates.
    """

    unlabelled: dict[str, int]
    correlation: tuple[dict[str, float], ...]
    saved: tuple[dict[str, int], ...]
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """Write it for a certificate."""
        return {
            "unlabelled": dict(self.unlabelled),
            "correlation": [dict(one) for one in self.correlation],
            "saved": [dict(one) for one in self.saved],
            "digest": self.digest,
        }


def log_p_judged(
    risk: Risk,
    losses: RiskLosses,
    rows: Sequence[int],
    scores: JudgeScores,
    *,
    aims: Sequence[float],
    shuffle: int,
    binary: bool,
) -> FloatArray:
    """Log p-values of "the risk is above its limit" for some rows, shape (len(rows),).

    ``aims``, ``shuffle``: those of the plan; ``binary``: whether validation losses are 0/1.
    Labelled and unlabelled examples are seen in a shuffled order, as bets see them otherwise: it
    must not depend on losses or scores, as the order in which they are stored may.
    """
    order = shuffled(losses.n_examples, shuffle)
    labelled, unlabelled = scores.rows(risk.name, rows)
    values, labelled = losses.unit_rows(rows)[:, order], labelled[:, order]
    unlabelled = unlabelled[:, _pool_order(unlabelled.shape[1], shuffle)]
    found = np.empty(len(rows))
    for aim in sorted(set(aims)):
        some = np.asarray(aims) == aim
        one, other = (part if len(part) == 1 else part[some] for part in (labelled, unlabelled))
        found[some] = log_judged(values[some], one, other, risk.unit_limit, aim, binary=binary)
    return found


def pool_of(risk: Risk, fresh: FreshScores, *, shuffle: int, binary: bool) -> Pool:
    """Put the fresh scores for a risk in the order in which labels that arrive use them up."""
    scores = fresh.unit(risk)
    return Pool(scores[:, _pool_order(scores.shape[1], shuffle)], binary)


def _pool_order(size: int, shuffle: int) -> Places:
    """Return the order in which fresh scores are used; it is settled before any of them is seen."""
    return np.random.default_rng([shuffle, 1]).permutation(size)


def help_of_judge(
    names: Collection[str],
    losses: Mapping[str, RiskLosses],
    rows: Sequence[int],
    scores: JudgeScores,
) -> JudgeHelp:
    """Say what a judge was worth, candidate by candidate. It takes no part in the decision."""
    unlabelled = {name: int(scores.unlabelled[name].shape[1]) for name in names}
    pairs = {}
    for name in names:
        values = losses[name].unit_rows(rows)
        labelled, _ = scores.rows(name, rows)
        pairs[name] = list(zip(values, np.broadcast_to(labelled, values.shape), strict=True))
    n_labels = {name: max(len(both[0][0]), 1) for name, both in pairs.items()}
    return _help(pairs, unlabelled, n_labels, scores.digest(rows))


def help_with_labels(
    fresh: FreshScores, table: LabelTable, labels: IntArray, horizon: int
) -> JudgeHelp:
    """Say the same of labels that arrived; ``labels``: how many each candidate has got."""
    n = len(labels)
    unlabelled = {name: int(scores.shape[1]) for name, scores in fresh.scores.items()}
    pairs = {
        name: [(table[name][i, :t], table[score_name(name)][i, :t]) for i, t in enumerate(labels)]
        for name in fresh.names
    }
    content = [
        digest_of_numbers(scores).hex() for name in sorted(pairs) for _, scores in pairs[name]
    ]
    digest = digest_of([fresh.digest(n), content])
    return _help(pairs, unlabelled, dict.fromkeys(pairs, horizon), digest)


def _help(
    pairs: Mapping[str, Sequence[tuple[FloatArray, FloatArray]]],
    unlabelled: dict[str, int],
    n_labels: Mapping[str, int],
    digest: str,
) -> JudgeHelp:
    """Say what a judge was worth. ``pairs``: by risk, the losses and scores of each candidate;
    ``n_labels``: by risk, over how many labels the fresh scores are shared out."""
    n = len(next(iter(pairs.values())))
    correlation: list[dict[str, float]] = [{} for _ in range(n)]
    saved: list[dict[str, int]] = [{} for _ in range(n)]
    for name, both in pairs.items():
        for i, (losses, scores) in enumerate(both):
            counts = ~np.isnan(losses)
            r = _correlation(losses[counts], scores[counts])
            correlation[i][name] = r
            worth = labels_worth(r, unlabelled[name] / n_labels[name])
            saved[i][name] = _about(int(counts.sum()) * (min(worth, 1e6) - 1))
    return JudgeHelp(unlabelled, tuple(correlation), tuple(saved), digest)


def _correlation(one: FloatArray, other: FloatArray) -> float:
    """The correlation of two samples; 0 where one of them is constant."""
    if len(one) < 2 or one.std() == 0 or other.std() == 0:
        return 0.0
    return round(float(np.clip(np.corrcoef(one, other)[0, 1], -1, 1)), 6)


def _about(number: float) -> int:
    """Round to two digits.

    >>> _about(1234.5), _about(7.2), _about(0.0)
    (1200, 7, 0)
    """
    return int(float(f"{number:.{_SIGNIFICANT - 1}e}")) if number >= 10 else round(number)
