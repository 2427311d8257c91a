"""Guided Bayesian optimisation (Algorithm alg:bo) as an Optuna sampler."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.search_space import intersection_search_space
from optuna.trial import FrozenTrial, TrialState
from scipy.spatial import KDTree

from riskpilot.common import one_thread
from riskpilot.errors import ProblemError, shown
from riskpilot.guarantee import DELTA_PRIME, MOST_EXAMPLES, Interval, as_number, interval, is_whole
from riskpilot.losses import ValidationLosses, family
from riskpilot.plots import Search
from riskpilot.problem import P_VALUES, Problem, Risk
from riskpilot.search import Front, Observations, Reference, Scale, acquisition
from riskpilot.study.records import PROBLEM_KEY, SETTINGS_KEY, Record, record_of, validation_of
from riskpilot.study.space import Space, from_unit
from riskpilot.study.storages import exclusive, set_trial_system_attr

FloatArray = npt.NDArray[np.float64]
Pool = Callable[[int, int, np.random.Generator], float]

_NO_LIMIT = Interval(np.inf, np.inf, np.inf, 0, feasible=True)
# Proposals closer than this to an evaluated configuration would only repeat it.
_SAME = 1e-4
# Fewer evaluations than this say nothing about how smooth the risks are.
_ENOUGH_TO_SMOOTH = 4
# What a trial is about to try, for other workers to see before it has begun.
_PROPOSAL_KEY = "riskpilot:proposal"
_REGION_FAMILIES = P_VALUES[1:]  # all but "auto"
LARGEST_SEED = 2**64 - 1
# More trials than any study has: what is larger would only fill the memory.
_LARGEST_POOL = 10**6


def ends_and_latin_hypercube(slot: int, size: int, rng: np.random.Generator) -> float:
    """Where a parameter stands in the given slot of an initial pool of ``size``: lowest first, then
    highest, then the places between, each once, in an order drawn for each parameter. A pool of two
    has the lowest and the middle.

    The draw depends on the parameter alone, so that slots can be filled by different workers.
    """
    if slot == 0:
        return 0.0
    if slot == 1:
        return 0.5 if size == 2 else 1.0
    inner = max(size - 2, 1)
    return float(rng.permutation(inner)[(slot - 2) % inner] + 1) / (inner + 1)


def uniform(slot: int, size: int, rng: np.random.Generator) -> float:
    """Uniformly at random, as in Algorithm alg:selection."""
    return float(rng.random(slot + 1)[slot])


def default_pool_size(d: int) -> int:
    """For d parameters: enough to see the effect of each, few enough to leave budget for more.

    On one parameter, two evaluations are enough to begin: what lies between and beyond them is
    found faster by proposals. In more dimensions a cliff is easily missed.
    """
    return 2 if d <= 1 else min(2 ** (d + 1) - 1, 15)


@dataclass(frozen=True)
class Strategy:
    """The choices that make up a search; a named one is a preset.

    Parameters
    ----------
    pool : callable
        Where a parameter stands in a slot of the initial pool: a function of the slot, the size of
        the pool and a random generator, with values in [0, 1].
    reference, front, scale : callable
        What improvement is measured against, the front that is to be improved, and how risks count
        near their limits: functions of `riskpilot.search.acquisition`.
    safe_first : bool
        Whether a configuration that can pass is looked for before a better one.
    bold : bool
        Whether values count as optimistic as long as everything evaluated is expected to pass.
    avoid_repeats : bool
        Whether improvements count by the chance that no earlier evaluation has shown them.
    region_family : str, optional
        The bounds behind the region of interest; by default those of the risk's own p-value.
    delta_prime : float
        The width of the region of interest; smaller is wider.

    Raises
    ------
    ProblemError
        If a choice is not of its kind.
    """

    pool: Pool = ends_and_latin_hypercube
    reference: Reference = acquisition.open_reference
    front: Front = acquisition.posterior_front
    scale: Scale = acquisition.chance_to_pass
    safe_first: bool = True
    bold: bool = True
    avoid_repeats: bool = True
    region_family: str | None = None
    delta_prime: float = DELTA_PRIME

    def __post_init__(self) -> None:
        for name in ("pool", "reference", "front", "scale"):
            if not callable(value := getattr(self, name)) or isinstance(value, type):
                raise ProblemError(
                    f"Strategy: {name} must be a function, but it is {shown(value)}. Take one of "
                    f"a preset: dataclasses.replace(riskpilot.GUIDED, ...)."
                )
        for name in ("safe_first", "bold", "avoid_repeats"):
            if not isinstance(value := getattr(self, name), bool):
                raise ProblemError(
                    f"Strategy: {name} must be True or False, but it is {shown(value)}. "
                    f"Leave it out for the default."
                )
        family = self.region_family
        if family is not None and not (isinstance(family, str) and family in _REGION_FAMILIES):
            raise ProblemError(
                f"Strategy: region_family must be one of {', '.join(_REGION_FAMILIES)}, "
                f"but it is {shown(family)}. Leave it out for the risk's own test."
            )
        _check_delta_prime(self.delta_prime)


def _check_delta_prime(delta_prime: float) -> None:
    """Refuse a width of the region of interest that is no probability."""
    if not 0 < (as_number(delta_prime) or 0) < 1:
        raise ProblemError(
            f"delta_prime sets the width of the region of interest and must lie in (0, 1), but it "
            f"is {shown(delta_prime)}. Use delta_prime=0.05; smaller is wider."
        )


GUIDED = Strategy()
PAPER = Strategy(
    pool=uniform,
    reference=acquisition.guided_reference,
    front=acquisition.observed_front,
    scale=acquisition.as_they_are,
    safe_first=False,
    bold=False,
    avoid_repeats=False,
    region_family="hoeffding_bentkus",
    delta_prime=1e-4,
)
ONE_SIDED = replace(PAPER, reference=acquisition.one_sided_reference)
HVI = replace(PAPER, reference=acquisition.fixed_reference)


class GuidedSampler(BaseSampler):
    """Proposes configurations whose test on calibration data will be a close call, and worth it.

    Proposals depend on the seed, the trial's number and the finished trials alone, so that a search
    that was interrupted goes on as if it had not been.

    Parameters
    ----------
    problem : Problem
        Risks, limits, delta.
    n_startup_trials : int, optional
        The size of the initial pool; by default 2 for one parameter, 7 for two, 15 for more.
    delta_prime : float, optional
        The width of the region of interest (eq:region_i); smaller is wider.
    seed : int, optional
        The same seed gives the same proposals.
    strategy : Strategy, default GUIDED
        `PAPER` follows the paper to the letter.
    n_calibration : int, optional
        The number of calibration examples, where evaluations do not bring them along.

    Raises
    ------
    ProblemError
        If a setting cannot be meant.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        n_startup_trials: int | None = None,
        delta_prime: float | None = None,
        seed: int | None = None,
        strategy: Strategy = GUIDED,
        n_calibration: int | None = None,
    ) -> None:
        _check_settings(problem, n_startup_trials, delta_prime, n_calibration, seed, strategy)
        self._problem = problem
        self._n_startup_trials = n_startup_trials
        self._strategy = strategy
        self._delta_prime = float(strategy.delta_prime if delta_prime is None else delta_prime)
        self._n_calibration = n_calibration
        fresh = int(np.random.default_rng().integers(2**31))
        self._seed = fresh if seed is None else int(seed)

    def reseed_rng(self) -> None:
        """Nothing to do: every draw depends on the trial's number, so workers never repeat one."""

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        trials = study.get_trials(deepcopy=False)
        space = _space(trials)
        finished = [t for t in trials if t.state == TrialState.COMPLETE and record_of(t)]
        if trial.number < self._pool_size(space) or len(finished) < 2:
            return {}
        return space

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        # One worker at a time: the next one sees this proposal before it makes its own.
        with exclusive(study), one_thread():
            proposal = self._proposal(study, trial, search_space)
            set_trial_system_attr(study, trial, _PROPOSAL_KEY, proposal)
        return proposal

    def _proposal(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        problem = self._current_problem(study)
        rng = self._rng(trial, "proposal")
        state = self._state(study, problem, search_space, trial.number)
        cover = state.space.cover(rng)
        encode = state.space.encode
        open_limits = problem.has_open_limits
        scores, value = acquisition.score(
            state.model,
            state.region,
            encode(cover),
            reference=acquisition.fixed_reference if open_limits else self._strategy.reference,
            front=self._strategy.front,
            scale=acquisition.as_they_are if open_limits else self._strategy.scale,
            safe_first=self._strategy.safe_first and not open_limits,
            bold=self._strategy.bold and not open_limits,
            avoid_repeats=self._strategy.avoid_repeats,
        )
        best = _maximise(lambda p: value(encode(p)), state.space, cover, scores, state.taken, rng)
        return {} if best is None else state.space.config(best)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        trials = study.get_trials(deepcopy=False)
        size = self._pool_size(_space(trials))
        rng = self._rng(None, param_name)
        pool = self._strategy.pool if trial.number < size else uniform
        # A safe configuration that was enqueued first takes the place of the lowest values.
        return from_unit(param_distribution, pool(trial.number, size, rng))

    def region(self, validation: ValidationLosses, n_calibration: int | None) -> list[Interval]:
        """The region of interest that the sample sizes and the spread of the losses imply."""
        m = n_calibration or self._n_calibration or validation.n_examples
        return [
            _NO_LIMIT if risk.limit is None else self._interval(validation, risk, m)
            for risk in validation.problem.risks
        ]

    def picture(self, study: optuna.Study, problem: Problem) -> Search | None:
        """Region, reference point and initial pool as they stand, for drawing."""
        trials = study.get_trials(deepcopy=False)
        space = _space(trials)
        finished = [t for t in trials if t.state == TrialState.COMPLETE and record_of(t)]
        if not space or len(finished) < 2:
            return None
        if not all(space.keys() <= t.params.keys() for t in finished):
            return None
        state = self._state(study, problem, space, None)
        cover = state.space.encode(state.space.cover(np.random.default_rng(self._seed)))
        seen = (state.region, state.model.means(cover), state.model.observations.values)
        reference = self._strategy.reference(*seen)
        if not np.isfinite(reference).all():  # soft edges: draw where the paper's would be
            reference = acquisition.guided_reference(*seen)
        size = self._pool_size(space)
        return Search(
            intervals=tuple(state.region),
            reference=tuple(map(float, reference)),
            pool=tuple(t.number < size for t in finished),
        )

    def _state(
        self,
        study: optuna.Study,
        problem: Problem,
        search_space: dict[str, BaseDistribution],
        current: int | None,
    ) -> "_State":
        space = Space(search_space)
        done, records, pending = split_trials(study, current, search_space)
        points = np.array([space.point(t.params) for t in done])
        waiting = np.array([space.point(p) for p in pending]).reshape(-1, len(search_space))
        validation = validation_of(problem, records)
        observations = Observations(
            space.encode(points), *objectives(validation), space.encode(waiting)
        )
        return _State(
            space,
            acquisition.fit(observations),
            self.region(validation, _n_calibration(records)),
            np.vstack([points, waiting]),
        )

    def _interval(self, validation: ValidationLosses, risk: Risk, m: int) -> Interval:
        summary = validation.risks[risk.name].summary
        n_validation = max(round(float(np.median(summary.n))), 1)
        nearest = int(np.argmin(np.abs(summary.mean - risk.unit_limit)))
        return interval(
            risk,
            self._strategy.region_family or family(risk, summary.binary),
            n_validation=n_validation,
            # A conditional risk counts only a share of the examples: the same share on both.
            n_calibration=max(round(m * n_validation / validation.n_examples), 1),
            delta=validation.problem.delta,
            delta_prime=self._delta_prime,
            std=float(summary.standard_deviation[nearest]),
        )

    def _pool_size(self, space: dict[str, BaseDistribution]) -> int:
        if self._n_startup_trials is not None:
            return self._n_startup_trials
        return default_pool_size(len(space))

    def _rng(self, trial: FrozenTrial | None, purpose: str) -> np.random.Generator:
        number = [] if trial is None else [trial.number]
        return np.random.default_rng([self._seed, zlib.crc32(purpose.encode()), *number])

    def _current_problem(self, study: optuna.Study) -> Problem:
        """Limits may have been set since the sampler was made; the study knows."""
        stored = study.user_attrs.get(PROBLEM_KEY)
        return self._problem if stored is None else Problem.from_dict(stored)


def _check_settings(
    problem: Problem,
    n_startup_trials: int | None,
    delta_prime: float | None,
    n_calibration: int | None,
    seed: int | None,
    strategy: Strategy,
) -> None:
    """Refuse settings that no search can use."""
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"GuidedSampler takes a Problem first, but got a {type(problem).__name__}. "
            f'Write GuidedSampler(Problem([Risk("error", limit=0.1)], minimize="cost")).'
        )
    if not isinstance(strategy, Strategy):
        raise ProblemError(
            f"strategy must be a Strategy, such as riskpilot.GUIDED or riskpilot.PAPER, but it is "
            f"{shown(strategy)}. Leave it out for the default."
        )
    if delta_prime is not None:
        _check_delta_prime(delta_prime)
    for name, value, least, most in (
        ("n_startup_trials", n_startup_trials, 0, _LARGEST_POOL),
        ("n_calibration", n_calibration, 1, MOST_EXAMPLES),
        ("seed", seed, 0, LARGEST_SEED),
    ):
        if value is not None and not is_whole(value, least, most):
            raise ProblemError(
                f"{name} must be a whole number of at least {least} and at most {most}, but it is "
                f"{shown(value)}. Leave it out for the default."
            )


@dataclass(frozen=True)
class _State:
    """All that a proposal needs: the space, the fitted model, the region, and what is taken."""

    space: Space
    model: acquisition.Model
    region: list[Interval]
    taken: FloatArray


def sampler_for(study: optuna.Study, problem: Problem, seed: int) -> GuidedSampler:
    """The default sampler of a study, as its stored settings say."""
    n_calibration = study.user_attrs.get(SETTINGS_KEY, {}).get("n_calibration")
    return GuidedSampler(problem, seed=seed, n_calibration=n_calibration)


def _space(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    return intersection_search_space(list(trials))


def split_trials(
    study: optuna.Study, current: int | None, search_space: dict[str, BaseDistribution]
) -> tuple[list[FrozenTrial], list[Record], list[dict[str, Any]]]:
    """Finished trials with their records, and configurations that will bring nothing new: others
    evaluate them or are about to, or they failed and would probably fail again. Both count as if
    they had met their means, so that proposals leave their neighbourhood, too."""
    done, records, pending = [], [], []
    trials = study.get_trials(deepcopy=False)
    # A trial whose worker died says nothing about its configuration, which another one tries.
    retried = {number for t in trials for number in t.system_attrs.get("retry_history", ())}
    for other in trials:
        params = {**other.system_attrs.get(_PROPOSAL_KEY, {}), **other.params}
        if not search_space.keys() <= params.keys() or other.number == current:
            continue
        if other.state == TrialState.COMPLETE and (record := record_of(other)) is not None:
            done.append(other)
            records.append(record)
        elif other.state == TrialState.RUNNING or (
            other.state == TrialState.FAIL and other.number not in retried
        ):
            pending.append(params)
    return done, records, pending


def _n_calibration(records: Sequence[Record]) -> int | None:
    return next((r.n_calibration for r in reversed(records) if r.n_calibration), None)


def objectives(validation: ValidationLosses) -> tuple[FloatArray, FloatArray]:
    """Values and noise variances, shape (n, c + 1) each; NaN where the noise is not known."""
    values, variances = [], []
    for risk in validation.problem.risks:
        summary = validation.risks[risk.name].summary
        values.append(risk.from_unit(summary.mean))
        variances.append(((risk.top - risk.bottom) * summary.standard_error) ** 2)
    error = validation.free_error
    values.append(validation.free)
    variances.append(np.full(len(validation.free), np.nan) if error is None else error**2)
    return np.column_stack(values), np.column_stack(variances)


def smoothed_risks(
    space: Mapping[str, BaseDistribution],
    configs: Sequence[Mapping[str, Any]],
    validation: ValidationLosses,
) -> FloatArray | None:
    """Estimates of the risks that lean on neighbouring configurations, shape (n, c).

    The smallest of many noisy means is small by luck, too, and the surrogate's posterior mean at
    the same configuration says so; where the surrogate does not fit, the mean does. The larger of
    both counts: a configuration is safe when its own examples and its neighbours agree. None where
    configurations cannot be compared: they have different parameters, or there are too few.
    """
    if len(configs) < _ENOUGH_TO_SMOOTH or not space:
        return None
    if any(config.keys() != space.keys() for config in configs):
        return None
    places = Space(space)
    x = places.encode(np.array([places.point(config) for config in configs]))
    values, variances = objectives(validation)
    risks = Observations(x, values[:, :-1], variances[:, :-1], np.empty((0, x.shape[1])))
    with one_thread():
        return np.maximum(risks.values, acquisition.fit(risks).means(x))


def _maximise(
    value: Callable[[FloatArray], FloatArray],
    space: Space,
    cover: FloatArray,
    scores: FloatArray,
    taken: FloatArray,
    rng: np.random.Generator,
) -> FloatArray | None:
    """The best new point of the cover, refined twice; None where every point has been tried.

    ``scores``: the values at the cover, shape (len(cover),).
    """
    taken_tree = KDTree(taken)
    new = _is_new(cover, taken_tree)
    if not new.any():
        return None
    candidates, scores = cover[new], scores[new]
    for scale in (0.05, 0.01):
        top = candidates[np.argsort(-scores)[:4]]
        more = space.near(top, scale, 64, rng)
        more = more[_is_new(more, taken_tree)]
        if len(more):
            candidates = np.vstack([candidates, more])
            scores = np.append(scores, value(more))
    best: FloatArray = candidates[int(np.argmax(scores))]
    return best


def _is_new(candidates: FloatArray, taken: KDTree) -> npt.NDArray[np.bool_]:
    """Which candidates differ from everything tried so far in some coordinate, shape (n,)."""
    gaps, _ = taken.query(candidates, p=np.inf, distance_upper_bound=2 * _SAME)
    return np.asarray(gaps > _SAME)


def picture(study: optuna.Study, problem: Problem) -> Search | None:
    """What the search looked like at its end: region, reference point, and which trials were first.

    None where the search cannot be told (another sampler, too few trials, a mixed space).
    """
    sampler = study.sampler
    if not isinstance(sampler, GuidedSampler) or problem.has_open_limits:
        return None
    return sampler.picture(study, problem)
