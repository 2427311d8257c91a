"""Where a study stands: trials, failures, budget, region, ledger. Calibration stays sealed."""

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from riskpilot.problem import Problem
from riskpilot.study.question_ledger import ledger, outcomes
from riskpilot.study.records import (
    ERROR_KEY,
    SETTINGS_KEY,
    Record,
    problem_of,
    record_of,
    validation_of,
)
from riskpilot.study.sampler import GuidedSampler
from riskpilot.study.storages import has_heartbeat

_DIED = "no error was recorded: its worker died"


@dataclass(frozen=True)
class Failure:
    """A trial that failed, and why."""

    number: int
    error: str
    config: dict[str, Any]


@dataclass(frozen=True)
class Running:
    """A trial that is being evaluated, or whose worker died: ``seconds`` since it began."""

    number: int
    seconds: float
    config: dict[str, Any]


@dataclass(frozen=True)
class RiskStatus:
    """A risk so far, on validation data: what it says, what its numbers are called, its limit, its
    range over the finished trials, how many of them lie below the limit, and the region of interest
    that the search is steered to."""

    name: str
    says: str
    title: str
    limit: float | None
    lowest: float
    highest: float
    n_below_limit: int | None
    region: tuple[float, float] | None


@dataclass(frozen=True)
class QuestionStatus:
    """A question of the ledger with its outcome; ``config`` None: nothing could be certified.

    ``problem``: what was asked, in words; ``asked``: the same as ``Problem.to_dict`` writes it;
    ``groups``: the groups that limits were about; ``elsewhere``: questions of other studies to the
    same losses that came before.
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
    """What `riskpilot status` shows. ``problem``: in words; ``asked``: the same as
    ``Problem.to_dict`` writes it. ``states``: how many trials are in each state; ``left_out``: the
    numbers of finished trials that carry no losses and cannot be selected; ``seconds``: the time
    that all evaluations took together; ``running``: longest first; ``heartbeats``: whether the
    storage knows which of them are alive; ``spent``: the shares of delta used so far."""

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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def study_status(study: optuna.Study) -> Status:
    """Where a study stands, from what its trials say openly and from its ledger."""
    problem = problem_of(study)
    trials = study.get_trials(deepcopy=False)
    finished = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    records = [record for trial in finished if (record := record_of(trial)) is not None]
    counts = Counter(trial.state.name.lower() for trial in trials)
    questions = _questions(study)
    return Status(
        study=study.study_name,
        problem=str(problem),
        asked=problem.to_dict(),
        states={state.name.lower(): counts[state.name.lower()] for state in TrialState},
        left_out=tuple(trial.number for trial in finished if record_of(trial) is None),
        seconds=sum(t.duration.total_seconds() for t in trials if t.duration is not None),
        n_validation=records[-1].n_validation if records else None,
        n_calibration=_n_calibration(study, records),
        risks=_risks(study, problem, records) if records else (),
        failures=tuple(_failure(t) for t in trials if t.state == TrialState.FAIL),
        running=_running(trials),
        heartbeats=has_heartbeat(study),
        questions=questions,
        spent=sum(question.spend for question in questions),
    )


def _running(trials: list[FrozenTrial]) -> tuple[Running, ...]:
    now = datetime.now()
    found = [
        Running(trial.number, (now - trial.datetime_start).total_seconds(), dict(trial.params))
        for trial in trials
        if trial.state == TrialState.RUNNING and trial.datetime_start is not None
    ]
    return tuple(sorted(found, key=lambda trial: -trial.seconds))


def _failure(trial: FrozenTrial) -> Failure:
    return Failure(trial.number, trial.user_attrs.get(ERROR_KEY, _DIED), dict(trial.params))


def _n_calibration(study: optuna.Study, records: list[Record]) -> int | None:
    known = [record.n_calibration for record in records if record.n_calibration is not None]
    stated: int | None = study.user_attrs.get(SETTINGS_KEY, {}).get("n_calibration")
    return known[-1] if known else stated


def _risks(study: optuna.Study, problem: Problem, records: list[Record]) -> tuple[RiskStatus, ...]:
    validation = validation_of(problem, records)
    regions = GuidedSampler(problem, seed=0).region(validation, _n_calibration(study, records))
    result = []
    for risk, region in zip(problem.risks, regions, strict=True):
        means = risk.from_unit(validation.risks[risk.name].summary.mean)
        result.append(
            RiskStatus(
                name=risk.name,
                says=str(risk),
                title=risk.title,
                limit=risk.limit,
                lowest=float(means.min()),
                highest=float(means.max()),
                n_below_limit=None if risk.limit is None else int((means <= risk.limit).sum()),
                region=None if risk.limit is None else (float(region.low), float(region.high)),
            )
        )
    return tuple(result)


def _questions(study: optuna.Study) -> tuple[QuestionStatus, ...]:
    known = outcomes(study)
    result = []
    for entry in ledger(study):
        outcome = known.get(entry["use"], {})
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
