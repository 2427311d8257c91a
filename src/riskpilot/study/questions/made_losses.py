"""Calibration losses that `select` makes, for candidates whose evaluations brought none."""

from collections.abc import Callable, Mapping, Sequence

import optuna
from optuna.trial import FrozenTrial

from riskpilot.errors import LossError, type_in_words
from riskpilot.losses import LossMapping
from riskpilot.problem import Problem
from riskpilot.study.kept.trial_losses import forget_calibration, has_calibration, write_calibration
from riskpilot.study.questions.question_ledger import ledger

Calibrate = Callable[[FrozenTrial], LossMapping]


def make_losses(
    study: optuna.Study,
    problem: Problem,
    candidates: Sequence[FrozenTrial],
    calibrate: Calibrate,
    say: Callable[..., None],
) -> list[FrozenTrial]:
    """Make and store the calibration losses of the candidates that have none yet; return these.

    They are made once, as evaluations are: the same numbers answer every question, and an
    auditor's. Each is stored at once, so that a calibration that breaks off goes on where it stood.
    """
    made = []
    for i, trial in enumerate(candidates, 1):
        if has_calibration(study, trial):
            continue
        say("Making calibration losses", f": candidate {i} of {len(candidates)}")
        losses = calibrate(trial)
        if not isinstance(losses, Mapping):
            raise LossError(
                f"calibrate must return a mapping from names to losses, but it returned "
                f'{type_in_words(losses)}. Write return {{"{problem.names[0]}": array}}.'
            )
        write_calibration(study, problem, trial, losses)
        made.append(trial)
    return made


def forget_losses(
    study: optuna.Study, candidates: Sequence[FrozenTrial], made: Sequence[FrozenTrial]
) -> None:
    """Forget losses of a calibration that do not go together, so that it can be corrected.

    Those that an earlier question may have been answered with stay.
    """
    for trial in made if ledger(study) else candidates:
        forget_calibration(study, trial)
