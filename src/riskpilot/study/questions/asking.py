"""Asking a study: a question is settled from validation alone, may be sealed, and then put."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, distribution_to_json, json_to_distribution
from optuna.trial import FrozenTrial

from riskpilot.common import parse, plain_configs
from riskpilot.errors import LossError, ProblemError, StudyError, shown
from riskpilot.guarantee import (
    Background,
    Procedure,
    Question,
    Seal,
    check_procedure,
    fixed_sequence,
    freeze_plan,
    make_seal,
    question_digest,
    run_test,
)
from riskpilot.losses import LossMapping, ValidationLosses, calibration_losses
from riskpilot.problem import Problem
from riskpilot.selection import Selection, check_limits, conclude, left_out_in_words
from riskpilot.study.kept.records import (
    check_validation_size,
    has_calibration,
    joined,
    problem_of,
    read_calibration,
    settings_of,
    validation_of,
    write_calibration,
)
from riskpilot.study.kept.trials import finished, space_of
from riskpilot.study.questions.question_ledger import enter, ledger, note_outcome
from riskpilot.study.sampler import search_snapshot
from riskpilot.study.smoothing import smoothed_risks

Calibrate = Callable[[FrozenTrial], LossMapping]


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
    """Test a study's candidates on calibration data and choose the best one that passes.

    This is the paper's Algorithm 2. The question is written to the study's ledger; the same
    question gives the same certificate again.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`, with finished trials.
    procedure : Procedure, default fixed_sequence
        How several candidates are tested.
    calibrate : callable, optional
        Makes the calibration losses of one finished trial, for studies whose evaluations did not.
        It is called for the few candidates only, once for each: what it returns is stored as the
        losses of evaluations are.
    problem : Problem, optional
        The study's problem with other limits or another delta, as a further question to the same
        calibration data.
    spend : float, default 1.0
        The share of delta that this question may use; shares of planned questions that sum to 1
        make all their promises hold at once.
    seed : int, default 0
        The seed of the order in which the betting test sees the calibration examples.
    smooth : bool, default True
        Filter and order the candidates by estimates of their risks that lean on neighbouring
        configurations (validation data alone); False goes by the validation means, as the paper
        does.

    Returns
    -------
    Selection
        What was chosen, or that nothing could be certified, with the certificate.

    Raises
    ------
    StudyError
        If there is nothing to select from, or the ledger was changed.
    ProblemError
        If the question cannot be asked of this study.
    LossError
        If the calibration losses of a candidate cannot be used.

    Examples
    --------
    >>> import numpy as np, riskpilot as rp
    >>> study = rp.create_study(rp.Problem([rp.Risk("error", 0.2)], "cost"), seed=0)
    >>> draws = np.random.default_rng(0).random((2, 500)) < 0.1
    >>> evaluation = rp.Evaluation({"error": draws[0], "cost": 1.0}, {"error": draws[1]})
    >>> study.optimize(rp.objective(study, lambda trial: evaluation), n_trials=1)
    >>> rp.select(study).valid  # one trial without parameters, and it is certified
    ({},)
    """
    if calibrate is not None and not callable(calibrate):
        raise StudyError(
            f"calibrate is a function of a finished trial that returns its calibration losses, but "
            f"it is {shown(calibrate)}. Leave it out where evaluations brought their losses."
        )
    settled = _settle(study, procedure, problem, spend, seed, smooth)
    question, trials = settled.question, settled.trials
    tested = question.plan.problem
    candidates = [trials[row] for row in question.plan.order]
    # Everything above saw validation alone. From here on calibration is open.
    tables = (_calibration(study, tested, trial, calibrate) for trial in candidates)
    given = joined(tested, tables, len(candidates))
    opened = calibration_losses(tested, given)
    use = enter(study, question, opened, given)
    result = run_test(question.plan, opened, procedure, range(len(candidates)))
    assert question.configs is not None
    assert question.trials is not None
    selection = conclude(
        question,
        settled.validation,
        result,
        use,
        Background(
            question.configs,
            question.trials,
            ledger(study),
            search_snapshot(study, tested),
            settled.left_out,
        ),
    )
    note_outcome(study, selection.certificate)
    return selection


def seal(
    study: optuna.Study,
    *,
    procedure: Procedure = fixed_sequence,
    problem: Problem | None = None,
    spend: float = 1.0,
    seed: int = 0,
    smooth: bool = True,
) -> Seal:
    """Freeze the plan of a selection, without opening calibration data, and write down its digest.

    Deposit the seal where the asker cannot change it. `verify` then shows whether a certificate
    answers the question that was sealed.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`, with finished trials.
    procedure : Procedure, default fixed_sequence
        How several candidates will be tested, as `select` will get it.
    problem : Problem, optional
        The problem that `select` will get; by default the study's own.
    spend : float, default 1.0
        The share of delta that `select` will get.
    seed : int, default 0
        The seed that `select` will get.
    smooth : bool, default True
        Whether `select` will smooth the risks.

    Returns
    -------
    Seal
        What will be asked, with the digest of the frozen plan.

    Raises
    ------
    StudyError
        If there is nothing to select from, or this question has been asked already.
    ProblemError
        If the question cannot be asked of this study.

    Examples
    --------
    >>> import numpy as np, riskpilot as rp
    >>> study = rp.create_study(rp.Problem([rp.Risk("error", 0.2)], "cost"), seed=0)
    >>> draws = np.random.default_rng(0).random((2, 500)) < 0.1
    >>> evaluation = rp.Evaluation({"error": draws[0], "cost": 1.0}, {"error": draws[1]})
    >>> study.optimize(rp.objective(study, lambda trial: evaluation), n_trials=1)
    >>> sealed = rp.seal(study)
    >>> certificate = rp.select(study).certificate
    >>> rp.verify(certificate, study=study, seal=sealed).ok
    True
    """
    question = _settle(study, procedure, problem, spend, seed, smooth).question
    entries = ledger(study)
    asked = question_digest(question.content)
    earlier = next((entry for entry in entries if entry["question"] == asked), None)
    if earlier is not None:
        raise StudyError(
            f"A seal is made before its question is asked, but this is question {earlier['use']} "
            f"of study {study.study_name!r}, asked on {earlier['created']}. Use the seal that was "
            f"made before, or verify without one."
        )
    return make_seal(question, study.study_name, len(entries))


def space_as_json(space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Write a search space as plain JSON; `space_from_json` reads it back."""
    try:
        return {name: parse(distribution_to_json(dist)) for name, dist in sorted(space.items())}
    except (TypeError, ValueError) as error:
        raise StudyError(
            f"A certificate keeps the search space as JSON, but it cannot be written: {error}. "
            f"Give finite numbers, texts, truth values or None as choices."
        ) from None


def space_from_json(space: Mapping[str, Any]) -> dict[str, BaseDistribution]:
    """Read what `space_as_json` wrote."""
    return {
        name: json_to_distribution(json.dumps(stored)) for name, stored in sorted(space.items())
    }


@dataclass(frozen=True)
class _Settled:
    """A question, with the trials that it chooses among and those that it had to leave out."""

    question: Question
    validation: ValidationLosses
    trials: Sequence[FrozenTrial]
    left_out: tuple[int, ...]


def _settle(
    study: optuna.Study,
    procedure: Procedure,
    problem: Problem | None,
    spend: float,
    seed: int,
    smooth: bool,
) -> _Settled:
    """Freeze the plan of a question from validation alone."""
    asked, spend = _check_question(study, procedure, problem, spend, smooth)
    done = finished(study)
    trials, records, left_out = done.trials, done.records, done.without_losses
    if not trials:
        raise StudyError(
            f"There is nothing to select from: no trial of the study is complete with its losses. "
            f"{left_out_in_words(left_out)}{' ' if left_out else ''}Run "
            f"study.optimize(riskpilot.objective(study, evaluate), n_trials=...) first."
        )
    for record in records:  # workers that began at the same moment could not compare their sizes
        check_validation_size(records[0].n_validation, record.n_validation)
    tested = asked.spending(spend)
    validation = validation_of(tested, records)
    params = [trial.params for trial in trials]
    space = space_of(trials)
    estimates = smoothed_risks(space, params, validation) if smooth else None
    question = Question(
        problem=asked,
        plan=freeze_plan(
            validation,
            estimates=estimates,
            procedure=procedure,
            seed=seed,
            entropy=settings_of(study).get("entropy", 0),
        ),
        procedure=procedure,
        configs=plain_configs(params, StudyError),
        spend=spend,
        space=None if estimates is None else space_as_json(space),
        trials=tuple(trial.number for trial in trials),
        search_seed=settings_of(study).get("seed"),
    )
    return _Settled(question, validation, trials, left_out)


def _check_question(
    study: optuna.Study, procedure: Procedure, problem: Problem | None, spend: float, smooth: bool
) -> tuple[Problem, float]:
    """Return the problem that is asked and the share of its delta, if both suit the study."""
    stored = problem_of(study)
    asked = stored if problem is None else problem
    if not isinstance(asked, Problem):
        raise ProblemError(
            f"problem is a Problem, but it is {shown(asked)}. Leave it out for the study's own, or "
            f"change its limits: problem.with_limits(...)."
        )
    check_limits(asked)
    check_procedure(procedure)
    if not isinstance(smooth, bool):
        raise ProblemError(
            f"smooth is True or False, but it is {shown(smooth)}. Leave it out for True."
        )
    if isinstance(spend, bool) or not isinstance(spend, Real) or not 0 < spend <= 1:
        raise ProblemError(
            f"spend is the share of delta that a question may use and lies in (0, 1], but it is "
            f"{shown(spend)}. For two planned questions use spend=0.5 each."
        )
    if not asked.has_quantities_of(stored):
        raise ProblemError(
            f"A question to a study may change limits, tests and delta, not the quantities. "
            f"The study has: {stored} Asked: {asked}"
        )
    return asked, float(spend)


def _calibration(
    study: optuna.Study, problem: Problem, trial: FrozenTrial, calibrate: Calibrate | None
) -> Mapping[str, Any]:
    """Return the calibration losses of a trial; make and store them where there are none yet."""
    # They are made once, as evaluations are: the same numbers answer every question, and an
    # auditor's.
    if calibrate is None or has_calibration(study, trial):
        return read_calibration(study, problem, trial)
    losses = calibrate(trial)
    if not isinstance(losses, Mapping):
        raise LossError(
            f"calibrate must return a mapping from names to losses, but it returned a "
            f'{type(losses).__name__}. Write return {{"{problem.names[0]}": array}}.'
        )
    return write_calibration(study, problem, trial, losses)
