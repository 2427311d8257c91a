"""Scores of a judge in a study: an artifact of each trial, beside its calibration losses."""

from collections.abc import Sequence

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from riskpilot.common import Array
from riskpilot.errors import LossError, StudyError
from riskpilot.losses import Evaluation, JudgeMapping, number_array, read_judge
from riskpilot.problem import Problem
from riskpilot.study.kept.loss_bytes import decode, encode
from riskpilot.study.kept.loss_store import get, store_of

JUDGE = "judge"
_PARTS = ("labelled", "unlabelled")


def judge_blob(problem: Problem, evaluation: Evaluation, n_calibration: int | None) -> bytes | None:
    """Check the scores of one configuration, and turn them into bytes; None without a judge."""
    judge = evaluation.judge
    if judge is None:
        return None
    if n_calibration is None:
        raise LossError(
            "A judge's scores stand beside the calibration losses of the same examples, but there "
            "are none. Return both: Evaluation(validation, calibration, judge=...)."
        )
    read = read_judge(problem, judge, 1, n_calibration)
    assert read is not None
    table: dict[str, Array] = {}
    for part in _PARTS:
        for name, values in judge[part].items():
            what = f"judge, {part}: the scores of {name!r}"
            scores = number_array(values, what, missing_as_nan=True)
            table[f"{part}.{name}"] = np.atleast_2d(scores)
    return encode(table)


def judged_in(study: optuna.Study, trials: Sequence[FrozenTrial], judged: Sequence[bool]) -> bool:
    """Tell whether a judge helps with these trials; ``judged``: which of them have its scores."""
    if not any(judged):
        return False
    if not all(judged):
        lacking = trials[list(judged).index(False)].number
        raise StudyError(
            f"A judge helps where it scored every configuration, but trial {lacking} of study "
            f"{study.study_name!r} has no scores. Return them from every evaluation, or from none."
        )
    return True


def read_judges(study: optuna.Study, entries: Sequence[tuple[int, dict[str, str]]]) -> JudgeMapping:
    """Read the scores of some trials, one row for each.

    ``entries``: the numbers of the trials, and where their scores are stored.
    """
    tables = []
    for number, entry in entries:
        tables.append(decode(get(store_of(study), entry, f"Trial {number}: its judge's scores")))
    found: dict[str, dict[str, Array]] = {part: {} for part in _PARTS}
    for key in tables[0]:
        part, _, name = key.partition(".")
        rows = [table.get(key) for table in tables]
        sizes = {None if row is None else row.shape for row in rows}
        if len(sizes) > 1:
            raise LossError(
                f"Every configuration must be scored on the same examples, but the number of "
                f"{part} scores of {name!r} differs between trials. Score one set of examples."
            )
        found[part][name] = np.concatenate([row for row in rows if row is not None])
    return found
