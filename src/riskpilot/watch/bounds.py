"""Bounds on a mean that hold at all times at once, also where the mean wanders.

The values x_i lie in [0, 1], m_i = E[x_i | past], and what is bounded is the mean of m_1, ..., m_n.
Two families of nonnegative supermartingales start at 1, whatever the m_i are:

- exp(u sum(x_i - m_i) - psi(u) sum((x_i - c_i)^2)) for 0 <= u < 1, psi(u) = -log(1 - u) - u, and
  any c_i in [0, 1] that the past decides (Howard, Ramdas, McAuliffe and Sekhon, 2021);
- exp(u sum(x_i) - sum(log(1 + m_i (e^u - 1)))) for u >= 0, as x_i is at most as spread as 0 and 1
  with the same mean. The logarithm is concave in m_i, so that n times its value at the mean of the
  m_i is at least the sum.

A mixture of both over some u reaches 1 / level with probability at most level (Ville). Means at
which it would have done so are left out. The second family is sharp for losses of 0 and 1, the
first for losses that vary less.
"""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_STEPS = 2.0 ** -np.arange(16)
_BERNSTEIN = 0.9 * _STEPS
_PSI = -np.log1p(-_BERNSTEIN) - _BERNSTEIN
_BERNOULLI = 8.0 * _STEPS
_GROWTH = np.expm1(_BERNOULLI)
_HALVINGS = 50


def lower_bound(
    count: npt.ArrayLike,
    total: npt.ArrayLike,
    spread: npt.ArrayLike | None,
    level: npt.ArrayLike,
) -> FloatArray:
    """Bound means from below.

    Parameters
    ----------
    count, total : array of shape (n,)
        How many values there are, and their sums.
    spread : array of shape (n,) or None
        The sums of their squared deviations from numbers that were known before each; None where
        they are not known.
    level : array of shape (n,), or one for all
        The probability that the bound is ever above the mean, over all times together.

    Returns
    -------
    array of shape (n,)
        In [0, 1].

    Examples
    --------
    >>> lower_bound([1_000], [150], None, 0.05).round(3)
    array([0.115])
    """
    n = np.atleast_1d(np.asarray(count, dtype=np.float64))
    sums = np.broadcast_to(np.asarray(total, dtype=np.float64), n.shape)
    squares = None if spread is None else np.broadcast_to(np.asarray(spread, np.float64), n.shape)
    needed = np.log(1 / np.asarray(level, dtype=np.float64))
    # The evidence against a mean falls in the mean, and there is none against the observed one.
    low, high = np.zeros(n.shape), np.divide(sums, n, out=np.zeros(n.shape), where=n > 0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_out = _log_evidence(middle, n, sums, squares) >= needed
        low, high = np.where(is_out, middle, low), np.where(is_out, high, middle)
    return low


def upper_bound(
    count: npt.ArrayLike,
    total: npt.ArrayLike,
    spread: npt.ArrayLike | None,
    level: npt.ArrayLike,
) -> FloatArray:
    """Bound means from above: one minus the lower bounds of one minus the values.

    Parameters
    ----------
    count, total, spread, level : array of shape (n,)
        As for `lower_bound`.

    Returns
    -------
    array of shape (n,)
        In [0, 1].
    """
    return 1 - lower_bound(count, np.subtract(count, total), spread, level)


def _log_evidence(
    mean: FloatArray, count: FloatArray, total: FloatArray, spread: FloatArray | None
) -> FloatArray:
    """The logarithm of the mixture if the values had this mean; shape (n,)."""
    n, whole, m = count[:, None], total[:, None], mean[:, None]
    exponents = _BERNOULLI * whole - n * np.log1p(m * _GROWTH)
    if spread is not None:
        more = _BERNSTEIN * (whole - n * m) - _PSI * spread[:, None]
        exponents = np.concatenate((exponents, more), axis=1)
    largest = exponents.max(axis=1)
    return np.asarray(largest + np.log(np.exp(exponents - largest[:, None]).mean(axis=1)))
