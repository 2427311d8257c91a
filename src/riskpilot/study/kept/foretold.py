"""Trials that a race ended early because enough was known: which of their losses are foretold.

Such a trial is complete, and a candidate. Its validation losses are those of the first examples as
they came, and for the others what the neighbours of its configuration let expect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from riskpilot.study.kept.remembered import Remembered
from riskpilot.study.kept.stopped import not_as_written
from riskpilot.study.storages import set_trial_user_attr

FORETOLD_KEY = "riskpilot:foretold"


@dataclass(frozen=True)
class Foretold:
    """What a trial says whose evaluation was ended early.

    ``values``: what is foretold of its risks and its free objective; ``errors``: the standard error
    of each; ``n_evaluated`` of ``n_examples`` validation examples were evaluated.
    """

    values: Sequence[float]
    errors: Sequence[float]
    n_evaluated: int
    n_examples: int


def keep_foretold(study: optuna.Study, trial: optuna.Trial, foretold: Foretold | None) -> None:
    """Note on a running trial which of its validation losses are foretold; None for no one."""
    note = None if foretold is None else asdict(foretold)
    set_trial_user_attr(study, trial, FORETOLD_KEY, note)


def _read_foretold(trial: FrozenTrial) -> Foretold | None:
    """Read which losses of a trial are foretold; None where all of them were evaluated."""
    stored: Any = trial.user_attrs.get(FORETOLD_KEY)
    if stored is None:
        return None
    try:
        values = [float(value) for value in stored["values"]]
        errors = [float(error) for error in stored["errors"]]
        found = Foretold(values, errors, int(stored["n_evaluated"]), int(stored["n_examples"]))
    except (KeyError, TypeError, ValueError) as error:
        raise not_as_written(trial, error) from error
    n_objectives = len(trial.values or values)
    fits = len(values) == len(errors) == n_objectives
    if not (fits and 0 < found.n_evaluated < found.n_examples):
        raise not_as_written(trial, "its numbers do not go together")
    return found


foretold_of = Remembered(_read_foretold)


def n_evaluated_of(trial: FrozenTrial, n_examples: int) -> int:
    """Return on how many of its validation examples a trial was evaluated, all by default."""
    note = foretold_of(trial)
    return n_examples if note is None else note.n_evaluated


def evaluated_of(trials: Sequence[FrozenTrial]) -> dict[int, int]:
    """Count the examples that were evaluated of each trial whose other losses are foretold.

    Trials go by their place in the sequence.
    """
    notes = {row: foretold_of(trial) for row, trial in enumerate(trials)}
    return {row: note.n_evaluated for row, note in notes.items() if note is not None}


def foretold_risks(
    trials: Sequence[FrozenTrial], names: Sequence[str]
) -> dict[int, tuple[Mapping[str, float], Mapping[str, float]]]:
    """Collect what is foretold of risks, and its standard errors, by the names of the risks.

    Trials go by their place in the sequence; ``names``: those of the risks in the study's problem.
    """
    notes = {row: foretold_of(trial) for row, trial in enumerate(trials)}
    return {
        row: (
            dict(zip(names, note.values, strict=False)),  # the free objective comes behind them
            dict(zip(names, note.errors, strict=False)),
        )
        for row, note in notes.items()
        if note is not None
    }
