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
# Where there are choices among more than two parameters, so many. The first ones come at once, and
# then every third evaluation is of the pool, so that few evaluations are not spent on it alone.
_WITH_CHOICES, _AT_ONCE, _EVERY = 15, 5, 3


def default_pool_size(d: int, *, has_choices: bool = False) -> int:
    """Choose the size of the initial pool for ``d`` parameters.

    Where there are few numbers, two evaluations are enough to begin: what lies between and beyond
    them is found faster by proposals. Among many parameters a larger pool shows which of them
    matter. Where there are choices (``has_choices``) it is larger still: each has to be seen before
    anything is known of it, and other parameters may exist under one of them alone. `slot_of` says
    when its places are filled.
    """
    if has_choices and d > 1:
        return 7 if d == 2 else _WITH_CHOICES
    return 2 if d <= _FEW else _OF_MANY


def at_once(size: int) -> int:
    """Return how many evaluations of the default pool of a size come before the first proposal."""
    return _AT_ONCE if size == _WITH_CHOICES else size


def slot_of(number: int, size: int) -> int | None:
    """Return which place of the default pool an evaluation takes; None where it is a proposal.

    ``number``: of the evaluation, from 0; ``size``: of the pool.

    >>> [slot_of(number, 8) for number in range(6, 10)]
    [6, 7, None, None]
    >>> [slot_of(number, 15) for number in range(3, 12)]
    [3, 4, None, None, 5, None, None, 6, None]
    """
    first = at_once(size)
    if number < first:
        return number
    turn, rest = divmod(number - first, _EVERY)
    slot = first + turn
    return slot if rest == _EVERY - 1 and slot < size else None
