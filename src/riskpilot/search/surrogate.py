"""One Gaussian process per objective, with the noise that is known.

Matern 5/2 with an output scale and a length scale per input. The hyper-parameters maximise their
posterior (MAP). Written out here because every proposal waits for these fits: they take a tenth of
the time of general-purpose implementations.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs
from scipy.optimize import minimize

FloatArray = npt.NDArray[np.float64]

# Priors on the logarithms of the hyper-parameters: (mean, standard deviation). Inputs lie in the
# unit cube and outputs are standardised, so that one set serves every problem.
_OUTPUT_SCALE_PRIOR = (0.0, 1.0)
_LENGTH_SCALE_PRIOR = (math.log(0.5), 0.75)  # the mean grows with log(d) / 2
_NOISE_PRIOR = (math.log(1e-3), 1.5)
# Bounds on the same, as they are.
_OUTPUT_SCALE_BOUNDS = (1e-2, 1e2)
_LENGTH_SCALE_BOUNDS = (2e-2, 1e2)
_NOISE_BOUNDS = (1e-6, 1.0)
_JITTER = 1e-8
_BLOCK_NUMBERS = 1 << 14  # covariances are built in blocks that stay in the cache
# A log posterior within 1e-3 of its maximum is as good as the maximum.
_TOLERANCE = {"ftol": 1e-7, "gtol": 1e-2}
# Hyper-parameters are learned from at most this many observations, evenly picked: the cost grows
# with the cube. Predictions rest on all observations; measured at 150 to 300, their errors are
# larger by 1 % (one input) to 6 % (six) for it.
_ENOUGH = 128


@dataclass(frozen=True)
class Surrogate:
    """A fitted process; `mean` and `mean_and_std` are in the units of the objective.

    ``x``: (n, d); ``lengths``: (d,); ``factor``: (n, n), the lower Cholesky factor of the
    covariance of the observations, whose inverse times the observations are the ``weights``.
    """

    x: FloatArray
    lengths: FloatArray
    output_scale: float
    factor: FloatArray
    weights: FloatArray
    offset: float
    scale: float

    def mean(self, x: FloatArray) -> FloatArray:
        """The posterior mean at ``x``, shape (n, d). Returns shape (n,)."""
        step = max(1, _BLOCK_NUMBERS // len(self.x))
        parts = [self._covariance(x[i : i + step]) @ self.weights for i in range(0, len(x), step)]
        return self.offset + self.scale * np.concatenate([np.empty(0), *parts])

    def mean_and_std(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation (of the objective, not of an observation)."""
        cross = self._covariance(x)
        explained, _ = dtrtrs(self.factor, cross.T, lower=1)
        variance = self.output_scale - np.einsum("ij,ij->j", explained, explained)
        std = np.sqrt(np.maximum(variance, 0.0))
        return self.offset + self.scale * (cross @ self.weights), self.scale * std

    def _covariance(self, x: FloatArray) -> FloatArray:
        """Between the objective at ``x`` and at the observations, shape (len(x), n)."""
        return self.output_scale * _correlation(x / self.lengths, self.x / self.lengths)


def fit(x: FloatArray, y: FloatArray, noise_variance: FloatArray | None) -> Surrogate:
    """Fit ``y``, shape (n,), at ``x``, shape (n, d) in the unit cube.

    ``noise_variance``: the squared standard error of each observation, shape (n,); None where it
    is not known, and then it is fitted along.
    """
    offset, scale = float(np.mean(y)), float(np.std(y))
    if scale <= 1e-12 * max(1.0, abs(offset)):
        scale = 1.0  # a constant objective is a flat surrogate
    known = None if noise_variance is None else noise_variance / scale**2
    z = (y - offset) / scale
    step = math.ceil(len(y) / _ENOUGH)
    posterior = _Posterior(x[::step], z[::step], None if known is None else known[::step])
    theta = _maximum(posterior)
    d = x.shape[1]
    lengths, output_scale = np.exp(theta[1 : d + 1]), math.exp(theta[0])
    if step == 1:
        factor, weights = posterior.solve(theta)
    else:
        noise = math.exp(theta[-1]) if known is None else known
        factor = _large_factor(x / lengths, output_scale, noise + _JITTER)
        weights, _ = dpotrs(factor, z, lower=1)
    return Surrogate(x, lengths, output_scale, factor, weights, offset, scale)


def _maximum(posterior: "_Posterior") -> FloatArray:
    start, _, bounds = posterior.priors()  # the search starts where the prior is highest
    found = minimize(
        posterior, start, jac=True, method="L-BFGS-B", bounds=bounds, options=_TOLERANCE
    )
    best: FloatArray = np.clip(found.x, bounds[:, 0], bounds[:, 1])
    return best


class _Posterior:
    """Minus the log posterior of theta = log(output scale, d length scales, noise if unknown)."""

    def __init__(self, x: FloatArray, y: FloatArray, noise_variance: FloatArray | None) -> None:
        n, self._d = x.shape
        # Pairs i < j: the kernel is symmetric, and 1 on its diagonal.
        self._i, self._j = i, j = np.triu_indices(n, 1)
        self._lower = j + n * i  # row j, column i in a matrix stored by columns
        self._gaps = (x[i] - x[j]).T ** 2  # (d, n (n - 1) / 2)
        self._y = y
        self._noise = noise_variance
        self._mean, self._deviation, _ = self.priors()

    def priors(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Means, standard deviations, and bounds, shape (len(theta), 2), of theta."""
        length_mean, length_deviation = _LENGTH_SCALE_PRIOR
        lengths = [(length_mean + math.log(self._d) / 2, length_deviation)] * self._d
        noise = [_NOISE_PRIOR] if self._noise is None else []
        table = np.array([_OUTPUT_SCALE_PRIOR, *lengths, *noise])
        noise_bounds = [_NOISE_BOUNDS] if self._noise is None else []
        bounds = [_OUTPUT_SCALE_BOUNDS, *[_LENGTH_SCALE_BOUNDS] * self._d, *noise_bounds]
        return table[:, 0], table[:, 1], np.log(bounds)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """The value and its gradient."""
        inverse_squares = np.exp(-2 * theta[1 : self._d + 1])
        correlation, r, decay = _matern(inverse_squares @ self._gaps)
        slope = (5 / 3) * (1 + r) * decay  # minus twice the derivative by the squared distance
        covariance, output_scale = self._covariance(theta, correlation)
        factor, info = dpotrf(covariance, lower=1, overwrite_a=1)
        if info:  # not positive definite: no place to stay
            return 1e25, np.zeros_like(theta)
        weights, _ = dpotrs(factor, self._y, lower=1)
        log_likelihood = -0.5 * (self._y @ weights) - np.log(factor.diagonal()).sum()
        inverse, _ = dpotri(factor, lower=1)  # its lower triangle
        # Half the derivative by the covariance, for pairs i < j (twice, by symmetry) and i = j.
        by_pair = weights[self._i] * weights[self._j]
        by_pair -= inverse.ravel(order="K")[self._lower]
        by_diagonal = 0.5 * (weights**2 - inverse.diagonal())
        gradient = np.empty_like(theta)
        gradient[0] = output_scale * (by_pair @ correlation + by_diagonal.sum())
        gradient[1 : self._d + 1] = inverse_squares * (
            self._gaps @ (by_pair * slope * output_scale)
        )
        if self._noise is None:
            gradient[-1] = math.exp(theta[-1]) * by_diagonal.sum()
        z = (theta - self._mean) / self._deviation
        return 0.5 * float(z @ z) - log_likelihood, z / self._deviation - gradient

    def solve(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The Cholesky factor of the observations' covariance, and the weights of their values."""
        correlation, _, _ = _matern(np.exp(-2 * theta[1 : self._d + 1]) @ self._gaps)
        factor, _ = dpotrf(self._covariance(theta, correlation)[0], lower=1, overwrite_a=1)
        return factor, dpotrs(factor, self._y, lower=1)[0]

    def _covariance(self, theta: FloatArray, correlation: FloatArray) -> tuple[FloatArray, float]:
        """Of the observations, its lower triangle, and the output scale."""
        n = len(self._y)
        output_scale = math.exp(theta[0])
        noise = math.exp(theta[-1]) if self._noise is None else self._noise
        by_columns = np.zeros(n * n)
        by_columns[self._lower] = output_scale * correlation
        by_columns[:: n + 1] = output_scale + noise + _JITTER
        return by_columns.reshape((n, n), order="F"), output_scale


def _large_factor(x: FloatArray, output_scale: float, noise: FloatArray | float) -> FloatArray:
    """The Cholesky factor of the covariance at ``x``, shape (n, d), in the memory of one matrix."""
    n = len(x)
    covariance = np.empty((n, n), order="F")
    step = max(1, _BLOCK_NUMBERS // n)
    for start in range(0, n, step):
        covariance[start : start + step] = output_scale * _correlation(x[start : start + step], x)
    covariance[np.diag_indices(n)] = output_scale + noise
    factor: FloatArray = dpotrf(covariance, lower=1, overwrite_a=1)[0]
    return factor


def _correlation(a: FloatArray, b: FloatArray) -> FloatArray:
    """Between places that are divided by the length scales, shape (len(a), len(b))."""
    squares = a @ (-2 * b.T)
    squares += (a**2).sum(axis=1)[:, None]
    squares += (b**2).sum(axis=1)
    return _matern(np.maximum(squares, 0.0, out=squares))[0]


def _matern(squares: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Matern 5/2 at squared scaled distances; also r, the distances times sqrt(5), and exp(-r)."""
    r = np.sqrt(5 * squares)
    decay = np.exp(-r)
    correlation = r / 3
    correlation += 1
    correlation *= r
    correlation += 1  # 1 + r + r^2 / 3, built in place: these arrays are the largest there are
    correlation *= decay
    return correlation, r, decay
