"""A search under way, read once: for pages and figures that are drawn while trials finish."""

from collections.abc import Sequence
from dataclasses import replace

import optuna
from optuna.trial import FrozenTrial

from riskpilot.errors import StudyError
from riskpilot.guarantee import Background, SearchOutline
from riskpilot.losses import ValidationLosses
from riskpilot.study.kept.attributes import attributes_of, problem_of, require_study, settings_of
from riskpilot.study.kept.records import validation_of
from riskpilot.study.kept.trials import PROPOSAL_KEY, finished
from riskpilot.study.steering import sampler_for
from riskpilot.study.storages import stand_still


class StudyGoneError(StudyError):
    """A study was deleted from its storage while somebody looked at it."""


def still(study: optuna.Study) -> optuna.Study:
    """Read a study once, and return it as it is now.

    It can be read as often as one likes, says the same every time, and cannot be written.
    """
    require_study(study)
    try:
        attributes = attributes_of(study)  # the ledger names trials, so that it is read before them
    except KeyError as error:  # so Optuna says of every storage that it has no such study
        raise StudyGoneError(
            f"The study {study.study_name!r} is no longer in its storage: it was deleted. Load "
            f"another one, riskpilot.load_study(storage=...)."
        ) from error
    return stand_still(study, attributes)


def search_so_far(study: optuna.Study) -> tuple[ValidationLosses, Background] | None:
    """Collect what figures of a search show: validation losses, configurations, the region.

    None before a trial has finished. Calibration stays sealed.
    """
    now = still(study)
    problem, done = problem_of(now), finished(now)
    if not done.records:
        return None
    outline = None
    if not problem.has_open_limits:
        sampler = sampler_for(now, problem, settings_of(now).get("seed", 0))
        outline = _as_it_was(sampler.snapshot(now, problem), done.trials)
    configs, numbers = [t.params for t in done.trials], [t.number for t in done.trials]
    return validation_of(problem, done.records), Background(configs, numbers, search=outline)


def _as_it_was(
    outline: SearchOutline | None, trials: Sequence[FrozenTrial]
) -> SearchOutline | None:
    """Tell the trials that a guided search proposed from others, whoever draws the outline.

    Where it proposed none of many, another sampler runs: there is no initial pool, and no reference
    point.
    """
    if outline is None:
        return None
    others = tuple(PROPOSAL_KEY not in trial.system_attrs for trial in trials)
    if not all(others) or all(outline.pool):
        return replace(outline, pool=others)
    return replace(outline, pool=(), reference=(float("nan"),) * len(outline.reference))
