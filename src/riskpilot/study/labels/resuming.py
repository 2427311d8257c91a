"""Where the labels of a study stand: its frozen plan, and the judge that they began with."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import optuna

from riskpilot.errors import ProblemError, StudyError
from riskpilot.guarantee import Progress, Question, TestPlan, fixed_sequence, question_digest
from riskpilot.losses import FreshScores, read_fresh
from riskpilot.selection import FrozenPlan
from riskpilot.study.as_tables import validation_table
from riskpilot.study.kept.seen_ids import seen_ids
from riskpilot.study.labels.kept import read_kept_fresh
from riskpilot.study.questions.asking import Settled, settle
from riskpilot.study.storages import is_in_memory, storage_of


@dataclass(frozen=True)
class Asked:
    """A question to the labels of a study, as a copy of a calibration carries it.

    ``question``: its digest; ``trials``: the numbers of those that are considered; ``judge``: its
    scores of fresh examples, where one helps.
    """

    question: str
    trials: tuple[int, ...]
    horizon: int
    judge: Mapping[str, Any] | None

    def check_same(self, study: optuna.Study, question: Question) -> None:
        """Refuse a study that leads to another question now."""
        if question_digest(question.content) != self.question:
            raise StudyError(
                f"A copy of a Calibration has the candidates of the one that was copied, but study "
                f"{study.study_name!r} leads to others now: its limits, trials or losses were "
                f"changed. Begin with what it has: Calibration(study, horizon={self.horizon})."
            )


def asked_of(study: optuna.Study, question: Question, progress: Progress) -> Asked:
    """Return what a copy needs to go on with the labels of a study, which has a storage of its own.

    A storage in memory would be copied as well: each copy could then take labels, and certify by
    them, that the ledger of the other one does not know.
    """
    if is_in_memory(storage_of(study)):
        raise StudyError(
            f"A Calibration records its labels in the storage of its study, which all copies "
            f"share, but study {study.study_name!r} lives in memory and would be copied as well. "
            f'Use create_study(..., storage="sqlite:///study.db"); or carry a file elsewhere: '
            f"save(path), then Calibration.load(path)."
        )
    assert question.trials is not None
    fresh = progress.fresh
    judge = None if fresh is None else {"unlabelled": dict(fresh.scores), "ids": fresh.ids}
    return Asked(question_digest(question.content), question.trials, progress.horizon, judge)


def settle_labels(study: optuna.Study, numbers: Collection[int] | None) -> Settled:
    """Freeze the plan of a study; ``numbers``: of the trials that are considered."""
    settled = settle(study, fixed_sequence, None, 1.0, 0, True, numbers)
    if settled.question.plan.judged:
        raise ProblemError(
            "The evaluations of this study bring a judge's scores with all their calibration "
            "losses, but here labels arrive one after another. Use select(study), or evaluate "
            "without judge= and give the scores to Calibration(study, horizon=..., judge=...)."
        )
    return settled


def frozen_copy(study: optuna.Study, settled: Settled) -> FrozenPlan:
    """Return the frozen plan of a study, with the validation losses of its trials."""
    given = validation_table(study, settled.trials)
    return FrozenPlan(settled.question, settled.validation, given, seen_ids(study))


def check_same_question(study: optuna.Study, entry: Mapping[str, Any], question: Question) -> None:
    """Refuse labels of another plan than the one that the validation losses lead to now.

    Its candidates, or their order, may be others: the labels would be counted for none of them, and
    the next ones would ask a second question about the same data. ``entry``: the question that the
    labels began with.
    """
    if question_digest(question.content) != entry["question"]:
        versions = ", ".join(f"{name} {version}" for name, version in entry["versions"].items())
        raise StudyError(
            f"The labels of study {study.study_name!r} were begun on {entry['created']} with "
            f"another plan than its validation losses lead to here. Go on with the versions that "
            f"they were begun with: {versions}."
        )


def fresh_of_entry(
    study: optuna.Study,
    entry: Mapping[str, Any],
    plan: TestPlan,
    judge: Mapping[str, Any] | None,
) -> FreshScores | None:
    """Return the fresh scores that the labels of a question began with, None without a judge.

    ``plan``: of the same trials; ``judge``: what is given now, which must be the same or nothing.
    """
    n = len(plan.order)
    kept = read_kept_fresh(study, entry["question"], plan.problem, n)
    given = read_fresh(plan.problem, judge, n)
    if given is None or (kept is not None and given.digest(n) == kept.digest(n)):
        return kept
    how = "without a judge" if kept is None else "with other scores of fresh examples"
    raise StudyError(
        f"What helps with labels is settled before the first of them, but those of study "
        f"{study.study_name!r} began {how}. Leave judge= out to go on as they began, or ask "
        f"another question with another horizon."
    )
