"""Ways to search that were tried: the default, and the default with one thing changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from riskpilot.bench.methods import Assignment
from riskpilot.bench.searches import SearchResult, run_search
from riskpilot.common.arrays import FloatArray
from riskpilot.guarantee.region import Interval
from riskpilot.search import (
    GUIDED,
    Model,
    Strategy,
    acquisition,
    choices,
    default_pool_size,
    hypervolume_improvement,
    prospects,
    surrogate,
    uniform,
)
from riskpilot.study.sampler import GuidedSampler

Pool = Callable[[int, int], int]


def own_pool(d: int, n_trials: int) -> int:
    return min(default_pool_size(d), (n_trials + 1) // 2)


@dataclass(frozen=True)
class Search:
    """``pool``: its size, from the number of parameters and of evaluations."""

    strategy: Strategy = GUIDED
    sampler: type[GuidedSampler] = GuidedSampler
    pool: Pool = own_pool
    share: float = 1.0

    def __call__(self, assignment: Assignment) -> SearchResult:
        task = assignment.task
        n_trials = max(round(self.share * task.n_trials), 2)
        sampler = self.sampler(
            assignment.problem,
            n_startup_trials=self.pool(len(task.space), n_trials),
            seed=assignment.seed,
            strategy=self.strategy,
            n_calibration=assignment.n_calibration,
        )
        return run_search(
            task,
            assignment.problem,
            sampler,
            n_trials=n_trials,
            n_calibration=assignment.n_calibration,
            safe=task.safe,
        )


def wider(factor: float) -> choices.Scale:
    """The soft edges of the region, wider or narrower."""

    def scale(region: Sequence[Interval], lift: float) -> Callable[[FloatArray], FloatArray]:
        moved = [replace(part, noise=factor * part.noise) for part in region]
        return choices.chance_to_pass(moved, lift / factor)

    return scale


def looking(look: Callable[[Model, FloatArray], Sequence[FloatArray]]) -> type[GuidedSampler]:
    """A sampler whose improvement is the average over the objectives that ``look`` gives, not that
    of the posterior means."""

    def score(
        model: Model,
        region: Sequence[Interval],
        x: FloatArray,
        strategy: Strategy,
        means: FloatArray | None = None,
        *,
        may_leave: bool = False,
    ) -> tuple[FloatArray, acquisition.Score]:
        plain = _SCORE(model, region, x, strategy, means, may_leave=may_leave)
        evaluated, _ = acquisition.safety(model, region, model.means(x))
        if evaluated > -1.0:  # safety first, as the default does it
            return plain
        transform = strategy.scale(region, 0.0)
        front = transform(strategy.front(model))
        r = transform(strategy.reference(region, model.means(x), model.observations.values)[None])
        news = prospects.novelty(model.observations)

        def improvement(at: FloatArray) -> FloatArray:
            each = [hypervolume_improvement(transform(m), front, r[0]) for m in look(model, at)]
            return np.mean(each, axis=0) * news(at)

        values = improvement(x)
        return (values, improvement) if values.max() > 0 else plain

    class Looking(GuidedSampler):
        def _decide(self, *args: Any, **named: Any) -> dict[str, Any]:
            with mock.patch.object(acquisition, "score", score):
                return super()._decide(*args, **named)

    return Looking


_SCORE = acquisition.score


def optimistic(model: Model, x: FloatArray) -> list[FloatArray]:
    means, stds = model.means_and_stds(x)
    return [means - stds]


def draws(model: Model, x: FloatArray) -> list[FloatArray]:
    """Eight antithetic draws from the posterior at each place: the expected improvement."""
    means, stds = model.means_and_stds(x)
    half = ndtri(0.0005 + 0.999 * qmc.Sobol(means.shape[1], rng=1).random(4))
    return [means + stds * z for z in np.vstack([half, -half])]


@dataclass(frozen=True)
class _Warped:
    """A surrogate of arsinh((risk - centre) / width), read back in the units of the risk."""

    inner: surrogate.Surrogate
    centre: float
    width: float

    def mean(self, x: FloatArray) -> FloatArray:
        return self.centre + self.width * np.sinh(np.clip(self.inner.mean(x), -30, 30))

    def mean_and_std(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, std = self.inner.mean_and_std(x)
        mean = np.clip(mean, -30, 30)
        return self.centre + self.width * np.sinh(mean), std * self.width * np.cosh(mean)


class WarpedRisks(GuidedSampler):
    """Surrogates that see the risks magnified around what passes, ten standard errors wide."""

    def _survey(self, *args: Any) -> Any:
        survey = super()._survey(*args)
        known, parts = survey.model.observations, list(survey.model.surrogates)
        for i, part in enumerate(survey.region):
            if not np.isfinite(part.alpha_max):
                continue
            centre, width = part.alpha_max, max(10 * part.noise, 1e-9)
            z = (known.values[:, i] - centre) / width
            noise = known.variances[:, i] / (width**2 * (1 + z**2))
            inner = surrogate.fit(known.x, np.arcsinh(z), None if np.isnan(noise).any() else noise)
            parts[i] = _Warped(inner, centre, width)
        model = Model(known, tuple(parts))
        return replace(survey, model=model, cover_means=model.means(survey.cover))


def paper_pool(d: int, n_trials: int) -> int:
    return min(5 * d, (n_trials + 1) // 2)


SEARCHES = {
    "default": Search(),
    "hard edges (eq:ref_point)": Search(
        replace(GUIDED, reference=choices.guided_reference, scale=choices.as_they_are)
    ),
    "soft edges 0.7 times as wide": Search(replace(GUIDED, scale=wider(0.7))),
    "soft edges 1.4 times as wide": Search(replace(GUIDED, scale=wider(1.4))),
    "front of raw observations": Search(replace(GUIDED, front=choices.observed_front)),
    "not bold": Search(replace(GUIDED, bold=False)),
    "repeats allowed": Search(replace(GUIDED, avoid_repeats=False)),
    "pool of 5 d, with both ends": Search(pool=paper_pool),
    "pool of 5 d, at random": Search(replace(GUIDED, pool=uniform), pool=paper_pool),
    "optimistic by one deviation": Search(sampler=looking(optimistic)),
    "expected improvement": Search(sampler=looking(draws)),
    "risks magnified near the limit": Search(sampler=WarpedRisks),
    "half of N": Search(share=0.5),
    "half of N, pool with both ends": Search(share=0.5, pool=paper_pool),
    "half of N, expected improvement": Search(share=0.5, sampler=looking(draws)),
}
