"""Before the first label: the chance to pass and the labels it takes, and what a judge is worth."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from riskpilot.common import FloatArray, how_many
from riskpilot.errors import ProblemError, shown
from riskpilot.guarantee.passing import MOST_EXAMPLES, unit_risk
from riskpilot.guarantee.power import as_number, is_whole
from riskpilot.guarantee.sequential import check_horizon, steps_of_boundary
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import Mean, labels_worth, outlook


@dataclass(frozen=True)
class LabelsPlan:
    """What labelling one by one up to a horizon promises for 0/1 losses, exactly.

    Parameters
    ----------
    risk : Risk
        The risk that is planned for.
    horizon : int
        The largest number of labels.
    true_risk : float
        The value that a configuration is believed to have, in the words of the risk.
    power : float
        The probability that it is certified by the horizon.
    mean_labels : float
        The mean number of labels where one stops once it is certified, or else at the horizon.
    mean_labels_decided : float
        The same where one also stops once it can no longer be certified.
    fixed_power : float
        The probability that it passes the test that is looked at once, with all labels.
    steps : tuple of int
        The label at which a count of 0, 1, 2, ... losses begins to pass.
    chances : array of shape (horizon,)
        The probability to be certified by each label.
    """

    risk: Risk
    horizon: int
    true_risk: float
    power: float
    mean_labels: float
    mean_labels_decided: float
    fixed_power: float
    steps: tuple[int, ...] = field(repr=False)
    chances: FloatArray = field(repr=False)

    def __str__(self) -> str:
        share = self.mean_labels / self.horizon
        return (
            f"{self.risk}: at a true value of {self.true_risk:g} a configuration is certified with "
            f"probability {self.power:.3f}, after {how_many(round(self.mean_labels), 'label')} on "
            f"average ({share:.0%} of {self.horizon:,}). The test that is looked at once passes "
            f"with probability {self.fixed_power:.3f} and takes all {self.horizon:,}."
        )


@dataclass(frozen=True)
class JudgePlan:
    """About what a judge is worth, in labels: a normal approximation.

    Parameters
    ----------
    risk : Risk
        The risk that is planned for.
    labels, unlabelled : int
        The numbers of labelled examples, and of those that the judge alone scores.
    correlation : float
        Of losses and scores, from validation data.
    worth : int
        So many labels without a judge show about as much.
    """

    risk: Risk
    labels: int
    unlabelled: int
    correlation: float
    worth: int

    def __str__(self) -> str:
        return (
            f"{self.risk}: a judge whose scores have a correlation of {self.correlation:g} with "
            f"the losses, on {how_many(self.unlabelled, 'unlabelled example')}, makes "
            f"{how_many(self.labels, 'label')} worth about {self.worth:,}."
        )


def plan_labels(
    problem: Problem, horizon: int, *, true_risks: Mapping[str, float]
) -> list[LabelsPlan]:
    """Say what labels that arrive one after another promise, before the first of them.

    Parameters
    ----------
    problem : Problem
        The risks with their limits, and delta. Losses are 0/1 and all of them count.
    horizon : int
        The largest number of labels.
    true_risks : mapping of str to float
        By the name of a risk, the value that a configuration is believed to have, in the words of
        the risk.

    Returns
    -------
    list of LabelsPlan
        One for each risk with a true value, in the order of the problem.

    Raises
    ------
    ProblemError
        If the horizon or a value cannot be meant, or a risk is not a mean.

    Examples
    --------
    >>> from riskpilot import Problem, Risk
    >>> problem = Problem([Risk("error", 0.1)], "cost")
    >>> (plan,) = plan_labels(problem, 1000, true_risks={"error": 0.07})
    >>> round(plan.power, 3), round(plan.mean_labels), round(plan.fixed_power, 3)
    (0.977, 473, 0.983)
    """
    m = check_horizon(horizon)
    plans = []
    for risk in _planned(problem, true_risks, "true_risks"):
        value = true_risks[risk.name]
        if not isinstance(risk.statistic, Mean) or risk.conditional or risk.weights is not None:
            raise ProblemError(
                f"Risk {risk.name!r}: labels are planned exactly for means of 0/1 losses that all "
                f"count, but this is a limit on the {risk.words}. Plan all labels at once: "
                f"plan_calibration(problem, {m})."
            )
        found = outlook(risk.unit_limit, unit_risk(risk, value), problem.delta, m)
        plans.append(
            LabelsPlan(
                risk=risk,
                horizon=m,
                true_risk=float(value),
                power=found.power,
                mean_labels=found.mean_labels,
                mean_labels_decided=found.mean_labels_decided,
                fixed_power=found.fixed_power,
                steps=steps_of_boundary(risk.unit_limit, problem.delta, m),
                chances=np.asarray(found.chances),
            )
        )
    return plans


def plan_judge(
    problem: Problem, labels: int, *, unlabelled: int, correlations: Mapping[str, float]
) -> list[JudgePlan]:
    """Say about how many labels a judge is worth.

    Parameters
    ----------
    problem : Problem
        The risks with their limits, and delta.
    labels : int
        How many calibration examples get a label.
    unlabelled : int
        How many fresh examples the judge alone scores.
    correlations : mapping of str to float
        By the name of a risk, the correlation of its losses with the judge's scores, in [-1, 1],
        as validation data shows it.

    Returns
    -------
    list of JudgePlan
        One for each risk with a correlation, in the order of the problem.

    Raises
    ------
    ProblemError
        If a number or a name cannot be meant.

    Examples
    --------
    >>> from riskpilot import Problem, Risk
    >>> problem = Problem([Risk("error", 0.1)], "cost")
    >>> plan_judge(problem, 500, unlabelled=5000, correlations={"error": 0.8})[0].worth
    1195
    """
    for name, value in (("labels", labels), ("unlabelled", unlabelled)):
        if not is_whole(value, 1, MOST_EXAMPLES):
            raise ProblemError(
                f"{name} is a number of examples, a whole number of at least 1, but it is "
                f"{shown(value)}. Give how many there are, such as 1000."
            )
    return [
        JudgePlan(
            risk,
            int(labels),
            int(unlabelled),
            float(correlations[risk.name]),
            int(labels * min(labels_worth(correlations[risk.name], unlabelled / labels), 1e9)),
        )
        for risk in _planned(problem, correlations, "correlations")
    ]


def _planned(problem: Problem, values: Mapping[str, float], what: str) -> list[Risk]:
    """Return the risks that have a number, if every number belongs to one of the problem's."""
    if not isinstance(problem, Problem) or not isinstance(values, Mapping) or not values:
        raise ProblemError(
            f"A plan of labels takes a Problem, and numbers by the names of its risks, but "
            f'{what} is {shown(values)}. Write {what}={{"error": 0.05}}.'
        )
    for name, value in values.items():
        if name not in problem.names or as_number(value) is None:
            raise ProblemError(
                f"{what} maps names of risks ({', '.join(problem.names)}) to finite numbers, but "
                f"it has {shown(name)}: {shown(value)}. Use a name of the problem."
            )
    return [risk for risk in problem.risks if risk.name in values]
