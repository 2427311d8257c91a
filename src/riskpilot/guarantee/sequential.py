"""A plan whose tests may be looked at after every label, up to a horizon.

Along the frozen order a candidate is certified when it and all before it have been shown to keep
every limit. The first candidate of the order that breaks a limit has to be shown to keep it,
wrongly, for any error to happen, and that has probability at most delta, over all labels up to the
horizon together. So nothing is lost by looking after every label, by stopping when one likes, or by
giving a candidate its losses later than others.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from riskpilot.errors import ProblemError, shown
from riskpilot.guarantee.question import Question
from riskpilot.guarantee.testing import TestPlan, freeze_plan
from riskpilot.losses import FreshScores, ValidationLosses
from riskpilot.problem import Risk
from riskpilot.statistics import BOUNDARY, Limit, Stream, exact_boundary

MOST_LABELS = 5_000_000


def label_by_label(plan: TestPlan, horizon: int, fresh: FreshScores | None = None) -> TestPlan:
    """Make the same plan with tests that may be looked at after every label.

    Parameters
    ----------
    plan : TestPlan
        The candidates and their order, frozen from validation data.
    horizon : int
        The largest number of labels.
    fresh : FreshScores, optional
        A judge's scores of fresh examples, where the plan says that one helps.

    Returns
    -------
    TestPlan
        With a family for each risk that holds at any time.

    Raises
    ------
    ProblemError
        If the horizon is no whole number of at least 1, or a risk cannot be tested this way.
    """
    m = check_horizon(horizon)
    families = {
        risk.name: risk.statistic.family_by_label(plan.families[risk.name], _limit(risk))
        for risk in plan.problem.risks
    }
    pool = None if fresh is None else fresh.digest(len(plan.order))
    made = replace(plan, families=families, horizon=m, pool=pool)
    for risk in plan.problem.risks:  # a statistic that cannot be followed says so now
        streams_of(made, risk)
    return made


def question_by_label(
    question: Question,
    validation: ValidationLosses,
    horizon: int,
    fresh: FreshScores | None = None,
    entropy: int | None = None,
) -> Question:
    """Put the same question to labels that arrive, with the help of a judge where there is one.

    ``validation``: what the plan was frozen from, and is frozen again where a judge helps;
    ``entropy``: randomness for the order in which the judge's scores are used, where the validation
    losses have too little; None draws it.
    """
    plan = question.plan
    if fresh is not None:
        plan = freeze_plan(
            validation,
            estimates=None if plan.estimates is None else np.array(plan.estimates),
            seed=plan.seed,
            entropy=entropy,
            judged=fresh.names,
            known_order=plan.order if plan.known_order else None,
        )
    return replace(question, plan=label_by_label(plan, horizon, fresh))


def check_horizon(horizon: int) -> int:
    """Return the largest number of labels as a plain integer, or refuse it."""
    whole = isinstance(horizon, int | np.integer) and not isinstance(horizon, bool | np.timedelta64)
    if not whole or not 1 <= horizon <= MOST_LABELS:
        raise ProblemError(
            f"horizon is the largest number of labels, a whole number from 1 to {MOST_LABELS:,}, "
            f"but it is {shown(horizon)}. Name how many labels there can be at most, such as "
            f"horizon=1000."
        )
    return int(horizon)


def streams_of(plan: TestPlan, risk: Risk) -> tuple[Stream, ...]:
    """What is followed of a risk, label by label."""
    n_groups = len(plan.groups.get(risk.name, ()))
    return risk.statistic.streams(plan.settings(risk), _limit(risk), n_groups, risk.conditional)


def boundary_steps(plan: TestPlan, risk: Risk) -> tuple[int, ...] | None:
    """The first label at which a count of 0, 1, 2, ... crosses; None where there is no boundary, or
    one that depends on which labels count."""
    every_label = not risk.conditional and not risk.needs_groups
    if plan.families[risk.name] != BOUNDARY or not every_label or risk.statistic.reference_name:
        return None
    assert plan.horizon is not None
    stream = streams_of(plan, risk)[0]
    return steps_of_boundary(float(np.max(stream.limits)), plan.problem.delta, plan.horizon)


@lru_cache(maxsize=8)
def steps_of_boundary(limit: float, delta: float, horizon: int) -> tuple[int, ...]:
    """The first label at which a count of 0, 1, 2, ... crosses; the limit is on the unit scale."""
    critical = exact_boundary(limit, delta, horizon).critical
    counts = np.arange(int(critical[-1]) + 1)
    return tuple(map(int, np.searchsorted(critical, counts) + 1))


def _limit(risk: Risk) -> Limit:
    unit = risk.unit_limit
    assert risk.limit is not None
    return Limit(unit, risk.limit)
