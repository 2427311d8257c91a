"""Multiple testing: which hypotheses to reject so that any false rejection is rarer than delta.

A procedure takes log p-values in testing order, shape (n,), and delta, and returns which hypotheses
are rejected, shape (n,). Each keeps P(any false rejection) <= delta for super-uniform p-values of
any dependence.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.errors import ProblemError, shown

_ROUNDING = 1e-12  # by so much may sums of weights and of edges exceed 1
_SMALLEST_AIM = 1e-300  # a level whose logarithm is a number
_LONGEST_CHAIN = 2_000


class Procedure(Protocol):
    """A function of log p-values in testing order and delta that says which are rejected."""

    def __call__(self, log_p: FloatArray, delta: float, /) -> BoolArray: ...


def fixed_sequence(log_p: FloatArray, delta: float) -> BoolArray:
    """Reject in the given order until the first p >= delta.

    This is the test of Learn Then Test, and the default of every selection.

    Parameters
    ----------
    log_p : array of shape (n,)
        Log p-values in testing order; one that is NaN is not rejected.
    delta : float
        The family-wise error rate that is kept.

    Returns
    -------
    array of bool, shape (n,)
        Which hypotheses are rejected.

    Raises
    ------
    ProblemError
        Where log_p is no array of numbers of shape (n,), or delta does not lie in (0, 1).

    Examples
    --------
    >>> fixed_sequence(np.log([0.01, 0.2, 0.01]), 0.1)
    array([ True, False, False])
    """
    log_p, log_delta = _checked(log_p, delta)
    # Theorem thm:ltt
    return np.logical_and.accumulate(log_p < log_delta)


def bonferroni(log_p: FloatArray, delta: float) -> BoolArray:
    """Reject every p < delta / n.

    Parameters
    ----------
    log_p : array of shape (n,)
        Log p-values; one that is NaN is not rejected.
    delta : float
        The family-wise error rate that is kept.

    Returns
    -------
    array of bool, shape (n,)
        Which hypotheses are rejected.

    Raises
    ------
    ProblemError
        Where log_p is no array of numbers of shape (n,), or delta does not lie in (0, 1).

    Examples
    --------
    >>> bonferroni(np.log([0.01, 0.2, 0.04]), 0.1)
    array([ True, False, False])
    """
    log_p, log_delta = _checked(log_p, delta)
    return log_p < log_delta - math.log(max(len(log_p), 1))


def holm(log_p: FloatArray, delta: float) -> BoolArray:
    """Holm's step-down: Bonferroni over those that are left, from the smallest p on.

    Parameters
    ----------
    log_p : array of shape (n,)
        Log p-values; one that is NaN is not rejected.
    delta : float
        The family-wise error rate that is kept.

    Returns
    -------
    array of bool, shape (n,)
        Which hypotheses are rejected.

    Raises
    ------
    ProblemError
        Where log_p is no array of numbers of shape (n,), or delta does not lie in (0, 1).

    Examples
    --------
    >>> holm(np.log([0.01, 0.2, 0.04]), 0.1)
    array([ True, False,  True])
    """
    log_p, log_delta = _checked(log_p, delta)
    order = np.argsort(log_p, kind="stable")
    left = np.arange(len(log_p), 0, -1)
    rejected = np.empty(len(log_p), dtype=bool)
    rejected[order] = np.logical_and.accumulate(log_p[order] < log_delta - np.log(left))
    return rejected


def _checked(log_p: FloatArray, delta: float) -> tuple[FloatArray, float]:
    """Return log p-values as an array of floats, and the logarithm of delta."""
    try:
        values = np.asarray(log_p)
    except (TypeError, ValueError) as error:
        raise ProblemError(
            f"A procedure takes log p-values, numbers in an array of shape (n,), but they form "
            f"none: {error}. Pass np.log of the p-values."
        ) from error
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise ProblemError(
            f"A procedure takes log p-values, numbers in an array of shape (n,), but they have "
            f"shape {values.shape} and type {values.dtype}. Pass np.log of the p-values."
        )
    number = isinstance(delta, int | float | np.floating) and not isinstance(delta, bool)
    if not number or not 0 < delta < 1:
        raise ProblemError(
            f"delta is how often a promise may fail and lies in (0, 1), but it is {shown(delta)}. "
            f"Use delta=0.1."
        )
    hidden = np.ma.getmaskarray(log_p)  # of masked arrays; nothing otherwise
    return np.where(hidden, np.nan, values), math.log(delta)


@dataclass(frozen=True)
class Graphical:
    """The graphical procedure of Bretz and others: weights, and where a rejected one's weight goes.

    Both must be fixed before calibration data is opened; they refer to positions in testing order.
    Sums that exceed 1 by the rounding of a machine are brought back to 1.

    Parameters
    ----------
    weights : sequence of n numbers
        At least 0, summing to at most 1.
    edges : n sequences of n numbers
        ``edges[i][j]`` is the share of i's weight that goes to j when i is rejected. Rows sum to at
        most 1, without loops.

    Raises
    ------
    ProblemError
        Where weights or edges break one of these rules.

    Examples
    --------
    >>> chain(3)(np.log([0.01, 0.2, 0.01]), 0.1)
    array([ True, False, False])
    """

    weights: tuple[float, ...]
    edges: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)  # of masked numbers, which are none
                given = np.asarray(self.weights), np.asarray(self.edges)
            if any(array.dtype.kind not in "biufO" for array in given):
                raise TypeError(f"their types are {given[0].dtype} and {given[1].dtype}")
            with np.errstate(over="ignore"):  # of longer floats: infinite, which is no share
                weights, edges = (array.astype(np.float64) for array in given)
        except (TypeError, ValueError, OverflowError, UserWarning) as error:
            raise ProblemError(
                f"A graph needs n weights and n x n edges, all numbers, but they cannot be read: "
                f"{error}. Give one weight and one row of n edges per candidate."
            ) from error
        n = weights.size
        if weights.ndim != 1 or n == 0 or edges.shape != (n, n):
            raise ProblemError(
                f"A graph needs n weights and n x n edges, but has shapes {weights.shape} and "
                f"{edges.shape}. Give one weight and one row of edges per candidate."
            )
        if not _are_shares(weights):
            raise ProblemError(
                f"Weights of a graph must be at least 0 and sum to at most 1, but they sum to "
                f"{weights.sum():g}. Divide them by their sum."
            )
        if not all(map(_are_shares, edges)) or edges.diagonal().any():
            raise ProblemError(
                f"Edges of a graph must be at least 0, sum to at most 1 in each row, and be 0 on "
                f"the diagonal, but they are {edges.tolist()}. Divide each row by its sum and drop "
                f"loops."
            )
        object.__setattr__(self, "weights", _shares(weights))
        object.__setattr__(self, "edges", tuple(map(_shares, edges)))

    def __call__(self, log_p: FloatArray, delta: float, /) -> BoolArray:
        log_p, log_delta = _checked(log_p, delta)
        _check_size(self, len(log_p))
        graph = _Graph.of(self)
        active = np.ones(len(log_p), dtype=bool)
        while True:
            with np.errstate(divide="ignore"):
                passing = active & (log_p < np.log(graph.weights) + log_delta)
            if not passing.any():
                return ~active
            i = int(np.argmax(passing))
            active[i] = False
            graph = graph.without(i)


def _are_shares(values: FloatArray) -> bool:
    """Say whether numbers are at least 0 and sum to at most 1, up to rounding."""
    each = (values >= 0) & (values <= 1 + _ROUNDING)
    return bool(each.all()) and math.fsum(values) <= 1 + _ROUNDING


def _shares(values: FloatArray) -> tuple[float, ...]:
    """Scale shares down so that they sum to at most 1."""
    return tuple(map(float, values / max(math.fsum(values), 1.0)))


def _nowhere(shares: FloatArray) -> float:
    """Return what shares leave of 1, or 0 where that is no more than their rounding."""
    left = math.fsum((1.0, *-shares))
    return left if left > len(shares) * np.finfo(np.float64).eps else 0.0


@dataclass(frozen=True)
class _Graph:
    """A graph on its way: what is left of ``weights``, shape (n,), and of ``edges``, shape
    (n, n + 1), whose last column is the share that goes nowhere, so that rows sum to 1."""

    weights: FloatArray
    edges: FloatArray

    @classmethod
    def of(cls, procedure: Graphical) -> "_Graph":
        edges = np.array(procedure.edges)
        nowhere = list(map(_nowhere, edges))
        return cls(np.array(procedure.weights), np.column_stack([edges, nowhere]))

    def without(self, i: int) -> "_Graph":
        """Return the graph after i is rejected: its weight and its edges go where they pointed.

        What goes from j through i back to j is shared out again: the rest of j's row is divided by
        its sum. That sum is 1 - edges[j, i] edges[i, j], added up from parts that are at least 0,
        so that it is exact to rounding however small it is. Where all of it comes back, nothing
        is passed on.
        """
        weights = self.weights + self.weights[i] * self.edges[i, :-1]
        weights[i] = 0.0
        edges = self.edges + self.edges[:, [i]] * self.edges[[i], :]  # j -> i -> k
        edges[:, i] = 0.0
        np.fill_diagonal(edges, 0.0)
        rest = edges.sum(axis=1, keepdims=True)
        edges = np.divide(edges, rest, out=np.zeros_like(edges), where=rest > 0)
        return _Graph(weights, edges)


def chain(n: int) -> Graphical:
    """Make the fixed sequence as a graph: all weight on the first, each passes it on to the next.

    Parameters
    ----------
    n : int
        The number of candidates, at least 1.

    Returns
    -------
    Graphical
        The graph.

    Raises
    ------
    ProblemError
        Where n is no whole number of at least 1.

    Examples
    --------
    >>> chain(2)
    Graphical(weights=(1.0, 0.0), edges=((0.0, 1.0), (0.0, 0.0)))
    """
    if isinstance(n, bool | np.timedelta64) or not isinstance(n, int | np.integer) or n < 1:
        raise ProblemError(
            f"A chain needs at least one candidate, but n is {shown(n)}. "
            f"Make it for the number of candidates."
        )
    if n > _LONGEST_CHAIN:
        raise ProblemError(
            f"A chain has at most {_LONGEST_CHAIN:,} candidates, since a graph has n x n edges, "
            f"but n is {shown(n)}. Use fixed_sequence: it is the same test."
        )
    weights = tuple(1.0 if i == 0 else 0.0 for i in range(n))
    return Graphical(weights, tuple(map(tuple, np.eye(n, k=1).tolist())))


def aims(procedure: Procedure, n: int, delta: float) -> FloatArray:
    """Find the level at which each candidate is decided if all before it pass, shape (n,).

    Tests that can be made sharp at a level of choice, such as bets, aim at it. Any level is valid
    that is fixed before calibration data is opened. Of a procedure of the user's own nothing is
    known: there it is delta.

    >>> aims(holm, 4, 0.12).round(3)
    array([0.03, 0.04, 0.06, 0.12])
    """
    if isinstance(procedure, Graphical):
        return np.maximum(delta * _weights_in_order(procedure, n), _SMALLEST_AIM)
    if procedure is bonferroni:
        return np.full(n, delta / n)
    if procedure is holm:
        return delta / np.arange(n, 0, -1)
    return np.full(n, delta)


def _weights_in_order(procedure: Graphical, n: int) -> FloatArray:
    """Find the weight of each candidate when all before it are rejected; 1 where it has none."""
    _check_size(procedure, n)
    graph, found = _Graph.of(procedure), np.ones(n)
    for i in range(n):
        if graph.weights[i] > 0:
            found[i] = min(float(graph.weights[i]), 1.0)
        graph = graph.without(i)
    return found


def _check_size(procedure: Graphical, n: int) -> None:
    if n != len(procedure.weights):
        raise ProblemError(
            f"The graph was made for {len(procedure.weights)} candidates, but {n} are tested. "
            f"Make it for that number: it is known from validation alone."
        )


def check_procedure(procedure: Procedure) -> None:
    """Refuse what cannot be a procedure."""
    if not callable(procedure) or isinstance(procedure, type):
        raise ProblemError(
            f"A procedure is a function of log p-values and delta, but it is {shown(procedure)}. "
            f"Pass one: procedure=riskpilot.holm."
        )
