"""What a search may expect, in words: what would pass now, and what one more evaluation brings."""

from collections.abc import Mapping

import optuna
from optuna.trial import TrialState

from riskpilot.problem import Problem
from riskpilot.search import Outlook
from riskpilot.study.kept.attributes import problem_of, settings_of
from riskpilot.study.sampler import GuidedSampler
from riskpilot.study.steering import sampler_for

_STATES = {
    TrialState.COMPLETE: "finished",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
    TrialState.FAIL: "failed",
    TrialState.PRUNED: "pruned",
}


def outlook_of(study: optuna.Study) -> Outlook | None:
    """Look ahead from what a study has found; None where there is too little to tell.

    Whatever proposes its configurations, the guided sampler can look at what they showed.
    """
    sampler = study.sampler
    if not isinstance(sampler, GuidedSampler):
        sampler = sampler_for(study, problem_of(study), settings_of(study).get("seed", 0))
    return sampler.outlook(study)


def counts_in_words(states: Mapping[str, int]) -> str:
    """Count trials by their states, as their lower-case names say.

    >>> counts_in_words({"complete": 3, "running": 0, "fail": 1})
    '3 finished, 1 failed'
    """
    counts = [(states.get(state.name.lower(), 0), word) for state, word in _STATES.items()]
    return ", ".join(f"{n:,} {word}" for n, word in counts if n) or "no trials yet"


def chance_in_words(chance: float) -> str:
    """Write a chance in percent, without the certainty that nobody has.

    >>> chance_in_words(0.834), chance_in_words(0.9999), chance_in_words(0.0001)
    ('83 %', 'above 99 %', 'below 1 %')
    """
    if chance > 0.99:
        return "above 99 %"
    return "below 1 %" if chance < 0.01 else f"{chance:.0%}".replace("%", " %")


def expected_in_words(ahead: Outlook | None, problem: Problem) -> str:
    """Say what is expected to pass, and with what chance.

    Where a limit is open, or calibration examples are too few, nothing can be expected to pass,
    however long the search goes on.
    """
    if problem.has_open_limits:
        names = [risk.name for risk in problem.risks if risk.limit is None]
        limits = "limit" if len(names) == 1 else "limits"
        return f"what will pass hangs on the open {limits} of {' and '.join(names)}"
    if ahead is None:
        return "it is too early to say what will pass"
    if ahead.needs is not None:
        few = "nothing can pass with so few calibration examples"
        return f"{few}; it takes at least {ahead.needs:,}"
    if ahead.free is None or ahead.free_chance is None:
        best = chance_in_words(ahead.chance)
        return f"nothing is expected to pass so far (the best chance is {best})"
    chance = chance_in_words(ahead.free_chance)
    return f"{problem.minimize} {ahead.free:.4g} is expected to pass (chance {chance})"


def gain_in_words(ahead: Outlook) -> str:
    """Write the expected gain of one more evaluation."""
    matters = ahead.spread > 0 and ahead.gain > 1e-4 * ahead.spread
    return f"{ahead.gain:.2g}" if matters else "next to nothing"


def ahead_in_words(ahead: Outlook | None, problem: Problem) -> str:
    """Say what is expected to pass, and what one more evaluation may bring where something can."""
    expected = expected_in_words(ahead, problem)
    if ahead is None or ahead.needs is not None:
        return expected
    return f"{expected}; one more evaluation is expected to gain {gain_in_words(ahead)}"
