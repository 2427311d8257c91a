"""The trials of a study as search, selection and status see them: finished, running, failed."""

import weakref
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from riskpilot.study.kept.records import Record, any_record_of, has_record, record_of
from riskpilot.study.kept.remembered import Remembered
from riskpilot.study.kept.stopped import was_stopped
from riskpilot.study.storages import trials_of

__all__ = [
    "PROPOSAL_KEY",
    "Finished",
    "considered",
    "ended_before",
    "failed",
    "finished",
    "finished_among",
    "finished_with_losses",
    "has_losses",
    "n_calibration_of",
    "nothing_new",
    "space_of",
    "split_trials",
    "study_space",
    "trials_of",
    "tried",
    "was_evaluated",
]

# The configuration that a trial is about to try, for other workers to see before it has begun.
PROPOSAL_KEY = "riskpilot:proposal"
_TO_BE_EVALUATED = (TrialState.RUNNING, TrialState.WAITING)
_WITHOUT_RESULT = (TrialState.FAIL, TrialState.PRUNED)


@dataclass(frozen=True)
class Finished:
    """The finished trials that carry losses, and their records, row by row.

    ``without_losses``: the numbers of finished trials that carry none that can be used, so that
    none of them can be tested. Plain Optuna leaves such trials, for example by
    ``study.tell(trial, values)``.
    """

    trials: Sequence[FrozenTrial]
    records: Sequence[Record]
    without_losses: tuple[int, ...]


def study_space(
    study: optuna.Study, trials: Sequence[FrozenTrial] | None = None
) -> dict[str, BaseDistribution]:
    """Return the parameters that finished trials of a study have, with their ranges.

    ``trials``: all of the study, where they were read already. A trial need not have all of the
    parameters. One whose range is not the same in all trials that have it is left out.
    """
    return _study_spaces.setdefault(study, _SpaceSoFar()).after(
        trials_of(study) if trials is None else trials
    )


def space_of(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return the parameters that finished ones of some trials have, as `study_space` does."""
    return _SpaceSoFar().after(trials)


def changing_ranges(
    trials: Sequence[FrozenTrial],
) -> dict[str, tuple[BaseDistribution, BaseDistribution]]:
    """Return the parameters that `space_of` leaves out, each with two of its ranges."""
    first: dict[str, BaseDistribution] = {}
    changing: dict[str, tuple[BaseDistribution, BaseDistribution]] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            before = first.setdefault(name, distribution)
            if before != distribution:
                changing.setdefault(name, (before, distribution))
    return changing


class _SpaceSoFar:
    """The parameters of the trials that were looked at; each finished trial is looked at once."""

    def __init__(self) -> None:
        self._n_settled = 0  # all trials before are finished and were looked at
        self._found: dict[str, BaseDistribution] = {}
        self._changing: set[str] = set()

    def after(self, trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
        """Look at what is new among all trials, and return the parameters by their names."""
        n_settled = self._n_settled
        for place, trial in enumerate(trials[n_settled:], n_settled):
            if trial.state == TrialState.COMPLETE or was_stopped(trial):
                for name, distribution in trial.distributions.items():
                    if self._found.setdefault(name, distribution) != distribution:
                        self._changing.add(name)
            if trial.state.is_finished() and place == n_settled:
                n_settled += 1
        # Threads may look at the same trials at once, which finds the same.
        self._n_settled = n_settled
        found, changing = dict(self._found), set(self._changing)
        return {name: found[name] for name in sorted(found.keys() - changing)}


_study_spaces: weakref.WeakKeyDictionary[optuna.Study, _SpaceSoFar] = weakref.WeakKeyDictionary()


def finished(study: optuna.Study) -> Finished:
    """Read the finished trials of a study with their records."""
    return finished_among(trials_of(study, (TrialState.COMPLETE,)))


def considered(study: optuna.Study, numbers: Container[int]) -> Finished:
    """Read the finished trials among which a question chose, by their numbers, although the free
    objective of one may be too large for a search of today."""
    done = trials_of(study, (TrialState.COMPLETE,))
    return finished_among((trial for trial in done if trial.number in numbers), any_record_of)


def finished_among(
    trials: Iterable[FrozenTrial], read: Callable[[FrozenTrial], Record | None] = record_of
) -> Finished:
    """Read those of some trials that are finished, with their records; ``read``: reads one."""
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    pairs = [(trial, read(trial)) for trial in complete]
    return Finished(
        [trial for trial, record in pairs if record is not None],
        [record for _, record in pairs if record is not None],
        tuple(trial.number for trial, record in pairs if record is None),
    )


def n_calibration_of(records: Sequence[Record], stated: int | None) -> int | None:
    """Return how many calibration examples the latest evaluation brought, else what was stated."""
    return next((r.n_calibration for r in reversed(records) if r.n_calibration), stated)


def finished_with_losses(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Return those of some trials that are finished and carry losses."""
    return [trial for trial in trials if has_losses(trial)]


def has_losses(trial: FrozenTrial) -> bool:
    """Tell whether a trial is finished and carries losses, without reading its record."""
    return trial.state == TrialState.COMPLETE and has_record(trial)


def _was_evaluated(trial: FrozenTrial) -> bool:
    """Tell whether the search learns from a trial: it carries losses, or was stopped in a race."""
    return has_losses(trial) or was_stopped(trial)


was_evaluated = Remembered(_was_evaluated)


def nothing_new(
    trials: Sequence[FrozenTrial],
    is_whole: Callable[[Mapping[str, Any]], bool],
    known: Container[int | None],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the configurations under way, and those that failed.

    Proposals stay away from both. Other workers evaluate the first, are about to, or have just done
    so; or they wait in line, because a worker died. The second gave no result, because of an error
    or because they were pruned by hand, and would probably give none again. ``is_whole``: tells
    whether a configuration has all its parameters, which a trial that has just begun has not.
    ``known``: the numbers of the trials whose results are known, and of the one that asks.
    """
    retried = _retried(trials)
    under_way: list[dict[str, Any]] = []
    without: list[dict[str, Any]] = []
    for trial in trials:
        if trial.number in known:
            continue
        found = under_way
        if _gave_no_result(trial):
            found = without
        elif trial.state not in _TO_BE_EVALUATED and not was_evaluated(trial):
            continue
        proposed = trial.system_attrs.get(PROPOSAL_KEY)
        params = {**(proposed if isinstance(proposed, Mapping) else {}), **trial.params}
        if is_whole(params) and trial.number not in retried:
            found.append(params)
    return under_way, without


def tried(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials that were evaluated, and those that failed by what they had asked for."""
    return [*filter(was_evaluated, trials), *ended_before(trials)]


def ended_before(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials that failed by what they had asked for until then.

    Others failed before they had asked for all of their parameters, and say nothing of these: an
    evaluated trial that decided alike has more of them.
    """
    without = _without_result(trials)
    if not without:
        return []
    evaluated = list(filter(was_evaluated, trials))
    names = {frozenset(trial.params) for trial in evaluated}

    def is_cut_short(trial: FrozenTrial) -> bool:
        if not any(trial.params.keys() < some for some in names):
            return False
        decided = {
            name: value
            for name, value in trial.params.items()
            if not isinstance(trial.distributions[name], FloatDistribution)
        }
        return any(
            trial.params.keys() < other.params.keys() and decided.items() <= other.params.items()
            for other in evaluated
        )

    return [trial for trial in without if not is_cut_short(trial)]


def failed(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials that gave no result, and have the parameters of one that was evaluated.

    A trial may fail before it has asked for all of its parameters, and then says nothing of them.
    """
    whole = {frozenset(trial.params) for trial in trials if was_evaluated(trial)}
    return [trial for trial in _without_result(trials) if frozenset(trial.params) in whole]


def _without_result(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials that gave no result, and that no other one takes the place of."""
    without = list(filter(_gave_no_result, trials))
    retried = _retried(trials) if without else ()
    return [trial for trial in without if trial.number not in retried]


def _gave_no_result(trial: FrozenTrial) -> bool:
    """Tell whether a trial failed, or was pruned by hand, and not in a race."""
    return trial.state in _WITHOUT_RESULT and not was_evaluated(trial)


def _retried(trials: Iterable[FrozenTrial]) -> set[int]:
    """Return the numbers of the trials whose workers died, so that others take their places.

    Such a trial says nothing about its configuration.
    """
    histories = [trial.system_attrs.get("retry_history") for trial in trials]
    lists = [history for history in histories if isinstance(history, list)]
    return {number for numbers in lists for number in numbers if isinstance(number, int)}


def split_trials(
    study: optuna.Study, current: int | None, search_space: Mapping[str, BaseDistribution]
) -> tuple[Finished, list[dict[str, Any]]]:
    """Read what a proposal may know of the other trials: results, and places to stay away from.

    ``current``: the number of the trial that asks.
    """
    names = search_space.keys()
    trials = trials_of(study)
    others = [trial for trial in trials if trial.number != current]
    done = [trial for trial in others if has_losses(trial) and names <= trial.params.keys()]
    known = {current, *(trial.number for trial in done)}
    under_way, without = nothing_new(trials, lambda p: names <= p.keys(), known)
    return finished_among(done), under_way + without
