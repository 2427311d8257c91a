"""A uniform grid over the space."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution

from riskpilot.bench.baselines.pool import PoolSampler, generator, settled
from riskpilot.errors import StudyError
from riskpilot.study import n_values, uniform


class GridSampler(PoolSampler):
    """``n_trials`` configurations on a uniform grid over ``space``, ends included.

    With several parameters the grid is the largest that `even_sides` finds; the few trials that it
    leaves over, and any beyond ``n_trials``, are uniformly random. Neighbours on the grid come one
    after the other, the last parameter changing fastest.

    >>> import riskpilot as rp
    >>> from optuna.distributions import FloatDistribution
    >>> problem = rp.Problem([rp.Risk("error", limit=0.2)], minimize="cost")
    >>> grid = GridSampler({"x": FloatDistribution(0, 1)}, n_trials=5)
    >>> study = rp.create_study(problem, sampler=grid)
    >>> [study.ask().suggest_float("x", 0, 1) for _ in range(5)]
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """

    def __init__(
        self, space: Mapping[str, BaseDistribution], n_trials: int, *, seed: int | None = None
    ) -> None:
        if n_trials < 1 or not space:
            raise StudyError(
                f"A grid needs a trial and a parameter at least, but n_trials is {n_trials} and "
                f"the space has {len(space)} parameters. Give both as the study will use them."
            )
        self._names = list(space)
        self._sides = even_sides(n_trials, [n_values(space[name]) for name in space])
        self._seed = settled(seed)

    def place(self, slot: int, name: str, distribution: BaseDistribution) -> float:
        if name not in self._names:
            raise StudyError(
                f"The grid was made for {', '.join(self._names)}, but a trial asks for {name!r}. "
                f"Name every parameter in GridSampler(space, ...)."
            )
        if slot >= math.prod(self._sides):
            return uniform(slot, slot + 1, generator(self._seed, name))
        axis = self._names.index(name)
        side, step = self._sides[axis], int(np.unravel_index(slot, self._sides)[axis])
        if side == 1 or isinstance(distribution, CategoricalDistribution):
            return (step + 0.5) / side
        return step / (side - 1)


def even_sides(n: int, most: Sequence[float]) -> tuple[int, ...]:
    """How many values each parameter takes on a grid of at most ``n`` points.

    ``most``: how many values each has at all, infinite for continuous ones. The shortest side that
    can grow does, one value at a time, until none can: sides stay as even as the number allows.

    >>> even_sides(6480, [math.inf] * 3), even_sides(50, [math.inf] * 3), even_sides(15, [2, 99])
    ((20, 18, 18), (4, 4, 3), (2, 7))
    """
    sides = [1] * len(most)
    while True:
        fitting = [
            i
            for i, side in enumerate(sides)
            if side < most[i] and math.prod(sides) // side * (side + 1) <= n
        ]
        if not fitting:
            return tuple(sides)
        sides[min(fitting, key=lambda i: sides[i])] += 1
