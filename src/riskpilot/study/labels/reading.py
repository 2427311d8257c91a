"""Labels of a file added to the calibration of a study: what is new in it, in its order."""

import numpy as np

from riskpilot.errors import TableError
from riskpilot.study.labels.calibration import Calibration
from riskpilot.tables import LabelFile, Wanted, read_label_file


def add_from_file(
    calibration: Calibration, path: str, *, trial: str = "trial", example: str = "example"
) -> int:
    """Add the labels of a file that the calibration does not have yet, and return how many labels
    are new.

    The labels come in the order in which their examples first appear in the file. Those that were
    added before must still be the first ones, with the same losses. A candidate gets its losses up
    to the first example for which the file has none.
    """
    problem = calibration.problem
    wanted = Wanted(problem.names, problem.labels, problem.numbers)
    file = read_label_file(path, calibration.trials, wanted, trial=trial, example=example)
    _check_same(calibration, file, path)
    before = calibration.n_labels
    complete = np.where(file.given.all(axis=1), file.given.shape[1], np.argmin(file.given, axis=1))
    # Candidates that go on from the same label to the same label do so together.
    steps = {
        (calibration.labels[position], int(complete[position])) for position in calibration.needed
    }
    for start, stop in sorted(steps):
        chosen = [
            position
            for position in calibration.needed
            if (calibration.labels[position], int(complete[position])) == (start, stop)
        ]
        if chosen and stop > start:
            batch = {name: values[chosen, start:stop] for name, values in file.losses.items()}
            beside = {name: values[start:stop] for name, values in file.beside.items()}
            calibration.add({**batch, **beside}, candidates=chosen)
    return calibration.n_labels - before


def _check_same(calibration: Calibration, file: LabelFile, path: str) -> None:
    """Refuse a file whose first labels are not those that were added before."""
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
