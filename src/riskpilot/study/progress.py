"""Progress worth reading: a callback that says what a search has found and may still find."""

import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from riskpilot.common import ShownLine, has_turn
from riskpilot.study.forecast import ahead_in_words, counts_in_words, outlook_of
from riskpilot.study.kept.attributes import problem_of
from riskpilot.study.kept.trials import trials_of
from riskpilot.study.searching import still

# Looking ahead takes about as long as a proposal. After a look so many times its duration pass
# before the next one, so that a quick search spends at most half of its time on looking.
_REST = 1.0
# Where lines cannot be renewed, one is written after so many seconds, or when the number of
# finished trials has doubled.
_SECONDS = 60.0
_clock = time.monotonic
# Whoever drops a callback waits for its last line at most so many seconds.
_LAST_LINE = 10.0


class ShowProgress:
    """Show what a search has found, and what its next evaluation is expected to bring.

    A callback for ``study.optimize`` and `work`. After each trial it says on standard error how
    many are finished, running and failed; which free objective is expected to pass the test on
    calibration data now, and with what chance, or that nothing is so far; and how much one more
    evaluation is expected to gain. A terminal and a notebook show one line that is renewed; a log
    file gets a line when the number of finished trials has doubled, when a minute has passed, and
    at the end: when nothing refers to the callback any more, when it is called for another study,
    or with the process. What a line says is of one moment. All workers of a study are counted. Only
    validation data is seen.

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
        self._shown: _Shown | None = None
        self._end: Callable[[], object] = lambda: None  # ends what is shown of the last study

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Say where the study stands after a trial."""
        with self._turn:  # threads of a study share the line
            now = still(study)
            problem_of(now)  # a study without one is refused
            if self._shown is None or self._shown.study() is not study:
                self._end()
                self._shown = _Shown(study)
                self._end = weakref.finalize(self, _end, self._shown)
            self._shown.renew(now)

    def __reduce__(self) -> tuple[Any, ...]:
        """Begin anew in another process, which has a line of its own."""
        return ShowProgress, ()


class _Shown:
    """What is shown of one study: its line, and its newest state where the line is older."""

    def __init__(self, study: optuna.Study) -> None:
        self.study = weakref.ref(study)
        self._turn = threading.RLock()  # of the search, the timer, and whoever ends the line
        self._line = ShownLine(keep=True)
        self._newest: optuna.Study | None = None
        self._timer: threading.Timer | None = None
        self._look_at = -float("inf")  # when the next look ahead is due
        # When, and at how many finished trials, a log gets its next line.
        self._write_at = -float("inf"), 0

    def renew(self, now: optuna.Study) -> None:
        """Show a newer state of the study, at once or as soon as a look ahead is due."""
        with self._turn:
            self._newest = now
            if not self._line.is_in_place:
                if self._is_due(now):
                    self.make_up()
                return
            rest = self._look_at - _clock()
            if rest <= 0:
                self.make_up()
            elif self._timer is None:
                self._timer = threading.Timer(rest, self.make_up)
                self._timer.daemon = True
                self._timer.start()

    def make_up(self) -> None:
        """Show the newest state where the line is older: its counts and its outlook."""
        with self._turn:
            self._cancel()
            if self._newest is None:
                return
            now, self._newest = self._newest, None
            begin = _clock()
            self._line.show(_words(now))
            end = _clock()
            self._look_at = end + _REST * (end - begin)

    def end(self) -> None:
        """Show the newest state, and leave it as the last line."""
        with self._turn:
            self.make_up()
            self._line.close()

    def _cancel(self) -> None:
        """Let the timer rest: what it waits for happens now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_due(self, now: optuna.Study) -> bool:
        """Tell whether a log is to get a line, and when it is to get the next one."""
        states = [trial.state for trial in trials_of(now)]
        moment, n_finished = _clock(), states.count(TrialState.COMPLETE)
        seconds, doubled = self._write_at
        is_due = moment >= seconds or n_finished >= doubled
        if is_due:
            self._write_at = moment + _SECONDS, max(2 * n_finished, 1)
        return is_due


def _end(shown: _Shown) -> None:
    """End what a callback shows that is gone.

    It may be collected at any moment, also inside a proposal, for whose end its last line has to
    wait. So a thread of its own writes it.
    """
    writer = threading.Thread(target=shown.end, daemon=False)
    try:
        writer.start()
    except RuntimeError:  # the process ends
        shown.end()
        return
    if not has_turn():
        writer.join(_LAST_LINE)


def _words(now: optuna.Study) -> str:
    """Say how many trials there are, what is expected to pass, and what may be gained."""
    trials = trials_of(now)
    counts = counts_in_words(Counter(trial.state.name.lower() for trial in trials))
    return f"{counts}: {ahead_in_words(outlook_of(now), problem_of(now))}"
