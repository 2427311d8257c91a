"""The default sampler of a study, and what its search looked like at its end."""

import optuna

from riskpilot.guarantee import SearchOutline
from riskpilot.problem import Problem
from riskpilot.study.kept.attributes import stated_calibration
from riskpilot.study.sampler import GuidedSampler


def sampler_for(study: optuna.Study, problem: Problem, seed: int) -> GuidedSampler:
    """Make the default sampler of a study, as its stored settings say."""
    return GuidedSampler(problem, seed=seed, n_calibration=stated_calibration(study))


def search_snapshot(study: optuna.Study, problem: Problem) -> SearchOutline | None:
    """Return what the search of a study looked like at its end: region, reference point, pool.

    None where that is not known (another sampler, too few trials).
    """
    sampler = study.sampler
    if not isinstance(sampler, GuidedSampler) or problem.has_open_limits:
        return None
    return sampler.snapshot(study, problem)
