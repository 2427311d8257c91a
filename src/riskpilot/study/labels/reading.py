"""Labels of a file added to the calibration of a study: what is new in it, in its order.

Where a judge helps, a second file has its scores: of fresh examples, and of those that are labelled
sooner or later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import optuna

from riskpilot.common import FloatArray
from riskpilot.errors import TableError
from riskpilot.study.labels.calibration import Calibration
from riskpilot.tables import JudgeFile, LabelFile, read_judge_file, read_label_file, wanted_columns


@dataclass(frozen=True)
class FileColumns:
    """The names of columns: of the trials' numbers, of the examples' ids, and of what says which
    examples of a judge's table are never labelled."""

    trial: str = "trial"
    example: str = "example"
    fresh: str = "fresh"


def calibration_from_files(
    study: optuna.Study,
    horizon: int,
    labels: str | None,
    judge: str | None,
    columns: FileColumns,
) -> tuple[Calibration, int]:
    """Begin the calibration of a study, or go on with it, and add what is new in a file of labels.

    Returns how many labels are new. The labels come in the order in which their examples first
    appear in the file. Those that were added before must still be the first ones, with the same
    losses. A candidate gets its losses up to the first example for which the file has none. Trials
    of the study that are no candidates are passed over; others are refused. A column holds what its
    name says, labels and a judge's scores alike: under "correct >= 0.85", 1 is good.
    """
    calibration = Calibration(study, horizon=horizon)
    problem = calibration.problem
    wanted = replace(wanted_columns(problem), losses=problem.names)
    known = len(study.get_trials(deepcopy=False))
    scores: JudgeFile | None = None
    if judge is not None:
        scores = read_judge_file(judge, calibration.trials, wanted, n_trials=known, **vars(columns))
        fresh = _fresh(judge, scores, calibration)
        calibration = Calibration(study, horizon=horizon, judge=fresh)
    if labels is None:
        return calibration, 0
    if calibration.judged and scores is None:
        raise TableError(
            "These labels began with a judge's help, and go on with it, but no table has its "
            "scores of the labelled examples. Give it: --judge scores.csv."
        )
    before = calibration.n_labels
    file = read_label_file(
        labels,
        calibration.trials,
        wanted,
        n_trials=known,
        trial=columns.trial,
        example=columns.example,
    )
    _check_same(calibration, file, labels)
    _add(calibration, file, judge, scores)
    return calibration, calibration.n_labels - before


def _add(
    calibration: Calibration, file: LabelFile, judge: str | None, scores: JudgeFile | None
) -> None:
    """Add what is new in a file. Candidates that go on from the same label to the same label do so
    together."""
    complete = np.where(file.given.all(axis=1), file.given.shape[1], np.argmin(file.given, axis=1))
    steps = {
        (calibration.labels[position], int(complete[position])) for position in calibration.needed
    }
    for start, stop in sorted(steps):
        chosen = [
            position
            for position in calibration.needed
            if (calibration.labels[position], int(complete[position])) == (start, stop)
        ]
        if not chosen or stop <= start:
            continue
        batch = {name: values[chosen, start:stop] for name, values in file.losses.items()}
        beside = {name: values[start:stop] for name, values in file.beside.items()}
        examples = file.examples[start:stop]
        named = not calibration.n_labels or calibration.ids is not None
        given = None
        if scores is not None:
            assert judge is not None
            given = {"labelled": _labelled(judge, scores, calibration, examples, chosen)}
        ids = examples if named else None  # earlier labels came without
        calibration.add({**batch, **beside}, candidates=chosen, judge=given, ids=ids)


def _fresh(path: str, file: JudgeFile, calibration: Calibration) -> Mapping[str, Any]:
    """Return the scores of fresh examples; every candidate must have one of each."""
    if not file.fresh.any():
        raise TableError(
            f"{path!r}: a judge helps by its scores of examples that are never labelled, but no "
            f"example of the table is one. Say true of them in the column of fresh examples."
        )
    at = np.flatnonzero(file.fresh)
    _check_given(path, file, calibration, at, range(len(calibration.trials)))
    names = list(file.column)
    return {
        "unlabelled": {name: values[:, at] for name, values in file.scores.items()},
        "ids": [names[i] for i in at],
    }


def _labelled(
    path: str,
    file: JudgeFile,
    calibration: Calibration,
    examples: Sequence[str],
    chosen: Sequence[int],
) -> dict[str, FloatArray]:
    """Return the scores of labelled examples for some candidates, which must have one of each."""
    missing = next((name for name in examples if name not in file.column), None)
    if missing is not None:
        raise TableError(
            f"{path!r}: every labelled example has a score of the judge, but example {missing!r} "
            f"has no row. Score it, with the judge as it was before the first label."
        )
    at = np.array([file.column[name] for name in examples], dtype=np.intp)
    _check_given(path, file, calibration, at, chosen)
    rows = np.array(chosen, dtype=np.intp)
    return {name: values[np.ix_(rows, at)] for name, values in file.scores.items()}


def _check_given(
    path: str,
    file: JudgeFile,
    calibration: Calibration,
    at: Any,
    positions: Sequence[int],
) -> None:
    """Refuse examples that the judge has not scored for every candidate. To leave them out would
    make a selection of examples, whose mean is another one."""
    rows = np.array(positions, dtype=np.intp)
    gone = ~file.given[np.ix_(rows, at)]
    for risk in calibration.problem.risks:
        if risk.name in file.scores and not risk.conditional:
            gone |= np.isnan(file.scores[risk.name][np.ix_(rows, at)])
    if gone.any():
        row, column = (int(part[0]) for part in np.nonzero(gone))
        example = list(file.column)[int(at[column])]
        raise TableError(
            f"{path!r}: the judge scores every example for every trial, but example {example!r} "
            f"has no score for trial {calibration.trials[positions[row]]}. Score it: examples that "
            f"are left out may be of a kind, and the others no longer like the labelled ones."
        )


def _check_same(calibration: Calibration, file: LabelFile, path: str) -> None:
    """Refuse a file whose first labels are not those that were added before."""
    ids = calibration.ids
    if ids is not None and file.examples[: len(ids)] != ids:
        raise TableError(
            f"{path!r}: the first {len(ids):,} examples were labelled before and stay the first, "
            f"in their order, but the file has others there. Put new labels behind the old ones."
        )
    for position, known in enumerate(calibration.labels):
        for name in calibration.problem.names:
            kept = calibration.losses(name)[position, :known]
            found = file.losses[name][position, :known]
            if found.shape != kept.shape or not np.array_equal(found, kept, equal_nan=True):
                raise TableError(
                    f"{path!r}: the first {known:,} labels were added before and stay as they "
                    f"were, but the losses of {name!r} differ for trial "
                    f"{calibration.trials[position]}. Put new labels behind the old ones, and "
                    f"change none of these."
                )
