"""A surrogate that leans on that of an earlier study, as far as it proves right."""

import math
from dataclasses import dataclass

import numpy as np

from riskpilot.common.arrays import FloatArray
from riskpilot.search import surrogate
from riskpilot.search.surrogate import Surrogate


@dataclass(frozen=True)
class Believed:
    """Two surrogates of one objective, mixed.

    ``alone`` knows the observations of the study; ``rest`` knows what they differ by from
    ``earlier``, the surrogate of an earlier study. ``belief``: the weight of the latter two.
    """

    alone: Surrogate
    earlier: Surrogate
    rest: Surrogate
    belief: float

    def mean(self, x: FloatArray) -> FloatArray:
        """Compute the mean at ``x``, shape (n, d); returns shape (n,)."""
        leaning = self.earlier.mean(x) + self.rest.mean(x)
        return self.belief * leaning + (1 - self.belief) * self.alone.mean(x)

    def mean_and_std(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean and standard deviation of the mixture at ``x``, shape (n,) each."""
        mean, std = self.alone.mean_and_std(x)
        before, before_std = self.earlier.mean_and_std(x)
        rest, rest_std = self.rest.mean_and_std(x)
        w, apart = self.belief, before + rest - mean
        variance = w * (before_std**2 + rest_std**2) + (1 - w) * std**2 + w * (1 - w) * apart**2
        return mean + w * apart, np.sqrt(variance)


def fit_believing(
    x: FloatArray,
    y: FloatArray,
    noise_variance: FloatArray | None,
    earlier: Surrogate,
    *,
    caution: float = 0.0,
    at_checkpoints: bool = False,
) -> Believed:
    """Fit a surrogate to observations with the help of an earlier one.

    The arguments are those of `surrogate.fit`; where the earlier one helps, it takes the place of
    caution. Two things say how far the earlier one is to be
    believed: how well each observation is foretold by all others with it and without it, and how
    much of the spread of the observations it explains. Between observations that lie close both
    ways foretell well, and the second matters: a misleading surrogate adds spread, and would lead
    astray where nothing was observed.
    """
    alone = surrogate.fit(x, y, noise_variance, caution=caution, at_checkpoints=at_checkpoints)
    differences = y - earlier.mean(x)
    rest = surrogate.fit(x, differences, noise_variance, at_checkpoints=at_checkpoints)
    return Believed(alone, earlier, rest, _belief(y, differences, noise_variance, alone, rest))


def _belief(
    y: FloatArray,
    differences: FloatArray,
    noise_variance: FloatArray | None,
    alone: Surrogate,
    rest: Surrogate,
) -> float:
    """Weigh an earlier surrogate by what it explains of the observations and foretells of each.

    Observations that are all the same have no spread to be explained: the earlier surrogate is then
    right where it says the same of them up to noise, and wrong elsewhere. ``differences``: of the
    observations from it; ``alone`` and ``rest``: as in `Believed`.
    """
    if surrogate.is_flat(differences):
        return 1.0
    if surrogate.is_flat(y):
        noise = 0.0 if noise_variance is None else float(noise_variance.mean())
        return float(np.var(differences) <= noise)
    explained = len(y) * math.log(alone.scale / rest.scale)
    evidence = rest.foresight() - alone.foresight() + explained
    return 1 / (1 + math.exp(-max(min(evidence, 30.0), -30.0)))
