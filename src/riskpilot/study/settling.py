"""When to stop: a callback that ends a study whose next evaluation is not worth it."""

import math

import optuna
from optuna.trial import FrozenTrial

from riskpilot.errors import ProblemError, StudyError, shown
from riskpilot.guarantee import as_number
from riskpilot.study.sampler import GuidedSampler

# A single look may be flat by luck; so many in a row are not.
_LOOKS = 2
# A gain below this share of the distance between free objectives is a rounding error.
_ROUNDING = 1e-9


class StopWhenSettled:
    """End a study when its next evaluation is not expected to gain enough.

    A callback for ``study.optimize``. After each trial it asks the sampler by how much the free
    objective of the choice is expected to fall with one more evaluation, and ends the study when
    that is too little twice in a row. It never ends a study before something is more likely to
    pass on calibration data than not. Only validation data is seen, so that the guarantee holds
    however the study ends.

    Parameters
    ----------
    gain : float, optional
        The smallest expected gain that is worth an evaluation, in the units of the free objective.
        A gain below a billionth of the distance between the smallest and the largest free objective
        of all evaluations is a rounding error, and never worth one.
    share : float, optional
        The same as a share of the best free objective so far among evaluations that are more likely
        to pass than not. It takes the place of ``gain``. Where that best one is closer to 0 than
        the same share of the distance between the smallest and the largest free objective, it
        counts as 0, and what is worth an evaluation is that share of the distance; where all are 0,
        nothing tells them apart, and the study ends. For a free objective that may be negative,
        whose 0 means nothing, give ``gain``.

    Raises
    ------
    ProblemError
        If not exactly one of the two is given, or if it is not a number above 0; a share must be
        below 1.

    Examples
    --------
    >>> import numpy as np, riskpilot as rp
    >>> problem = rp.Problem([rp.Risk("error", 0.2)], minimize="cost")
    >>> study = rp.create_study(problem, seed=0, safe={"x": 0.0})
    >>> draws = np.random.default_rng(0).random((2, 2000))
    >>> def evaluate(trial):
    ...     x = trial.suggest_float("x", 0, 1)
    ...     errors = draws < 0.5 * x
    ...     return rp.Evaluation({"error": errors[0], "cost": 1 - x}, {"error": errors[1]})
    >>> stop = rp.StopWhenSettled(gain=0.005)
    >>> study.optimize(rp.objective(study, evaluate), n_trials=50, callbacks=[stop])
    >>> len(study.trials) < 20
    True
    """

    def __init__(self, gain: float | None = None, *, share: float | None = None) -> None:
        if (gain is None) == (share is None):
            raise ProblemError(
                "StopWhenSettled goes by a gain in the units of the free objective or by a share "
                "of it, but got both or neither. Write StopWhenSettled(gain=0.01), or "
                "StopWhenSettled(share=0.005)."
            )
        if share is None and not (as_number(gain) or 0) > 0:
            raise ProblemError(
                f"gain is the smallest gain of the free objective that is worth an evaluation and "
                f"must be above 0, but it is {shown(gain)}. Use about 1 % of the free objective."
            )
        if gain is None and not 0 < (as_number(share) or 0) < 1:
            raise ProblemError(
                f"share is the smallest gain that is worth an evaluation, as a share of the free "
                f"objective, and must lie between 0 and 1, but it is {shown(share)}. "
                f"Use share=0.005."
            )
        # The one that was not given adds nothing to what a gain must reach.
        self._gain, self._share = float(gain or 0), float(share or 0)
        self._looks = 0

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Look ahead after a trial, and stop the study where it is settled."""
        if not isinstance(study.sampler, GuidedSampler):
            raise StudyError(
                f"StopWhenSettled asks the guided sampler what may still be gained, but this study "
                f"has a {type(study.sampler).__name__}. Leave sampler out of create_study."
            )
        ahead = study.sampler.outlook(study)
        settled = (
            ahead is not None
            and ahead.free is not None
            and ahead.gain < self._smallest(ahead.free, ahead.spread)
        )
        self._looks = self._looks + 1 if settled else 0
        if self._looks >= _LOOKS:
            study.stop()

    def _smallest(self, best: float, spread: float) -> float:
        """Return the smallest gain that is worth an evaluation.

        ``best``: the free objective that is to fall; ``spread``: how far those so far lie apart.
        """
        scale = abs(best)
        if self._share and scale <= self._share * spread:  # no gain is below a share of nothing
            scale = spread or math.inf
        return max(self._gain + self._share * scale, _ROUNDING * spread)
