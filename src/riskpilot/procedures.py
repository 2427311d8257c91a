"""Multiple testing: which hypotheses to reject so that any false rejection is rarer than delta.

A procedure takes log p-values in testing order, shape (n,), and delta, and returns which hypotheses
are rejected, shape (n,). Each keeps P(any false rejection) <= delta for super-uniform p-values of
any dependence.
"""

import functools
import hashlib
import math
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from riskpilot.errors import ProblemError

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


class Procedure(Protocol):
    def __call__(self, log_p: FloatArray, delta: float, /) -> BoolArray: ...


def fixed_sequence(log_p: FloatArray, delta: float) -> BoolArray:
    """Reject in the given order until the first p >= delta. Theorem thm:ltt.

    >>> fixed_sequence(np.log([0.01, 0.2, 0.01]), 0.1)
    array([ True, False, False])
    """
    return np.logical_and.accumulate(np.asarray(log_p) < math.log(delta))


def bonferroni(log_p: FloatArray, delta: float) -> BoolArray:
    """Reject every p < delta / n.

    >>> bonferroni(np.log([0.01, 0.2, 0.04]), 0.1)
    array([ True, False, False])
    """
    log_p = np.asarray(log_p)
    return log_p < math.log(delta) - math.log(max(len(log_p), 1))


def holm(log_p: FloatArray, delta: float) -> BoolArray:
    """Holm's step-down: Bonferroni over those that are left, from the smallest p on.

    >>> holm(np.log([0.01, 0.2, 0.04]), 0.1)
    array([ True, False,  True])
    """
    log_p = np.asarray(log_p)
    order = np.argsort(log_p, kind="stable")
    left = np.arange(len(log_p), 0, -1)
    rejected = np.empty(len(log_p), dtype=bool)
    rejected[order] = np.logical_and.accumulate(log_p[order] < math.log(delta) - np.log(left))
    return rejected


@dataclass(frozen=True)
class Graphical:
    """The graphical procedure of Bretz and others: weights, and where a rejected one's weight goes.

    ``weights``: shape (n,), summing to at most 1; ``edges``: shape (n, n), ``edges[i][j]`` the
    share of i's weight that goes to j when i is rejected; rows sum to at most 1, no loops.
    Both must be fixed before calibration data is opened; they refer to positions in testing order.

    >>> chain(3)(np.log([0.01, 0.2, 0.01]), 0.1)
    array([ True, False, False])
    """

    weights: tuple[float, ...]
    edges: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        try:
            weights, edges = np.asarray(self.weights, float), np.asarray(self.edges, float)
        except (TypeError, ValueError) as error:
            raise ProblemError(
                f"A graph needs n weights and n x n edges, all numbers, but they cannot be read: "
                f"{error}. Give one weight and one row of n edges per candidate."
            ) from error
        n = len(weights)
        if weights.ndim != 1 or n == 0 or edges.shape != (n, n):
            raise ProblemError(
                f"A graph needs n weights and n x n edges, but has shapes {weights.shape} and "
                f"{edges.shape}. Give one weight and one row of edges per candidate."
            )
        if not (weights >= 0).all() or weights.sum() > 1 + 1e-12:
            raise ProblemError(
                f"Weights of a graph must be at least 0 and sum to at most 1, but they sum to "
                f"{weights.sum():g}. Divide them by their sum."
            )
        if not (edges >= 0).all() or (edges.sum(axis=1) > 1 + 1e-12).any() or edges.trace() != 0:
            raise ProblemError(
                f"Edges of a graph must be at least 0, sum to at most 1 in each row, and be 0 on "
                f"the diagonal, but they are {edges.tolist()}. Divide each row by its sum and drop "
                f"loops."
            )
        object.__setattr__(self, "weights", tuple(map(float, weights)))
        object.__setattr__(self, "edges", tuple(tuple(map(float, row)) for row in edges))

    def __call__(self, log_p: FloatArray, delta: float, /) -> BoolArray:
        log_p = np.asarray(log_p)
        if len(log_p) != len(self.weights):
            raise ProblemError(
                f"The graph was made for {len(self.weights)} candidates, but {len(log_p)} are "
                f"tested. Make it for that number: it is known from validation alone."
            )
        weights, edges = np.array(self.weights), np.array(self.edges)
        active = np.ones(len(weights), dtype=bool)
        while True:
            with np.errstate(divide="ignore"):
                passing = active & (log_p < np.log(weights) + math.log(delta))
            if not passing.any():
                return ~active
            i = int(np.argmax(passing))
            active[i] = False
            weights, edges = _without(i, weights, edges)


def _without(i: int, weights: FloatArray, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The graph after i is rejected: its weight and its edges go where they pointed."""
    weights = weights + weights[i] * edges[i]
    weights[i] = 0.0
    through = edges[:, [i]] * edges[[i], :]  # j -> i -> k
    back = 1 - edges[:, i] * edges[i, :]  # the share of j's weight that does not return to j
    with np.errstate(invalid="ignore", divide="ignore"):
        edges = np.where(back[:, None] > 0, (edges + through) / back[:, None], 0.0)
    edges[i, :] = 0.0
    edges[:, i] = 0.0
    np.fill_diagonal(edges, 0.0)
    return weights, edges


def chain(n: int) -> Graphical:
    """All weight on the first, each passing it on to the next: the fixed sequence as a graph."""
    if n < 1:
        raise ProblemError(
            f"A chain needs at least one candidate, but n is {n!r}. "
            f"Make it for the number of candidates."
        )
    weights = tuple(1.0 if i == 0 else 0.0 for i in range(n))
    return Graphical(weights, tuple(map(tuple, np.eye(n, k=1).tolist())))


def check_procedure(procedure: object) -> None:
    """Refuse what is no procedure, before calibration data is opened for it."""
    if not callable(procedure):
        raise ProblemError(
            f"A procedure is a function of log p-values and delta, but it is {procedure!r}. "
            f"Pass one: procedure=riskpilot.holm."
        )


_BY_NAME: dict[str, Procedure] = {
    "fixed_sequence": fixed_sequence,
    "bonferroni": bonferroni,
    "holm": holm,
}


def describe(procedure: Procedure) -> dict[str, Any]:
    """A JSON-ready description, from which `from_description` makes the procedure again."""
    if isinstance(procedure, Graphical):
        return {"name": "graphical", "weights": procedure.weights, "edges": procedure.edges}
    name = getattr(procedure, "__name__", type(procedure).__name__)
    if _BY_NAME.get(name) is procedure:
        return {"name": name}
    return {"name": f"custom: {name}", **_origin(procedure)}


def _origin(procedure: Procedure) -> dict[str, Any]:
    """Where a procedure of the user's own comes from, and a digest of what it does: two of one name
    are two questions to the calibration data. What cannot be told apart by its text, such as an
    object that shows its place in memory alone, counts as new each time, never as another one."""
    shown = procedure if hasattr(procedure, "__qualname__") else type(procedure)
    digest = hashlib.sha256("\n".join(_told(procedure)).encode()).hexdigest()
    return {"origin": f"{shown.__module__}.{shown.__qualname__}", "digest": digest}


def _told(thing: Any, within: tuple[Any, ...] = ()) -> Iterator[str]:
    """A function as its code, the code's constants and the values that it has closed over; a
    partial or a method as its parts; anything else as its text."""
    if any(thing is outer for outer in within):
        yield "itself"
        return
    head, parts = _parts(thing)
    yield f"{head} of {len(parts)}"
    for part in parts:
        yield from _told(part, (*within, thing))


def _parts(thing: Any) -> tuple[str, tuple[Any, ...]]:
    match thing:
        case functools.partial():
            return "partial", (thing.func, thing.args, tuple(sorted(thing.keywords.items())))
        case types.MethodType():
            return "method", (thing.__func__, thing.__self__)
        case types.FunctionType():
            closed_over = tuple(cell.cell_contents for cell in thing.__closure__ or ())
            return "function", (
                thing.__code__,
                closed_over,
                thing.__defaults__,
                thing.__kwdefaults__,
            )
        case types.CodeType():
            return f"code {thing.co_code.hex()} {thing.co_names}", thing.co_consts
        case tuple() | list():
            return "list", tuple(thing)
        case np.ndarray():
            return f"array {thing.dtype} {thing.tolist()}", ()
    call = type(thing).__call__ if callable(thing) else None
    is_written_in_python = isinstance(call, types.FunctionType)
    return f"{type(thing).__qualname__} {thing!r}", (call,) if is_written_in_python else ()


def from_description(description: Mapping[str, Any]) -> Procedure | None:
    """The procedure that a certificate names; None for one that only its user has."""
    if description.get("name") == "graphical":
        return Graphical(description["weights"], description["edges"])
    return _BY_NAME.get(str(description.get("name")))
