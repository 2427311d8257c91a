"""Which fitted models a search keeps: those of configurations that may still be chosen."""

from dataclasses import replace
from typing import Any

import optuna

from riskpilot.guarantee import freeze_plan
from riskpilot.problem import Problem
from riskpilot.study import (
    finished,
    validation_of,
)


def drop_dominated(study: optuna.Study, problem: Problem, models: dict[int, Any]) -> None:
    """Keep the models of candidates of the final test; no other trial ever becomes one.

    The plan decides. Which test "auto" stands for depends on whether all losses are 0/1, which a
    later trial may change, so that a model goes only where both plans leave it out.
    """
    done = finished(study)
    needed: set[int] = set()
    for test in ("auto", "betting"):
        risks = [
            replace(risk, p_value=test) if risk.p_value == "auto" else risk
            for risk in problem.risks
        ]
        plan = freeze_plan(
            validation_of(Problem(risks, problem.minimize, problem.delta), done.records)
        )
        needed |= {done.trials[row].number for row in plan.order}
    for number in models.keys() - needed:
        del models[number]
