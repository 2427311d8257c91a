"""JSON with one meaning: finite numbers, each name once, the same text for the same value."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from riskpilot.errors import RiskpilotError, shown, visible

_MOST_BITS = 4096  # Python itself refuses to write whole numbers much longer than this
_MOST_DIGITS = 1234  # of such a number
# Nothing that people configure is nested deeper, and code that follows each level has its limits.
_MOST_LEVELS = 100


class _NotPlain(Exception):
    """A value that JSON cannot hold."""


def canonical(value: Any) -> str:
    """Write plain JSON values as the one text that stands for them.

    >>> canonical({"b": 1, "a": 1.0})
    '{"a": 1.0, "b": 1}'
    """
    return json.dumps(value, sort_keys=True, allow_nan=False)


def digest_of(value: Any) -> str:
    """Compute the SHA-256 digest of plain JSON values."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def nearly_equal(one: Any, other: Any) -> bool:
    """Tell whether two plain JSON values are equal, up to the rounding of another machine.

    >>> nearly_equal({"a": [0.1 + 0.2]}, {"a": [0.3]}), nearly_equal([1], [1.0])
    (True, False)
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(nearly_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(nearly_equal, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


def parse(text: str) -> Any:
    """Read JSON of one meaning.

    ValueError where it is none, a number is not finite or is too long, a name is there twice, a
    text has half of a character, or it is nested more than 100 levels deep.
    """
    try:
        value = json.loads(
            text,
            parse_float=_finite,
            parse_int=_whole,
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique,
        )
    except RecursionError:
        value = None
        deep = True
    else:
        deep = _is_deep(value)
    if deep:
        raise ValueError(f"it is nested more than {_MOST_LEVELS} levels deep")
    if r"\ud" in text.lower() and not is_whole_text(json.dumps(value, ensure_ascii=False)):
        raise ValueError("a text has half of a character in it")
    return value


def is_whole_text(text: str) -> bool:
    """Tell whether a text has no half of a surrogate pair, which strict JSON does not have.

    >>> is_whole_text("whole \U0001f600"), is_whole_text("half \\ud83d")
    (True, False)
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def for_programs(value: Any) -> Any:
    """Copy a value into strict JSON, whatever it is: what JSON does not have becomes a text.

    >>> for_programs({"rate": float("nan"), "kind": {1, }})
    {'rate': 'nan', 'kind': '{1}'}
    """
    if isinstance(value, Mapping):
        return {visible(str(name)): for_programs(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [for_programs(inner) for inner in value]
    try:
        kept = plain(value)
    except _NotPlain:
        kept = shown(value) if not isinstance(value, str | float) else visible(str(value))
    return kept


def plain(value: Any, level: int = 0) -> Any:
    """Copy a value into what JSON holds: NumPy's numbers become Python's, tuples become lists.

    >>> plain({"layers": (32, np.int64(16)), "rate": np.float64(0.1)})
    {'layers': [32, 16], 'rate': 0.1}
    """
    if level > _MOST_LEVELS:
        raise _NotPlain(f"it contains itself, or is nested more than {_MOST_LEVELS} levels deep")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _whole_text(value)
    if isinstance(value, int) and value.bit_length() <= _MOST_BITS:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {_whole_text(name): plain(inner, level + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, level + 1) for inner in value]
    raise _NotPlain(_brief(value))


def plain_configs(
    configs: Sequence[Mapping[str, Any]], error: type[RiskpilotError]
) -> tuple[dict[str, Any], ...]:
    """Copy configurations into what JSON holds, or say which one cannot be kept as it is."""
    scalar = isinstance(configs, np.ndarray) and configs.ndim == 0
    if scalar or isinstance(configs, str | bytes | Mapping) or not isinstance(configs, Iterable):
        raise error(
            f"configs is a list with one mapping for each configuration, but it is "
            f'{shown(configs, 80)}. Write configs=[{{"threshold": 0.5}}, ...].'
        )
    result = []
    for row, config in enumerate(configs):
        try:
            result.append(plain(config))
        except _NotPlain as why:
            raise error(
                f"A certificate keeps configurations as JSON: names are texts, values are finite "
                f"numbers, texts, truth values, None, or lists and mappings of these. "
                f"Configuration {row} cannot be kept: {why}. Write it in such values, for example "
                f"a path as its text."
            ) from None
    return tuple(result)


def _brief(value: Any) -> str:
    if isinstance(value, Mapping):
        name = next(name for name in value if not isinstance(name, str))
        return f"a name is {shown(name, 80)} ({type(name).__name__})"
    return f"a value is {shown(value, 80)} ({type(value).__name__})"


def _whole_text(text: str) -> str:
    """Copy a text, of whatever kind, unless it has half of a character in it."""
    if not is_whole_text(text):
        raise _NotPlain(f"the text {shown(text, 80)} has half of a character in it")
    return str.__str__(text)


def _is_deep(value: Any) -> bool:
    """Tell whether lists and objects are nested deeper than anything should be."""
    level, inside = 0, [value]
    while inside and level <= _MOST_LEVELS:
        level += 1
        inside = [
            inner
            for outer in inside
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(inside)


def _whole(text: str) -> int:
    """Read a whole number, if it is not longer than Python writes."""
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"{text[:20]}... is a whole number of {len(text):,} digits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is larger than any number of a computer")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} occurs twice in one object")
    return found
