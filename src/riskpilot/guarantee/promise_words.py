"""The promise of a certificate in words."""

import math
from collections.abc import Mapping
from typing import Any

from riskpilot.common import confidence, how_many, on_its_side, one_minus, percent
from riskpilot.guarantee.procedure_names import custom_name, describe
from riskpilot.guarantee.procedures import Procedure
from riskpilot.guarantee.question import Question, config_of, groups_in_words
from riskpilot.guarantee.testing import Labelling, TestResult
from riskpilot.guarantee.uses import Use

# The choice depends on the data, so that nothing is promised of a configuration by its name.
_THE_CHOICE = "the configuration that is chosen, here {}, has"
_THE_CHOICE_BEFORE = "the configuration {} has"
_LABELS = " It took {} of at most "


def promise_of(question: Question, chosen: int | None, use: Use, result: TestResult) -> str:
    """Say what is promised of the candidate in this place, and of which groups."""
    if chosen is None:
        return "Nothing is promised: no configuration could be certified."
    plan = question.plan
    problem = plan.problem
    config = config_of(question.configs, plan.order[chosen])
    return (
        f"With probability at least {problem.confidence} over the draw of validation and "
        f"calibration data, {_THE_CHOICE.format(config)} {problem.limits_in_words} on new data "
        f"from the same distribution.{groups_in_words(plan.groups)}"
        f"{_if_custom(question.procedure)}{_arrived(result.labelling)}{_judged(result, chosen)}"
        f"{_again(use)}"
    )


def in_earlier_words(
    promise: str, config: Mapping[str, Any] | None, level: float
) -> tuple[str, str]:
    """Write a promise as earlier certificates had it, which still hold; the first ones come last.

    ``config``: the certified configuration; ``level``: the delta of the test.
    """
    plural = promise.replace(_LABELS.format("1 label"), _LABELS.format("1 labels"), 1)
    chance = "With probability at least {} over"
    chances = chance.format(confidence(level)), chance.format(percent(one_minus(level)))
    choices = _THE_CHOICE.format(config), _THE_CHOICE_BEFORE.format(config)
    return plural, plural.replace(*chances, 1).replace(*choices, 1)


def _judged(result: TestResult, chosen: int) -> str:
    """Say that a judge helped, and that the promise is not about its scores."""
    if result.judge is None:
        return ""
    scored = " and ".join(
        f"{number:,} further examples for {name} saved about {result.judge.saved[chosen][name]:,}"
        for name, number in result.judge.unlabelled.items()
    )
    return (
        f" The promise is about the losses of human labels; a judge's scores of {scored} of them. "
        f"It holds whatever the judge is worth, if the judge was fixed before the calibration "
        f"labels were seen and its unlabelled examples come from where the labelled ones do."
    )


def _arrived(labelling: Labelling | None) -> str:
    """Say how labels came, where they came one after another, and what that rests on."""
    if labelling is None:
        return ""
    return (
        f"{_LABELS.format(how_many(labelling.looks[-1], 'label'))}{labelling.horizon:,}; the "
        f"promise holds whenever labelling stops, if the order of the labels did not depend on the "
        f"losses."
    )


def _if_custom(procedure: Procedure) -> str:
    """Say what the promise rests on where the procedure is the user's own."""
    name = custom_name(describe(procedure))
    if name is None:
        return ""
    return (
        f" The promise rests on the procedure {name!r}, which riskpilot cannot check: it holds if "
        f"the chance that {name!r} passes any configuration that breaks a limit is at most delta."
    )


def _again(use: Use) -> str:
    """Say which question this is where others came before it, and where those were asked."""
    if use.number == 1:
        return ""
    others = ", ".join(f"question {o['use']} of study {o['study']!r}" for o in use.elsewhere)
    where = f" (among the others: {others})" if others else ""
    return (
        f" This is question {use.number} to the same calibration data{where}: the promise holds "
        f"for each question on its own, not for all of them at once."
    )


def p_in_words(log_p: float, level: float | None = None) -> str:
    """Write a p-value, however small; with so many digits that its side of the level is seen.

    >>> p_in_words(math.log(0.05)), p_in_words(-800.0), p_in_words(-math.inf)
    ('0.05', '3.7e-348', '0')
    >>> p_in_words(math.log(0.09996), 0.1), p_in_words(math.log(0.1000012), 0.1)
    ('0.09996', '0.100001')
    """
    exponent = log_p / math.log(10)
    if exponent >= -300:
        p = math.exp(log_p)
        return f"{p:.2g}" if level is None else on_its_side(p, level, digits=2, most=17)
    if exponent < -1e6:
        return "0"
    whole = math.floor(exponent)  # below what a float holds
    return f"{10 ** (exponent - whole):.1f}e{whole}"
