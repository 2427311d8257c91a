"""The trials of a study as search, selection and status see them: finished, running, failed."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from riskpilot.errors import StudyError, shown
from riskpilot.study.kept.records import Record, record_of

# The configuration that a trial is about to try, for other workers to see before it has begun.
PROPOSAL_KEY = "riskpilot:proposal"


@dataclass(frozen=True)
class Finished:
    """The finished trials that carry losses, and their records, row by row.

    ``without_losses``: the numbers of finished trials that carry none, so that none of them can be
    tested. Plain Optuna leaves such trials, for example by ``study.tell(trial, values)``.
    """

    trials: Sequence[FrozenTrial]
    records: Sequence[Record]
    without_losses: tuple[int, ...]


def trials_of(
    study: optuna.Study, states: Container[TrialState] | None = None
) -> list[FrozenTrial]:
    """Read the trials of a study, or refuse a storage in which one of them is damaged."""
    try:
        return study.get_trials(deepcopy=False, states=states)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise StudyError(
            f"The trials of the study {study.study_name!r} must be as Optuna wrote them, but one "
            f"cannot be read ({type(error).__name__}: {shown(str(error))}). The storage was "
            f"changed from outside; restore it from a copy."
        ) from error


def finished(study: optuna.Study) -> Finished:
    """Read the finished trials of a study with their records."""
    return finished_among(trials_of(study, (TrialState.COMPLETE,)))


def finished_among(trials: Iterable[FrozenTrial]) -> Finished:
    """Read those of some trials that are finished, with their records."""
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    pairs = [(trial, record_of(trial)) for trial in complete]
    return Finished(
        [trial for trial, record in pairs if record is not None],
        [record for _, record in pairs if record is not None],
        tuple(trial.number for trial, record in pairs if record is None),
    )


def n_calibration_of(records: Sequence[Record], stated: int | None) -> int | None:
    """Return how many calibration examples the latest evaluation brought, else what was stated."""
    return next((r.n_calibration for r in reversed(records) if r.n_calibration), stated)


def split_trials(
    study: optuna.Study, current: int | None, search_space: Mapping[str, BaseDistribution]
) -> tuple[Finished, list[dict[str, Any]]]:
    """Read what a proposal may know of the other trials: results, and places to stay away from.

    The second part holds configurations that will bring nothing new: other workers evaluate them
    or are about to, or they failed and would probably fail again. Both count as if they had met
    their means, so that proposals leave their neighbourhood, too. ``current``: the number of the
    trial that asks.
    """
    trials = trials_of(study)
    # A trial whose worker died says nothing about its configuration, which another one tries.
    retried = {number for t in trials for number in t.system_attrs.get("retry_history", ())}
    known, pending = [], []
    for other in trials:
        proposed = other.system_attrs.get(PROPOSAL_KEY)
        params = {**(proposed if isinstance(proposed, Mapping) else {}), **other.params}
        if not search_space.keys() <= params.keys() or other.number == current:
            continue
        if other.state == TrialState.COMPLETE:
            known.append(other)
        elif other.state == TrialState.RUNNING or (
            other.state == TrialState.FAIL and other.number not in retried
        ):
            pending.append(params)
    return finished_among(known), pending
