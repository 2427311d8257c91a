"""The evaluation of a trial, checked and recorded: by an objective, or told by its user."""

import contextlib
import warnings
from collections.abc import AsyncGenerator, Coroutine, Sequence
from typing import Any

import numpy.typing as npt
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from riskpilot.common import plain_configs
from riskpilot.errors import LossError, RiskpilotError, StudyError, shown, type_in_words
from riskpilot.guarantee import is_whole
from riskpilot.losses import Evaluation, ExampleIds, check_unseen_ids, read_ids
from riskpilot.problem import Problem
from riskpilot.study.kept.attributes import SAFE_KEY, check_same_ids, keep_ids, problem_of
from riskpilot.study.kept.earlier import earlier_of
from riskpilot.study.kept.records import Record, record_of, validation_of
from riskpilot.study.kept.seen_ids import earlier_ids, keep_seen, seen_ids
from riskpilot.study.kept.trial_losses import store_evaluation
from riskpilot.study.kept.trials import has_losses, trials_of, was_evaluated
from riskpilot.study.kept.unsent import UnsentRecords
from riskpilot.study.queued import check_queued
from riskpilot.study.space import check_drawn
from riskpilot.study.storages import (
    address_of,
    exclusive,
    file_of,
    fixed_params,
    get_trial,
    storage_of,
    trial_with_number,
    unless_away,
)

LARGEST_NUMBER = 2**31 - 1  # of a trial; a database keeps no larger one


def tell(
    study: optuna.Study,
    trial: optuna.Trial | int,
    evaluation: Evaluation,
    *,
    validation_ids: Sequence[Any] | npt.NDArray[Any] | None = None,
    calibration_ids: Sequence[Any] | npt.NDArray[Any] | None = None,
) -> None:
    """Finish a trial that ``study.ask()`` began with its evaluation, in a loop of one's own.

    This takes the place of ``study.tell``. Optuna sees the validation means of the risks and the
    free objective; calibration losses go to the artifact store unread. An evaluation that cannot be
    used leaves the trial running, so that it can be told again; to give up a trial, use Optuna's
    ``study.tell(trial, state=optuna.trial.TrialState.FAIL)``.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`.
    trial : optuna.Trial or int
        The trial that ``study.ask()`` returned, or its number, which outlives the process.
    evaluation : Evaluation
        What the configuration of the trial loses.
    validation_ids : sequence or array, optional
        The ids of the validation examples: one for each, no two alike, and the same in every
        trial.
    calibration_ids : sequence or array, optional
        The ids of the calibration examples likewise, none of which may be a validation example.

    Raises
    ------
    StudyError
        If the study was not made by riskpilot, the trial is not one of its running trials, a
        value was queued for it that its parameter cannot take, or it has no parameter although a
        configuration was queued for it or all other evaluations have some.
    LossError
        If the evaluation is none, or its losses cannot be used.
    LeakageError
        If validation and calibration share an id.

    Examples
    --------
    >>> import riskpilot as rp
    >>> study = rp.create_study(rp.Problem([rp.Risk("error", 0.8)], minimize="cost"))
    >>> trial = study.ask()
    >>> x = trial.suggest_float("x", 0, 1)
    >>> rp.tell(study, trial, rp.Evaluation({"error": [x, 0, 1], "cost": 1 - x}, {"error": [0, x]}))
    >>> study.trials[0].state.name
    'COMPLETE'
    """
    problem = problem_of(study)
    running = _running(study, trial)
    check_queued(running)
    if not running.params:
        end = f"end the trial, study.tell({running.number}, state=optuna.trial.TrialState.FAIL)"
        _check_suggested(study, running, f", or {end}")
    ids = read_ids(validation_ids, calibration_ids)
    recorder = Recorder(study, problem, ids)
    record = recorder.prepare(running, evaluation)
    # Of workers that tell the same trial one is heard, with its record and its values. A storage
    # that is away is not waited for before the record has a place.
    with contextlib.ExitStack() as turn:
        with unless_away():
            turn.enter_context(exclusive(study))
            running = _running(study, running.number)
        try:
            recorder.send(running, record)
            study.tell(running.number, optuna_values(problem, record))
        except (UpdateFinishedTrialError, ValueError) as error:
            if isinstance(error, RiskpilotError):
                raise
            _running(study, running.number)  # another one may have finished it meanwhile
            raise


class Recorder:
    """Writes the evaluations of a study's trials, after checks that all of them must pass."""

    def __init__(
        self, study: optuna.Study, problem: Problem, ids: ExampleIds | None = None
    ) -> None:
        self._study = study
        self._problem = problem
        self._ids = ExampleIds() if ids is None else ids
        self._unsent = UnsentRecords(study)
        self._earlier = earlier_of(study)
        if self._ids.calibration is not None:
            seen = seen_ids if self._ids.validation is None else earlier_ids
            check_unseen_ids(self._ids.calibration, seen(study), "Calibration examples")
        self._sizes: dict[str, int] = {}

    def write(self, trial: optuna.Trial | FrozenTrial, evaluation: object) -> Record:
        """Check and store the evaluation of a running trial, and note its record there."""
        record = self.prepare(trial, evaluation)
        self.send(trial, record)
        return record

    def prepare(self, trial: optuna.Trial | FrozenTrial, evaluation: object) -> Record:
        """Check and store the evaluation of a running trial, and return its record."""
        if SAFE_KEY in trial.user_attrs:
            with unless_away():
                self._check_safe(trial)
        return self.store(trial, evaluation)

    def send(self, trial: optuna.Trial | FrozenTrial, record: Record) -> None:
        """Note the record of a running trial there."""
        self._unsent.send(trial, record)

    def store(self, trial: optuna.Trial | FrozenTrial, evaluation: object) -> Record:
        """Check and store the evaluation of a trial, and return its record."""
        if not isinstance(evaluation, Evaluation):
            way_out = "Write Evaluation(validation={...}, calibration={...})."
            if isinstance(evaluation, Coroutine | AsyncGenerator):
                way_out = "Write def in place of async def, and asyncio.run(...) inside of it."
            if isinstance(evaluation, Coroutine):
                evaluation.close()  # Python would warn that nobody awaited it
            raise LossError(
                f"The evaluation of trial {trial.number} must be an Evaluation, but it is "
                f"{type_in_words(evaluation)}. {way_out}"
            )
        plain_configs([trial.params], StudyError)  # a certificate must be able to name it
        for name, value in trial.params.items():
            check_drawn(name, trial.distributions[name], value)
        sizes = self._known_sizes(with_calibration=evaluation.calibration is not None)
        with unless_away():
            check_same_ids(self._study, self._ids)
        record = store_evaluation(
            self._study, self._problem, evaluation, self._ids, **sizes, earlier=self._earlier
        )
        with unless_away():
            keep_ids(self._study, self._ids)
            keep_seen(self._study, self._ids)
        return record

    def _known_sizes(self, *, with_calibration: bool) -> dict[str, int]:
        """Return how many examples the first trials had, of those splits that a trial had."""
        # Asked until there is a finished trial with all that is compared, and never again.
        if len(self._sizes) < 1 + with_calibration:
            with unless_away():
                for trial in filter(has_losses, trials_of(self._study)):
                    record = record_of(trial)
                    assert record is not None
                    self._sizes.setdefault("n_validation", record.n_validation)
                    if record.n_calibration is not None:
                        self._sizes.setdefault("n_calibration", record.n_calibration)
                        break
        return self._sizes

    def _check_safe(self, trial: optuna.Trial | FrozenTrial) -> None:
        """Warn when the safe configuration names a parameter that its evaluation did not ask for.

        It may be a slip, or a parameter that only other trials have: both go on.
        """
        named = fixed_params(get_trial(self._study, trial))
        unknown = sorted(named.keys() - trial.params.keys())
        if unknown:
            suggested = ", ".join(sorted(trial.params)) or "none"
            warnings.warn(
                f"The safe configuration names {shown(unknown[0])}, but its evaluation, trial "
                f"{trial.number}, suggests no such parameter (it suggests {suggested}), and went "
                f"without it. Correct the name in create_study(..., safe=...).",
                UserWarning,
                stacklevel=4,
            )


def optuna_values(problem: Problem, record: Record) -> tuple[float, ...]:
    """Return what Optuna sees of a trial: the validation risks and the free objective."""
    return (*validation_of(problem, [record]).values[0].tolist(), record.free)


def is_of(study: optuna.Study, trial: optuna.Trial) -> bool:
    """Tell whether a trial is one of a study, which may have been loaded more than once."""
    if trial.study is study:
        return True
    own, other = storage_of(study), storage_of(trial.study)
    is_same_place = own is other or (
        (place := address_of(own) or file_of(own)) is not None
        and place == (address_of(other) or file_of(other))
    )
    return is_same_place and trial.study.study_name == study.study_name


def _running(study: optuna.Study, trial: optuna.Trial | int) -> FrozenTrial:
    """Return a running trial of the study, which is given by itself or by its number."""
    if isinstance(trial, optuna.Trial):
        found: FrozenTrial | None = get_trial(study, trial) if is_of(study, trial) else None
    elif is_whole(trial, 0, LARGEST_NUMBER):
        found = trial_with_number(study, int(trial))
    else:
        raise StudyError(
            f"tell takes a trial that study.ask() returned, or its number, but got {shown(trial)}. "
            f"Write trial = study.ask(), then riskpilot.tell(study, trial, evaluation)."
        )
    if found is None:
        raise StudyError(
            f"tell takes a trial of the study {study.study_name!r}, but this one, "
            f"{shown(trial)}, is not among them. Begin one with study.ask()."
        )
    if found.state != TrialState.RUNNING:
        raise StudyError(
            f"tell finishes a running trial, but trial {found.number} is "
            f"{found.state.name.lower()}. Begin another one with study.ask()."
        )
    return found


def check_parameters(study: optuna.Study, trial: optuna.Trial) -> None:
    """Refuse a trial of ``study.optimize`` that has no parameter where it must have had some."""
    with unless_away():
        if not trial.params:
            end = ", or a choice that says why there are none. The trial fails"
            _check_suggested(study, get_trial(study, trial), f"{end}, and the study can go on")


def _check_suggested(study: optuna.Study, trial: FrozenTrial, end: str) -> None:
    """Refuse a running trial without any parameter where an evaluation must have had some.

    Its suggestion was forgotten, or raised. Where a trial has some parameters, others may be
    missing because of a condition, which nobody knows here. ``end``: how the trial ends.
    """
    queued, others = fixed_params(trial), []
    if not queued:
        with unless_away():
            others = list(filter(was_evaluated, trials_of(study)))
    if queued or (others and all(other.params for other in others)):
        names = sorted(queued or others[-1].params)
        what = "queued for it" if queued else f"of trial {others[-1].number}"
        raise StudyError(
            f"A trial has the parameters of its evaluation, but trial {trial.number} has none, "
            f"while those {what} are {shown(names)[1:-1]}: nothing was suggested, or a suggestion "
            f"raised an error. Suggest them first, such as trial.suggest_float({names[0]!r}, ...)"
            f"{end}."
        )
