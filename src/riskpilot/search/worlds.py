"""What validation may be worth: right, or too optimistic about all risks by one share.

Two risks are measured on the same examples of the same models. Where models were stopped early on
them, or they are of another month, they are too optimistic about both: a configuration that keeps
one limit with a margin and misses the other is no help then.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from riskpilot.common.arrays import FloatArray
from riskpilot.guarantee import Interval
from riskpilot.search.choices import Scale, chance_to_pass
from riskpilot.search.hypervolume import improvement_over

# Places and weights at which the share is looked at, between none and all of the doubt.
_PLACES, _WEIGHTS = (part / 2 for part in np.polynomial.legendre.leggauss(6))
# One risk needs no worlds: its chance to pass is an average already. Beyond two, volumes are slow
# to compute, and each risk hedges for itself.
_TOGETHER = 2


def worlds(region: Sequence[Interval]) -> list[tuple[float, Sequence[Interval]]]:
    """Return regions of interest with their weights, each of which trusts validation.

    In one of them it is right; in the others what passes lies lower, by one share of the doubt for
    all risks. Where there is nothing to hedge together, the only one is the region as it is.
    """
    trust = min(part.trust for part in region)
    if len(region) != _TOGETHER or trust == 1:
        return [(1.0, region)]
    hedged: list[tuple[float, Sequence[Interval]]] = [(trust, _moved(region, 0.0))]
    for place, weight in zip(_PLACES + 0.5, _WEIGHTS, strict=True):
        hedged.append(((1 - trust) * float(weight), _moved(region, float(place))))
    return hedged


def _moved(region: Sequence[Interval], share: float) -> list[Interval]:
    """Lower what passes by a share of the doubt; where only no loss passes, nothing is moved."""
    return [
        part
        if part.without_loss is not None
        else replace(part, alpha_max=part.alpha_max - share * part.doubt, trust=1.0, doubt=0.0)
        for part in region
    ]


def passing_chances(region: Sequence[Interval], points: FloatArray) -> FloatArray:
    """Compute the chances to pass on calibration data; points of (n, c + 1), returns shape (n,)."""
    chances = np.zeros(len(points))
    for weight, world in worlds(region):
        missed = chance_to_pass(world, 0.0)(points)[:, :-1]
        chances += weight * np.prod(1 - missed, axis=1)
    return chances


def volume_added(
    front: FloatArray,
    reference: FloatArray,
    region: Sequence[Interval],
    scale: Scale = chance_to_pass,
    lift: float = 0.0,
) -> tuple[Callable[[FloatArray], FloatArray], float]:
    """Make the function of objectives that gives by how much they improve a front, in the mean.

    ``front`` and ``reference``: objectives, (n, c + 1) and (c + 1,); the mean is over what
    validation may be worth. The function takes points of shape (m, c + 1) and returns shape (m,).
    Also returns the volume between the reference and the best of each objective on the front,
    beside which improvements are large or small.
    """
    parts, largest = [], 0.0
    for weight, world in worlds(region):
        transform = scale(world, lift)
        points, r = transform(front), transform(reference[None])[0]
        parts.append((weight, transform, improvement_over(points, r)))
        bottom = points.min(axis=0, initial=np.inf)
        largest += weight * float(np.prod(np.maximum(r - bottom, 0.0)))

    def added(points: FloatArray) -> FloatArray:
        volumes = [weight * volume(transform(points)) for weight, transform, volume in parts]
        total: FloatArray = np.sum(volumes, axis=0)
        return total

    return added, largest
