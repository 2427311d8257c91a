"""Shapes of stored JSON: what may stand where, checked before any of it is used."""

import math
import re
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

Shape = Callable[[Any, str], None]
"""A check of a value and the name of its place; it raises `ShapeError`."""

_LARGEST = sys.float_info.max
_DIGEST = re.compile(r"[0-9a-f]{64}")


class ShapeError(Exception):
    """A value that does not have the shape it must have: the rule and the value, in words."""


def text(value: Any, place: str) -> None:
    if type(value) is not str:
        raise _wrong(place, "a text", value)


def flag(value: Any, place: str) -> None:
    if type(value) is not bool:
        raise _wrong(place, "true or false", value)


def digest(value: Any, place: str) -> None:
    if type(value) is not str or not _DIGEST.fullmatch(value):
        raise _wrong(place, "a SHA-256 digest", value)


def moment(value: Any, place: str) -> None:
    """Accept a date and time in UTC, to the second, as ``isoformat`` writes it."""
    try:
        read = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _wrong(place, "a date and time", value) from None
    offset = read.utcoffset()
    if offset is None or offset or read.isoformat(timespec="seconds") != value:
        raise _wrong(place, "a date and time in UTC, as in 2026-01-31T12:00:00+00:00", value)


def integer(value: Any, place: str) -> None:
    if type(value) is not int:
        raise _wrong(place, "a whole number", value)


def whole(least: int = 0) -> Shape:
    def check(value: Any, place: str) -> None:
        if type(value) is not int or value < least:
            raise _wrong(place, f"a whole number of at least {least}", value)

    return check


def number(least: float = -math.inf, most: float = math.inf) -> Shape:
    """Accept a finite number that is written with a point, inside both bounds."""
    bounds = "" if least == -math.inf and most == math.inf else f" from {least:g} to {most:g}"

    def check(value: Any, place: str) -> None:
        if type(value) is not float or not math.isfinite(value) or not least <= value <= most:
            raise _wrong(place, f"a finite number with a point{bounds}", value)

    return check


def real(value: Any, place: str) -> None:
    """Accept any finite number."""
    if type(value) not in (int, float) or not -_LARGEST <= value <= _LARGEST:
        raise _wrong(place, "a finite number", value)


def optional(shape: Shape) -> Shape:
    def check(value: Any, place: str) -> None:
        if value is not None:
            shape(value, place)

    return check


def list_of(shape: Shape, length: int | None = None) -> Shape:
    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or length not in (None, len(value)):
            raise _wrong(place, "a list" if length is None else f"a list of {length}", value)
        for i, inner in enumerate(value):
            shape(inner, f"{place}[{i}]")

    return check


def mapping_of(shape: Shape) -> Shape:
    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(place, "an object", value)
        for name, inner in value.items():
            shape(inner, f"{place}.{name}")

    return check


def record(**shapes: Shape) -> Shape:
    """Accept an object that has exactly these names."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(place, "an object", value)
        odd = sorted(map(str, value.keys() ^ shapes.keys()))
        if odd:
            why = "is missing" if odd[0] in shapes else "does not belong there"
            raise ShapeError(f"{_inside(place, odd[0])} {why}")
        for name, shape in shapes.items():
            shape(value[name], _inside(place, name))

    return check


def also(shape: Shape, **more: Shape) -> Shape:
    """Accept an object of this shape that may have these names beside its own."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(place, "an object", value)
        for name in sorted(value.keys() & more.keys()):
            more[name](value[name], _inside(place, name))
        shape({name: one for name, one in value.items() if name not in more}, place)

    return check


def anything(value: Any, place: str) -> None:
    """Accept whatever JSON holds."""


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _wrong(place: str, rule: str, value: Any) -> ShapeError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return ShapeError(f"{place or 'it'} must be {rule}, but it is {shown}")
