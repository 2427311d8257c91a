"""Limits that are set late: what the evaluations so far suggest, and how limits are set."""

from dataclasses import dataclass

import numpy as np
import optuna

from riskpilot.common import bound_in_words
from riskpilot.errors import StudyError
from riskpilot.guarantee import family, steering_family
from riskpilot.problem import Problem
from riskpilot.statistics import largest_passing_mean
from riskpilot.study.kept.attributes import (
    LEDGER_KEY,
    attributes_of,
    problem_of,
    settings_of,
    write_problem,
)
from riskpilot.study.kept.records import validation_of
from riskpilot.study.kept.trials import finished, n_calibration_of


@dataclass(frozen=True)
class LimitSuggestion:
    """What the evaluations so far say about a limit for one risk, from validation alone.

    All numbers are in the words of the risk, as `set_limits` takes them: for a precision that must
    be at least something they are precisions.

    Parameters
    ----------
    name : str
        The name of the risk.
    title : str
        The name, with what is limited in words.
    lowest : float
        The lowest value over the finished trials.
    highest : float
        The highest value over the finished trials.
    tightest_limit : float
        The tightest limit that the safest of them is expected to pass.
    at_least : bool, default False
        Whether limits are lower ones.
    """

    name: str
    title: str
    lowest: float
    highest: float
    tightest_limit: float
    at_least: bool = False

    def __str__(self) -> str:
        way = "up to" if self.at_least else "from"
        tightest = bound_in_words(self.tightest_limit, up=not self.at_least)
        return (
            f"{self.title}: {self.lowest:.4g} to {self.highest:.4g} on validation; "
            f"limits {way} {tightest} can be expected to pass"
        )


def suggest_limits(study: optuna.Study) -> dict[str, LimitSuggestion]:
    """Report the range of each risk over the finished trials, and the tightest limit worth setting.

    The paper advises to choose limits inside the range that the initial pool shows. Only validation
    losses are read, so that the limits can still be chosen freely.

    Parameters
    ----------
    study : optuna.Study
        A study made by `create_study`, with finished trials.

    Returns
    -------
    dict of str to LimitSuggestion
        The suggestions by name of the risk.

    Raises
    ------
    StudyError
        If no trial has finished yet.

    Examples
    --------
    >>> import numpy as np, riskpilot as rp
    >>> study = rp.create_study(rp.Problem([rp.Risk("error")], "cost"), seed=0)
    >>> draws = np.random.default_rng(0).random((2, 500)) < 0.1
    >>> evaluation = rp.Evaluation({"error": draws[0], "cost": 1.0}, {"error": draws[1]})
    >>> study.optimize(rp.objective(study, lambda trial: evaluation), n_trials=1)
    >>> print(suggest_limits(study)["error"])
    error: 0.094 to 0.094 on validation; limits from 0.113 can be expected to pass
    """
    problem = problem_of(study)
    records = finished(study).records
    if not records:
        raise StudyError(
            "suggest_limits reads finished evaluations, and there is none yet. Run the initial "
            "pool first: study.optimize(objective, n_trials=5)."
        )
    stated = settings_of(study).get("n_calibration")
    m = n_calibration_of(records, stated) or records[-1].n_validation
    validation = validation_of(problem, records)
    result = {}
    for risk in problem.risks:
        summary = validation.risks[risk.name].summary
        safest = int(np.argmin(summary.mean))
        tightest = _tightest_limit(
            steering_family(risk, family(risk, summary.binary)),
            float(summary.mean[safest]),
            max(round(m * summary.n[safest] / validation.n_examples), 1),
            problem.delta,
            float(summary.standard_deviation[safest]),
        )
        values = [float(summary.mean.min()), float(summary.mean.max()), tightest]
        low, high, limit = (risk.in_words(risk.from_unit(value)) for value in values)
        title = f"{risk.subject} ({risk.words})" if risk.words else risk.subject
        result[risk.name] = LimitSuggestion(
            risk.name, title, min(low, high), max(low, high), limit, risk.complement
        )
    return result


def set_limits(study: optuna.Study, **limits: float) -> Problem:
    """Set limits that were left open, or change limits, before calibration data is opened.

    Parameters
    ----------
    study : optuna.Study
        A study of `create_study`.
    **limits : float
        The limits by name of the risk, each in the words of the risk: a lower limit where the risk
        is better when larger.

    Returns
    -------
    Problem
        The study's problem with these limits.

    Raises
    ------
    StudyError
        If a selection has opened the calibration data.
    ProblemError
        If a name is not that of a risk, or a limit lies outside the range of its risk.

    Examples
    --------
    >>> import riskpilot as rp
    >>> study = rp.create_study(rp.Problem([rp.Risk("error")], "cost"))
    >>> set_limits(study, error=0.2).risks[0].limit
    0.2
    """
    problem = problem_of(study)
    if attributes_of(study).get(LEDGER_KEY):
        raise StudyError(
            "The limits of this study cannot change any more: a selection has opened the "
            "calibration data. Ask with other limits through select(study, problem=...), which "
            "records that as another use of the data."
        )
    changed = problem.with_limits(**limits)
    write_problem(study, changed)
    return changed


def _tightest_limit(test: str, mean: float, n: int, delta: float, std: float) -> float:
    """Find by bisection the smallest limit (unit scale) under which ``mean`` still passes.

    This is the inverse of alpha_max: the p-value family is asked, not a p-value of losses.
    """
    low, high = mean, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        passing = largest_passing_mean(test, middle, n, delta, std)
        if passing is not None and passing >= mean:
            high = middle
        else:
            low = middle
    return high
