"""Where a study stands: trials, failures, budget, region, ledger. Calibration stays sealed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from riskpilot.common import for_programs, how_many
from riskpilot.common.arrays import FloatArray
from riskpilot.errors import shown
from riskpilot.guarantee import region_of
from riskpilot.problem import Problem
from riskpilot.search import Outlook
from riskpilot.study.forecast import outlook_of
from riskpilot.study.kept.attributes import ERROR_KEY, problem_of, settings_of
from riskpilot.study.kept.foretold import Foretold, foretold_of
from riskpilot.study.kept.records import validation_of
from riskpilot.study.kept.stopped import Stopped, stopped_of, was_stopped
from riskpilot.study.kept.trials import (
    Finished,
    finished_among,
    has_losses,
    n_calibration_of,
    trials_of,
)
from riskpilot.study.questions.question_ledger import ledger, outcomes
from riskpilot.study.searching import still
from riskpilot.study.storages import (
    has_heartbeat,
    seconds_between,
    seconds_running,
    silent_trials,
)

_DIED = "no error was recorded: its worker died"


@dataclass(frozen=True)
class Failure:
    """A trial that failed, and why."""

    number: int
    error: str
    config: dict[str, Any]


@dataclass(frozen=True)
class Running:
    """A trial that is being evaluated, or whose worker died.

    ``seconds``: the time since it began; ``is_silent``: whether its worker has not been heard of
    for so long that another one will take the trial over.
    """

    number: int
    seconds: float
    config: dict[str, Any]
    is_silent: bool


@dataclass(frozen=True)
class RacingStatus:
    """What races saved.

    ``stopped``: how many trials were stopped because nothing good could come of them; ``saved``:
    the share of all examples that was left out; ``ended``: how many trials were ended because
    enough was known of them.
    """

    stopped: int
    saved: float
    ended: int = 0

    def __str__(self) -> str:
        ended = f", and {self.ended:,} ended when enough was known" if self.ended else ""
        return (
            f"{self.saved:.0%} of the examples were not evaluated; "
            f"{how_many(self.stopped, 'trial was', 'trials were')} stopped early{ended}"
        )


@dataclass(frozen=True)
class RiskStatus:
    """A risk so far, on validation data.

    ``says``: the risk with its limit, in words; ``title``: what the numbers that follow are called,
    which are losses ("1 - recall"); ``loss_limit``: the largest loss allowed; ``lowest_loss``,
    ``highest_loss``: the range over the finished trials, of those that a race ended what is
    foretold; ``n_below_limit``: how many of them lie below the limit; ``loss_region``: the region
    of interest that the search is steered to.
    """

    name: str
    says: str
    title: str
    loss_limit: float | None
    lowest_loss: float
    highest_loss: float
    n_below_limit: int | None
    loss_region: tuple[float, float] | None


@dataclass(frozen=True)
class QuestionStatus:
    """A question of the ledger with its outcome.

    ``problem``: what was asked, in words; ``asked``: the same as ``Problem.to_dict`` writes it;
    ``groups``: the groups that limits were about; ``elsewhere``: questions of other studies to the
    same losses that came before; ``config``: what was chosen, None where nothing could be
    certified.
    """

    use: int
    problem: str
    asked: dict[str, Any]
    groups: dict[str, list[str]]
    elsewhere: list[dict[str, Any]]
    spend: float
    created: str
    digest: str
    answered: bool
    config: dict[str, Any] | None
    promise: str | None
    certificate: str | None


@dataclass(frozen=True)
class Status:
    """What `riskpilot status` shows.

    ``problem``: the problem in words; ``asked``: the same as ``Problem.to_dict`` writes it;
    ``states``: how many trials are in each state; ``left_out``: the numbers of finished trials that
    carry no losses, or a free objective that is too large, and cannot be selected; ``seconds``: the
    time that all trials took together, with their proposals; ``running``: the trials under way,
    longest first; ``heartbeats``: whether the storage knows which of them are alive; ``spent``: the
    shares of delta used so far; ``outlook``: what one more evaluation is expected to bring, where
    the search can tell; ``racing``: what races saved, where some trial was stopped.
    """

    study: str
    problem: str
    asked: dict[str, Any]
    states: dict[str, int]
    left_out: tuple[int, ...]
    seconds: float
    n_validation: int | None
    n_calibration: int | None
    risks: tuple[RiskStatus, ...]
    failures: tuple[Failure, ...]
    running: tuple[Running, ...]
    heartbeats: bool
    questions: tuple[QuestionStatus, ...]
    spent: float
    outlook: Outlook | None
    racing: RacingStatus | None

    @property
    def spent_in_words(self) -> str:
        """The share of delta that all questions together have spent."""
        share = f"{self.spent:g}"
        if share == "1":
            return "all of delta"
        return f"{share} times delta" if self.spent > 1 else f"{share} of delta"

    def range_in_words(self, risk: RiskStatus) -> str:
        """Write between which values a risk lies, and of how many trials it is foretold."""
        ended = 0 if self.racing is None else self.racing.ended
        foretold = f", foretold of {how_many(ended, 'trial')}" if ended else ""
        return f"{risk.lowest_loss:.4g} to {risk.highest_loss:.4g}{foretold}"

    def to_json(self) -> dict[str, Any]:
        """Write the status as plain JSON; what JSON does not have becomes a text."""
        written: dict[str, Any] = for_programs(asdict(self))
        return written


def study_status(study: optuna.Study) -> Status:
    """Report where a study stands, from what its trials say openly and from its ledger."""
    study = still(study)
    problem = problem_of(study)
    trials = trials_of(study)
    done = finished_among(trials)
    records = done.records
    n_calibration = n_calibration_of(records, settings_of(study).get("n_calibration"))
    counts = Counter(trial.state.name.lower() for trial in trials)
    questions = _questions(study)
    return Status(
        study=study.study_name,
        problem=str(problem),
        asked=problem.to_dict(),
        states={state.name.lower(): counts[state.name.lower()] for state in TrialState},
        left_out=done.without_losses,
        seconds=sum(_seconds(trial) for trial in trials),
        n_validation=records[-1].n_validation if records else None,
        n_calibration=n_calibration,
        risks=_risks(problem, done, n_calibration) if records else (),
        failures=tuple(_failure(t) for t in trials if t.state == TrialState.FAIL),
        running=_running(trials, silent_trials(study)),
        heartbeats=has_heartbeat(study),
        questions=questions,
        spent=sum(question.spend for question in questions),
        outlook=outlook_of(study),
        racing=_racing(trials, len(records)),
    )


def _racing(trials: Sequence[FrozenTrial], n_whole: int) -> RacingStatus | None:
    """Count what races saved, of all examples of stopped trials and of complete evaluations."""
    stopped = [stopped_of(trial) for trial in trials if was_stopped(trial)]
    notes = [foretold_of(trial) for trial in trials if has_losses(trial)]
    ended = [note for note in notes if note is not None]
    shortened: list[Stopped | Foretold] = [*stopped, *ended]
    if not shortened:
        return None
    k = shortened[0].n_examples
    left_out = sum(each.n_examples - each.n_evaluated for each in shortened)
    return RacingStatus(len(stopped), left_out / (k * (len(stopped) + n_whole)), len(ended))


def _running(trials: list[FrozenTrial], silent: frozenset[int]) -> tuple[Running, ...]:
    """List the trials under way, longest first; ``silent``: those whose workers are not heard."""
    found = [
        Running(trial.number, seconds_running(trial), dict(trial.params), trial.number in silent)
        for trial in trials
        if trial.state == TrialState.RUNNING and trial.datetime_start is not None
    ]
    return tuple(sorted(found, key=lambda trial: -trial.seconds))


def _seconds(trial: FrozenTrial) -> float:
    """Return how long the evaluation of a trial took; 0 for one that has not ended."""
    begin, end = trial.datetime_start, trial.datetime_complete
    return 0.0 if begin is None or end is None else seconds_between(begin, end)


def _failure(trial: FrozenTrial) -> Failure:
    """Describe a failed trial; one without a recorded error belonged to a worker that died."""
    error = trial.user_attrs.get(ERROR_KEY, _DIED)
    return Failure(trial.number, error if isinstance(error, str) else shown(error), trial.params)


def _risks(problem: Problem, done: Finished, n_calibration: int | None) -> tuple[RiskStatus, ...]:
    """Report every risk so far, on validation data."""
    validation = validation_of(problem, done.records)
    regions = region_of(validation, n_calibration)
    every = _without_caution(validation.values, done.trials)
    result = []
    for risk, region, values in zip(problem.risks, regions, every.T, strict=True):
        result.append(
            RiskStatus(
                name=risk.name,
                says=str(risk),
                title=risk.title,
                loss_limit=risk.limit,
                lowest_loss=float(values.min()),
                highest_loss=float(values.max()),
                n_below_limit=None if risk.limit is None else int((values <= risk.limit).sum()),
                loss_region=None if risk.limit is None else (float(region.low), float(region.high)),
            )
        )
    return tuple(result)


def _without_caution(values: FloatArray, trials: Sequence[FrozenTrial]) -> FloatArray:
    """Put in what was foretold of trials that a race ended; a search takes them for a bit worse.

    ``values``: those of the risks, one row for each of the trials, (n, c).
    """
    result = values.copy()
    for row, note in enumerate(map(foretold_of, trials)):
        if note is not None:
            result[row] = note.values[: values.shape[1]]
    return result


def _questions(study: optuna.Study) -> tuple[QuestionStatus, ...]:
    """List the questions of the ledger with their outcomes."""
    known = outcomes(study)
    result = []
    for entry in ledger(study):
        outcome = known.get(entry["use"], [{}])[-1]
        result.append(
            QuestionStatus(
                use=entry["use"],
                problem=entry["problem"],
                asked=entry["asked"],
                groups=entry["groups"],
                elsewhere=entry["elsewhere"],
                spend=entry["spend"],
                created=entry["created"],
                digest=entry["digest"],
                answered=bool(outcome),
                config=outcome.get("config"),
                promise=outcome.get("promise"),
                certificate=outcome.get("certificate"),
            )
        )
    return tuple(result)
