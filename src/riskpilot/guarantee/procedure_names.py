"""Procedures in records: by name, by their numbers, or by a fingerprint of the user's own code."""

import functools
import hashlib
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from riskpilot.guarantee.procedures import Graphical, Procedure, bonferroni, fixed_sequence, holm

_BY_NAME: dict[str, Procedure] = {
    "fixed_sequence": fixed_sequence,
    "bonferroni": bonferroni,
    "holm": holm,
}
_CUSTOM = "custom: "  # so begins the name of a procedure of the user's own


def describe(procedure: Procedure) -> dict[str, Any]:
    """Describe a procedure in plain JSON values, from which `from_description` makes it again."""
    if isinstance(procedure, Graphical):
        return {"name": "graphical", "weights": procedure.weights, "edges": procedure.edges}
    name = getattr(procedure, "__name__", type(procedure).__name__)
    if _BY_NAME.get(name) is procedure:
        return {"name": name}
    return {"name": f"{_CUSTOM}{name}", **_origin(procedure)}


def custom_name(description: Mapping[str, Any]) -> str | None:
    """Return the name of a described procedure of the user's own; None for riskpilot's."""
    name = str(description["name"])
    return name.removeprefix(_CUSTOM) if name.startswith(_CUSTOM) else None


def _origin(procedure: Procedure) -> dict[str, Any]:
    """Say where a procedure of the user's own comes from, with a digest of what it does.

    Two procedures of one name are two questions to the calibration data. What cannot be
    told apart by its text, such as an object that shows its place in memory alone, counts as new
    each time, never as another one.
    """
    shown = procedure if hasattr(procedure, "__qualname__") else type(procedure)
    digest = hashlib.sha256("\n".join(_lines_of(procedure)).encode()).hexdigest()
    return {"origin": f"{shown.__module__}.{shown.__qualname__}", "digest": digest}


def _lines_of(thing: Any, within: tuple[Any, ...] = ()) -> Iterator[str]:
    """Write down what a procedure does, part by part.

    A function is its code, the code's constants and the values that it has closed over; a partial
    or a method is its parts; anything else is its text.
    """
    if any(thing is outer for outer in within):
        yield "itself"
        return
    head, parts = _parts(thing)
    yield f"{head} of {len(parts)}"
    for part in parts:
        yield from _lines_of(part, (*within, thing))


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
        case set() | frozenset():  # each process has texts in an order of its own
            return "set", tuple(sorted(thing, key=lambda part: "\n".join(_lines_of(part))))
        case np.ndarray():
            return f"array {thing.dtype} {thing.tolist()}", ()
    call = type(thing).__call__ if callable(thing) else None
    is_written_in_python = isinstance(call, types.FunctionType)
    return f"{type(thing).__qualname__} {thing!r}", (call,) if is_written_in_python else ()


def from_description(description: Mapping[str, Any]) -> Procedure | None:
    """Return the procedure that a certificate names; None for one that only its user has."""
    if description.get("name") == "graphical":
        return Graphical(description["weights"], description["edges"])
    return _BY_NAME.get(str(description.get("name")))
