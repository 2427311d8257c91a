"""The initial pool of a search: where its first evaluations stand, and how many there are."""

from collections.abc import Callable

import numpy as np

Pool = Callable[[int, int, np.random.Generator], float]


def ends_and_latin_hypercube(slot: int, size: int, rng: np.random.Generator) -> float:
    """Place a parameter at the ends of its range first, then at the places between, each once.

    The order of the places between is drawn for each parameter. The draw depends on the parameter
    alone, so that slots can be filled by different workers.

    Parameters
    ----------
    slot : int
        The number of the evaluation in the pool, from 0: the first has the lowest value, the second
        the highest; the second of a pool of two has the middle.
    size : int
        How many evaluations the pool has.
    rng : numpy.random.Generator
        The source of randomness, the same for every slot of a parameter.

    Returns
    -------
    float
        The place in [0, 1].
    """
    if slot == 0:
        return 0.0
    if slot == 1:
        return 0.5 if size == 2 else 1.0
    inner = max(size - 2, 1)
    return float(rng.permutation(inner)[(slot - 2) % inner] + 1) / (inner + 1)


def uniform(slot: int, size: int, rng: np.random.Generator) -> float:
    """Draw the place of a parameter uniformly at random, as the paper's Algorithm 2 does.

    Parameters
    ----------
    slot : int
        The number of the evaluation in the pool, from 0.
    size : int
        How many evaluations the pool has; it does not matter here.
    rng : numpy.random.Generator
        The source of randomness, the same for every slot of a parameter.

    Returns
    -------
    float
        The place in [0, 1].
    """
    return float(rng.random(slot + 1)[slot])


# Up to so many numbers, proposals find their way from two evaluations; beyond, from so many.
_FEW = 3
_OF_MANY = 8
# Where one of two parameters is a choice, so many.
_TWO_WITH_CHOICES = 7


def default_pool_size(d: int, *, has_choices: bool = False) -> int:
    """Choose the size of the initial pool for ``d`` parameters.

    Where there are few numbers, two evaluations are enough to begin: what lies between and beyond
    them is found faster by proposals. Among many parameters a larger pool shows which of them
    matter. So it does where there are choices (``has_choices``): each has to be seen before
    anything is known of it, and other parameters may exist under one of them alone.
    """
    if has_choices and d == 2:
        return _TWO_WITH_CHOICES
    return _OF_MANY if d > _FEW or (has_choices and d > 1) else 2
