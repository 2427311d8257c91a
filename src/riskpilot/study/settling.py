"""When to stop: a callback that ends a study whose next evaluation is not worth it."""

import math

import optuna
from optuna.trial import FrozenTrial

from riskpilot.errors import ProblemError, StudyError, shown, type_in_words
from riskpilot.guarantee import as_number
from riskpilot.search import Outlook
from riskpilot.study.kept.earlier import earlier_of
from riskpilot.study.kept.trials import study_space, trials_of, was_evaluated
from riskpilot.study.sampler import GuidedSampler
from riskpilot.study.survey import unless_misled

# Fewer evaluations for each parameter do not show what a space holds: where their outlook is flat,
# that says little.
_FOR_EACH_PARAMETER = 5
# So many evaluations are enough, however many parameters there are.
_ENOUGH = 20
# A gain below this share of the distance between free objectives is a rounding error.
_ROUNDING = 1e-9


class StopWhenSettled:
    """End a study when its next evaluation is not expected to gain enough.

    A callback for ``study.optimize``. After each trial it asks the sampler by how much the free
    objective of the choice is expected to fall with one more evaluation, and ends the study when
    that is too little, and was so before the latest evaluation, too. It never ends a study before
    something is more likely to pass on calibration data than not, nor before there are five
    evaluations for each parameter, of which 20 are enough; those of an earlier study (`warm_start`)
    take their place. Only validation data is seen, so that the guarantee holds however the study
    ends. The trials alone decide: a study that is resumed ends as if it had not been interrupted,
    and all of its workers agree.

    Parameters
    ----------
    gain : float, optional
        The smallest expected gain that is worth an evaluation, in the units of the free objective.
        A gain below a billionth of the distance between the smallest and the largest free objective
        of all evaluations is a rounding error, and never worth one. Where all have the same free
        objective, nothing shows that there is anything to gain, and the study ends.
    share : float, optional
        The same as a share of the best free objective so far among evaluations that are more likely
        to pass than not. It takes the place of ``gain``. Where that best one is closer to 0 than
        the same share of the distance between the smallest and the largest free objective, it
        counts as 0, and what is worth an evaluation is that share of the distance. So it is where
        free objectives span a factor of more than 1 / share, such as 200, and the study may then
        end while much can be gained: give ``gain``, or minimise the logarithm. For a free objective
        that may be negative, whose 0 means nothing, give ``gain``.

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

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Look ahead after a trial, and stop the study where it is settled."""
        if not isinstance(study.sampler, GuidedSampler):
            raise StudyError(
                f"StopWhenSettled asks the guided sampler what may still be gained, but this study "
                f"has {type_in_words(study.sampler)}. Leave sampler out of create_study."
            )
        latest = _latest(study)
        # A single look may be flat by luck; two in a row are not. The second one costs a fit of the
        # surrogates, and is seldom asked for.
        if (
            latest is not None
            and self._is_settled(study.sampler.outlook(study))
            and self._is_settled(study.sampler.outlook(study, without=[latest]))
        ):
            study.stop()

    def _is_settled(self, ahead: Outlook | None) -> bool:
        """Tell whether something is likely to pass, and the next evaluation not worth it."""
        if ahead is None or ahead.free is None:
            return False
        return ahead.gain < self._smallest(ahead.free, ahead.spread)

    def _smallest(self, best: float, spread: float) -> float:
        """Return the smallest gain that is worth an evaluation.

        ``best``: the free objective that is to fall; ``spread``: how far those so far lie apart.
        """
        scale = abs(best)
        if self._share and scale <= self._share * spread:  # no gain is below a share of nothing
            scale = spread or math.inf
        return max(self._gain + self._share * scale, _ROUNDING * spread)


def _latest(study: optuna.Study) -> int | None:
    """Return the number of the latest evaluation; None where those before it are too few."""
    trials = trials_of(study)
    done = [trial.number for trial in trials if was_evaluated(trial)]
    enough = enough_evaluations(len(study_space(study, trials)))
    knows_more = unless_misled(earlier_of(study), trials) is not None
    return done[-1] if done and (len(done) > enough or knows_more) else None


def enough_evaluations(n_parameters: int) -> int:
    """Return how many evaluations of so many parameters an outlook is believed with."""
    return min(_FOR_EACH_PARAMETER * n_parameters, _ENOUGH)
