"""Asking a study: a question is settled from validation alone, may be sealed, and then put."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from riskpilot.common import how_many, plain_configs, shown_steps
from riskpilot.errors import LeakageError, LossError, ProblemError, StudyError, shown
from riskpilot.guarantee import (
    Background,
    Procedure,
    Question,
    Seal,
    check_procedure,
    fixed_sequence,
    freeze_plan,
    make_seal,
    question_by_label,
    question_digest,
    run_test,
)
from riskpilot.losses import (
    ExampleIds,
    JudgeMapping,
    TextArray,
    ValidationLosses,
    calibration_losses,
    judged_risks,
    read_fresh,
    read_judge,
)
from riskpilot.problem import Problem
from riskpilot.selection import Selection, check_limits, conclude, left_out_in_words
from riskpilot.study.kept.attributes import problem_of, settings_of
from riskpilot.study.kept.foretold import evaluated_of, foretold_risks
from riskpilot.study.kept.judges import JUDGE, judged_in, read_judges
from riskpilot.study.kept.records import any_record_of, check_size, validation_of
from riskpilot.study.kept.stored_space import space_as_json
from riskpilot.study.kept.trial_losses import joined, read_calibration
from riskpilot.study.kept.trials import finished, space_of
from riskpilot.study.questions.made_losses import Calibrate, forget_losses, make_losses
from riskpilot.study.questions.question_ledger import enter, ledger, note_outcome
from riskpilot.study.questions.unshared import Searched, check_unshared
from riskpilot.study.smoothing import smoothed_risks
from riskpilot.study.steering import search_snapshot


def select(
    study: optuna.Study,
    *,
    procedure: Procedure = fixed_sequence,
    calibrate: Calibrate | None = None,
    problem: Problem | None = None,
    spend: float = 1.0,
    seed: int = 0,
    smooth: bool = True,
    show_progress: bool = False,
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
        losses of evaluations are. Where losses do not go together, of other numbers of examples
        say, they are forgotten, and made again by the next call.
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
    show_progress : bool, default False
        Whether the steps are shown on standard error while they last: the order of the candidates,
        their calibration losses, the test.

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
    _check_flag("show_progress", show_progress)
    with shown_steps(show_progress) as say:
        say("Putting the candidates in order, on validation data")
        settled = settle(study, procedure, problem, spend, seed, smooth)
        return answer(study, settled, procedure, calibrate, say)


def answer(
    study: optuna.Study,
    settled: "Settled",
    procedure: Procedure,
    calibrate: Calibrate | None,
    say: Callable[..., None],
    ids: TextArray | None = None,
    searched: Searched = lambda candidates: (),
) -> Selection:
    """Open calibration data, and answer a question that was settled.

    ``say``: shows the steps; ``ids``: of the calibration examples, where they are known;
    ``searched``: finds the trials of other studies whose search led to the candidates.
    """
    question, trials = settled.question, settled.trials
    tested = question.plan.problem
    candidates = [trials[row] for row in question.plan.order]
    # Everything above saw validation alone. From here on calibration is open.
    made = [] if calibrate is None else make_losses(study, tested, candidates, calibrate, say)
    counted = how_many(len(candidates), "candidate")
    say(f"Reading the calibration losses of {counted}")
    tables = (read_calibration(study, tested, trial) for trial in candidates)
    try:
        given = joined(tested, tables, len(candidates))
        opened = calibration_losses(tested, given)
        ExampleIds(calibration=ids).check_size("calibration", opened.n_examples)
        for where, theirs in ((study, candidates), *searched(candidates)):
            check_unshared(where, theirs, opened)
    except (LossError, LeakageError):
        forget_losses(study, candidates, made)
        raise
    use = enter(study, question, opened.digest(), given, ids)
    scores = None
    if question.plan.judged:
        judge = judges_of(study, candidates)
        scores = read_judge(tested, judge, len(candidates), opened.n_examples)
    say(f"Testing {counted} on {how_many(opened.n_examples, 'example')}")
    result = run_test(question.plan, opened, procedure, range(len(candidates)), scores)
    selection = conclude(question, settled.validation, result, use, background(study, settled))
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
    horizon: int | None = None,
    judge: Mapping[str, Any] | None = None,
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
    horizon : int, optional
        The largest number of labels, where they will arrive one after another (`Calibration`).
    judge : mapping, optional
        What `Calibration` will get: a judge's scores of fresh examples.

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
    settled = settle(study, procedure, problem, spend, seed, smooth)
    question = settled.question
    if judge is not None and horizon is None:
        raise ProblemError("judge= needs horizon=: it is for labels that arrive. Give both.")
    if horizon is not None:
        fresh = read_fresh(question.plan.problem, judge, len(question.plan.order))
        entropy = settings_of(study).get("entropy", 0)
        question = question_by_label(question, settled.validation, horizon, fresh, entropy)
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


def background(study: optuna.Study, settled: "Settled") -> Background:
    """Collect what is shown with a selection from a study."""
    question = settled.question
    assert question.configs is not None
    assert question.trials is not None
    return Background(
        question.configs,
        question.trials,
        ledger(study),
        search_snapshot(study, question.plan.problem),
        settled.left_out,
        foretold_risks(settled.trials, problem_of(study).names),
    )


@dataclass(frozen=True)
class Settled:
    """A question, with the trials that it chooses among and those that it had to leave out."""

    question: Question
    validation: ValidationLosses
    trials: Sequence[FrozenTrial]
    left_out: tuple[int, ...]


def settle(
    study: optuna.Study,
    procedure: Procedure,
    problem: Problem | None,
    spend: float,
    seed: int,
    smooth: bool,
    numbers: Collection[int] | None = None,
) -> Settled:
    """Freeze the plan of a question from validation alone.

    ``numbers``: of the trials that are considered; all that are finished by default.
    """
    asked, spend = _check_question(study, procedure, problem, spend, smooth)
    done = finished(study)
    left_out = done.without_losses
    chosen = [
        (trial, record)
        for trial, record in zip(done.trials, done.records, strict=True)
        if numbers is None or trial.number in numbers
    ]
    trials, records = [trial for trial, _ in chosen], [record for _, record in chosen]
    if not trials:
        raise StudyError(
            f"There is nothing to select from: no trial of the study is complete with its losses. "
            f"{left_out_in_words(left_out)}{' ' if left_out else ''}Run "
            f"study.optimize(riskpilot.objective(study, evaluate), n_trials=...) first."
        )
    for record in records:  # workers that began at the same moment could not compare their sizes
        check_size("validation", records[0].n_validation, record.n_validation)
    tested = asked.spending(spend)
    validation = validation_of(tested, records)
    params = [trial.params for trial in trials]
    space = space_of(trials)
    judged = judged_in(study, trials, [JUDGE in record.artifacts for record in records])
    helped = judged_risks(tested, judges_of(study, trials[:1])) if judged else ()
    estimates = smoothed_risks(space, params, validation) if smooth else None
    question = Question(
        problem=asked,
        plan=freeze_plan(
            validation,
            estimates=estimates,
            procedure=procedure,
            seed=seed,
            entropy=settings_of(study).get("entropy", 0),
            judged=helped,
        ),
        procedure=procedure,
        configs=plain_configs(params, StudyError),
        spend=spend,
        space=None if estimates is None else space_as_json(space),
        trials=tuple(trial.number for trial in trials),
        search_seed=settings_of(study).get("seed"),
        evaluated=evaluated_of(trials),
    )
    return Settled(question, validation, trials, left_out)


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
    _check_flag("smooth", smooth)
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


def _check_flag(name: str, value: object) -> None:
    """Refuse a value that is neither True nor False."""
    if not isinstance(value, bool):
        raise ProblemError(
            f"{name} is True or False, but it is {shown(value)}. Leave it out for the default."
        )


def judges_of(study: optuna.Study, trials: Sequence[FrozenTrial]) -> JudgeMapping:
    """Read the judge's scores of some trials, which all have some."""
    entries = []
    for trial in trials:
        record = any_record_of(trial)
        assert record is not None
        entries.append((trial.number, dict(record.artifacts[JUDGE])))
    return read_judges(study, entries)
