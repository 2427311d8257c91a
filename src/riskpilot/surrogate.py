"""One Gaussian process per objective, with the noise that is known."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

FloatArray = npt.NDArray[np.float64]

# Priors on the logarithms of the hyper-parameters: (mean, standard deviation). Inputs lie in the
# unit cube and outputs are standardised, so that one set serves every problem.
_OUTPUT_SCALE_PRIOR = (0.0, 1.0)
_LENGTH_SCALE_PRIOR = (math.log(0.5), 0.75)  # the mean grows with log(d) / 2
_NOISE_PRIOR = (math.log(1e-3), 1.5)


class _MapGaussianProcess(GaussianProcessRegressor):  # type: ignore[misc]
    """Maximises the posterior of the hyper-parameters instead of their likelihood."""

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        result = super().log_marginal_likelihood(theta, eval_gradient, clone_kernel)
        if theta is None:
            return result
        mean, deviation = _priors(self.n_features_in_, len(theta))
        z = (np.asarray(theta) - mean) / deviation
        log_prior = -0.5 * float(z @ z)
        if eval_gradient:
            return result[0] + log_prior, result[1] - z / deviation
        return result + log_prior


def _priors(d: int, n_parameters: int) -> tuple[FloatArray, FloatArray]:
    length_mean, length_deviation = _LENGTH_SCALE_PRIOR
    rows = [_OUTPUT_SCALE_PRIOR, *[(length_mean + math.log(d) / 2, length_deviation)] * d]
    if n_parameters > len(rows):
        rows.append(_NOISE_PRIOR)
    table = np.array(rows)
    return table[:, 0], table[:, 1]


@dataclass(frozen=True)
class Surrogate:
    """A fitted process; `mean` and `mean_and_std` are in the units of the objective."""

    process: _MapGaussianProcess
    offset: float
    scale: float

    def mean(self, x: FloatArray) -> FloatArray:
        """The posterior mean at ``x``, shape (n, d). Returns shape (n,)."""
        # The process's own predict() checks its input anew; the mean is one product.
        cross = self.process.kernel_(x, self.process.X_train_)
        result: FloatArray = self.offset + self.scale * (cross @ self.process.alpha_)
        return result

    def mean_and_std(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation (of the objective, not of an observation)."""
        mean, std = self.process.predict(x, return_std=True)
        return self.offset + self.scale * mean, self.scale * std


def fit(x: FloatArray, y: FloatArray, noise_variance: FloatArray | None) -> Surrogate:
    """Fit ``y``, shape (n,), at ``x``, shape (n, d) in the unit cube.

    ``noise_variance``: the squared standard error of each observation, shape (n,); None where it
    is not known, and then it is fitted along.
    """
    offset, scale = float(np.mean(y)), float(np.std(y))
    if scale <= 1e-12 * max(1.0, abs(offset)):
        scale = 1.0  # a constant objective is a flat surrogate
    d = x.shape[1]
    lengths = np.full(d, math.exp(_LENGTH_SCALE_PRIOR[0]) * math.sqrt(d))
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern(lengths, (2e-2, 1e2), nu=2.5)
    jitter: float | FloatArray = 1e-8
    if noise_variance is None:
        kernel = kernel + WhiteKernel(math.exp(_NOISE_PRIOR[0]), (1e-6, 1.0))
    else:
        jitter = noise_variance / scale**2 + 1e-8
    process = _MapGaussianProcess(kernel, alpha=jitter, copy_X_train=False)
    with warnings.catch_warnings():
        # A hyper-parameter at its bound is what the bounds are for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(x, (y - offset) / scale)
    return Surrogate(process, offset, scale)
