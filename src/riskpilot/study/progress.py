"""Progress worth reading: a callback that says what a search has found and may still find."""

import threading
import time
from collections import Counter
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from riskpilot.common import ShownLine
from riskpilot.search import Outlook
from riskpilot.study.forecast import counts_in_words, expected_in_words, gain_in_words, outlook_of
from riskpilot.study.kept.attributes import problem_of
from riskpilot.study.kept.trials import finished_among, trials_of
from riskpilot.study.searching import still

# Looking ahead takes about as long as a proposal; between two looks so many seconds pass.
_PAUSE = 2.0
# Where lines cannot be renewed, one is written after so many seconds, or when the number of
# finished trials has doubled.
_SECONDS = 60.0


class ShowProgress:
    """Show what a search has found, and what its next evaluation is expected to bring.

    A callback for ``study.optimize`` and `work`. After each trial it says on standard error how
    many are finished, running and failed; which free objective is expected to pass the test on
    calibration data now, and with what chance, or that nothing is so far; and how much one more
    evaluation is expected to gain. A terminal and a notebook show one line that is renewed; a log
    file gets a line when the number of finished trials has doubled, or a minute has passed. All
    workers of a study are counted. Only validation data is seen.

    Examples
    --------
    >>> import numpy as np, riskpilot as rp
    >>> study = rp.create_study(rp.Problem([rp.Risk("error", 0.2)], minimize="cost"), seed=0)
    >>> draws = np.random.default_rng(0).random((2, 2000))
    >>> def evaluate(trial):
    ...     x = trial.suggest_float("x", 0, 1)
    ...     errors = draws < 0.5 * x
    ...     return rp.Evaluation({"error": errors[0], "cost": 1 - x}, {"error": errors[1]})
    >>> objective = rp.objective(study, evaluate)
    >>> study.optimize(objective, n_trials=6, callbacks=[rp.ShowProgress()])
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._line: ShownLine | None = None
        self._ahead: Outlook | None = None
        self._look_at = -float("inf")  # when the next look ahead is due
        self._write_at = -float("inf"), 0  # when, and at how many trials, the next line is due

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Say where the study stands after a trial."""
        with self._turn:  # threads of a study share the line
            if self._line is None:
                self._line = ShownLine(keep=True)
            now = still(study)
            problem_of(now)  # a study without one is refused
            if self._line.is_in_place or self._is_due(now):
                self._line.show(self._words(now))

    def __reduce__(self) -> tuple[Any, ...]:
        """Begin anew in another process, which has a line of its own."""
        return ShowProgress, ()

    def _is_due(self, now: optuna.Study) -> bool:
        """Tell whether a log is to get a line, and when it is to get the next one."""
        moment, n_trials = time.monotonic(), len(trials_of(now))
        seconds, doubled = self._write_at
        is_due = moment >= seconds or n_trials >= doubled
        if is_due:
            self._write_at = moment + _SECONDS, 2 * n_trials
        return is_due

    def _words(self, now: optuna.Study) -> str:
        """Say how many trials there are, what is expected to pass, and what may be gained."""
        trials = trials_of(now)
        counts = counts_in_words(Counter(trial.state.name.lower() for trial in trials))
        values = [record.free for record in finished_among(trials).records]
        ahead = self._looked_ahead(now)
        words = f"{counts}: {expected_in_words(ahead, problem_of(now).minimize)}"
        if ahead is None:
            return words
        gain = gain_in_words(ahead, values)
        return f"{words}; one more evaluation is expected to gain {gain}"

    def _looked_ahead(self, now: optuna.Study) -> Outlook | None:
        """Look ahead, or return what was seen where the last look was a moment ago."""
        if time.monotonic() >= self._look_at:
            self._ahead = outlook_of(now)
            if self._ahead is not None:  # to see that it is too early takes no time
                self._look_at = time.monotonic() + _PAUSE
        return self._ahead
