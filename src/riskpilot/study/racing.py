"""Races: evaluations whose losses come block by block, as many as it takes to judge them."""

import time
from collections.abc import Generator, Mapping
from functools import partial
from typing import Any

import numpy as np
import optuna

from riskpilot.common import TimeLimitError, within
from riskpilot.common.arrays import Array
from riskpilot.errors import LossError, StudyError, shown, type_in_words
from riskpilot.losses import (
    Evaluation,
    LossMapping,
    ValidationLosses,
    check_free,
    validation_losses,
)
from riskpilot.study.kept.attributes import problem_of
from riskpilot.study.kept.foretold import FORETOLD_KEY, keep_foretold
from riskpilot.study.kept.stopped import Course, Stopped, keep_course, keep_stopped
from riskpilot.study.kept.trial_losses import one_row
from riskpilot.study.rivals import Rivals, rivals_of

Blocks = Generator[LossMapping, Any, Any]
"""What an evaluation is that may be stopped: it yields losses and returns those of calibration.

A ``yield`` gives True where enough is known, so that the other blocks may be left out.
"""

_GOES_ON = "generator ignored GeneratorExit"  # as Python says it


class Race:
    """One evaluation block by block. ``trial``: the running trial that it is of."""

    def __init__(self, study: optuna.Study, trial: optuna.Trial) -> None:
        self._study = study
        self._trial = trial
        self._problem = problem_of(study)
        self._parts: dict[str, list[Array]] = {}
        self._course: list[tuple[int, float]] = []
        self._rivals: Rivals | None = None
        self._was_told = False  # that enough is known
        self._n = 0

    def run(self, blocks: Blocks, time_limit: float | None) -> Evaluation:
        """Run a generator to its end, and return the whole evaluation.

        `optuna.TrialPruned` is raised where its trial was stopped, after the generator was closed
        and the trial says what it showed. The generator may take ``time_limit`` seconds in all.
        """
        spent = 0.0
        try:
            while True:
                began = time.monotonic()
                step = partial(_next, blocks)
                found, has_ended = within(time_limit, step, self._was_told, spent)
                spent += time.monotonic() - began
                if has_ended:
                    return self._evaluation(found)
                self._add(found)
        except BaseException as error:
            self._close(blocks, error)
            raise

    def keep_course(self) -> None:
        """Note on the trial how a free objective that is a number went from block to block."""
        if self._course and not self._was_told:
            keep_course(self._study, self._trial, self._course)

    def _note_foretold(self) -> None:
        """Note on the trial that losses are foretold, or that none is."""
        note = None
        if self._was_told and self._rivals is not None:
            note = self._rivals.foretold_from(*self._shown())
        # The trial of a worker that died may have left such a note to the one in its place.
        if note is not None or FORETOLD_KEY in self._trial.user_attrs:
            keep_foretold(self._study, self._trial, note)

    def _shown(self) -> tuple[ValidationLosses, Course | Array]:
        """Return the losses of the blocks so far, and the free objective by example or as a course.

        Rivals judge a trial by these.
        """
        joined = self._joined()
        seen = validation_losses(self._problem, one_row(self._problem, joined, "validation"))
        return seen, self._course or joined[self._problem.minimize]

    def _close(self, blocks: Blocks, error: BaseException) -> None:
        """Close a generator that goes no further; what it raises then does not hide the error."""
        try:
            blocks.close()
        except Exception as at_close:
            if isinstance(error, TimeLimitError):  # it may still run, in a thread of its own
                return
            if not isinstance(error, optuna.TrialPruned):
                error.add_note(f"Its generator was closed, and raised: {shown(at_close)}")
            elif str(at_close) != _GOES_ON:
                raise
            else:
                raise StudyError(
                    f"A generator that is stopped comes to its end, but that of trial "
                    f"{self._trial.number} yielded once more. Let GeneratorExit pass around a "
                    f"yield: write finally, or except Exception."
                ) from None

    def _add(self, block: object) -> None:
        """Take the losses of the next examples; `optuna.TrialPruned` where they settle it."""
        losses = self._checked(block)
        free = self._problem.minimize
        self._n += next(len(values) for values in losses.values() if values.ndim)
        for name, values in losses.items():
            self._parts.setdefault(name, []).append(values)
        if free in losses and not losses[free].ndim:
            self._course.append((self._n, float(losses[free])))
        if self._rivals is None:
            self._rivals = rivals_of(self._study, self._problem, self._trial)
        k = self._rivals.n_examples
        if k is None or self._n == k:
            self._was_told = False
            return
        if self._n > k:
            raise LossError(
                f"Every trial of a study is evaluated on the same validation examples, but the "
                f"blocks of trial {self._trial.number} have {self._n:,} so far where the first "
                f"trial had {k:,}. Use one validation set, in one order."
            )
        if free not in losses or losses.keys() - {*self._problem.names, free}:
            return
        judged = self._rivals.judged(*self._shown())
        if isinstance(judged, Stopped):
            keep_stopped(self._study, self._trial, judged)
            raise optuna.TrialPruned(f"its side was clear after {self._n:,} of {k:,} examples")
        # A generator that was told may end at any later block, of which less may be clear.
        self._was_told = self._was_told or judged is not None

    def _checked(self, block: object) -> dict[str, Array]:
        """Return a block as arrays if it has losses of the same names and examples everywhere.

        A free objective that is a number becomes an array without an axis.
        """
        number = self._trial.number
        if not isinstance(block, Mapping):
            raise LossError(
                f"A generator yields mappings from names to the losses of the next examples, but "
                f"that of trial {number} yielded {type_in_words(block)}. Write "
                f'yield {{"{self._problem.names[0]}": array, ...}}.'
            )
        if self._parts and block.keys() != self._parts.keys():
            raise LossError(
                f"Every block has losses under the same names, but one of trial {number} has "
                f"{sorted(map(str, block))} where the first had {sorted(map(str, self._parts))}. "
                f"Yield all of them with every block."
            )
        rows = one_row(self._problem, block, "validation")
        # A copy: a generator may fill the same array again for its next block.
        losses = {name: np.array(values[0, ...]) for name, values in rows.items()}
        sizes = {
            name: values.size if values.ndim else 0
            for name, values in losses.items()
            if name != self._problem.minimize or values.ndim
        }
        if len(set(sizes.values())) != 1 or 0 in sizes.values():
            raise LossError(
                f"A block has one loss per example under every name, but one of trial {number} has "
                f"{sizes or 'none'}. Yield arrays of equal length; only the free objective may be "
                f"a number."
            )
        free = self._problem.minimize
        if free in self._parts and self._parts[free][0].ndim != losses[free].ndim:
            raise LossError(
                f"The free objective {free!r} is an array in every block or a number in every "
                f"block, but trial {number} yields both. Yield it in one way."
            )
        if free in losses:
            check_free(free, losses[free], "validation")
        return losses

    def _joined(self) -> dict[str, Array]:
        """Join the blocks so far; of a free objective that is a number, the latest counts."""
        return {
            name: np.concatenate(parts) if parts[0].ndim else parts[-1]
            for name, parts in self._parts.items()
        }

    def _evaluation(self, returned: object) -> Evaluation:
        """Make the whole evaluation; ``returned``: what the generator returned at its end."""
        if not self._parts and not isinstance(returned, Evaluation):
            raise LossError(
                f"A generator yields at least one block of losses, but that of trial "
                f"{self._trial.number} ended before. Write yield "
                f'{{"{self._problem.names[0]}": array, ...}} before its return.'
            )
        joined = self._joined()
        self._note_foretold()
        if self._was_told and self._rivals is not None:
            joined = self._rivals.completed(self._problem, joined, self._course)
        if returned is None or isinstance(returned, Mapping):
            return Evaluation(joined, returned)
        if not isinstance(returned, Evaluation):
            raise LossError(
                f"A generator returns its calibration losses, or an Evaluation, but that of trial "
                f"{self._trial.number} returned {type_in_words(returned)}. Write return "
                f'{{"{self._problem.names[0]}": array}}.'
            )
        if returned.judge is not None:
            raise LossError(
                f"Scores of a judge come with an evaluation that is returned whole, but that of "
                f"trial {self._trial.number} is a generator. Write return rp.Evaluation(validation,"
                f" calibration, judge=...) without a yield."
            )
        again = sorted(self._parts.keys() & returned.validation.keys())
        if again:
            raise LossError(
                f"Losses that were yielded are not returned again, but the evaluation that the "
                f"generator of trial {self._trial.number} returned has {again} once more. Return "
                f"the calibration losses alone."
            )
        return Evaluation({**joined, **returned.validation}, returned.calibration)


def _next(blocks: Blocks, enough: bool) -> tuple[Any, bool]:
    """Return the next block, or what a generator returned; and whether it has ended.

    ``enough``: whether it is told that the other blocks may be left out.
    """
    try:
        return blocks.send(True if enough else None), False
    except StopIteration as end:
        return end.value, True
