"""Configurations drawn uniformly at random."""

from optuna.distributions import BaseDistribution

from riskpilot.bench.baselines.pool import PoolSampler, generator, settled
from riskpilot.study import uniform


class RandomSampler(PoolSampler):
    """Uniform over the space (over logarithms where a parameter says so).

    >>> import riskpilot as rp
    >>> problem = rp.Problem([rp.Risk("error", limit=0.2)], minimize="cost")
    >>> study = rp.create_study(problem, sampler=RandomSampler(seed=0))
    >>> 0 <= study.ask().suggest_float("x", 0, 1) <= 1
    True
    """

    def __init__(self, *, seed: int | None = None) -> None:
        self._seed = settled(seed)

    def place(self, slot: int, name: str, distribution: BaseDistribution) -> float:
        return uniform(slot, slot + 1, generator(self._seed, name))
