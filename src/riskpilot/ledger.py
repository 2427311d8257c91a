"""Selecting from a study: calibration data is opened, and every use of it is recorded."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import optuna
from optuna.search_space import intersection_search_space
from optuna.trial import FrozenTrial, TrialState

from riskpilot.certificate import Use
from riskpilot.errors import LossError, ProblemError, StudyError
from riskpilot.losses import LossMapping
from riskpilot.plan import TestPlan, freeze_plan, run_test
from riskpilot.plots import Background
from riskpilot.problem import Problem, Risk
from riskpilot.procedures import Procedure, describe, fixed_sequence
from riskpilot.sampler import picture, smoothed_risks
from riskpilot.selection import Selection, check_limits, conclude
from riskpilot.storages import exclusive
from riskpilot.store import (
    LEDGER_KEY,
    SETTINGS_KEY,
    calibration_of,
    check_validation_size,
    has_calibration,
    problem_of,
    read_calibration,
    record_of,
    validation_of,
    write_calibration,
)

Calibrate = Callable[[FrozenTrial], LossMapping]

_HEAD_KEY = f"{LEDGER_KEY}:head"
_OUTCOME_KEY = f"{LEDGER_KEY}:outcome:"


def select(
    study: optuna.Study,
    *,
    procedure: Procedure = fixed_sequence,
    calibrate: Calibrate | None = None,
    problem: Problem | None = None,
    spend: float = 1.0,
    seed: int = 0,
    smooth: bool = True,
) -> Selection:
    """Test a study's candidates on calibration data and choose (Algorithm alg:selection).

    ``calibrate``: makes the calibration losses of one finished trial, for studies whose evaluations
    did not; it is called for the few candidates only, once for each: what it returns is stored as
    the losses of evaluations are. ``problem``: the study's problem with other
    limits or another delta, as a further question to the same calibration data. ``spend``: the
    share of delta that this question may use; shares of planned questions that sum to 1 make all
    their promises hold at once. The same question gives the same certificate again. ``smooth``:
    filter and order the candidates by estimates of their risks that lean on neighbouring
    configurations (validation data alone); False goes by the validation means, as the paper does.
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
    for record in records:  # of workers that began at the same moment
        check_validation_size(records[0].n_validation, record.n_validation)
    tested = Problem(asked.risks, asked.minimize, asked.delta * spend)
    validation = validation_of(tested, records)
    space = intersection_search_space(trials)
    configs = [trial.params for trial in trials]
    estimates = smoothed_risks(space, configs, validation) if smooth else None
    plan = freeze_plan(validation, estimates=estimates, procedure=procedure, seed=seed)
    candidates = [trials[row] for row in plan.order]
    # Everything above saw validation alone. From here on calibration is open.
    tables = (_calibration(study, tested, trial, calibrate) for trial in candidates)
    opened = calibration_of(tested, tables, len(candidates))
    use, created = _enter(study, plan, procedure, spend, [trial.number for trial in trials])
    result = run_test(plan, opened, procedure, range(len(candidates)))
    selection = conclude(
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
        background=Background(configs, [trial.number for trial in trials], ledger(study)),
    )
    _note_outcome(study, selection)
    return selection


def ledger(study: optuna.Study) -> list[dict[str, Any]]:
    """Every question that has been put to the study's calibration data, oldest first.

    Each entry carries a digest of itself and of the entry before it; a ledger that was changed or
    lost entries is an error.
    """
    attributes = study.user_attrs
    entries = [dict(entry) for entry in attributes.get(LEDGER_KEY, [])]
    previous = ""
    for number, entry in enumerate(entries, 1):
        content = {key: value for key, value in entry.items() if key != "digest"}
        whole = entry.get("use") == number and entry.get("previous") == previous
        if not whole or entry.get("digest") != _digest(content):
            raise StudyError(
                f"The ledger of study {study.study_name!r} was changed: entry {number} is not the "
                f"one that was written. Restore the storage from a copy; without its ledger nobody "
                f"can say how often the calibration data was used."
            )
        previous = entry["digest"]
    head = attributes.get(_HEAD_KEY)
    if head is not None and (
        len(entries) < head["count"] or entries[head["count"] - 1]["digest"] != head["digest"]
    ):
        raise StudyError(
            f"The ledger of study {study.study_name!r} lost entries: {head['count']} questions "
            f"were put to the calibration data, {len(entries)} are left. Restore the storage from "
            f"a copy; without its ledger nobody can say how often the calibration data was used."
        )
    return entries


def outcomes(study: optuna.Study) -> dict[int, dict[str, Any]]:
    """What each question of the ledger led to: the configuration, or None, and the certificate's
    digest. A question whose test was interrupted has none; ask it again."""
    return {
        int(key.removeprefix(_OUTCOME_KEY)): dict(value)
        for key, value in study.user_attrs.items()
        if key.startswith(_OUTCOME_KEY)
    }


def trials_of(entry: Mapping[str, Any]) -> list[int]:
    """The numbers of the trials among which a question chose.

    >>> trials_of({"trials": [[0, 2], [4, 4]]})
    [0, 1, 2, 4]
    """
    return [number for first, last in entry["trials"] for number in range(first, last + 1)]


def _calibration(
    study: optuna.Study, problem: Problem, trial: FrozenTrial, calibrate: Calibrate | None
) -> Mapping[str, Any]:
    # Made once, as evaluations are: the same numbers answer every question, and an auditor's.
    if calibrate is None or has_calibration(study, trial):
        return read_calibration(study, problem, trial)
    losses = calibrate(trial)
    if not isinstance(losses, Mapping):
        raise LossError(
            f"calibrate must return a mapping from names to losses, but it returned a "
            f'{type(losses).__name__}. Write return {{"{problem.names[0]}": array}}.'
        )
    return write_calibration(study, problem, trial, losses)


def _enter(
    study: optuna.Study, plan: TestPlan, procedure: Procedure, spend: float, trials: Sequence[int]
) -> tuple[Use, str]:
    """Record the question before its answer is known; the same one keeps its number and date."""
    question = _digest([plan.digest, describe(procedure), spend])
    with exclusive(study):
        entries = ledger(study)
        for entry in entries:
            if entry["question"] == question:
                return Use(entry["use"], spend, entry["digest"]), entry["created"]
        entry = {
            "use": len(entries) + 1,
            "question": question,
            "problem": str(plan.problem),
            "spend": spend,
            "trials": _runs(trials),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "previous": entries[-1]["digest"] if entries else "",
        }
        entry["digest"] = _digest(entry)
        study.set_user_attr(LEDGER_KEY, [*entries, entry])
        study.set_user_attr(_HEAD_KEY, {"count": entry["use"], "digest": entry["digest"]})
    return Use(entry["use"], spend, entry["digest"]), entry["created"]


def _note_outcome(study: optuna.Study, selection: Selection) -> None:
    key = f"{_OUTCOME_KEY}{selection.certificate.use['number']}"
    outcome = {
        "config": selection.certificate.config,
        "certificate": selection.certificate.digest,
        "promise": selection.certificate.promise,
    }
    if study.user_attrs.get(key) != outcome:
        study.set_user_attr(key, outcome)


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Ascending numbers as first and last of each run without a gap."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _check_question(stored: Problem, asked: Problem, spend: float) -> None:
    if not isinstance(spend, int | float) or not 0 < spend <= 1:
        raise ProblemError(
            f"spend is the share of delta that a question may use and lies in (0, 1], but it is "
            f"{spend!r}. For two planned questions use spend=0.5 each."
        )
    same = (stored.names, stored.minimize) == (asked.names, asked.minimize)
    ranges = [_quantity(r) for r in stored.risks]
    if not same or ranges != [_quantity(r) for r in asked.risks]:
        raise ProblemError(
            f"A question to a study may change limits, tests and delta, not the quantities. "
            f"The study has: {stored} Asked: {asked}"
        )


def _quantity(risk: Risk) -> dict[str, Any]:
    """A risk without its limit and its test."""
    return {**risk.to_dict(), "limit": None, "p_value": None}
