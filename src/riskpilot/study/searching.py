"""A search under way, read once: for pages and figures that are drawn while trials finish."""

import optuna

from riskpilot.errors import StudyError
from riskpilot.guarantee import Background
from riskpilot.losses import ValidationLosses
from riskpilot.study.kept.attributes import attributes_of, problem_of, require_study, settings_of
from riskpilot.study.kept.records import validation_of
from riskpilot.study.kept.trials import finished
from riskpilot.study.sampler import sampler_for
from riskpilot.study.storages import stand_still


def still(study: optuna.Study) -> optuna.Study:
    """Read a study once, and return it as it is now.

    It can be read as often as one likes, says the same every time, and cannot be written.
    """
    require_study(study)
    try:
        attributes = attributes_of(study)  # the ledger names trials, so that it is read before them
    except KeyError as error:  # so Optuna says of every storage that it has no such study
        raise StudyError(
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
        outline = sampler.snapshot(now, problem)
    configs, numbers = [t.params for t in done.trials], [t.number for t in done.trials]
    return validation_of(problem, done.records), Background(configs, numbers, search=outline)
