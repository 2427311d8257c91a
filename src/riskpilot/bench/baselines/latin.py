"""A Latin hypercube: every parameter visits each of n equal parts of its range once."""

from optuna.distributions import BaseDistribution

from riskpilot.bench.baselines.pool import PoolSampler, generator, settled
from riskpilot.errors import StudyError
from riskpilot.study import uniform


class LatinHypercubeSampler(PoolSampler):
    """``n_trials`` configurations in a Latin hypercube; those after it are uniformly random.

    For one parameter the paper draws at random (`RandomSampler`), for several it uses this.
    """

    def __init__(self, n_trials: int, *, seed: int | None = None) -> None:
        if n_trials < 1:
            raise StudyError(
                f"A Latin hypercube needs at least one trial, but n_trials is {n_trials}. "
                f"Give the number of trials of the study."
            )
        self._n_trials = n_trials
        self._seed = settled(seed)

    def place(self, slot: int, name: str, distribution: BaseDistribution) -> float:
        inside = uniform(slot, self._n_trials, generator(self._seed, f"inside {name}"))
        if slot >= self._n_trials:
            return inside
        part = generator(self._seed, name).permutation(self._n_trials)[slot]
        return (int(part) + inside) / self._n_trials
