"""Selecting from a study: calibration data is opened, and every use of it is recorded."""

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from riskpilot.certificate import Use
from riskpilot.errors import LossError, ProblemError, StudyError
from riskpilot.losses import LossMapping, check_disjoint
from riskpilot.plan import TestPlan, freeze_plan, run_test
from riskpilot.plots import Background
from riskpilot.problem import Problem
from riskpilot.procedures import Procedure, describe, fixed_sequence
from riskpilot.sampler import picture
from riskpilot.selection import Selection, check_limits, conclude
from riskpilot.store import (
    LEDGER_KEY,
    SETTINGS_KEY,
    calibration_of,
    one_row_calibration,
    problem_of,
    read_calibration,
    record_of,
    validation_of,
)

Calibrate = Callable[[FrozenTrial], LossMapping]


def select(
    study: optuna.Study,
    *,
    procedure: Procedure = fixed_sequence,
    calibrate: Calibrate | None = None,
    problem: Problem | None = None,
    spend: float = 1.0,
    seed: int = 0,
) -> Selection:
    """Test a study's candidates on calibration data and choose (Algorithm alg:selection).

    ``calibrate``: makes the calibration losses of one finished trial, for studies whose evaluations
    did not; it is called for the few candidates only. ``problem``: the study's problem with other
    limits or another delta, as a further question to the same calibration data. ``spend``: the
    share of delta that this question may use; shares of planned questions that sum to 1 make all
    their promises hold at once. The same question gives the same certificate again.
    """
    if not isinstance(study, optuna.Study):
        raise StudyError(
            f"select takes a study, but got a {type(study).__name__}: {study!r}. "
            f"Load it first: riskpilot.load_study(storage=...)."
        )
    stored = problem_of(study)
    asked = stored if problem is None else problem
    check_limits(asked)
    _check_question(stored, asked, spend)
    trials = [
        trial
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if record_of(trial) is not None
    ]
    if not trials:
        raise StudyError(
            "There is nothing to select from: no trial of the study is complete. Run "
            "study.optimize(riskpilot.objective(study, evaluate), n_trials=...) first."
        )
    records = [record for trial in trials if (record := record_of(trial)) is not None]
    tested = Problem(asked.risks, asked.minimize, asked.delta * spend)
    validation = validation_of(tested, records)
    plan = freeze_plan(validation, seed=seed)
    candidates = [trials[row] for row in plan.order]
    # Everything above saw validation alone. From here on calibration is open.
    tables = [_calibration(study, tested, trial, calibrate) for trial in candidates]
    use, created = _enter(study, plan, procedure, spend)
    result = run_test(plan, calibration_of(tested, tables), procedure, range(len(candidates)))
    return conclude(
        asked,
        validation,
        plan,
        result,
        procedure,
        [trial.params for trial in candidates],
        use=use,
        created=created,
        search_seed=study.user_attrs.get(SETTINGS_KEY, {}).get("seed"),
        search=picture(study, tested),
        background=Background(
            [trial.params for trial in trials], [trial.number for trial in trials], ledger(study)
        ),
    )


def ledger(study: optuna.Study) -> list[dict[str, Any]]:
    """Every question that has been put to the study's calibration data, oldest first."""
    return [dict(entry) for entry in study.user_attrs.get(LEDGER_KEY, [])]


def _calibration(
    study: optuna.Study, problem: Problem, trial: FrozenTrial, calibrate: Calibrate | None
) -> Mapping[str, Any]:
    if calibrate is None:
        return read_calibration(study, problem, trial)
    losses = calibrate(trial)
    if not isinstance(losses, Mapping):
        raise LossError(
            f"calibrate must return a mapping from names to losses, but it returned a "
            f'{type(losses).__name__}. Write return {{"{problem.names[0]}": array}}.'
        )
    table = one_row_calibration(problem, losses)
    record = record_of(trial)
    if record is not None:
        check_disjoint(validation_of(problem, [record]), calibration_of(problem, [table]))
    return table


def _enter(
    study: optuna.Study, plan: TestPlan, procedure: Procedure, spend: float
) -> tuple[Use, str]:
    """Record the question; the same one keeps its number and date."""
    question = hashlib.sha256(
        json.dumps([plan.digest, describe(procedure), spend], sort_keys=True).encode()
    ).hexdigest()
    entries = ledger(study)
    for entry in entries:
        if entry["question"] == question:
            return Use(entry["use"], spend), entry["created"]
    created = datetime.now(UTC).isoformat(timespec="seconds")
    number = len(entries) + 1
    entries.append(
        {
            "use": number,
            "question": question,
            "problem": str(plan.problem),
            "spend": spend,
            "created": created,
        }
    )
    study.set_user_attr(LEDGER_KEY, entries)
    return Use(number, spend), created


def _check_question(stored: Problem, asked: Problem, spend: float) -> None:
    if not isinstance(spend, int | float) or not 0 < spend <= 1:
        raise ProblemError(
            f"spend is the share of delta that a question may use and lies in (0, 1], but it is "
            f"{spend!r}. For two planned questions use spend=0.5 each."
        )
    same = (stored.names, stored.minimize) == (asked.names, asked.minimize)
    ranges = [(r.low, r.high, r.conditional) for r in stored.risks]
    if not same or ranges != [(r.low, r.high, r.conditional) for r in asked.risks]:
        raise ProblemError(
            f"A question to a study may change limits, tests and delta, not the quantities. "
            f"The study has: {stored} Asked: {asked}"
        )
