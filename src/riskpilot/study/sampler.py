"""Guided Bayesian optimisation as an Optuna sampler."""

import zlib
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from riskpilot.common import one_thread
from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.errors import StudyError
from riskpilot.guarantee import DOUBT, TRUST, Interval, SearchOutline, region_of
from riskpilot.losses import ValidationLosses, was_used_as_number
from riskpilot.problem import Problem
from riskpilot.search import (
    GUIDED,
    MOST_OBSERVATIONS,
    Outlook,
    Strategy,
    acquisition,
    check_hedge,
    guided_reference,
    outlook,
    uniform,
    without_limits,
)
from riskpilot.study.kept.attributes import problem_of, stated_calibration
from riskpilot.study.kept.earlier import Earlier, earlier_of
from riskpilot.study.kept.trials import (
    PROPOSAL_KEY,
    finished_with_losses,
    study_space,
    trials_of,
    tried,
)
from riskpilot.study.proposals import (
    Score,
    at_untried_choices,
    best_new_point,
    bold_step,
    enough_to_learn,
    is_turn_of_any_choice,
    off_the_line,
    unlike_tried,
)
from riskpilot.study.sampler_settings import check_settings
from riskpilot.study.space import Space, check_width, from_unit, pool_size
from riskpilot.study.storages import (
    exclusive,
    is_optimizing,
    set_trial_state,
    set_trial_system_attr,
)
from riskpilot.study.survey import (
    Survey,
    branched_space,
    survey,
    tried_first,
    unless_misled,
    with_pending,
)


class GuidedSampler(BaseSampler):
    """Propose configurations whose test on calibration data will be a close call, and worth it.

    This is the guided Bayesian optimisation of the paper as an Optuna sampler. Proposals depend on
    the seed, the trial's number and the other trials, finished and running. A search that was
    interrupted between two trials goes on as if it had not been.

    Parameters
    ----------
    problem : Problem
        The risks with their limits, the free objective, and delta.
    n_startup_trials : int, optional
        The size of the initial pool; by default 2 for up to three parameters that are numbers and
        8 for more. Where one is a choice: 2 for one parameter, 7 for two, 8 for more. Queued
        configurations count, as all trials do.
    delta_prime : float, optional
        The width of the region of interest; smaller is wider. By default that of the strategy.
    trust : float, optional
        The chance that validation is not too optimistic; 1 trusts it. By default that of the
        strategy, 0.7 for `GUIDED`.
    doubt : float, optional
        By up to what share of the largest mean that passes validation risks are too low otherwise,
        for instance because models were stopped early on them. By default that of the strategy,
        0.2 for `GUIDED`.
    seed : int, optional
        The same seed gives the same proposals; by default one is drawn.
    strategy : Strategy, default GUIDED
        The choices that make up the search. `PAPER` follows the paper's equations; failed trials,
        and whatever else the paper leaves open, are handled as in the default.
    n_calibration : int, optional
        The number of calibration examples, for evaluations that do not bring their losses. By
        default it is what `create_study` was told, or else the number of validation examples.

    Raises
    ------
    ProblemError
        If an argument is not of its kind or lies outside its range.

    Examples
    --------
    >>> from riskpilot import PAPER, Problem, Risk, create_study
    >>> problem = Problem([Risk("error", 0.2)], minimize="cost")
    >>> sampler = GuidedSampler(problem, n_startup_trials=5, strategy=PAPER, seed=0)
    >>> study = create_study(problem, sampler=sampler)
    """

    def __init__(
        self,
        problem: Problem,
        *,
        n_startup_trials: int | None = None,
        delta_prime: float | None = None,
        trust: float | None = None,
        doubt: float | None = None,
        seed: int | None = None,
        strategy: Strategy = GUIDED,
        n_calibration: int | None = None,
    ) -> None:
        check_settings(problem, n_startup_trials, delta_prime, n_calibration, seed, strategy)
        trust = strategy.trust if trust is None else trust
        doubt = strategy.doubt if doubt is None else doubt
        check_hedge(trust, doubt)
        self._problem = problem
        self._n_startup_trials = n_startup_trials
        self._strategy = strategy
        self._delta_prime = float(strategy.delta_prime if delta_prime is None else delta_prime)
        self._trust, self._doubt = float(trust), float(doubt)
        self._n_calibration = n_calibration
        fresh = int(np.random.default_rng().integers(2**31))
        self._seed = fresh if seed is None else int(seed)
        self._misled = False  # whether an objective gave its evaluation to Optuna

    def reseed_rng(self) -> None:
        """Do nothing: every draw depends on the trial's number, so that workers never repeat one.

        Optuna calls this in every worker.
        """

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Refuse to go on where the last objective gave its evaluation to Optuna."""
        if self._misled:
            self._misled = False
            set_trial_state(study, trial, TrialState.FAIL)
            raise StudyError(
                "study.optimize takes an objective that riskpilot made, but this one returns an "
                "Evaluation to Optuna, which cannot keep it, so that its trial failed. Write "
                "study.optimize(riskpilot.objective(study, evaluate), n_trials=...)."
            )

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Notice an evaluation that was given to Optuna instead of to riskpilot."""
        if not was_used_as_number() or state != TrialState.FAIL:
            return
        if is_optimizing(study):
            self._misled = True  # Optuna swallows what is raised here; the next trial raises
            return
        raise StudyError(
            f"study.tell takes numbers, but got an Evaluation, so that trial {trial.number} "
            f"failed. Use riskpilot.tell(study, trial, evaluation), and put this configuration in "
            f"line again with study.enqueue_trial(trial.params)."
        )

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        trials = trials_of(study)
        earlier, space = earlier_of(study), study_space(study, trials)
        if earlier is not None:
            earlier.check_space(space, finished=True)
        earlier = unless_misled(earlier, trials)
        if earlier is not None:
            space = dict(earlier.space)
            if tried_first(earlier, trial.number, trials) is not None:
                return space
        if trial.number < self._pool_size(study, space, trials) or not enough_to_learn(trials):
            return {}
        return space

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        trials = trials_of(study)
        earlier = unless_misled(earlier_of(study), trials)
        first = tried_first(earlier, trial.number, trials)
        if first is not None:
            return dict(first)
        # The limits may have been set since the sampler was made.
        problem = problem_of(study, otherwise=self._problem)
        rng = self._rng(trial, "proposal")
        with one_thread():
            # Other workers need not wait while this one fits its surrogates.
            others = [other for other in trials if other.number != trial.number]
            space = branched_space(others, search_space, earlier)
            cover = space.cover(rng)
            fitted = self._survey(study, others, problem, space, cover, earlier)
            while True:
                # One worker at a time decides: the next one sees this proposal before it does.
                with exclusive(study) as is_held:
                    others = [other for other in trials_of(study) if other.number != trial.number]
                    known = with_pending(fitted, others)
                    proposal = self._decide(known, problem, cover, rng, trial.number)
                    set_trial_system_attr(study, trial, PROPOSAL_KEY, proposal)
                    # A worker that was stopped in here, or waited for its storage, may have lost
                    # its turn to another one, which did not see this proposal.
                    if is_held():
                        return proposal

    def _decide(
        self,
        known: Survey,
        problem: Problem,
        cover: FloatArray,
        rng: np.random.Generator,
        number: int,
    ) -> dict[str, Any]:
        """Find the configuration that a trial is to try; none where everything has been tried."""
        encode = known.space.encode
        strategy = without_limits(self._strategy) if problem.has_open_limits else self._strategy
        scores, value = acquisition.score(
            known.model,
            known.region,
            known.cover,
            strategy,
            known.cover_means,
            may_leave=not problem.has_open_limits,
        )

        def worth(points: FloatArray) -> FloatArray:
            return value(encode(points))

        space, taken = known.space, known.tried
        score: Score = worth
        if number % 2 == 0:  # choices may be many: what is known is followed in between
            is_cold = strategy.exploration > 0 and not len(known.model.earlier_places)
            any_choice = is_cold and is_turn_of_any_choice(number)
            score, scores = at_untried_choices(worth, space, cover, scores, taken, any_choice)
        explores = strategy.exploration > 0 and known.has_penalties
        if explores or acquisition.is_exploring(known.model, strategy):
            score, scores = off_the_line(score, space, cover, scores, taken)
        best = best_new_point(score, space, cover, scores, taken, rng, known.front)
        if best is None:
            return {}
        if acquisition.is_bold_step(known.model, known.region, strategy):

            def may_pass(points: FloatArray) -> BoolArray:
                return acquisition.may_pass(known.model, known.region, encode(points))

            best = bold_step(best, score, may_pass, space, cover, taken, rng)
        return space.config(best)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        if (earlier := earlier_of(study)) is not None:
            earlier.check_space({param_name: param_distribution})
        check_width(param_name, param_distribution)
        trials = trials_of(study)
        if space := study_space(study, trials):
            size = self._pool_size(study, space, trials)
        else:  # workers that begin together go by what was asked for; others may not be far yet
            asked = {name: dist for t in trials for name, dist in t.distributions.items()}
            asked[param_name] = param_distribution
            size = self._pool_size(study, asked, trials, at_least=2)
        rng = self._rng(None, param_name)
        pool = self._strategy.pool if trial.number < size else uniform
        # A safe configuration that was enqueued first takes the place of the lowest values.
        value = from_unit(param_distribution, pool(trial.number, size, rng))
        seen, again = tried(trials), self._rng(trial, param_name)
        return unlike_tried(value, param_name, param_distribution, trial.params, seen, again)

    def snapshot(self, study: optuna.Study, problem: Problem) -> SearchOutline | None:
        """Return region, reference point and initial pool as they stand, for drawing.

        Parameters
        ----------
        study : optuna.Study
            The study that is searched.
        problem : Problem
            Its problem, with all limits set.

        Returns
        -------
        SearchOutline or None
            None where there are too few trials.
        """
        trials = trials_of(study)
        search_space = study_space(study, trials)
        done = finished_with_losses(trials)
        if not search_space or len(done) < 2:
            return None
        earlier = unless_misled(earlier_of(study), trials)
        space = branched_space(trials, search_space, earlier)
        cover = space.cover(np.random.default_rng(self._seed))
        with one_thread():  # as in proposals, which may use what is learned here
            fitted = self._survey(study, trials, problem, space, cover, earlier)
        known = (fitted.region, fitted.cover_means, fitted.model.observations.values)
        reference = self._strategy.reference(*known)
        if not np.isfinite(reference).all():  # soft edges: draw where the paper's would be
            reference = guided_reference(*known)
        size = self._pool_size(study, search_space, trials)
        return SearchOutline(
            intervals=tuple(fitted.region),
            reference=tuple(map(float, reference)),
            pool=tuple(t.number < size for t in done),
        )

    def outlook(self, study: optuna.Study, *, without: Container[int] = ()) -> Outlook | None:
        """Look ahead: what the next evaluation may bring, from validation data alone.

        Parameters
        ----------
        study : optuna.Study
            The study that is searched.
        without : container of int, optional
            The numbers of trials to leave out, for the outlook as it was before them.

        Returns
        -------
        Outlook or None
            None where there are too few trials, or open limits.
        """
        problem = problem_of(study, otherwise=self._problem)
        search_space = study_space(study)
        trials = [trial for trial in trials_of(study) if trial.number not in without]
        pool = self._pool_size(study, search_space, trials)
        n_ended = sum(trial.state.is_finished() for trial in trials)  # some may have failed
        is_early = n_ended < pool or not enough_to_learn(trials)
        if problem.has_open_limits or not search_space or is_early:
            return None
        with one_thread():
            earlier = unless_misled(earlier_of(study), trials)
            space = branched_space(trials, search_space, earlier)
            cover = space.cover(np.random.default_rng(self._seed))
            fitted = self._survey(study, trials, problem, space, cover, earlier)
            known = with_pending(fitted, trials)
            return outlook(known.model, known.region, known.cover, self._strategy, known.whole)

    def _survey(
        self,
        study: optuna.Study,
        trials: Sequence[FrozenTrial],
        problem: Problem,
        space: Space,
        cover: FloatArray,
        earlier: Earlier | None = None,
        most: int = MOST_OBSERVATIONS,
    ) -> Survey:
        """Fit surrogates to at most so many finished trials, and find the region of interest."""
        region = partial(self._region, stated=stated_calibration(study))
        return survey(trials, problem, space, cover, region, self._strategy, most, earlier)

    def _region(
        self, validation: ValidationLosses, n_calibration: int | None, stated: int | None = None
    ) -> list[Interval]:
        """Compute the region of interest, for the calibration examples that evaluations bring, or
        for the sampler's own number of them, or for what the study was told."""
        return region_of(
            validation,
            n_calibration or self._n_calibration or stated,
            region_family=self._strategy.region_family,
            delta_prime=self._delta_prime,
            trust=self._trust,
            doubt=self._doubt,
        )

    def _pool_size(
        self,
        study: optuna.Study,
        space: Mapping[str, BaseDistribution],
        trials: Sequence[FrozenTrial],
        *,
        at_least: int = 0,
    ) -> int:
        """Return the size of the initial pool: half of it where an earlier study shows the rest.

        ``trials``: those of the study, which tell whether the earlier one misleads.
        """
        if self._n_startup_trials is not None:
            return self._n_startup_trials
        size, earlier = pool_size(space, at_least=at_least), earlier_of(study)
        return size if unless_misled(earlier, trials) is None else max(2, (size + 1) // 2)

    def _rng(self, trial: FrozenTrial | None, purpose: str) -> np.random.Generator:
        """Make the generator of one draw, from the seed, the purpose and the trial's number."""
        number = [] if trial is None else [trial.number]
        return np.random.default_rng([self._seed, zlib.crc32(purpose.encode()), *number])


def steering_region(
    study: optuna.Study, validation: ValidationLosses, n_calibration: int | None
) -> list[Interval]:
    """Compute the region of interest that a study's sampler steers to, or else the default one."""
    if isinstance(study.sampler, GuidedSampler):
        return study.sampler._region(validation, n_calibration)
    return region_of(validation, n_calibration, trust=TRUST, doubt=DOUBT)
