"""One Gaussian process per objective, with the noise that is known.

Matern 5/2 with an output scale and a length scale per input. The hyper-parameters maximise their
posterior (MAP). Written out here because every proposal waits for these fits: they take a tenth of
the time of general-purpose implementations.
"""

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs
from scipy.optimize import minimize

from riskpilot.common.arrays import FloatArray, IntArray

# Priors on the logarithms of the hyper-parameters: (mean, standard deviation). Inputs lie in the
# unit cube and outputs are standardised, so that one set serves every problem.
_OUTPUT_SCALE_PRIOR = (0.0, 1.0)
_LENGTH_SCALE_PRIOR = (math.log(0.5), 0.75)  # the mean grows with log(d) / 2
_NOISE_PRIOR = (math.log(1e-3), 1.5)
_MISFIT_PRIOR = (math.log(1e-4), 1.5)  # noise beside the one that is known
# Bounds on the hyper-parameters themselves, not on their logarithms.
_OUTPUT_SCALE_BOUNDS = (1e-2, 1e2)
_LENGTH_SCALE_BOUNDS = (2e-2, 1e2)
_NOISE_BOUNDS = (1e-6, 1.0)
_JITTER = 1e-8
_SMALLEST = 1e-100  # what differs by less is the same; squares of smaller numbers become 0
_BLOCK_NUMBERS = 1 << 14  # covariances are built in blocks that stay in the cache
# A log posterior within 1e-3 of its maximum is as good as the maximum.
_TOLERANCE = {"ftol": 1e-7, "gtol": 1e-2}
# Hyper-parameters are learned from at most this many observations, evenly picked. Predictions rest
# on all; measured at 150 to 300, their errors are larger by 1 % (one input) to 6 % (six) for it.
_ENOUGH = 128
# From so many observations on, hyper-parameters hardly change with one more of them.
_MANY = 72
# The latest observations do not count at checkpoints: where several workers evaluate, others that
# were begun before them are yet to come.
_LATEST = 8


@dataclass(frozen=True)
class Surrogate:
    """A fitted Gaussian process, whose means and deviations are in the units of the objective.

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
        """Compute the posterior mean at ``x``, shape (n, d); returns shape (n,)."""
        step = max(1, _BLOCK_NUMBERS // len(self.x))
        parts = [self._covariance(x[i : i + step]) @ self.weights for i in range(0, len(x), step)]
        return self.offset + self.scale * np.concatenate([np.empty(0), *parts])

    def mean_and_std(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the posterior mean and standard deviation of the objective, shape (n,) each.

        The deviation is that of the objective itself, without the noise of an observation.
        """
        cross = self._covariance(x)
        explained, _ = dtrtrs(self.factor, cross.T, lower=1)
        variance = self.output_scale - np.einsum("ij,ij->j", explained, explained)
        std = np.sqrt(np.maximum(variance, 0.0))
        return self.offset + self.scale * (cross @ self.weights), self.scale * std

    def foresight(self) -> float:
        """Compute the log density with which every observation is foretold by all others.

        Of a process this follows from the inverse of the covariance of the observations.
        """
        inverse, _ = dpotri(self.factor, lower=1)
        precision = inverse.diagonal()
        misses = self.weights / precision
        densities = np.log(precision) / 2 - precision * misses**2 / 2 - math.log(self.scale)
        return float(densities.sum())

    def _covariance(self, x: FloatArray) -> FloatArray:
        """Compute covariances between the objective at ``x`` and at the observations.

        Returns shape (len(x), n).
        """
        covariance = _correlation(x / self.lengths, *self._observed)
        covariance *= self.output_scale
        return covariance

    @functools.cached_property
    def _observed(self) -> tuple[FloatArray, FloatArray]:
        """The places of the observations in units of the length scales, as `_correlation` asks."""
        return _prepared(self.x / self.lengths)


def fit(
    x: FloatArray,
    y: FloatArray,
    noise_variance: FloatArray | None,
    *,
    misfit: bool = False,
    caution: float = 0.0,
    at_checkpoints: bool = False,
) -> Surrogate:
    """Fit a process to the values ``y``, shape (n,), at ``x``, shape (n, d) in the unit cube.

    ``noise_variance``: the squared standard error of each observation, shape (n,); None where it
    is not known, and then it is fitted with the other hyper-parameters. ``misfit``: whether noise
    is fitted beside a known one too, for what no smooth process can follow: where it has to follow
    steps between neighbours, its length scales become so small that it forgets, a little further
    on, what it knows. ``caution``: by how many deviations of the observed values the process is
    expected to lie above their mean where nothing was observed. ``at_checkpoints``: whether many
    observations share their hyper-parameters with the next ones, so that one fit after another
    takes a fraction of the time; see `checkpoint`.
    """
    data = replace(_standardised(x, y, noise_variance, caution), misfit=misfit)
    known = checkpoint(len(y)) if at_checkpoints else len(y)
    if known < len(y):
        noise = None if noise_variance is None else noise_variance[:known].tobytes()
        shape = (known, x.shape[1])
        theta = _learned(shape, x[:known].tobytes(), y[:known].tobytes(), noise, misfit, caution)
        return _conditioned(data, theta, None)
    posterior = data.posterior()
    theta = _maximum(posterior)
    return _conditioned(data, theta, posterior.solve(theta) if len(y) <= _ENOUGH else None)


def checkpoint(n: int) -> int:
    """Return how many of ``n`` observations hyper-parameters are learned from, at checkpoints.

    Up to 71 these are all. Then they are the first 64, 72, 80 and so on to 128, further on 144, 160
    and so on to 256, always in steps of a sixteenth to an eighth, so that many numbers share one.

    >>> [checkpoint(n) for n in (71, 72, 79, 80, 200, 300)]
    [71, 64, 64, 72, 192, 288]
    """
    if n < _MANY:
        return n
    settled = n - _LATEST
    return settled - settled % (1 << (settled.bit_length() - 4))


@functools.lru_cache(maxsize=64)
def _learned(
    shape: tuple[int, int], x: bytes, y: bytes, noise: bytes | None, misfit: bool, caution: float
) -> FloatArray:
    """Learn hyper-parameters from the bytes of arrays, the same in every process, and keep them.

    The arguments are those of `fit`, for ``shape``: (n, d).
    """
    places = np.frombuffer(x).reshape(shape)
    variances = None if noise is None else np.frombuffer(noise)
    data = _standardised(places, np.frombuffer(y), variances, caution)
    theta = _maximum(replace(data, misfit=misfit).posterior())
    theta.setflags(write=False)  # it is handed out again and again
    return theta


def smoothed(
    x: FloatArray, y: FloatArray, noise_variance: FloatArray | None, most: int
) -> FloatArray:
    """Compute the posterior mean at each observation from it and its neighbours, shape (n,).

    The arguments are those of `fit`. Up to ``most`` observations are one process. More of them are
    cut into blocks of at most ``most`` neighbours, each a process of its own with the same
    hyper-parameters, so that time and memory grow with the number of observations and not with its
    cube and its square.
    """
    if len(y) <= most:
        return fit(x, y, noise_variance).mean(x)
    data = _standardised(x, y, noise_variance)
    theta = _maximum(data.posterior())
    means = np.empty(len(y))
    for block in _blocks(x, most):
        means[block] = _conditioned(data.rows(block), theta, None).mean(x[block])
    return means


def _blocks(x: FloatArray, most: int) -> list[IntArray]:
    """Cut places into blocks of at most ``most`` neighbours; returns the rows of each.

    A block that is too large is halved along the coordinate in which it is widest. Coordinates
    count to nine digits and rows break ties, so that another machine makes the same blocks.
    """
    places = np.round(x, 9)
    waiting, done = [np.arange(len(x))], []
    while waiting:
        rows = waiting.pop()
        if len(rows) <= most:
            done.append(rows)
            continue
        along = int(np.argmax(np.ptp(places[rows], axis=0)))
        in_order = rows[np.argsort(places[rows, along], kind="stable")]
        waiting += [np.sort(half) for half in np.array_split(in_order, 2)]
    return done


@dataclass(frozen=True)
class _Standardised:
    """Observations with values ``z`` of deviation 1, and their noise on that scale.

    0 is what a value is expected to be where nothing was observed.
    """

    x: FloatArray
    z: FloatArray
    noise: FloatArray | None
    offset: float
    scale: float
    misfit: bool = False

    def rows(self, rows: slice | IntArray) -> "_Standardised":
        """Return some of the observations, on the scale of all of them."""
        noise = None if self.noise is None else self.noise[rows]
        return replace(self, x=self.x[rows], z=self.z[rows], noise=noise)

    def posterior(self) -> "_Posterior":
        """Return the posterior of the hyper-parameters, given at most `_ENOUGH` observations."""
        part = self.rows(slice(None, None, math.ceil(len(self.z) / _ENOUGH)))
        return _Posterior(part.x, part.z, part.noise, misfit=self.misfit)


def is_flat(y: FloatArray) -> bool:
    """Tell whether values differ by no more than rounding errors."""
    return float(np.std(y)) <= max(1e-12 * abs(float(np.mean(y))), _SMALLEST)


def _standardised(
    x: FloatArray, y: FloatArray, noise_variance: FloatArray | None, caution: float = 0.0
) -> _Standardised:
    """Standardise the values of observations; ``caution``: as in `fit`."""
    offset, scale = float(np.mean(y)), float(np.std(y))
    if is_flat(y):
        scale = 1.0  # a constant objective is a flat surrogate
    else:
        offset += caution * scale
    known = None if noise_variance is None else noise_variance / scale**2
    return _Standardised(x, (y - offset) / scale, known, offset, scale)


def _conditioned(
    data: _Standardised, theta: FloatArray, solved: tuple[FloatArray, FloatArray] | None
) -> Surrogate:
    """Make the process with these hyper-parameters, given observations.

    ``solved``: the factor and the weights, where they are known already.
    """
    d = data.x.shape[1]
    lengths, output_scale = np.exp(theta[1 : d + 1]), math.exp(theta[0])
    if solved is None:
        noise = _noise(theta, d, data.noise)
        factor = _large_factor(data.x / lengths, output_scale, noise + _JITTER)
        solved = factor, dpotrs(factor, data.z, lower=1)[0]
    return Surrogate(data.x, lengths, output_scale, *solved, data.offset, data.scale)


def _maximum(posterior: "_Posterior") -> FloatArray:
    """Find the hyper-parameters, as logarithms, that maximise their posterior."""
    start, _, bounds = posterior.priors()  # the search starts where the prior is highest
    found = minimize(
        posterior, start, jac=True, method="L-BFGS-B", bounds=bounds, options=_TOLERANCE
    )
    best: FloatArray = np.clip(found.x, bounds[:, 0], bounds[:, 1])
    return best


class _Posterior:
    """Minus the log posterior of theta = log(output scale, d length scales, noise if unknown).

    ``misfit``: whether a noise is fitted in any case.
    """

    def __init__(
        self,
        x: FloatArray,
        y: FloatArray,
        noise_variance: FloatArray | None,
        *,
        misfit: bool = False,
    ) -> None:
        n, self._d = x.shape
        # Pairs i < j: the kernel is symmetric, and 1 on its diagonal.
        self._i, self._j = i, j = np.triu_indices(n, 1)
        self._lower = j + n * i  # row j, column i in a matrix stored by columns
        self._gaps = (x[i] - x[j]).T ** 2  # (d, n (n - 1) / 2)
        self._y = y
        self._noise = noise_variance
        self._fits_noise = misfit or noise_variance is None
        self._mean, self._deviation, _ = self.priors()

    def priors(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return means and standard deviations of theta, and its bounds, shape (len(theta), 2)."""
        length_mean, length_deviation = _LENGTH_SCALE_PRIOR
        lengths = [(length_mean + math.log(self._d) / 2, length_deviation)] * self._d
        noise = [_NOISE_PRIOR if self._noise is None else _MISFIT_PRIOR] * self._fits_noise
        table = np.array([_OUTPUT_SCALE_PRIOR, *lengths, *noise])
        noise_bounds = [_NOISE_BOUNDS] * self._fits_noise
        bounds = [_OUTPUT_SCALE_BOUNDS, *[_LENGTH_SCALE_BOUNDS] * self._d, *noise_bounds]
        return table[:, 0], table[:, 1], np.log(bounds)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Compute minus the log posterior and its gradient."""
        inverse_squares = np.exp(-2 * theta[1 : self._d + 1])
        correlation, r, decay = _matern(inverse_squares @ self._gaps)
        slope = (5 / 3) * (1 + r) * decay  # minus twice the derivative by the squared distance
        covariance, output_scale = self._covariance(theta, correlation)
        factor, info = dpotrf(covariance, lower=1, overwrite_a=1)
        if info:  # not positive definite, so that the optimiser must turn back
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
        if self._fits_noise:
            gradient[-1] = math.exp(theta[-1]) * by_diagonal.sum()
        z = (theta - self._mean) / self._deviation
        return 0.5 * float(z @ z) - log_likelihood, z / self._deviation - gradient

    def solve(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the Cholesky factor of the observations' covariance and the weights of values."""
        correlation, _, _ = _matern(np.exp(-2 * theta[1 : self._d + 1]) @ self._gaps)
        factor, _ = dpotrf(self._covariance(theta, correlation)[0], lower=1, overwrite_a=1)
        return factor, dpotrs(factor, self._y, lower=1)[0]

    def _covariance(self, theta: FloatArray, correlation: FloatArray) -> tuple[FloatArray, float]:
        """Build the lower triangle of the covariance of observations; also return the scale."""
        n = len(self._y)
        output_scale = math.exp(theta[0])
        noise = _noise(theta, self._d, self._noise)
        by_columns = np.zeros(n * n)
        by_columns[self._lower] = output_scale * correlation
        by_columns[:: n + 1] = output_scale + noise + _JITTER
        return by_columns.reshape((n, n), order="F"), output_scale


def _noise(theta: FloatArray, d: int, known: FloatArray | None) -> FloatArray | float:
    """Add the noise that is known and the one that was fitted; ``d``: how many inputs there are."""
    fitted = math.exp(theta[-1]) if len(theta) > d + 1 else 0.0
    return fitted if known is None else known + fitted


def _large_factor(x: FloatArray, output_scale: float, noise: FloatArray | float) -> FloatArray:
    """Factor the covariance at ``x``, shape (n, d), by Cholesky in the memory of one matrix."""
    n = len(x)
    covariance = np.empty((n, n), order="F")
    step = max(1, _BLOCK_NUMBERS // n)
    others = _prepared(x)
    for start in range(0, n, step):
        part = _correlation(x[start : start + step], *others)
        covariance[start : start + step] = output_scale * part
    covariance[np.diag_indices(n)] = output_scale + noise
    factor: FloatArray = dpotrf(covariance, lower=1, overwrite_a=1)[0]
    return factor


def _prepared(b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute -2 b', shape (d, n), and the squared lengths of the rows of ``b``, (n, d)."""
    return -2 * b.T, (b**2).sum(axis=1)


def _correlation(a: FloatArray, products: FloatArray, squared: FloatArray) -> FloatArray:
    """Compute correlations between places in units of the length scales, (len(a), n).

    ``products`` and ``squared``: what `_prepared` made of n other places.
    """
    squares = a @ products
    squares += (a**2).sum(axis=1)[:, None]
    squares += squared
    return _matern(np.maximum(squares, 0.0, out=squares))[0]


def _matern(squares: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Evaluate Matern 5/2 at squared scaled distances, in whose place r is written.

    Also returns r, the distances times sqrt(5), and exp(-r). These arrays are the largest.
    """
    squares *= 5
    r = np.sqrt(squares, out=squares)
    decay = np.negative(r)
    np.exp(decay, out=decay)
    correlation = r / 3
    correlation += 1
    correlation *= r
    correlation += 1  # 1 + r + r^2 / 3
    correlation *= decay
    return correlation, r, decay
